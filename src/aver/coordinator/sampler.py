"""Measure running attempts of this machine now and then, for the series of memory and CPUs over time.

It is done aside, and its own CPU time sets the pace: a measurement that took long is followed by a longer pause, so
that it never costs more than `MOST_SHARE` of a CPU. Attempts that ran for less than `LEAST_S` are not measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from aver.client.use.now import Scan, Use, of_attempts
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


class _Wanted(Record):
    """What a thread needs to know of an attempt."""

    key: str
    run: int
    job: int
    attempt: int


class Sampler:
    """`look` is called in every turn of the loop. `measure` and `cpu_clock` are for tests."""

    def __init__(
        self,
        home: Home,
        machine: Machine,
        background: Background,
        measure: Callable[[], dict[str, Use]] | None = None,
        cpu_clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self._home = home
        self._machine = machine
        self._background = background
        self._measure = measure or Scan().use
        self._cpu_clock = cpu_clock
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
        here = [one for one in self._machine.attempts.values() if _runs_here(one) and not self._is_elsewhere(one)]
        wanted = [
            _Wanted(one.key, one.run, one.job, one.attempt)
            for one in here
            if one.started_at is not None and now - one.started_at >= LEAST_S
        ][:MOST_ATTEMPTS]
        if not wanted:
            self._series.clear()
            begun = min((one.started_at for one in here if one.started_at is not None), default=now)
            self._due_s = time.monotonic() + max(LOOK_S, min(GAP_S, begun + LEAST_S - now))
            return
        self._is_busy = True
        self._background.run("use", partial(self._sample, wanted), self._finish)

    def _is_elsewhere(self, attempt: LiveAttempt) -> bool:
        """Whether a daemon starts its processes: those that are found here are not the job."""
        container = self._machine.runs[attempt.run].spec(attempt.index).setup.container
        return container is not None and container.is_of_daemon

    def _sample(self, wanted: list[_Wanted]) -> float:
        """In a thread: the CPU seconds that it took."""
        begun = self._cpu_clock()
        at = time.time()
        found = of_attempts(self._measure())
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
        return self._cpu_clock() - begun

    def _finish(self, took_s: float | Failed) -> None:
        self._is_busy = False
        pause = GAP_S if isinstance(took_s, Failed) else max(GAP_S, took_s / MOST_SHARE)
        self._due_s = time.monotonic() + pause

    def _tell(self, text: str) -> None:
        if not self._has_told:
            self._has_told = True
            log(text)


def _runs_here(attempt: LiveAttempt) -> bool:
    return attempt.state in (State.RUNNING, State.SUSPENDED) and not attempt.can.outlives_machine
