"""A run whose jobs ended oddly: exits and figures that nobody knows, beliefs, attempts that ran again.

Each job is named after what is odd about it.
"""

from __future__ import annotations

from pathlib import Path

from aver.model import events as ev
from aver.model.evidence import Verdict
from aver.model.exit import ExitStatus
from aver.model.job import FlowSpec, JobSpec, Request, Shell, StepSpec, Submission
from aver.model.states import State
from aver.store.write.writer import Writer
from past_runs import T0, attempt, origin

NAMES = (
    "either_code", "fallback", "accepted", "timeout", "cancelled", "launch", "reinit", "no_peak", "lost", "retry",
    "step_oom", "step_unseen", "by_another", "lost_accepted",
)  # fmt: skip
JOBS = {name: 2 + number for number, name in enumerate(NAMES)}
ASKED = Request(mem_bytes=64 << 20, time_s=60)
EITHER = "exit code 9 or 137: accounting takes 128 off"
FALLBACK = "counted as completed by settle.fallback: nobody said how it ended; exit code unknown"
ACCEPTED = "accepted as 0:0 by ann; nobody saw how it ended"


def fill_odd(home: Path, folder: Path) -> None:
    """Run 1, settled as FAILED, with one job for each of NAMES."""
    home.mkdir(mode=0o700)
    folder.mkdir()
    flow = FlowSpec("odd", tuple(JobSpec(name, Shell("true"), ASKED) for name in NAMES))
    failed = State.FAILED, None, "NonZeroExitCode", True, "accounting", (), EITHER
    happened: list[ev.Event] = [
        ev.RunSubmitted(T0, 1, 2, Submission(flow, origin(folder))),
        *_on_slurm("either_code", Verdict(*failed), ev.Usage(T0 + 1, 5.0, 1.0, 1.0, 1 << 20, "n1")),
        *_on_slurm("fallback", Verdict(State.COMPLETED, None, "None", False, "coordinator", (FALLBACK,), FALLBACK)),
        *_on_slurm("accepted", Verdict(State.UNVERIFIED, None, "None", False, "coordinator", (), "it left the queue")),
        ev.PersonAsked(T0 + 20, 1, JOBS["accepted"], "ann", "accept", "0:0"),
        _said("accepted", 20, Verdict(State.COMPLETED, ExitStatus(), "None", False, "person", (), ACCEPTED)),
        *_on_slurm("timeout", Verdict(State.TIMEOUT, None, "TimeLimit", True, "accounting")),
        *_on_slurm("cancelled", Verdict(State.CANCELLED, None, "None", True, "accounting", (), "cancelled by uid 7")),
        *_ran("launch", raw=None, elapsed=0.0, launch={"op": "exec", "errno": 2, "path": "/no/such"}, peak=None),
        *_ran("reinit"),
        ev.PersonAsked(T0 + 20, 1, JOBS["reinit"], "ann", "reinit", "its input changed"),
        ev.JobMoved(T0 + 20, 1, JOBS["reinit"], State.PENDING, "Dependency"),
        *_ran("reinit", number=2, begin=21.0),
        *_ran("no_peak", peak=0, maxrss=0),
        *(
            ev.AttemptPlanned(T0 + 1, 1, JOBS[name], 1, f"k.{name}", "local", ASKED)
            for name in ("lost", "lost_accepted")
        ),
        _said("lost_accepted", 9, Verdict(State.COMPLETED, ExitStatus(), "None", False, "person", (), ACCEPTED)),
        _said("lost", 9, Verdict(State.UNVERIFIED, None, "WitnessVanished", False, "coordinator", (), "it is gone")),
        *_again(_ran("retry", raw=3 << 8)),
        *_ran("retry", number=2, begin=5.0),
        *_with_step(
            "step_oom", Verdict(State.OUT_OF_MEMORY, ExitStatus(signal=9), "OutOfMemory", True, "witness"), 125
        ),
        *_with_step("step_unseen", Verdict(State.UNVERIFIED, None, "None", False, "coordinator"), None),
        ev.PersonAsked(T0 + 1.5, 1, JOBS["by_another"], "ann", "cancel"),
        *_ran("by_another", raw=15, acts=[{"act": "cancel", "at": 0.5, "sig": 15}]),
        ev.JobMoved(T0 + 20, 1, JOBS["by_another"], State.PENDING, "Dependency"),
        *_on_slurm("by_another", Verdict(State.CANCELLED, ExitStatus(signal=15), "None", True, "queue"), number=2),
        ev.RunMoved(T0 + 30, 1, State.FAILED),
    ]
    writer = Writer.open(home / "aver.db")
    writer.commit(happened)
    writer.close()


def _ran(
    name: str, raw: int | None = 0, number: int = 1, begin: float = 1.0, elapsed: float = 2.0, **fields: object
) -> list[ev.Event]:
    return attempt(1, JOBS[name], number, begin, elapsed, raw, ASKED, **fields)


def _on_slurm(name: str, verdict: Verdict, usage: ev.Usage | None = None, number: int = 1) -> list[ev.Event]:
    job, begin = JOBS[name], T0 + 20 * (number - 1)
    said = verdict.source, "…", verdict.state, verdict.reason, verdict, usage
    return [
        ev.AttemptPlanned(begin, 1, job, number, f"k.{job}.{number}", "slurm", ASKED),
        ev.Observed(begin + 1, 1, job, number, "queue", "…", State.RUNNING, "None", usage=ev.Usage(begin + 1)),
        ev.Observed(begin + 9, 1, job, number, *said),
    ]


def _said(name: str, at: float, verdict: Verdict) -> ev.Observed:
    return ev.Observed(T0 + at, 1, JOBS[name], 1, verdict.source, "…", verdict.state, verdict.reason, verdict)


def _again(happened: list[ev.Event]) -> list[ev.Event]:
    """The attempt failed, and the job is tried again."""
    last = happened[-1]
    assert isinstance(last, ev.Observed)
    said = (last.source, last.said, last.state, last.reason, last.verdict, last.usage)
    return [*happened[:-1], ev.Observed(last.at, 1, last.job, 1, *said, State.PENDING, "Retry")]


def _with_step(name: str, verdict: Verdict, derived: int | None) -> list[ev.Event]:
    *begun, ended = _ran(name, peak=1 << 20)
    step = StepSpec("hungry", ("./hungry",), "/")
    used = ev.Usage(T0 + 1.5, 0.5, 0.1, 0.1, 2 << 20)
    seen = [ev.TaskEnded(T0 + 2, 1, JOBS[name], 1, 0, 0, "{}", verdict, used)] if verdict.exit is not None else []
    return [
        *begun,
        ev.StepStarted(T0 + 1.5, 1, JOBS[name], 1, 0, f"t{name}", step),
        *seen,
        ev.StepEnded(T0 + 2, 1, JOBS[name], 1, 0, verdict, derived),
        ended,
    ]
