"""Rows about answers on large runs: results, usage and why of 100,000 settled jobs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from figures import FOLDER, Row

from aver.judge.local import judge_record
from aver.judge.witness_record import parse_record
from aver.model import events as ev
from aver.model.evidence import Rules
from aver.model.job import FlowSpec, JobSpec, Matrix, Origin, Request, Shell, Submission
from aver.model.states import State
from aver.store.write.writer import Writer

T0 = 1_700_000_000.0
GIB = 1 << 30
COMMANDS = (("results",), ("results", "--failed"), ("results", "--csv"), ("usage",), ("usage", "--csv"), ("why",))


def answers(quick: bool) -> list[Row]:
    """Each command as a user types it, start-up included, on a run that has ended."""
    count = 10_000 if quick else 100_000
    folder = Path(tempfile.mkdtemp(prefix="aver-bench-", dir=FOLDER))
    try:
        fill(folder, count)
        return [_row(folder, count, words) for words in COMMANDS]
    finally:
        shutil.rmtree(folder)


def _row(folder: Path, count: int, words: tuple[str, ...]) -> Row:
    argv = [sys.executable, "-m", "aver", words[0], "1", *words[1:]]
    began = time.perf_counter()
    subprocess.run(argv, env={**os.environ, "AVER_HOME": str(folder / "home")}, capture_output=True, check=True)
    took = time.perf_counter() - began
    is_bound = "--csv" not in words  # a file of all rows is written, not looked at
    name = f"aver {' '.join(words)} of {count:,} jobs"
    return Row(name, "s", took, {}, "≤ 2 s" if is_bound else "", took <= 2 if is_bound else None)


def fill(folder: Path, count: int) -> None:
    """A settled run of `count` jobs in ten matrices; one in fifty failed, and each failed job left a log."""
    home = folder / "home"
    home.mkdir(mode=0o700)
    work = folder / "work"
    (work / "aver-1").mkdir(parents=True)
    members = tuple(str(at) for at in range(count // 10))
    request = Request(mem_bytes=4 * GIB, time_s=3600)
    specs = tuple(JobSpec(f"train{at}", Shell("x {i}"), request, matrix=Matrix((("i", members),))) for at in range(10))
    origin = Origin("bench", 0, "box", str(work), 0o022)
    writer = Writer.open(home / "aver.db")
    writer.commit([ev.RunSubmitted(T0, 1, 2, Submission(FlowSpec("big", specs), origin))])
    batch: list[ev.Event] = []
    for at in range(count):
        batch += _life(at, request)
        if at % 50 == 0:
            name = f"train{at // len(members)}[i={at % len(members)}]"
            (work / "aver-1" / f"{name}.out").write_text("Traceback (most recent call last):\nValueError: no\n")
        if len(batch) > 20_000:
            writer.commit(batch)
            batch = []
    writer.commit([*batch, ev.RunMoved(T0 + 100, 1, State.OUT_OF_MEMORY)])
    writer.close()


def _life(at: int, request: Request) -> Iterator[ev.Event]:
    job = at + 2
    bad = at % 50 == 0
    raw = 9 if bad and at % 100 else 256 if bad else 0
    said = {
        "ev": "end", "key": f"k{job}", "witness": 10, "pid": 11, "boot": "b", "raw": raw, "start": T0 + 1,
        "elapsed": 10.0 + at % 7, "suspended": 0.0, "user": 5.0, "sys": 0.5, "maxrss": GIB, "peak": GIB + at * 4096,
        "mem": "cgroup1", "limit": 4 * GIB, "oom": int(raw == 9), "hostoom": 0, "acts": [], "got": [], "left": 0,
        "launch": None, "size": 1,
    }  # fmt: skip
    record = parse_record(said)
    verdict = judge_record(record, Rules())
    usage = ev.Usage(T0 + 1, record.elapsed_s, record.user_s, record.sys_s, record.peak_bytes, "node1")
    yield ev.AttemptPlanned(T0, 1, job, 1, f"k{job}", "local", request)
    yield ev.Observed(
        T0 + 1 + record.elapsed_s, 1, job, 1, "witness", json.dumps(said), verdict.state, verdict.reason, verdict, usage
    )


ROWS: dict[str, Callable[[bool], list[Row]]] = {"answers": answers}
