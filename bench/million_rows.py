"""Rows about a run of a million jobs that wait: submitting it, looking at it, cancelling it."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable

from figures import Row
from processes import peak_bytes
from product import Product, matrix_job

from aver.model.job import FlowSpec, Needs
from aver.protocol.client import Client

SIDE = 1_000  # members of each of the two axes
GLANCES = (("jobs",), ("runs",), ("status",), ("why", "RUN"), ("results", "RUN"))


def million(quick: bool) -> list[Row]:
    """A matrix whose first two jobs sleep, so that all others wait. `cancel` is acknowledged, then done."""
    side = SIDE // 10 if quick else SIDE
    count = SIDE * side
    of_run = f"run of {count:,} jobs"
    with Product(slots=2) as product:
        run, submit_s, client_bytes = product.submit_file(sleepers(SIDE, side))
        rows = [
            _row(f"{of_run}: aver submit", "s", submit_s, 20),
            _row(f"{of_run}: peak memory of `aver submit`", "MB", client_bytes / 1e6, 250),
        ]
        for words, asked in zip(GLANCES, _glances(run), strict=True):
            best = min(product.aver(*asked)[1] for _ in range(3))
            rows.append(_row(f"{of_run}: aver {' '.join(words)}", "s", best, 0.5))
        client = product.connect()
        began = time.perf_counter()
        client.call("cancel", ids=[run], by="bench", signal=None, now=True)
        acknowledged_s = time.perf_counter() - began
        _settle(client, run)
        done_s = time.perf_counter() - began
        client.close()
        rows += [
            _row(f"{of_run}: cancel acknowledged", "s", acknowledged_s, 1),
            _row(f"{of_run}: cancel done", "s", done_s, 10),
            _row(f"{of_run}: peak memory of the coordinator", "MB", peak_bytes(product.pid) / 1e6, 600),
        ]
        for words, asked in zip(GLANCES, _glances(run), strict=True):
            best = min(product.aver(*asked)[1] for _ in range(3))
            rows.append(_row(f"{of_run}, cancelled: aver {' '.join(words)}", "s", best, 0.5))
    return rows


def million_run(quick: bool) -> list[Row]:
    """A million × true: jobs a second in the first and in the last tenth, by when they ended; bytes in the store."""
    count = SIDE * (SIDE // 10 if quick else SIDE)
    of_run = f"{count:,} × true"
    with Product(slots=2) as product:
        run = product.submit(FlowSpec("many", (matrix_job("many", count, Needs(), "/bin/true"),)))
        product.settle([run])
        glances = [(words, min(product.aver(*words)[1] for _ in range(3))) for words in _glances(run)]
        peak = peak_bytes(product.pid)
        with sqlite3.connect(f"file:{product.home.database}?mode=ro", uri=True) as store:
            ended = [at for (at,) in store.execute("select ended_at from jobs where run = ? order by 1", (run,))]
            states = store.execute("select distinct state from jobs where run = ?", (run,)).fetchall()
        store.close()
        product.on_exit = lambda: sizes.append(product.home.database.stat().st_size)
        sizes: list[int] = []
    if states != [("COMPLETED",)]:
        raise RuntimeError(f"jobs of run {run} are {states}")
    tenth = count // 10
    first, last = tenth / (ended[tenth] - ended[0]), tenth / (ended[-1] - ended[-1 - tenth])
    return [
        Row(f"{of_run}: jobs/s in the first tenth", "jobs/s", first),
        Row(f"{of_run}: last tenth beside the first", "×", last / first, {}, "≥ 0.95 ×", last / first >= 0.95),
        _row(f"{of_run}: store, a job", "KB", sizes[0] / count / 1000, 1.2),
        _row(f"{of_run}: peak memory of the coordinator", "MB", peak / 1e6, 600),
        *(_row(f"{of_run}: aver {words[0]}{' RUN' * (len(words) - 1)}", "s", took, 0.5) for words, took in glances),
    ]


def _glances(run: int) -> list[list[str]]:
    return [[str(run) if word == "RUN" else word for word in words] for words in GLANCES]


def sleepers(width: int, height: int) -> dict[str, object]:
    axes = {"a": [str(at) for at in range(width)], "b": [str(at) for at in range(height)]}
    return {"name": "many", "jobs": {"many": {"matrix": axes, "run": "sleep 600; : {a} {b}"}}}


def _settle(client: Client, run: int) -> None:
    for _ in client.watch([run]):
        pass


def _row(name: str, unit: str, value: float, most: float) -> Row:
    return Row(name, unit, value, {}, f"≤ {most:g} {unit}", value <= most)


ROWS: dict[str, Callable[[bool], list[Row]]] = {"million": million, "million-run": million_run}
