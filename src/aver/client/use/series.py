"""Memory and CPUs of an attempt over time: a file of few points, which the coordinator writes and everybody reads.

Each line has the Unix time, the CPU seconds up to then, and the most memory since the line before. A file never has
more than `MOST_POINTS` lines: when it would, the distance of its points is doubled, and each pair becomes one point
with the larger memory. It is a measurement and no evidence: no verdict rests on it, and it is not synced to the disk.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from aver.durable_files import replace_file
from aver.home import Home
from aver.model.record import Record
from aver.ownership import make_folder

MOST_POINTS = 120
GAP_S = 5.0  # between the points of a young attempt
LONGEST_FILE = 1 << 16


class Sample(Record):
    """What is written: CPU time is of the whole attempt up to then."""

    at: float
    cpu_s: float
    memory_bytes: int


class UsePoint(Record):
    """What is shown: the mean of CPUs since the point before, and the most memory that was seen since then."""

    at: float
    cpus: float | None
    memory_bytes: int


class AttemptUse(Record):
    """Of one attempt, oldest point first."""

    attempt: int
    points: tuple[UsePoint, ...]


class Series:
    """The file of one attempt, for the one process that writes it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._samples: list[Sample] | None = None
        self._most_bytes = 0  # since the last point

    def add(self, sample: Sample) -> None:
        """Take one measurement; raise OSError if it can't be written."""
        if self._samples is None:
            self._samples = _read(self._path)
            make_folder(os.fspath(self._path.parent))
        samples = self._samples
        if samples and sample.at <= samples[-1].at:
            return  # the clock was set back
        self._most_bytes = max(self._most_bytes, sample.memory_bytes)
        if samples and sample.at - samples[-1].at < gap_s(samples[-1].at - samples[0].at) * 0.9:
            return
        samples.append(Sample(sample.at, sample.cpu_s, self._most_bytes))
        self._most_bytes = 0
        kept = thinned(samples)
        if len(kept) == len(samples):
            self._append(samples[-1])
        else:
            self._samples = kept
            replace_file(self._path, b"".join(map(_line, kept)), 0o600)

    def _append(self, sample: Sample) -> None:
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.write(handle, _line(sample))
        finally:
            os.close(handle)


def gap_s(span_s: float) -> float:
    """The distance of points that keeps this span within the limit: GAP_S, doubled as often as needed."""
    gap = GAP_S
    while span_s > gap * (MOST_POINTS - 1):
        gap *= 2
    return gap


def thinned(samples: list[Sample]) -> list[Sample]:
    """The samples themselves while there are few; else half of them."""
    while len(samples) > MOST_POINTS:
        pairs = zip(samples[::2], samples[1::2], strict=False)
        halved = [Sample(b.at, b.cpu_s, max(a.memory_bytes, b.memory_bytes)) for a, b in pairs]
        samples = halved + samples[len(halved) * 2 :]
    return samples


def read_use(home: Home, run: int, job: int, attempt: int, started_at: float | None) -> AttemptUse | None:
    """The points of an attempt; None: it was not measured."""
    samples = _read(series_path(home, run, job, attempt))
    if not samples:
        return None
    at, cpu_s = started_at, 0.0
    points = []
    for one in samples:
        cpus = None if at is None or one.at <= at else max(0.0, one.cpu_s - cpu_s) / (one.at - at)
        points.append(UsePoint(one.at, cpus, one.memory_bytes))
        at, cpu_s = one.at, one.cpu_s
    return AttemptUse(attempt, tuple(points))


def series_path(home: Home, run: int, job: int, attempt: int) -> Path:
    return home.use(run) / f"{job}.{attempt}"


def spark(values: Sequence[float | None], most: float, width: int) -> str:
    """The values as signs of eight heights, at most `width` of them; a blank is unknown."""
    step = max(1, -(-len(values) // width))
    found = []
    for begin in range(0, len(values), step):
        known = [one for one in values[begin : begin + step] if one is not None]
        if not known or most <= 0:
            found.append(" ")
        else:
            found.append("▁▂▃▄▅▆▇█"[min(7, int(8 * max(known) / most))])
    return "".join(found)


def _line(sample: Sample) -> bytes:
    return f"{sample.at:.2f} {sample.cpu_s:.2f} {sample.memory_bytes}\n".encode()


def _read(path: Path) -> list[Sample]:
    """The lines that can be read: the last one may be cut by a full disk."""
    found: list[Sample] = []
    with suppress(OSError), open(path, "rb") as file:
        for line in file.read(LONGEST_FILE).splitlines():
            with suppress(ValueError):
                at, cpu_s, memory = line.split()
                found.append(Sample(float(at), float(cpu_s), int(memory)))
    return thinned(found)
