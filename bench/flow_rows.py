"""Rows about flows: submitting large ones, a chain's cost per hop, a barrier."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import contenders
from figures import Row
from processes import peak_bytes
from product import Product, many_jobs, matrix_job

from aver.model.job import Argv, FlowSpec, JobSpec, Need, Needs, Streams

WIDTH = 10


def submit(quick: bool) -> list[Row]:
    """Flows of matrix jobs in layers of ten: `aver submit` reads, checks, plans and stores them."""
    sizes = (1_000, 10_000) if quick else (1_000, 10_000, 100_000)
    rows = []
    for size in sizes:
        with Product(slots=2) as product:
            run, took, peak = product.submit_file(layers(size))
            coordinator = peak_bytes(product.pid)
            product.cancel(run)
        largest = size == 100_000
        note = f"{took / size * 1e6:.0f} µs a job"
        rows += [
            Row(
                f"flow of {size:,} jobs: check, plan, submit",
                "s",
                took,
                {},
                "≤ 10 s" if largest else "",
                took <= 10 if largest else None,
                note,
            ),
            Row(
                f"flow of {size:,} jobs: peak memory of `aver submit`",
                "MB",
                peak / 1e6,
                {},
                "≤ 400 MB" if largest else "",
                peak <= 400e6 if largest else None,
            ),
            Row(
                f"flow of {size:,} jobs: peak memory of the coordinator",
                "MB",
                coordinator / 1e6,
                {},
                "≤ 400 MB" if largest else "",
                coordinator <= 400e6 if largest else None,
            ),
        ]
    return rows


def chain(quick: bool) -> list[Row]:
    """Each job needs the one before; what a hop costs beyond the process itself."""
    count = 100 if quick else 1_000
    jobs = [_true("j0", Needs())] + [_true(f"j{at}", Needs((Need(f"j{at - 1}"),))) for at in range(1, count)]
    with tempfile.TemporaryDirectory() as scratch:
        process_ms = contenders.seconds("posix_spawn", 1, ["/bin/true"], count, Path(scratch)) / count * 1000
    with Product(slots=2) as product:
        hop_ms = _run(product, FlowSpec("chain", tuple(jobs))) / count * 1000 - process_ms
    note = f"the process itself takes {process_ms:.2f} ms (posix_spawn loop, one at a time)"
    return [Row(f"chain of {count:,} jobs, per hop over the process", "ms", hop_ms, {}, "≤ 5 ms", hop_ms <= 5, note)]


def barrier(quick: bool) -> list[Row]:
    """1,000 jobs that each need all of 1,000 others, beside 2,000 jobs that need nothing."""
    count = 200 if quick else 1_000
    first = matrix_job("first", count, Needs(), "/bin/true")
    second = matrix_job("second", count, Needs((Need("first"),)), "/bin/true")
    with Product(slots=2) as product:
        plain_s = _run(product, many_jobs("plain", 2 * count, "/bin/true"))
        barrier_s = _run(product, FlowSpec("barrier", (first, second)))
    note = f"{barrier_s:.2f} s, and {plain_s:.2f} s without needs"
    ratio = barrier_s / plain_s
    return [
        Row(
            f"barrier of {count:,} × {count:,} needs, beside {2 * count:,} free jobs",
            "×",
            ratio,
            {},
            "like 2,000 edges",
            ratio < 1.5,
            note,
        )
    ]


def layers(size: int) -> dict[str, object]:
    """A flow of `size` jobs, ten wide; the first layer sleeps, so that the rest waits."""
    members = [str(at) for at in range(WIDTH)]
    jobs: dict[str, object] = {"layer0": {"matrix": {"i": members}, "run": "sleep 600; : {i}"}}
    for at in range(1, size // WIDTH):
        jobs[f"layer{at}"] = {"needs": [f"layer{at - 1}"], "matrix": {"i": members}, "run": "true {i}"}
    return {"name": "layers", "jobs": jobs}


def _true(name: str, needs: Needs) -> JobSpec:
    return JobSpec(name, Argv(("/bin/true",)), needs=needs, streams=Streams(stdout="/dev/null"))


def _run(product: Product, flow: FlowSpec) -> float:
    began = time.perf_counter()
    product.settle([product.submit(flow)])
    return time.perf_counter() - began


ROWS: dict[str, Callable[[bool], list[Row]]] = {"submit": submit, "chain": chain, "barrier": barrier}
