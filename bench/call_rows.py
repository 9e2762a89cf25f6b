"""Rows about calls of Python functions: `aver.Executor` beside the standard library's pool and submitit."""

from __future__ import annotations

import concurrent.futures
import importlib.util
import multiprocessing
import tempfile
import time
from collections.abc import Callable
from typing import Any

from figures import Row
from product import Product

WORKERS = 2


def nothing() -> None:
    """As `lambda: None`, which a pool of the standard library can't pickle."""


def calls(quick: bool) -> list[Row]:
    """Submit to the last result: each call in a process of its own, two at a time."""
    count = 100 if quick else 1_000
    with Product(slots=WORKERS):
        import aver

        with aver.Executor() as executor:
            ours = _rate(executor.submit, count)
    others = {"ProcessPoolExecutor": _pool(count)}
    if importlib.util.find_spec("submitit") is not None:
        others["submitit"] = _submitit(count // 10) if quick else _submitit(count // 5)
    row = Row(
        f"{count:,} × lambda: None, {WORKERS} workers", "calls/s", ours, others,
        "5 × submitit, 1 × ProcessPoolExecutor",
    )  # fmt: skip
    wanted = {"submitit": 5.0, "ProcessPoolExecutor": 1.0}
    holds = all((row.ratio(other) or 0.0) >= wanted[other] for other in others)
    rates = ", ".join(f"{other} {rate:,.0f}" for other, rate in others.items())
    note = f"beside {rates} calls/s; max_tasks_per_child=1 for the pool; each of Aver's calls has a durable verdict"
    return [Row(row.name, row.unit, row.aver, row.others, row.must_hold, holds, note)]


def _rate(submit: Callable[..., Any], count: int) -> float:
    began = time.perf_counter()
    for future in [submit(nothing) for _ in range(count)]:
        future.result()
    return count / (time.perf_counter() - began)


def _pool(count: int) -> float:
    context = multiprocessing.get_context("spawn")  # the pool refuses fork with max_tasks_per_child
    with concurrent.futures.ProcessPoolExecutor(WORKERS, mp_context=context, max_tasks_per_child=1) as pool:
        return _rate(pool.submit, count)


def _submitit(count: int) -> float:
    """A fraction of the calls shows its rate. It has no queue on one machine: two are submitted at a time."""
    import submitit

    with tempfile.TemporaryDirectory() as folder:
        executor = submitit.LocalExecutor(folder)
        began = time.perf_counter()
        for _ in range(count // WORKERS):
            for job in [executor.submit(nothing) for _ in range(WORKERS)]:
                job.result()
        return count / (time.perf_counter() - began)


ROWS: dict[str, Callable[[bool], list[Row]]] = {"calls": calls}
