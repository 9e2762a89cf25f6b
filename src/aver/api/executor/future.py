"""The future of one call: a job of its own, with its own verdict."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from aver.api.attempt import Attempt
from aver.api.job import Job
from aver.api.job_errors import Cancelled
from aver.api.notebook import Shown, Table, table
from aver.home import Home

if TYPE_CHECKING:
    from aver.calls.files import Reference

Result = TypeVar("Result")


class Canceller(Protocol):
    def cancel(self, futures: Sequence[Future[Any]]) -> bool: ...


class Future(concurrent.futures.Future[Result], Shown):
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
    def attempts(self) -> list[Attempt]:
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
        return f"<Future {self.name} ({what}): {state_of(self)}>"

    def _table(self) -> Table:
        row = ("" if self._number is None else self._number, self.name, state_of(self))
        return Table(repr(self), table("call", "", ("job", "call", "state"), [row], 0), self.done())


def state_of(future: Future[Any]) -> str:
    """In a word or two: pending, running, returned, cancelled, or what it raised."""
    if not future.done():
        return "running" if future.running() else "pending"
    if future.cancelled():
        return "cancelled"
    error = future.exception()
    return "returned" if error is None else f"raised {type(error).__name__}"
