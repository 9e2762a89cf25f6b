"""Calls of Python functions as jobs: `aver.Executor`, its futures and their exceptions."""

from aver.api.executor.errors import (
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
from aver.api.executor.executor import Executor
from aver.api.executor.future import Future

__all__ = [
    "Cancelled", "DependencyFailed", "Executor", "Exited", "Future", "JobError", "KilledBySignal", "LaunchFailed",
    "Lost", "OutOfMemory", "RemoteTraceback", "TimedOut", "UnusableResult",
]  # fmt: skip
