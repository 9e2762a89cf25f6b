"""The documentation as Aver carries it: its topics, a page on a terminal, man pages."""
