"""From a job that is ready to an attempt that its engine is given: room, the intent, gpus.

As the driver: no sockets, no disk, no clock. An attempt is handed over only after its intent is durable, and after it
is durable which gpus it has. What it takes (room, gpus, a place among the intents that were made ahead) it takes once
and gives back once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aver.coordinator.state.live import LiveAttempt, LiveRun
from aver.coordinator.state.packers import Packers
from aver.engines.api import LOCAL
from aver.model.events import AttemptPlanned, GpusGiven
from aver.plan.packing import Cap, LaneKey, room_of

if TYPE_CHECKING:
    from aver.coordinator.state.machine import Driver

LOOK_AHEAD = 64  # intents that are made durable before there is room for them


class Starting:
    """`gpus`: how many this machine has."""

    def __init__(self, driver: Driver, packer: Packers, gpus: int) -> None:
        self._driver = driver
        self._packer = packer
        self._ahead = 0  # planned and without room
        self._free_gpus = list(range(gpus))

    # ---- room ---------------------------------------------------------------------------------

    def enqueue(self, run: LiveRun, index: int) -> None:
        """It waits for room."""
        self._packer.add(run.job_number(index), _lane(run, index), _priority(run, index), run.engine(index))

    def occupy(self, attempt: LiveAttempt) -> None:
        """A live attempt that its engine has."""
        run = self._driver.runs[attempt.run]
        attempt.wants_start = attempt.is_dispatched = True
        self._packer.occupy(attempt.job, _lane(run, attempt.index), attempt.engine)
        self._free_gpus = [gpu for gpu in self._free_gpus if gpu not in attempt.gpus]

    def wait_again(self, attempt: LiveAttempt) -> None:
        """A live attempt that was planned and never began: it was next, and is."""
        run, index = self._driver.runs[attempt.run], attempt.index
        self._ahead += 1
        attempt.gpus, attempt.has_gpus = (), False
        if index not in run.held:
            self._packer.add_ahead(attempt.job, _lane(run, index), _priority(run, index), run.engine(index))

    def give_back(self, attempt: LiveAttempt) -> None:
        """It is over, or will never begin."""
        if attempt.wants_start or attempt.is_dispatched:
            self._packer.finish(attempt.job)
        else:
            self._ahead -= 1
            self._packer.remove(attempt.job)
        if attempt.gpus:
            self._free_gpus = sorted([*self._free_gpus, *attempt.gpus])
            attempt.gpus = ()

    # ---- intents --------------------------------------------------------------------------------

    def schedule(self, now: float) -> None:
        """Start what has room, and make the intents of the next ones durable ahead of time."""
        by_job = self._driver.by_job
        while (job := self._packer.start_next()) is not None:
            attempt = by_job.get(job)
            if attempt is None:
                attempt = self._plan(job, now)
            else:
                self._ahead -= 1
            attempt.wants_start = True
            if attempt.is_durable:
                self.start(attempt, now)
        waiting = self._packer.local
        if self._ahead < LOOK_AHEAD // 2 and len(waiting) > self._ahead:
            for job in waiting.upcoming(LOOK_AHEAD):
                if job not in by_job:
                    self._plan(job, now)
                    self._ahead += 1

    def _plan(self, job: int, now: float) -> LiveAttempt:
        driver = self._driver
        found = driver.find(job)
        assert found is not None
        run = found[0]
        index = run.index_of(job)
        assert index is not None
        number = run.attempts.get(index, 0) + 1
        run.attempts[index] = number
        key = driver.identity.key(job, number)
        attempt = LiveAttempt(run.number, job, index, number, key, run.request(index), engine=run.engine(index))
        driver.attempts[attempt.key] = attempt
        driver.by_job[job] = attempt
        driver.emit(AttemptPlanned(now, run.number, job, number, attempt.key, attempt.engine, attempt.request))
        return attempt

    def go_on(self, before: LiveAttempt, now: float) -> None:
        """The cluster has started it again: that is the next attempt, and nothing is handed over."""
        attempt = self._plan(before.job, now)
        attempt.goes_on_from = before.key
        attempt.cancel_asked = before.cancel_asked
        self.occupy(attempt)

    def planned(self, event: AttemptPlanned, now: float) -> None:
        """Its intent is durable."""
        attempt = self._driver.attempts.get(event.key)
        if attempt is None:
            return
        attempt.is_durable = True
        if attempt.goes_on_from:
            self._driver.out.adoptions.append((attempt.goes_on_from, attempt.key))
        if attempt.wants_start and not attempt.is_dispatched:
            self.start(attempt, now)

    def given(self, event: GpusGiven, now: float) -> None:
        """It is durable which gpus it has."""
        holder = self._driver.by_job.get(event.job)
        if holder is not None and holder.attempt == event.attempt and self.waits_to_start(holder.key):
            self.start(holder, now)

    def waits_to_start(self, key: str) -> bool:
        """Whether this attempt has room and waits only for its intent to be durable."""
        attempt = self._driver.attempts.get(key)
        return attempt is not None and attempt.wants_start and not attempt.is_dispatched

    # ---- handing over ---------------------------------------------------------------------------

    def start(self, attempt: LiveAttempt, now: float) -> None:
        """Hand it over, if nothing is missing; it is asked again when what is missing has come."""
        run = self._driver.runs[attempt.run]
        if attempt.request.gpus and not attempt.has_gpus and attempt.engine == LOCAL:
            self._give_gpus(attempt, now)
            return  # until that is durable
        if run.spec(attempt.index).has_streams:
            attempt.streams, run.streams = run.streams, ()
            if not attempt.streams:
                self._driver.ending.end_cancelled(attempt, now)  # who would hear it?
                return
        attempt.is_dispatched = True
        self._driver.out.starts.append(attempt)

    def start_again(self, attempt: LiveAttempt, now: float) -> None:
        """It turned out that its engine never got it."""
        if attempt.cancel_asked:
            self._driver.ending.end_cancelled(attempt, now)
        else:
            self.start(attempt, now)

    def _give_gpus(self, attempt: LiveAttempt, now: float) -> None:
        attempt.gpus = tuple(self._free_gpus[: attempt.request.gpus])
        attempt.has_gpus = True
        self._free_gpus = self._free_gpus[attempt.request.gpus :]
        self._driver.emit(GpusGiven(now, attempt.run, attempt.job, attempt.attempt, attempt.gpus))


def _priority(run: LiveRun, index: int) -> int:
    return run.priorities.get(index, run.spec(index).priority)


def _lane(run: LiveRun, index: int) -> LaneKey:
    spec = run.spec(index)
    caps = []
    if run.submission.flow.max_parallel is not None:
        caps.append(Cap(("run", run.number, 0), run.submission.flow.max_parallel))
    if spec.matrix is not None and spec.matrix.max_parallel is not None:
        caps.append(Cap(("matrix", run.number, run.spec_number(index)), spec.matrix.max_parallel))
    return LaneKey(0 if run.is_single else run.number, room_of(run.request(index)), tuple(caps))
