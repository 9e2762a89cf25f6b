"""One attempt of a job: its verdict, what it might use and what it used."""

from __future__ import annotations

from aver.client.documents import known_reason
from aver.model.evidence import Verdict
from aver.model.exit import ExitStatus
from aver.model.job import Request
from aver.model.record import Record
from aver.model.states import State
from aver.store.read.rows import AttemptRow


class Attempt(Record):
    """One execution of a job. What is not known is None."""

    job: int
    attempt: int  # its number, from 1
    state: State
    reason: str | None  # Slurm's word for why it did not complete; None where there is none, as of a success
    exit: ExitStatus | None
    verdict: Verdict | None  # None until it has ended
    request: Request
    engine: str
    key: str  # AVER_KEY of its processes
    node: str | None
    planned_at: float
    started_at: float | None
    ended_at: float | None
    elapsed_s: float | None
    user_s: float | None
    sys_s: float | None
    peak_bytes: int | None
    is_cpu_least: bool  # children that nobody waited for may have used more than user_s and sys_s


def attempt_of(row: AttemptRow) -> Attempt:
    return Attempt(
        row.job, row.attempt, row.state, known_reason(row.reason), row.exit, row.verdict, row.request, row.engine,
        row.key, row.node, row.planned_at, row.started_at, row.ended_at, row.elapsed_s, row.user_s, row.sys_s,
        row.peak_bytes, bool(row.is_cpu_least),
    )  # fmt: skip
