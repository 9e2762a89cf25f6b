"""Pushes to those who watch: after a commit, never before.

A watcher is told which jobs changed and which of its numbers are settled; what the state is, it reads in the store.
Replies to requests that take effect later (`suspend`) are sent from here as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from aver.coordinator.server import Peer, Server
from aver.coordinator.state.machine import Machine
from aver.errors import AverError, UsageError
from aver.model.events import (
    Event,
    JobMoved,
    JobsEnded,
    JobsGenerated,
    Observed,
    RunMoved,
    StepEnded,
    StepStarted,
    TaskEnded,
)
from aver.model.evidence import TaskCause, Verdict
from aver.model.record import Mutable, field, replace
from aver.model.states import State
from aver.protocol.messages import Changed, Result, ResultCode, Results, StepBegan, StepCode, StepEnd, TaskEnd, Watching
from aver.store.read.reader import Reader

HELD_S = 5.0  # a reply waits so long for what was asked
NOT_YET = {
    State.SUSPENDED: "asked for; not all of its processes are stopped yet",
    State.RUNNING: "asked for; not all of its processes go on yet",
}


class Held(Mutable):
    """A reply that is sent when these jobs, by number with that of their run, have the wanted state."""

    peer: Peer
    results: Results
    wanted: State
    jobs: dict[int, int]
    missed: dict[int, int] = field(default_factory=dict)  # those that ended, or are being ended, before they had it
    until_s: float = field(default_factory=lambda: time.monotonic() + HELD_S)

    def take(self, job: int, state: State) -> None:
        """The job has this state, and that is durable."""
        if job not in self.jobs or (state is not self.wanted and state in (State.RUNNING, State.SUSPENDED)):
            return
        run = self.jobs.pop(job)
        if state is not self.wanted:
            self.missed[job] = run

    def reply(self) -> Results:
        return Results(tuple(self._said(one) for one in self.results.results))

    def _said(self, one: Result) -> Result:
        if one.id in self.jobs or one.id in self.jobs.values():
            return replace(one, did=NOT_YET[self.wanted], code=ResultCode.ASKED)
        if one.id in self.missed:
            return replace(one, did="ended before that", code=ResultCode.SETTLED)
        count = [*self.missed.values()].count(one.id)
        return replace(one, did=f"{one.did}; {count} of them ended before that") if count else one


class Watchers:
    def __init__(self, server: Server, machine: Machine, open_reader: Callable[[], Reader | None]) -> None:
        self._held: list[Held] = []
        self._server = server
        self._machine = machine
        self._open_reader = open_reader

    def watch(self, peer: Peer, ids: Sequence[int], is_foreground: bool) -> None:
        """Begin to tell this peer about these numbers; what is settled durably already is said at once."""
        peer.is_foreground = is_foreground
        settled, unknown = self._look_up(ids, peer.is_foreground)
        if unknown:
            raise UsageError(f"job or run {unknown[0]} does not exist; `aver jobs` lists them")
        peer.watches = set(ids) - set(settled)
        self._server.send(peer, Watching(tuple(settled)))

    def _look_up(self, ids: Sequence[int], is_foreground: bool) -> tuple[list[int], list[int]]:
        reader = self._open_reader()
        if reader is None:
            return [], list(ids)
        settled, unknown = [], []
        with reader:
            for number in ids:
                run = reader.run(number)
                row = run or reader.job(number)
                if row is None:
                    unknown.append(number)
                elif row.state.is_settled or (run and is_foreground and self._is_foreground_settled(reader, number)):
                    settled.append(number)
        return settled, unknown

    def _has_settled(self, number: int) -> bool:
        """Whether the foreground of a run is settled. An end may have been heard since the commit that is told of."""
        run = self._machine.runs.get(number)
        if run is None or not run.plan.is_foreground_settled:
            return False
        try:
            reader = self._open_reader()
        except AverError:
            return False
        if reader is None:
            return False
        with reader:
            return self._is_foreground_settled(reader, number)

    def _is_foreground_settled(self, reader: Reader, number: int) -> bool:
        """As the store has it: what is only decided in memory is not settled yet."""
        run = self._machine.runs.get(number)
        if run is None or not run.plan.is_foreground_settled:
            return False
        jobs = reader.jobs(run=number)
        return all(job.state.is_settled for index, job in enumerate(jobs) if run.plan.is_foreground(index))

    def hold(self, held: Held) -> None:
        """Send this reply when what it says is so and durable."""
        self._held.append(held)

    def next_due(self) -> float | None:
        return min((held.until_s for held in self._held), default=None)

    def take_due(self, at_s: float) -> list[Held]:
        """The replies that have waited for long enough at this time of the monotonic clock."""
        due = [held for held in self._held if held.until_s <= at_s]
        self._held = [held for held in self._held if held.until_s > at_s]
        return due

    def _tell_held(self, events: Sequence[Event]) -> None:
        for event in events:
            if isinstance(event, Observed):
                for held in self._held:
                    held.take(event.job, event.state)
        done = [held for held in self._held if not held.jobs]
        self._held = [held for held in self._held if held.jobs]
        for held in done:
            self._server.send(held.peer, held.reply())

    def tell(self, events: Sequence[Event]) -> None:
        """Push to each watcher what it waits for of these durable events."""
        if self._held:
            self._tell_held(events)
        self._tell_steps(events)
        watching = [peer for peer in self._server.peers.values() if peer.watches]
        if not watching:
            return
        changed: dict[int, list[int]] = {}
        settled: set[int] = set()
        for event in events:
            match event:
                case Observed() | JobMoved():
                    changed.setdefault(event.run, []).append(event.job)
                    state = event.state
                    if isinstance(event, Observed) and event.job_state is not None:
                        state = event.job_state
                    if state.is_settled:
                        settled.add(event.job)
                    else:
                        settled.discard(event.job)
                case JobsEnded():
                    jobs = range(event.first, event.last + 1)
                    changed.setdefault(event.run, []).extend(jobs)
                    settled.update(jobs)
                case RunMoved():
                    changed.setdefault(event.run, [])
                    if event.state.is_settled:
                        settled.add(event.run)
                case JobsGenerated():
                    changed.setdefault(event.run, [])
                case TaskEnded() | StepEnded() if event.verdict.state is not State.COMPLETED:
                    changed.setdefault(event.run, []).append(event.job)
                case _:
                    pass
        for peer in watching:
            self._push(peer, changed, settled)

    def _tell_steps(self, events: Sequence[Event]) -> None:
        """Each srun hears of the tasks of its own step."""
        waiting = {peer.token: peer for peer in self._server.peers.values() if peer.token is not None}
        if not waiting:
            return
        for event in events:
            if isinstance(event, (StepStarted, TaskEnded, StepEnded)):
                peer = waiting.get(step_token(event.job, event.attempt, event.step))
                if peer is not None:
                    self._server.send(peer, step_push(event))

    def _push(self, peer: Peer, changed: dict[int, list[int]], settled: set[int]) -> None:
        jobs: list[int] = []
        done = peer.watches & settled
        for number, numbers in changed.items():
            if number in peer.watches:
                jobs += numbers
                if number not in done and peer.is_foreground and self._has_settled(number):
                    done.add(number)
            else:
                jobs += [job for job in numbers if job in peer.watches]
        if jobs or done:
            peer.watches -= done
            self._server.send(peer, Changed(tuple(sorted(set(jobs))), tuple(sorted(done))))


def step_token(job: int, attempt: int, step: int) -> str:
    """By which the pushes of a step find its srun."""
    return f"{job}.{attempt}.{step}"


def step_push(event: StepStarted | TaskEnded | StepEnded) -> StepBegan | TaskEnd | StepEnd:
    """What srun is told, after the commit."""
    match event:
        case StepStarted():
            return StepBegan(event.step)
        case TaskEnded():
            return task_end(event.task, event.verdict, event.cause, event.because)
        case StepEnded():
            return StepEnd(StepCode(event.srun_code, event.verdict.state.value))


def task_end(task: int, verdict: Verdict | None, cause: TaskCause, because: bool) -> TaskEnd:
    exit_status = None if verdict is None else verdict.exit
    return TaskEnd(
        task=task,
        state=None if verdict is None else verdict.state.value,
        reason=None if verdict is None else verdict.reason,
        detail="" if verdict is None else verdict.detail,
        raw=None if exit_status is None else exit_status.wait_status,
        because=because,
        launch=cause.launch,
        oom_kills=cause.oom_kills,
        was_sent=cause.was_sent,
    )
