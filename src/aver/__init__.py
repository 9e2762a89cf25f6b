"""Aver runs batch jobs and flows, and tells the truth about how each of them ended.

`Flow`, `Run`, `Job`, `Attempt`, `Executor` and the exceptions of its futures are loaded when they are first used, so
that `import aver` costs nothing to the commands that do not need them.
"""

from aver.fast_start import TYPE_CHECKING
from aver.version import __version__, wrong_system

if TYPE_CHECKING:
    from aver.api import (
        Attempt,
        Cancelled,
        DependencyFailed,
        Executor,
        Exited,
        Flow,
        Future,
        Job,
        JobError,
        KilledBySignal,
        LaunchFailed,
        Lost,
        OutOfMemory,
        RemoteTraceback,
        Run,
        TimedOut,
        UnusableResult,
    )

__all__ = [
    "Attempt", "Cancelled", "DependencyFailed", "Executor", "Exited", "Flow", "Future", "Job", "JobError",
    "KilledBySignal", "LaunchFailed", "Lost", "OutOfMemory", "RemoteTraceback", "Run", "TimedOut", "UnusableResult",
    "__version__",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name in __all__:
        if wrong_system():
            raise ImportError(wrong_system())
        from importlib import import_module

        return getattr(import_module("aver.api"), name)
    raise AttributeError(f"module 'aver' has no attribute {name!r}")
