"""Rows about single jobs: throughput, latency, memory and idle time of 1,000 sleepers, cold start."""

from __future__ import annotations

import os
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import contenders
from figures import Row
from processes import children_of, cpu_seconds, proportional_bytes, wait_for
from product import Product, many_jobs, one_job

# Where the outputs of `map` are: for minutes after many files were deleted, ext4 is slow to make new ones.
MEMORY = "/dev/shm"


def throughput(quick: bool) -> list[Row]:
    """Submit to the last durable verdict, against start to end of the others; three rounds in turn, the medians."""
    return [_throughput(slots, quick) for slots in (2, 1, 4)]


def _throughput(slots: int, quick: bool) -> Row:
    count = 1_000 if quick else 10_000
    rates: dict[str, list[float]] = {}
    with Product(slots=slots) as product, tempfile.TemporaryDirectory() as scratch:
        for _ in range(1 if quick else 3):
            began = time.perf_counter()
            product.settle([product.submit(many_jobs("true", count, "/bin/true"))])
            rates.setdefault("aver", []).append(count / (time.perf_counter() - began))
            for other in contenders.available():
                # GNU parallel is ten times slower than the rest: a fifth of the jobs shows its rate.
                lines = count // 5 if other == "parallel" else count
                took = contenders.seconds(other, slots, ["/bin/true"], lines, Path(scratch))
                rates.setdefault(other, []).append(lines / took)
        _require_all_completed(product, "true", count)
    medians = {name: statistics.median(each) for name, each in rates.items()}
    name = f"{count:,} × true, {slots} slot{'' if slots == 1 else 's'}"
    row = Row(name, "jobs/s", medians.pop("aver"), medians, "0.95 × xargs")
    note = "stdout is /dev/null for all; each verdict is durable with its evidence"
    return _judged(row, (row.ratio("xargs") or 0) >= 0.95, note if slots == 2 else "")


def mapped(quick: bool) -> list[Row]:
    """`aver map` from the shell beside GNU parallel: inputs on stdin, a shell for each, from start to end."""
    count = 1_000 if quick else 10_000
    rates: dict[str, list[float]] = {}
    with Product(slots=2) as product, tempfile.TemporaryDirectory(dir=MEMORY) as scratch:
        for _ in range(1 if quick else 3):
            took = product.map(["-q", "-j2", "-J", "map", "true {}"], count, scratch)
            rates.setdefault("aver", []).append(count / took)
            if "parallel" in contenders.available():
                lines = count // 5
                took = contenders.seconds("map", 2, ["true"], lines, Path(scratch))
                rates.setdefault("parallel", []).append(lines / took)
        _require_all_completed(product, "map", count)
    medians = {name: statistics.median(each) for name, each in rates.items()}
    row = Row(f"aver map, {count:,} × true {{}}, 2 slots", "jobs/s", medians.pop("aver"), medians, "4 × parallel")
    ratio = row.ratio("parallel")
    return [
        _judged(
            row,
            ratio is None or ratio >= 4,
            "the whole command, its start and its last line included; outputs in memory",
        )
    ]


def latency(quick: bool) -> list[Row]:
    """One job every 100 ms; from the time that the job prints as its last act to the verdict read by a watcher."""
    count = 30 if quick else 200
    ours = []
    with Product(slots=2) as product:
        submitting, reader = product.connect(), sqlite3.connect(f"file:{product.home.database}?mode=ro", uri=True)
        for at in range(count):
            due = time.monotonic() + 0.1
            stdout = product.folder / f"end-{at}"
            # The job outlasts the start of the watch, so that the watcher waits before it ends.
            flow = one_job("date", "/bin/sh", "-c", "sleep 0.03; exec date +%s.%N", stdout=str(stdout))
            watching = product.connect()
            run = product.submit(flow, submitting)
            for _ in watching.watch([run]):
                pass
            state = reader.execute("select state from jobs where id = ?", (run,)).fetchone()
            seen = time.time()
            watching.close()
            if state != ("COMPLETED",):
                raise RuntimeError(f"job {run} is {state}")
            ours.append((seen - float(stdout.read_text())) * 1000)
            time.sleep(max(0.0, due - time.monotonic()))
        reader.close()
        submitting.close()
    others = {other: [_end_to_known(other) for _ in range(20 if quick else 100)] for other in contenders.available()}
    p50 = Row(
        "exit to verdict, p50",
        "ms",
        _percentile(ours, 50),
        {name: _percentile(each, 50) for name, each in others.items()},
    )
    p99 = Row(
        "exit to verdict, p99",
        "ms",
        _percentile(ours, 99),
        {name: _percentile(each, 99) for name, each in others.items()},
        "< 20 ms",
    )
    note = "for the others: until the end of xargs or parallel with that one job, or of the wait"
    return [p50, _judged(p99, p99.aver < 20, note)]


def sleepers(quick: bool) -> list[Row]:
    """1,000 running jobs: memory of our own for each, and processor time while nothing happens."""
    count = 100 if quick else 1_000
    window_s = 5.0 if quick else 20.0
    with Product(slots=count) as product:
        pid = product.pid
        before = proportional_bytes(pid)
        run = product.submit(many_jobs("sleep", count, "/bin/sleep", "600"))
        wait_for(lambda: _running(product) == count, 120, f"{count} running jobs")
        time.sleep(2)
        witnesses = product.witnesses()
        growth = max(0, proportional_bytes(pid) - before)
        each = (sum(map(proportional_bytes, witnesses)) + growth) / count
        idle = _idle_percent([pid], window_s)
        idle_witnesses = _idle_percent(witnesses, window_s)
        product.cancel(run)
    memory, percent = {}, {}
    for other in contenders.available():
        memory[other], percent[other] = _sleepers_of(other, count, window_s)
    rows = [
        Row(
            f"memory per running job, {count:,} sleepers",
            "MB",
            each / 1e6,
            {name: value / 1e6 for name, value in memory.items()},
            "≤ 0.5 MB",
        ),
        Row(f"idle coordinator, {count:,} running jobs", "% of a core", idle, percent, "< 0.5 %"),
        Row(f"idle witnesses, all {count:,}", "% of a core", idle_witnesses),
    ]
    note = f"{len(witnesses):,} witnesses and {growth / 1e6:.1f} MB that the coordinator grew by; Pss"
    return [_judged(rows[0], rows[0].aver <= 0.5, note), _judged(rows[1], idle < 0.5), rows[2]]


def start(quick: bool) -> list[Row]:
    """Cold start, the best of 20, in turn."""
    installed = Path(sys.executable).with_name("aver")
    ours = [str(installed)] if installed.exists() else [sys.executable, "-m", "aver"]
    programs = {
        "aver": [*ours, "--version"],
        "aver jobs": [*ours, "jobs"],
        "python": [sys.executable, "-c", "pass"],
        "xargs": ["xargs", "--version"],
        "parallel": ["parallel", "--version"],
    }
    always = ("aver", "aver jobs", "python")
    best = {name: 1e9 for name in programs if name in always or name in contenders.available()}
    empty = {**os.environ, "AVER_HOME": "/proc/none/aver"}  # a home that is not there
    for _ in range(5 if quick else 20):
        for name in best:
            best[name] = min(best[name], _milliseconds(programs[name], empty))
    python, listed = best.pop("python"), best.pop("aver jobs")
    with Product(slots=2):
        words = [*ours, "submit", "--", "/bin/true"]
        submitted = min(_milliseconds(words) for _ in range(5 if quick else 20))
    rows = [
        Row("aver --version", "ms", best.pop("aver"), best, "≤ 4 × python -c pass"),
        Row("aver jobs, empty home", "ms", listed, {}, "≤ 4 × python -c pass"),
    ]
    note = f"python -c pass takes {python:.1f} ms: {{:.2f}} ×"
    judged = [_judged(row, row.aver <= 4 * python, note.format(row.aver / python)) for row in rows]
    row = Row("aver submit -- true", "ms", submitted, {}, "≤ 8 × python -c pass")
    return [*judged, _judged(row, submitted <= 8 * python, note.format(submitted / python))]


def _milliseconds(words: list[str], env: dict[str, str] | None = None) -> float:
    began = time.perf_counter()
    subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env, check=True)
    return (time.perf_counter() - began) * 1000


def _judged(row: Row, holds: bool, note: str = "") -> Row:
    return Row(row.name, row.unit, row.aver, row.others, row.must_hold, holds, note)


def _percentile(values: list[float], percent: int) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


def _require_all_completed(product: Product, name: str, count: int) -> None:
    """A fast run of wrong verdicts is worth nothing."""
    reader = sqlite3.connect(f"file:{product.home.database}?mode=ro", uri=True)
    query = """select count(*) from jobs join runs on runs.id = jobs.run
               where runs.name = ? and jobs.state = 'COMPLETED' and jobs.verified group by jobs.run"""
    completed = {row[0] for row in reader.execute(query, (name,))}
    reader.close()
    if completed != {count}:
        raise RuntimeError(f"not all of {count} jobs are COMPLETED and verified: {completed}")


def _running(product: Product) -> int:
    reader = sqlite3.connect(f"file:{product.home.database}?mode=ro", uri=True)
    found = reader.execute("select count(*) from jobs where state = 'RUNNING'").fetchone()[0]
    reader.close()
    return int(found)


def _end_to_known(other: str) -> float:
    """Milliseconds from the time that a job prints as its last act until `other` has ended, or its wait has."""
    program = ["/bin/date", "+%s.%N"]
    match other:
        case "xargs":
            line = ["xargs", "-P2", "-I{}", *program]
        case "parallel":
            line = ["parallel", "--will-cite", "-j2", "-N0", *program]
        case _:
            return _spawned_to_waited(program)
    done = subprocess.run(line, input=b"1\n", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return (time.time() - float(done.stdout)) * 1000


def _spawned_to_waited(program: list[str]) -> float:
    read_fd, write_fd = os.pipe()
    pid = os.posix_spawn(program[0], program, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, write_fd, 1)])
    os.waitpid(pid, 0)
    seen = time.time()
    os.close(write_fd)
    printed = os.read(read_fd, 100)
    os.close(read_fd)
    return (seen - float(printed)) * 1000


def _idle_percent(pids: list[int], window_s: float) -> float:
    before = sum(map(cpu_seconds, pids))
    began = time.monotonic()
    time.sleep(window_s)
    return (sum(map(cpu_seconds, pids)) - before) / (time.monotonic() - began) * 100


def _sleepers_of(other: str, count: int, window_s: float) -> tuple[float, float]:
    """Bytes per running job of the other program itself, and its processor time in percent."""
    with tempfile.TemporaryDirectory() as scratch:
        process = contenders.start(other, count, ["/bin/sleep", "600"], count, Path(scratch))
        try:
            wait_for(lambda: len(children_of(process.pid)) >= count, 300, f"{count} children of {other}")
            time.sleep(2)
            return proportional_bytes(process.pid) / count, _idle_percent([process.pid], window_s)
        finally:
            # Stopped first, so that it starts no further job; GNU parallel's jobs have groups of their own.
            process.send_signal(signal.SIGSTOP)
            for pid in [*children_of(process.pid), process.pid]:
                os.kill(pid, signal.SIGKILL)
            process.wait()


ROWS: dict[str, Callable[[bool], list[Row]]] = {
    "throughput": throughput,
    "map": mapped,
    "latency": latency,
    "sleepers": sleepers,
    "start": start,
}
