"""What is measured, as data, and the table that shows it."""

from __future__ import annotations

import os
import platform
import sqlite3
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

OTHERS = ("xargs", "parallel", "posix_spawn")
FOLDER = "/var/tmp"  # where the homes are: on a disk, which /tmp often is not
SYNCS = 100


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `others` are the same figure of the others, where they have one."""

    name: str
    unit: str
    aver: float
    others: dict[str, float] = field(default_factory=dict)
    must_hold: str = ""
    holds: bool | None = None
    note: str = ""

    def ratio(self, other: str) -> float | None:
        """Aver's figure divided by the other's."""
        value = self.others.get(other)
        return self.aver / value if value else None


def machine() -> str:
    """What it was measured on, without names."""
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        platform.machine(),
    )
    cpus = len(os.sched_getaffinity(0))
    return (
        f"{cpus} × {model} · Linux {platform.release().split('-')[0]} · Python {platform.python_version()} · "
        f"SQLite {sqlite3.sqlite_version} · {_disk()}"
    )


def _disk() -> str:
    """What durable costs here. On a file system in memory a sync is free, and says nothing."""
    folder = os.path.realpath(FOLDER)
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    above = [(mount, kind) for mount, kind in mounts if os.path.commonpath([mount, folder]) == mount]
    kind = max(above, key=lambda one: len(one[0]))[1]
    with tempfile.TemporaryFile(dir=FOLDER) as file:
        began = time.perf_counter()
        for _ in range(SYNCS):
            file.write(b"x" * 4096)
            file.flush()
            os.fdatasync(file.fileno())
        sync_ms = (time.perf_counter() - began) / SYNCS * 1000
    warning = ": in memory, so nothing here is durable" if kind in ("tmpfs", "ramfs") else ""
    return f"home on {kind}{warning}, one sync of 4 KiB takes {sync_ms:.2f} ms"


def table(rows: list[Row]) -> str:
    """A Markdown table whose columns are aligned."""
    head = ["figure", "aver", *(f"{other} (aver is)" for other in OTHERS), "must hold", ""]
    cells = [head]
    for row in rows:
        others = []
        for other in OTHERS:
            ratio = row.ratio(other)
            factor = "" if ratio is None else f" ({_short(ratio)} ×)"
            others.append(_short(row.others[other]) + factor if other in row.others else "–")
        verdict = {None: "", True: "yes", False: "NO"}[row.holds]
        cells.append([f"{row.name}, {row.unit}", _short(row.aver), *others, row.must_hold, verdict])
    widths = [max(len(line[at]) for line in cells) for at in range(len(head))]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) + " |" for line in cells
    ]
    lines.insert(1, "| " + " | ".join("-" * max(3, width) for width in widths) + " |")
    notes = [f"- {row.name}: {row.note}" for row in rows if row.note]
    return "\n".join([*lines, "", *notes]).rstrip()


def _short(value: float) -> str:
    """Three digits that matter, no exponent."""
    if value == 0:
        return "0"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.095 else f"{value:.4f}"
