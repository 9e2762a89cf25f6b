"""The future of one call: a job of its own, with its own verdict."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from aver.api.job import Job
from aver.api.job_errors import Cancelled
from aver.home import Home
from aver.store.read.rows import AttemptRow

if TYPE_CHECKING:
    from aver.calls.files import Reference

Result = TypeVar("Result")


class Canceller(Protocol):
    def cancel(self, futures: Sequence[Future[Any]]) -> bool: ...


class Future(concurrent.futures.Future[Result]):
    """A call that was submitted. `result` and `exception` are those of its COMPLETED or last attempt."""

    def __init__(self, home: Home, reference: Reference, name: str, canceller: Canceller, key: str | None) -> None:
        super().__init__()
        self.name = name
        self.key = key
        self._is_own = False  # it was this process that submitted it
        self._home = home
        self._reference = reference
        self._canceller = canceller
        self._number: int | None = None

    @property
    def job(self) -> Job | None:
        """None until it is submitted, which takes some milliseconds."""
        return None if self._number is None else Job(self._number, self._home)

    @property
    def attempts(self) -> list[AttemptRow]:
        """All attempts so far, each with its own verdict, request and use."""
        job = self.job
        return [] if job is None else job.attempts

    def cancel(self) -> bool:
        """End the job, also while it runs; False if it is too late.

        True says that it is being ended. How it ended the verdict says: `cancelled()` is true once that is CANCELLED.
        """
        if self.done():
            return self.cancelled()
        return self._canceller.cancel([self])

    def cancelled(self) -> bool:
        return self.done() and isinstance(super().exception(), Cancelled)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        error = super().exception(timeout)
        if isinstance(error, Cancelled):
            raise error
        return error

    def __repr__(self) -> str:
        what = "not submitted yet" if self._number is None else f"job {self._number}"
        if self.done():
            error = super().exception()
            state = "returned" if error is None else f"raised {type(error).__name__}"
        else:
            state = "running" if self.running() else "pending"
        return f"<Future {self.name} ({what}): {state}>"
