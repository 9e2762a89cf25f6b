"""Runs of the past, made through the store's own writer: a small one with every kind of trouble, and a huge one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from aver.judge.local import judge_record
from aver.judge.witness_record import parse_record
from aver.model import events as ev
from aver.model.evidence import Rules, Verdict
from aver.model.exit import ExitStatus
from aver.model.job import FlowSpec, JobSpec, Matrix, Need, Needs, Origin, Request, Shell, Submission
from aver.model.record import replace
from aver.model.states import State
from aver.store.write.writer import Writer

T0 = 1_700_000_000.0
NASTY = "</script><b>&\"'\x1b[31m"
SECRET = "hunter2-token"
Call = Callable[..., tuple[int, str, str]]  # the command line: status, stdout, stderr


def origin(folder: Path, secrets: tuple[str, ...] = ()) -> Origin:
    return Origin("ann", 1000, "box", str(folder), 0o022, secrets=secrets, command=("aver", "run", "flow.yaml"))


def attempt(
    run: int, job: int, number: int, begin: float, elapsed: float, raw: int | None, request: Request, **fields: object
) -> list[ev.Event]:
    """An attempt from its plan to its verdict, as its witness tells it."""
    key = f"k.{job}.{number}"
    said = {
        "ev": "end", "key": key, "witness": 10, "pid": 11, "boot": "b", "raw": raw, "start": T0 + begin,
        "elapsed": elapsed, "suspended": 0.0, "user": elapsed / 2, "sys": elapsed / 8, "maxrss": 1 << 20,
        "peak": 48 << 20, "mem": "cgroup1", "limit": request.mem_bytes, "oom": 0, "hostoom": 0, "acts": [], "got": [],
        "left": 0, "launch": None, "size": 1,
    } | fields  # fmt: skip
    record = parse_record(said)
    verdict = judge_record(record, Rules())
    start = {"ev": "start", "key": key, "pid": 11, "witness": 10, "at": T0 + begin, "mem": "cgroup1"}
    usage = ev.Usage(T0 + begin, elapsed, record.user_s, record.sys_s, record.peak_bytes, "node1")
    return [
        ev.AttemptPlanned(T0 + begin - 0.01, run, job, number, key, "local", request),
        ev.Observed(
            T0 + begin, run, job, number, "witness", json.dumps(start), State.RUNNING, "None",
            usage=ev.Usage(T0 + begin),
        ),
        ev.Observed(
            T0 + begin + elapsed, run, job, number, "witness", json.dumps(said), verdict.state, verdict.reason, verdict,
            usage,
        ),
    ]  # fmt: skip


def fill(home: Path, folder: Path, name: str = "train", job_name: str = "lint") -> None:
    """Run 1: job 2 completed; 3 to 5 are a matrix, of which 5 ran out of memory twice; 6 was skipped; 7 failed; 8 timed
    out; 9 is UNVERIFIED. Logs of 5 and 7 are there, with a secret and with a control character."""
    home.mkdir(mode=0o700)
    (home / "env").mkdir()
    folder.mkdir()
    (home / "env" / "1.env").write_bytes(f"TOKEN={SECRET}\0PLAIN=visible\0".encode())
    mem = Request(mem_bytes=64 << 20, time_s=60)
    train = JobSpec(
        "train", Shell("train {seed}"), mem, Needs((Need("prep"),)), matrix=Matrix((("seed", ("1", "2", "3")),))
    )
    flow = FlowSpec(
        name,
        (
            JobSpec("prep", Shell("true")),
            train,
            JobSpec("eval", Shell("true"), needs=Needs((Need("train"),))),
            JobSpec(job_name, Shell("false"), needs=Needs((Need("prep"),))),
            JobSpec("slow", Shell("sleep 9"), Request(time_s=2), needs=Needs((Need("prep"),))),
            JobSpec("lost", Shell("true"), needs=Needs((Need("prep"),))),
        ),
    )
    reason = "NeedFailed:train[seed=3](OUT_OF_MEMORY)"
    skipped = Verdict(State.SKIPPED, None, reason, True, "coordinator")
    gone = Verdict(State.UNVERIFIED, None, "WitnessVanished", False, "coordinator", detail="its witness vanished")
    again = attempt(1, 5, 1, 2.0, 0.5, 9, mem, oom=1, peak=64 << 20)
    last = again[-1]
    assert isinstance(last, ev.Observed)
    again[-1] = ev.Observed(
        last.at,
        1,
        5,
        1,
        "witness",
        last.said,
        last.state,
        last.reason,
        last.verdict,
        last.usage,
        State.PENDING,
        "Retry",
    )
    happened: list[ev.Event] = [
        ev.RunSubmitted(T0, 1, 2, Submission(flow, origin(folder, ("TOKEN",)))),
        *attempt(1, 2, 1, 0.5, 1.0, 0, Request()),
        *attempt(1, 3, 1, 1.6, 2.0, 0, mem),
        *attempt(1, 4, 1, 1.6, 3.0, 0, mem),
        *again,
        *attempt(1, 5, 2, 3.0, 1.5, 9, mem, oom=1, peak=64 << 20),
        ev.JobMoved(T0 + 5, 1, 6, State.SKIPPED, reason, skipped),
        *attempt(1, 7, 1, 2.0, 0.2, 3 << 8, Request()),
        *attempt(1, 8, 1, 2.0, 2.0, 15, Request(time_s=2), acts=[{"act": "time", "at": 2.0, "sig": 15}]),
        ev.AttemptPlanned(T0 + 2, 1, 9, 1, "k.9.1", "local", Request()),
        ev.Observed(
            T0 + 4, 1, 9, 1, "coordinator", "its witness and its journal are gone", State.UNVERIFIED,
            "WitnessVanished", gone,
        ),
        ev.RunMoved(T0 + 5, 1, State.OUT_OF_MEMORY),
    ]  # fmt: skip
    writer = Writer.open(home / "aver.db")
    writer.commit(happened)
    writer.close()
    logs = folder / "aver-1"
    logs.mkdir()
    (logs / "train[seed=3].2.out").write_text(f"token {SECRET}\nKilled\n")
    name = f"{job_name.replace('/', '_')}#7" if "/" in job_name else job_name
    (logs / f"{name}.out").write_text(f"ModuleNotFoundError: {NASTY}\n")


def fill_again(home: Path, folder: Path) -> None:
    """Run 1: job 2 failed and then completed; 3 was checkpointed and then completed; 4 was lost, and is accepted."""
    home.mkdir(mode=0o700)
    folder.mkdir()
    flow = FlowSpec("again", tuple(JobSpec(name, Shell("true")) for name in ("flaky", "goes-on", "believed")))
    happened: list[ev.Event] = [ev.RunSubmitted(T0, 1, 2, Submission(flow, origin(folder)))]
    warned = [{"act": "warn", "at": 0.5, "sig": 10}]
    for job, raw, rules, more in ((2, 3 << 8, Rules(), {}), (3, 85 << 8, Rules((85,)), {"acts": warned})):
        *begin, last = attempt(1, job, 1, 1.0, 1.0, raw, Request(), **more)
        assert isinstance(last, ev.Observed)
        verdict = judge_record(parse_record(json.loads(last.said)), rules)
        happened += [*begin, replace(last, state=verdict.state, reason=verdict.reason, verdict=verdict,
                                     job_state=State.PENDING, job_reason="Retry")]  # fmt: skip
        happened += attempt(1, job, 2, 3.0, 1.0, 0, Request())
    word = Verdict(State.COMPLETED, ExitStatus(), "None", False, "person", (), "accepted as 0:0 by ann")
    happened += [
        ev.AttemptPlanned(T0 + 2, 1, 4, 1, "k.4.1", "local", Request()),
        ev.Observed(T0 + 4, 1, 4, 1, "person", "accept", State.COMPLETED, "None", word),
        ev.RunMoved(T0 + 5, 1, State.COMPLETED),
    ]
    writer = Writer.open(home / "aver.db")
    writer.commit(happened)
    writer.close()


def fill_waiting(home: Path, folder: Path) -> None:
    """Run 1: nothing of it has started."""
    home.mkdir(mode=0o700)
    folder.mkdir()
    flow = FlowSpec("later", (JobSpec("held", Shell("true"), hold=True), JobSpec("after", Shell("true"))))
    writer = Writer.open(home / "aver.db")
    writer.commit(
        [ev.RunSubmitted(T0, 1, 2, Submission(flow, origin(folder))), ev.RunMoved(T0 + 1, 1, State.CANCELLED)]
    )
    writer.close()


def fill_huge(home: Path, folder: Path, jobs: int = 100_000) -> None:
    """Run 1: one job, a matrix of all but two, of which each thousandth fails, and one after them."""
    home.mkdir(mode=0o700)
    folder.mkdir(exist_ok=True)
    members = tuple(str(number) for number in range(jobs - 2))
    request = Request(mem_bytes=64 << 20, time_s=60)
    flow = FlowSpec(
        "huge",
        (
            JobSpec("prep", Shell("true")),
            JobSpec("work", Shell("true"), request, Needs((Need("prep"),)), matrix=Matrix((("n", members),))),
            JobSpec("report", Shell("true"), needs=Needs((Need("work"),))),
        ),
    )
    writer = Writer.open(home / "aver.db")
    writer.commit([ev.RunSubmitted(T0, 1, 2, Submission(flow, origin(folder)))])
    batch: list[ev.Event] = []
    for number in range(jobs):
        raw = 3 << 8 if number % 1000 == 999 else 0
        batch += attempt(1, 2 + number, 1, 0.5 + number * 0.005, 1 + number % 7, raw, request)
        if len(batch) > 20_000:
            writer.commit(batch)
            batch = []
    writer.commit([*batch, ev.RunMoved(T0 + jobs * 0.005 + 10, 1, State.FAILED)])
    writer.close()
