"""A submission of which only what is asked for is made: of 100,000 jobs most commands need a few.

The whole was checked when it was submitted; a part that can't be read is a ValueError when it is asked for.
"""

from __future__ import annotations

from typing import Any

from aver.model.codec import decode
from aver.model.job import FlowSpec, JobSpec, Origin, Submission


class Sketch:
    """The submission without its jobs decoded. `flow` is as the event holds it."""

    def __init__(self, origin: Origin, flow: dict[str, Any]) -> None:
        self.origin = origin
        self._flow = flow
        self._jobs: dict[int, JobSpec] = {}
        self._head = decode(FlowSpec, {**flow, "jobs": []})

    def head(self) -> Submission:
        """The submission without its jobs."""
        return Submission(self._head, self.origin)

    @property
    def definitions(self) -> int:
        """How many jobs the flow defines; a matrix is one."""
        return len(self._flow["jobs"])

    def spec(self, index: int) -> JobSpec:
        """A job of the flow by its place; raise ValueError if there is none, or it can't be read."""
        if index not in self._jobs:
            try:
                self._jobs[index] = decode(JobSpec, JobSpec.read_older(self._flow["jobs"][index]))
            except (LookupError, TypeError):
                raise ValueError(f"the flow has no job {index}") from None
        return self._jobs[index]
