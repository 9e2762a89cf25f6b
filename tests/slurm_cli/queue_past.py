"""A home with jobs in every state that Slurm's commands show, made through the store's own writer."""

from __future__ import annotations

import getpass
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aver.judge.local import judge_record
from aver.judge.witness_record import parse_record
from aver.model import events as ev
from aver.model.evidence import Rules, Verdict
from aver.model.exit import ExitStatus
from aver.model.job import (
    After,
    AfterKind,
    Afters,
    FlowSpec,
    JobSpec,
    Matrix,
    Origin,
    Request,
    Script,
    StepSpec,
    Streams,
    Submission,
)
from aver.model.record import replace
from aver.model.slurm_options import SlurmOptions
from aver.model.states import State
from aver.store.write.writer import Writer

HOST = "n1.example.org"
SCRIPT = "#!/bin/bash\nsrun -n2 sleep 40\n"


@dataclass(frozen=True)
class Reply:
    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


Call = Callable[..., Reply]
ReleaseIs = Callable[[str], None]


@dataclass
class Past:
    """Writes events into a home. Times are relative to `now`, a whole second."""

    home: Path
    work: Path
    now: float

    @classmethod
    def make(cls, folder: Path) -> Past:
        home, work = folder / "home", folder / "work"
        home.mkdir(mode=0o700)
        work.mkdir()
        return cls(home, work, float(int(time.time())))

    def commit(self, *events: ev.Event) -> None:
        writer = Writer.open(self.home / "aver.db")
        try:
            writer.commit(list(events))
        finally:
            writer.close()

    def origin(self) -> Origin:
        line = ("sbatch", "--parsable", "job.sh", "a", "b")
        return Origin(getpass.getuser(), os.getuid(), HOST, str(self.work), 0o022, command=line)

    def spec(self, name: str = "run", **fields: object) -> JobSpec:
        usual: dict[str, object] = {
            "command": Script(SCRIPT, ("a", "b")),
            "request": Request(2, 0, 200 << 20, 600),
            "streams": Streams(stdout="slurm-%j.out"),
            "slurm": SlurmOptions(command=f"{self.work}/job.sh a b", ntasks=2),
        }
        return JobSpec(name, **(usual | fields))  # type: ignore[arg-type]

    def submitted(self, run: int, *specs: JobSpec, ago: float = 20.0, first: int | None = None) -> ev.RunSubmitted:
        single = len(specs) == 1 and specs[0].matrix is None
        flow = FlowSpec(specs[0].name, specs, is_single=single)
        return ev.RunSubmitted(self.now - ago, run, first or run, Submission(flow, self.origin()))

    def running(
        self, run: int, job: int, ago: float = 6.0, attempt: int = 1, request: Request | None = None
    ) -> list[ev.Event]:
        at = self.now - ago
        usage = ev.Usage(at, node=HOST)
        asked = request or Request(2, 0, 200 << 20, 600)
        return [
            ev.AttemptPlanned(at - 0.5, run, job, attempt, f"k{job}.{attempt}", "local", asked),
            ev.Observed(at, run, job, attempt, "witness", "{}", State.RUNNING, "None", usage=usage),
        ]

    def record(self, ago: float, elapsed: float, raw: int | None, **fields: object) -> str:
        said: dict[str, object] = {
            "ev": "end", "key": "k", "witness": 10, "pid": 11, "boot": "b", "raw": raw, "start": self.now - ago,
            "elapsed": elapsed, "suspended": 0.0, "user": 0.015, "sys": 0.004, "maxrss": 1 << 20, "peak": 1100 << 10,
            "mem": "cgroup1", "limit": None, "oom": 0, "hostoom": 0, "acts": [], "got": [], "left": 0, "launch": None,
            "size": 1,
        }  # fmt: skip
        return json.dumps(said | fields)

    def ended(
        self,
        run: int,
        job: int,
        raw: int | None,
        ago: float = 10.0,
        elapsed: float = 3.0,
        attempt: int = 1,
        job_state: State | None = None,
        job_reason: str | None = None,
        **fields: object,
    ) -> list[ev.Event]:
        """A life from its plan to its verdict; a single run moves with its job."""
        said = self.record(ago, elapsed, raw, **fields)
        parsed = parse_record(json.loads(said))
        verdict = judge_record(parsed, Rules())
        usage = ev.Usage(self.now - ago, parsed.elapsed_s, parsed.user_s, parsed.sys_s, parsed.peak_bytes, HOST)
        at = self.now - ago + elapsed
        return [
            *self.running(run, job, ago, attempt),
            ev.Observed(
                at, run, job, attempt, "witness", said, verdict.state, verdict.reason, verdict, usage,
                job_state, job_reason,
            ),
        ]  # fmt: skip

    def single(self, number: int, name: str, raw: int | None, ago: float = 10.0, **fields: Any) -> list[ev.Event]:
        """A job of its own that has ended."""
        life = self.ended(number, number, raw, ago, **fields)
        last = life[-1]
        assert isinstance(last, ev.Observed)
        moved = ev.RunMoved(last.at, number, last.state)
        return [self.submitted(number, self.spec(name), ago=ago + 2), *life, moved]

    def step(
        self, run: int, job: int, number: int, name: str, raw: int | None = None, tasks: int = 1, ago: float = 5.0,
        state: State | None = None, elapsed: float = 1.0,
    ) -> list[ev.Event]:  # fmt: skip
        """A step; without a raw wait status it still runs."""
        spec = StepSpec(name, (name, "40"), str(self.work), tasks=tasks)
        begun = self.now - ago
        found: list[ev.Event] = [ev.StepStarted(begun, run, job, 1, number, f"t{number}", spec)]
        if raw is None:
            return found
        ended = ExitStatus.from_wait(raw)
        is_good = ended.is_success
        ends_as = state or (State.COMPLETED if is_good else State.CANCELLED if ended.signal else State.FAILED)
        verdict = Verdict(ends_as, ended, "None", True, "witness")
        for task in range(tasks):
            usage = ev.Usage(begun, elapsed, 0.002, 0.001, (2996 + 4 * task) << 10, HOST)
            found.append(ev.TaskEnded(begun + elapsed, run, job, 1, number, task, "{}", verdict, usage))
        found.append(ev.StepEnded(begun + elapsed, run, job, 1, number, verdict, raw & ~0x80, None, ended.shell_code))
        return found


def fill(past: Past) -> None:
    """The jobs of the recorded session: 31 runs with steps, 32 failed, 33 waits for 31, 34 is held, 35 is for later,
    36 is an array of five of which two run, 37 was cancelled."""
    batch = past.spec("dep", request=Request(1, 0, 100 << 20, 600), comment="hello")
    after = Afters((After(AfterKind.AFTEROK, ((31, None),)),))
    array = past.spec(
        "arr",
        request=Request(1, 0, 50 << 20, 600),
        matrix=Matrix((("array", ("1", "3", "5", "7", "9")),), max_parallel=2),
        streams=Streams(stdout="slurm-%A_%a.out"),
        slurm=SlurmOptions(),
    )
    limit = Request(1, 0, 50 << 20, 600)
    later = past.now + 3600
    past.commit(
        past.submitted(31, past.spec("run", comment="hello")),
        *past.running(31, 31),
        *past.step(31, 31, 0, "bash", 7 << 8),
        *past.step(31, 31, 1, "sleep", tasks=2),
        ev.RunMoved(past.now - 6, 31, State.RUNNING),
    )
    past.commit(*past.single(32, "bad", 4 << 8), *past.step(32, 32, 0, "bash", 3 << 8, ago=9.5))
    past.commit(
        past.submitted(33, replaced(batch, after=after, streams=Streams(stdout="out-%j.txt", stderr="err-%j.txt"))),
        ev.JobMoved(past.now - 19, 33, 33, State.PENDING, "Dependency"),
        past.submitted(34, replaced(batch, name="held", hold=True)),
        past.submitted(35, replaced(batch, name="later", begin_at=later, deadline_at=later + 4 * 3600)),
        past.submitted(36, array, first=38),
        *past.running(36, 38, request=limit),
        *past.running(36, 39, request=limit),
        *[ev.JobMoved(past.now - 6, 36, job, State.PENDING, "JobArrayTaskLimit") for job in (40, 41, 42)],
        ev.RunMoved(past.now - 6, 36, State.RUNNING),
    )
    cancelled = past.single(37, "canc", 15, acts=[{"act": "cancel", "at": 2.9, "sig": 15}])
    asked = ev.PersonAsked(past.now - 7.1, 37, None, getpass.getuser(), "cancel")
    past.commit(cancelled[0], asked, *cancelled[1:])


def replaced(spec: JobSpec, **fields: object) -> JobSpec:
    return replace(spec, **fields)  # type: ignore[arg-type]
