"""Measure running attempts of this machine now and then, for the series of memory and CPUs over time.

It is done aside, and its own CPU time sets the pace: a measurement that took long is followed by a longer pause, so
that it never costs more than `MOST_SHARE` of a CPU. Attempts that ran for less than `LEAST_S` are not measured.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import partial

from aver.client.use.now import Scan, of_attempts
from aver.client.use.series import GAP_S, Sample, Series, series_path
from aver.coordinator.background import Background, Failed
from aver.coordinator.state.attempt import LiveAttempt
from aver.coordinator.state.machine import Machine
from aver.home import Home
from aver.log import log
from aver.model.record import Record
from aver.model.states import State

MOST_SHARE = 0.001
LEAST_S = GAP_S
LOOK_S = 1.0  # how often it is looked for attempts that have run for so long
MOST_ATTEMPTS = 1000  # of one measurement; of more, those that began first


class Measured(Record):
    """What a thread needs to know of an attempt that is measured."""

    key: str
    run: int
    job: int
    attempt: int


class Sampler:
    """`look` is called in every turn of the loop."""

    def __init__(self, home: Home, machine: Machine, background: Background) -> None:
        self._home = home
        self._machine = machine
        self._background = background
        self._scan = Scan()
        self._series: dict[str, Series] = {}
        self._due_s = time.monotonic() + GAP_S
        self._is_busy = False
        self._has_told = False

    def next_due(self) -> float | None:
        """By the monotonic clock; None while nothing runs here."""
        return self._due_s if self._machine.attempts and not self._is_busy else None

    def look(self, now: float) -> None:
        if self._is_busy or time.monotonic() < self._due_s:
            return
        begun = starts_here(self._machine.attempts.values())
        wanted = measured(begun, now)
        if not wanted:
            self._series.clear()
            first = min((at for at, _ in begun), default=now)
            self._due_s = time.monotonic() + max(LOOK_S, min(GAP_S, first + LEAST_S - now))
            return
        self._is_busy = True
        self._background.run("use", partial(self._sample, wanted), self._finish)

    def _sample(self, wanted: list[Measured]) -> float:
        """In a thread: the CPU seconds that it took."""
        begun = time.thread_time()
        at = time.time()
        found = of_attempts(self._scan.use())
        kept = {}
        for one in wanted:
            if one.key not in found:
                continue
            series = self._series.get(one.key) or Series(series_path(self._home, one.run, one.job, one.attempt))
            kept[one.key] = series
            try:
                series.add(Sample(at, *found[one.key]))
            except OSError as error:
                self._tell(f"job {one.job}: its memory and CPUs can't be noted: {error.strerror}")
        self._series = kept
        return time.thread_time() - begun

    def _finish(self, took_s: float | Failed) -> None:
        self._is_busy = False
        self._due_s = time.monotonic() + (GAP_S if isinstance(took_s, Failed) else pause_s(took_s))

    def _tell(self, text: str) -> None:
        if not self._has_told:
            self._has_told = True
            log(text)


def starts_here(attempts: Iterable[LiveAttempt]) -> list[tuple[float, LiveAttempt]]:
    """The attempts that run on this machine, each with the time of its start."""
    return [
        (one.started_at, one) for one in attempts
        if one.state in (State.RUNNING, State.SUSPENDED) and not one.can.outlives_machine
        and one.started_at is not None
    ]  # fmt: skip


def measured(begun: list[tuple[float, LiveAttempt]], now: float) -> list[Measured]:
    """Those that have run for long enough."""
    old = [one for at, one in begun if now - at >= LEAST_S]
    return [Measured(one.key, one.run, one.job, one.attempt) for one in old[:MOST_ATTEMPTS]]


def pause_s(took_s: float) -> float:
    """The pause after a measurement that took so much CPU time."""
    return max(GAP_S, took_s / MOST_SHARE)
