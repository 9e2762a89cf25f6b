"""What a future raises when its job did not return a result, each with the verdict, why, and the end of the log.

JobError
├── OutOfMemory         also a MemoryError
├── TimedOut            also a TimeoutError
├── KilledBySignal
├── Lost                nobody saw how it ended, or its node failed
├── LaunchFailed
├── DependencyFailed    a job whose result it takes did not complete
├── Cancelled           also a concurrent.futures.CancelledError
├── UnusableResult      the result can't be pickled, or can't be read here
└── Exited              its program ended with an exit code and neither a result nor an exception

An exception that the function raised is raised as it is, with `RemoteTraceback` as its cause.
"""

from __future__ import annotations

import concurrent.futures
from typing import TYPE_CHECKING

from aver.errors import AverError
from aver.model import reasons
from aver.model.evidence import Verdict
from aver.model.states import State

if TYPE_CHECKING:
    from aver.api.job import Job


class JobError(AverError):
    """`verdict` None: the job was never submitted, or nobody could be asked."""

    verdict: Verdict | None = None
    why: str = ""
    log_tail: str = ""
    job: Job | None = None


class OutOfMemory(JobError, MemoryError):
    pass


class TimedOut(JobError, TimeoutError):
    pass


class KilledBySignal(JobError):
    pass


class Lost(JobError):
    pass


class LaunchFailed(JobError):
    pass


class DependencyFailed(JobError):
    pass


class Cancelled(JobError, concurrent.futures.CancelledError):
    pass


class UnusableResult(JobError):
    pass


class Exited(JobError):
    pass


class RemoteTraceback(Exception):
    """The traceback of the job, as text."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def kind_of(verdict: Verdict) -> type[JobError]:
    """The exception for a verdict that is not COMPLETED."""
    match verdict.state:
        case State.OUT_OF_MEMORY:
            return OutOfMemory
        case State.TIMEOUT | State.DEADLINE:
            return TimedOut
        case State.SKIPPED:
            return DependencyFailed
        case State.CANCELLED if verdict.reason == reasons.DEPENDENCY_NEVER_SATISFIED:
            return DependencyFailed
        case State.CANCELLED:
            return Cancelled
        case State.BOOT_FAIL:
            return LaunchFailed
        case State.FAILED if verdict.reason == reasons.JOB_LAUNCH_FAILURE:
            return LaunchFailed
        case State.FAILED if verdict.exit is not None and verdict.exit.signal:
            return KilledBySignal
        case State.FAILED:
            return Exited
        case _:  # UNVERIFIED, NODE_FAIL, PREEMPTED
            return Lost
