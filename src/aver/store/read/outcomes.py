"""A job and one of its attempts in one row, for reports over whole runs.

Plain tuples with names: a run of 100,000 jobs is read in half a second. States are their words as stored, which
compare with `State` as they are; `exit` is a raw wait status, `request` and `warnings` are JSON as stored.
A job that has no attempt has one row whose `attempt` and all after it are None.
"""

from __future__ import annotations

from typing import NamedTuple

_JOB = ("id", "name", "first_job", "spec", "member", "state", "reason", "exit", "verified", "source", "warnings",
        "detail", "ended_at")  # fmt: skip
_ATTEMPT = ("attempt", "engine", "state", "reason", "exit", "verified", "source", "warnings", "detail", "started_at",
            "ended_at", "elapsed_s", "user_s", "sys_s", "peak_bytes", "node", "request")  # fmt: skip

# A process that ran used memory: a peak of 0 is one that the kernel had not counted yet, and so is not known.
_SQL = {"peak_bytes": "nullif(a.peak_bytes, 0)"}

OUTCOMES_SQL = (
    f"SELECT {', '.join(f'j.{name}' for name in _JOB)}, {', '.join(_SQL.get(name, f'a.{name}') for name in _ATTEMPT)} "
    "FROM jobs AS j LEFT JOIN attempts AS a ON a.job = j.id WHERE j.run = ? ORDER BY j.id, a.attempt"
)


class Outcome(NamedTuple):
    """`job_…` is what the job's own row says; the rest is the attempt's."""

    job: int
    name: str
    first_job: int
    spec: int
    member: int
    job_state: str
    job_reason: str
    job_exit: int | None
    job_verified: int | None
    job_source: str | None
    job_warnings: str | None
    job_detail: str | None
    job_ended_at: float | None
    attempt: int | None
    engine: str | None
    state: str | None
    reason: str | None
    exit: int | None
    verified: int | None
    source: str | None
    warnings: str | None
    detail: str | None
    started_at: float | None
    ended_at: float | None
    elapsed_s: float | None
    user_s: float | None
    sys_s: float | None
    peak_bytes: int | None
    node: str | None
    request: str | None
