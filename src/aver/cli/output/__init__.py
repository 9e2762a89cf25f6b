"""Everything that a command shows goes through here: commands build data and never print."""


class ReaderLeft(Exception):
    """The reader closed the pipe."""
