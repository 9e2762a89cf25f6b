"""Rows about a run of a million jobs that wait: submitting it, looking at it, cancelling it."""

from __future__ import annotations

import time
from collections.abc import Callable

from figures import Row
from processes import peak_bytes
from product import Product

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
        for words in GLANCES:
            asked = [str(run) if word == "RUN" else word for word in words]
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
        for words in GLANCES:
            asked = [str(run) if word == "RUN" else word for word in words]
            best = min(product.aver(*asked)[1] for _ in range(3))
            rows.append(_row(f"{of_run}, cancelled: aver {' '.join(words)}", "s", best, 0.5))
    return rows


def sleepers(width: int, height: int) -> dict[str, object]:
    axes = {"a": [str(at) for at in range(width)], "b": [str(at) for at in range(height)]}
    return {"name": "many", "jobs": {"many": {"matrix": axes, "run": "sleep 600; : {a} {b}"}}}


def _settle(client: Client, run: int) -> None:
    for _ in client.watch([run]):
        pass


def _row(name: str, unit: str, value: float, most: float) -> Row:
    return Row(name, unit, value, {}, f"≤ {most:g} {unit}", value <= most)


ROWS: dict[str, Callable[[bool], list[Row]]] = {"million": million}
