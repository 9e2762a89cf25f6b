"""All data of a run for its report and exports. Secrets are masked already.

For a large run only some jobs have their evidence here, beginning with those that did not complete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aver.client.use.series import AttemptUse
from aver.judge.run import WORST_FIRST as SETTLED_WORST_FIRST
from aver.model.job import FlowSpec
from aver.model.record import Record, field
from aver.model.states import State
from aver.printable import printable
from aver.render import verdict as render
from aver.render.timeline import Transition
from aver.store.read.rows import AttemptRow, JobRow, RunRow

FINE = frozenset({State.COMPLETED, State.SKIPPED})
WORST_FIRST = (
    *SETTLED_WORST_FIRST, State.RUNNING, State.COMPLETING, State.SETTLING, State.SUSPENDED, State.SUBMITTED,
    State.PENDING, State.SKIPPED, State.COMPLETED,
)  # fmt: skip


class LogEnd(Record):
    """The end of what a job wrote; `is_cut`: there is more before it."""

    path: str
    text: str
    is_cut: bool


class Story(Record):
    """`flow` holds the submitted jobs and then each generated batch; `offsets` says where each begins in it."""

    run: RunRow
    flow: FlowSpec
    offsets: Mapping[int, int]  # first_job of what made a job -> index of its first definition in `flow`
    jobs: Sequence[JobRow]
    attempts: Mapping[int, Sequence[AttemptRow]]
    user: str
    host: str
    typed: str
    now: float
    sentences: Mapping[int, str] = field(default_factory=dict)
    evidence: Mapping[int, Sequence[Transition]] = field(default_factory=dict)
    logs: Mapping[int, LogEnd] = field(default_factory=dict)
    use: Mapping[int, AttemptUse] = field(default_factory=dict)  # over time, of the newest attempt
    warnings: Mapping[int, Sequence[str]] = field(default_factory=dict)  # of steps, beside the jobs' own

    def spec_of(self, job: JobRow) -> int:
        """The number of the job's definition in `flow`."""
        return self.offsets.get(job.first_job, 0) + job.spec

    def warnings_of(self, job: JobRow) -> tuple[str, ...]:
        return (*job.warnings, *self.warnings.get(job.id, ()))


def verdict_text(job: JobRow) -> str:
    """`OUT_OF_MEMORY 0:9 OutOfMemory`; of an unsettled job its state and reason."""
    verdict = job.verdict
    if verdict is None:
        return job.state.value if job.reason in ("", "None") else f"{job.state} {job.reason}"
    piece = render.piece(verdict, job.elapsed_s)
    return " ".join(word for word in (piece.state, piece.exit if job.exit is not None else "", piece.reason) if word)


def clean(text: str) -> str:
    """Text for a page: control characters and what is not a character are spelled out."""
    return printable(text, keep="\n")


def has_failed(job: JobRow) -> bool:
    """Whether the job is settled and is neither completed nor skipped."""
    return job.state.is_settled and job.state not in FINE
