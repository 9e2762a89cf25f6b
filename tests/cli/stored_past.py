"""A home with a settled past, made through the store's own writer."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aver.judge.local import judge_record
from aver.judge.witness_record import parse_record
from aver.model import events as ev
from aver.model.evidence import Rules, Verdict
from aver.model.job import Argv, FlowSpec, JobSpec, Matrix, Origin, Request, Shell, Submission
from aver.model.states import State
from aver.store.write.writer import Writer

T0 = 1_700_000_000.0
SECRET = "hunter2-token"


@dataclass(frozen=True)
class Answer:
    status: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value


Aver = Callable[..., Answer]


def fill_home(home: Path, work: Path) -> None:
    """Make the home: job 1 completed, job 2 was out of memory, flow 3 failed."""
    home.mkdir(mode=0o700)
    (home / "env").mkdir()
    work.mkdir()
    (home / "env" / "2.env").write_bytes(f"TOKEN={SECRET}\0PLAIN=visible\0".encode())
    writer = Writer.open(home / "aver.db")
    writer.commit(single(work, 1, Argv(("echo", "hello")), record(1, raw=0)))
    writer.commit(
        single(
            work,
            2,
            Argv(("python", "-c", f"print('{SECRET}')")),
            record(2, raw=9, oom=1, limit=2 << 30, peak=(2 << 30) - 4096, elapsed=41.0),
            request=Request(mem_bytes=2 << 30),
            secrets=("TOKEN",),
        )
    )
    writer.commit(flow(work))
    writer.close()
    (work / "aver-1.out").write_bytes(b"hello\n")
    (work / "aver-2.out").write_bytes(f"token {SECRET}\nline \xff\n".encode("latin-1"))


def record(job: int, raw: int, elapsed: float = 1.234, **fields: object) -> str:
    """A witness's end line, as the coordinator keeps it."""
    said = {
        "ev": "end", "key": f"k{job}", "witness": 10, "pid": 11, "boot": "b", "raw": raw, "start": T0 + 1,
        "elapsed": elapsed, "suspended": 0.0, "user": 0.5, "sys": 0.1, "maxrss": 1 << 20, "peak": 1 << 20,
        "mem": "cgroup1", "limit": None, "oom": 0, "hostoom": 0, "acts": [], "got": [], "left": 0, "launch": None,
        "size": 1,
    }  # fmt: skip
    return json.dumps(said | fields)


def ended(run: int, job: int, said: str) -> list[ev.Event]:
    """The events of one attempt from its start to its verdict."""
    parsed = parse_record(json.loads(said))
    verdict = judge_record(parsed, Rules())
    start = json.dumps({"ev": "start", "key": f"k{job}", "pid": 11, "witness": 10, "at": T0 + 1, "mem": "cgroup1"})
    usage = ev.Usage(T0 + 1, parsed.elapsed_s, parsed.user_s, parsed.sys_s, parsed.peak_bytes, "node1")
    begun = ev.Observed(T0 + 1, run, job, 1, "witness", start, State.RUNNING, "None", usage=ev.Usage(T0 + 1))
    at = T0 + 1 + parsed.elapsed_s
    end = ev.Observed(at, run, job, 1, "witness", said, verdict.state, verdict.reason, verdict, usage)
    return [ev.AttemptPlanned(T0 + 0.5, run, job, 1, f"k{job}", "local", Request()), begun, end]


def single(
    work: Path,
    number: int,
    command: Argv,
    said: str,
    request: Request = Request(),
    secrets: tuple[str, ...] = (),
) -> list[ev.Event]:
    """A job of its own, with its whole life."""
    spec = JobSpec(command.args[0], command, request=request)
    submission = Submission(FlowSpec(spec.name, (spec,), is_single=True), origin(work, secrets))
    happened = ended(number, number, said)
    last = happened[-1]
    assert isinstance(last, ev.Observed)
    return [ev.RunSubmitted(T0, number, number, submission), *happened, ev.RunMoved(last.at, number, last.state)]


def flow(work: Path) -> list[ev.Event]:
    """Run 3: jobs 4 and 5 are a matrix, of which 5 fails; 6 needs them and is skipped."""
    train = JobSpec("train", Shell("python train.py --seed {seed}"), matrix=Matrix((("seed", ("1", "2")),)))
    submission = Submission(FlowSpec("flow", (train, JobSpec("eval", Argv(("true",))))), origin(work, ()))
    reason = "NeedFailed:train[seed=2](FAILED)"
    skipped = Verdict(State.SKIPPED, None, reason, True, "coordinator")
    return [
        ev.RunSubmitted(T0, 3, 4, submission),
        *ended(3, 4, record(4, raw=0)),
        *ended(3, 5, record(5, raw=3 << 8)),
        ev.JobMoved(T0 + 3, 3, 6, State.SKIPPED, reason, skipped),
        ev.RunMoved(T0 + 3, 3, State.FAILED),
    ]


def origin(work: Path, secrets: tuple[str, ...]) -> Origin:
    return Origin("ann", 1000, "box", str(work), 0o022, secrets=secrets, command=("aver", "run", "x"))
