"""Everything that a command shows goes through here: commands build data and never print."""


class ReaderLeft(Exception):
    """Nobody reads what is written: the pipe is closed."""
