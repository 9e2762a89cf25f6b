"""`aver top`: `feed` reads what there is, `board` is what is shown and what keys do, `screen` is the terminal."""
