"""Everything that a command shows goes through here: commands build data and never print."""

NO_JOBS = "no jobs; `aver run -- COMMAND` runs one"


class ReaderLeft(Exception):
    """The reader closed the pipe."""
