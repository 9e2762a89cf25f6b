"""Rows about a real Slurm: what Aver itself spends on a job beside what Slurm spends on it, and how often it asks.

Needs a Slurm that answers (scripts/slurm-lab start; eval "$(scripts/slurm-lab env)") and an otherwise idle machine:
what Slurm spends is all that the machine was busy with, less what it is busy with at rest, less what Aver spent.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from figures import FOLDER, Row
from processes import TICKS_PER_S, cpu_seconds
from product import Product, many_jobs

from aver.witness import binary

PING_S = 10
REST_S = 3.0
WITNESSED = 200
_CALLS = re.compile(r"slurm: asked ([0-9]+) times; calls: (.*)")


def slurm(quick: bool) -> list[Row]:
    """Many short jobs in one array, and few: processor time per job, calls per poll."""
    if not answers():
        return [Row("jobs on Slurm", "s of cpu", 0.0, note="skipped: no slurmctld answers (scripts/slurm-lab start)")]
    many = 100 if quick else 1000
    few_calls, _, _, _ = _run(10)
    many_calls, ours_s, all_s, took_s = _run(many)
    ours = ours_s / many + _witness_s()
    theirs = all_s / many - ours
    note = f"Slurm's daemons and commands: {theirs * 1000:.1f} ms a job; {many} jobs took {took_s:.0f} s"
    return [
        Row(f"{many} jobs on Slurm, Aver's own", "s of cpu a job", ours, must_hold="< 1/5 of Slurm's",
            holds=ours < theirs / 5, note=note),
        Row("calls of squeue and sacct per poll, 10 jobs", "calls", few_calls),
        Row(f"calls of squeue and sacct per poll, {many} jobs", "calls", many_calls, must_hold="<= 2",
            holds=many_calls <= 2),
    ]  # fmt: skip


def answers() -> bool:
    if shutil.which("sbatch") is None:
        return False
    try:
        ping = subprocess.run(["scontrol", "ping"], capture_output=True, timeout=PING_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return ping.returncode == 0 and b"UP" in ping.stdout


def _run(count: int) -> tuple[float, float, float, float]:
    """Calls per poll, Aver's seconds, the machine's beyond rest, and how long it took."""
    texts: list[str] = []
    with Product(slots=2) as product:
        before = _busy_s()
        time.sleep(REST_S)
        rest = (_busy_s() - before) / REST_S
        began, busy, ours = time.monotonic(), _busy_s(), cpu_seconds(product.pid)
        product.settle([product.submit(many_jobs("many", count, "/bin/true"), engine="slurm")])
        took = time.monotonic() - began
        spent, own = _busy_s() - busy - rest * took, cpu_seconds(product.pid) - ours
        log = product.home.log
        product.on_exit = lambda: texts.append(log.read_text())
    found = _CALLS.findall(texts[0])
    polls, calls = int(found[-1][0]), dict(word.split()[::-1] for word in found[-1][1].split(", "))
    return (int(calls.get("squeue", 0)) + int(calls.get("sacct", 0))) / polls, own, spent, took


def _busy_s() -> float:
    """Processor time of all processes since the machine started."""
    words = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _, _, irq, softirq = (int(word) for word in words[:7])
    return (user + nice + system + irq + softirq) / TICKS_PER_S


def _witness_s() -> float:
    """What the witness adds to a program that does nothing."""

    def spent(*words: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        for _ in range(WITNESSED):
            subprocess.run(words, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / WITNESSED

    with tempfile.TemporaryDirectory(dir=FOLDER) as place:
        record = os.path.join(place, "record")
        return spent(str(binary()), "once", "--record", record, "--key", "k", "--", "/bin/true") - spent("/bin/true")


ROWS: dict[str, Callable[[bool], list[Row]]] = {"slurm": slurm}
