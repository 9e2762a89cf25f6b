"""Events for the tests of the store: short to write, and like those of a real run."""

from __future__ import annotations

from aver.model.events import AttemptPlanned, Event, Observed, RunSubmitted, Usage
from aver.model.evidence import Verdict
from aver.model.exit import ExitStatus
from aver.model.job import FlowSpec, JobSpec, Matrix, Origin, Request, Shell, Submission
from aver.model.states import State


def submission(jobs: int = 1, name: str = "train", folder: str = "/tmp") -> Submission:
    matrix = None if jobs == 1 else Matrix((("seed", tuple(str(n) for n in range(jobs))),))
    flow = FlowSpec("flow", (JobSpec(name, Shell("true"), matrix=matrix),))
    return Submission(flow, Origin("ann", 1000, "host", folder, 0o22))


def submitted(run: int = 1, first_job: int = 2, jobs: int = 1, at: float = 100.0) -> RunSubmitted:
    return RunSubmitted(at, run, first_job, submission(jobs))


def planned(job: int = 2, attempt: int = 1, at: float = 101.0, run: int = 1) -> AttemptPlanned:
    return AttemptPlanned(at, run, job, attempt, f"home-{job}-{attempt}", "local", Request(2, 0, 1 << 30, 60))


def started(job: int = 2, attempt: int = 1, at: float = 102.0, run: int = 1) -> Observed:
    return Observed(at, run, job, attempt, "witness", "start", State.RUNNING, "None", usage=Usage(at, node="n1"))


def ended(
    job: int = 2,
    attempt: int = 1,
    at: float = 110.0,
    state: State = State.COMPLETED,
    ended_as: ExitStatus | None = ExitStatus(),
    run: int = 1,
    usage: Usage | None = Usage(102.0, 5.0, 1.0, 0.5, 4096),
    job_state: State | None = None,
    job_reason: str | None = None,
) -> Observed:
    verdict = Verdict(state, ended_as, "None", True, "witness", ("a warning",), "a detail")
    return Observed(at, run, job, attempt, "witness", "end", state, "None", verdict, usage, job_state, job_reason)


def whole_job(job: int = 2, run: int = 1) -> list[Event]:
    return [planned(job, run=run), started(job, run=run), ended(job, run=run)]
