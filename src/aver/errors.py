"""Errors that a user can cause, one tree, one line each.

AverError                 exit status
├── UsageError            2    wrong flags, a wrong flow, an unknown job
├── UnreachableError      69   coordinator or engine can't be reached
├── CantWriteError        73   a file or folder of ours can't be written
└── InternalError         70   a bug in Aver
"""


class AverError(Exception):
    """What was being done, to what, and what to do next, in one line."""

    exit_status = 1


class UsageError(AverError):
    exit_status = 2


class UnreachableError(AverError):
    exit_status = 69


class InternalError(AverError):
    exit_status = 70


class CantWriteError(AverError):
    exit_status = 73
