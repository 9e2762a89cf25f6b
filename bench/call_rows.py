"""Rows about calls of Python functions: `aver.Executor` beside the standard library's pool and submitit."""

from __future__ import annotations

import concurrent.futures
import importlib.util
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from figures import Row
from product import Product

WORKERS = 2
WANTED = {"submitit": 5.0, "ProcessPoolExecutor": 1.0}
CLIENTS = Path(os.environ.get("AVER_CLIENTS") or Path(__file__).parent.parent / ".venv-clients") / "bin" / "python"
# It has no queue on one machine, so two are submitted at a time.
SUBMITIT = """
import submitit, sys, tempfile, time
count, workers = int(sys.argv[1]), int(sys.argv[2])
with tempfile.TemporaryDirectory() as folder:
    executor = submitit.LocalExecutor(folder)
    began = time.perf_counter()
    for _ in range(count // workers):
        for job in [executor.submit(lambda: None) for _ in range(workers)]:
            job.result()
    print(count / (time.perf_counter() - began))
"""


def nothing() -> None:
    """As `lambda: None`, which a pool of the standard library can't pickle."""


def calls(quick: bool) -> list[Row]:
    """Submit to the last result: each call in a process of its own, two at a time. Warm calls must hold."""
    count = 100 if quick else 1_000
    with Product(slots=WORKERS):
        cold = _ours(count, warm=False)
        warm = _ours(count, warm=True)
    others = {"ProcessPoolExecutor": _pool(count)}
    submitit = _python_with_submitit()
    if submitit is not None:
        others["submitit"] = _submitit(submitit, count // 10 if quick else count // 5)
    rates = ", ".join(f"{other} {rate:,.0f}" for other, rate in others.items())
    beside = f"beside {rates} calls/s; each of Aver's calls has a durable verdict"
    lacks = "" if submitit is not None else "; submitit is not there (scripts/clients), so its limit is not known"
    name = f"{count:,} × lambda: None, {WORKERS} workers"
    row = Row(f"{name}, warm", "calls/s", warm, others)
    reached = [(row.ratio(other) or 0.0) >= WANTED[other] for other in others]
    holds = False if not all(reached) else None if lacks else True
    limit = " and ".join(f"{least:g} × {other}" for other, least in WANTED.items())
    return [
        Row(row.name, row.unit, warm, others, limit, holds, beside + lacks),
        Row(f"{name}, cold", "calls/s", cold, others, note="Python starts for each call"),
    ]


def _ours(count: int, *, warm: bool) -> float:
    """From the first submit to the last result. A server of warm calls has its imports before."""
    import aver

    with aver.Executor(warm=["pickle"] if warm else False) as executor:
        if warm:
            _rate(executor.submit, lambda: None, 5 * WORKERS)
        return _rate(executor.submit, lambda: None, count)


def _rate(submit: Callable[..., Any], function: Callable[[], None], count: int) -> float:
    began = perf_counter()
    for future in [submit(function) for _ in range(count)]:
        future.result()
    return count / (perf_counter() - began)


def _pool(count: int) -> float:
    context = multiprocessing.get_context("spawn")  # the pool refuses fork with max_tasks_per_child
    with concurrent.futures.ProcessPoolExecutor(WORKERS, mp_context=context, max_tasks_per_child=1) as pool:
        return _rate(pool.submit, nothing, count)


def _python_with_submitit() -> str | None:
    if importlib.util.find_spec("submitit") is not None:
        return sys.executable
    return str(CLIENTS) if CLIENTS.exists() else None


def _submitit(python: str, count: int) -> float:
    """A fraction of the calls shows its rate."""
    words = [python, "-c", SUBMITIT, str(count), str(WORKERS)]
    return float(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


ROWS: dict[str, Callable[[bool], list[Row]]] = {"calls": calls}
