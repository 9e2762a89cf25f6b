"""Calls of Python functions as jobs: `aver.Executor`, its futures and their exceptions."""

from aver.api.executor.executor import Executor
from aver.api.executor.future import Future
from aver.api.job_errors import (
    Cancelled,
    DependencyFailed,
    Exited,
    JobError,
    KilledBySignal,
    LaunchFailed,
    Lost,
    OutOfMemory,
    RemoteTraceback,
    TimedOut,
    UnusableResult,
)

__all__ = [
    "Cancelled", "DependencyFailed", "Executor", "Exited", "Future", "JobError", "KilledBySignal", "LaunchFailed",
    "Lost", "OutOfMemory", "RemoteTraceback", "TimedOut", "UnusableResult",
]  # fmt: skip
