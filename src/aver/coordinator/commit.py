"""Which events are committed together, when, and what waits for it.

Events become durable in the order in which they were decided, one batch at a time. A reply is given with the batch
that it rests on, after that is durable. When the disk can't be written, what was submitted is given back and nothing
new is taken; all else is kept and tried again, and nothing of it is shown meanwhile.

Events that the store does not take for another reason are a bug. Those of one run keep no other run from the store:
they are set aside, with all that follows in that run, and tried again now and then. The run is shown as it was stored
last; `problem` says so.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from enum import Enum

from aver.coordinator.commit_thread import Committer
from aver.coordinator.server import Peer
from aver.coordinator.state.machine import Machine
from aver.crashpoint import reached
from aver.errors import AverError, CantWriteError, InternalError
from aver.log import log
from aver.model.events import Event, GpusGiven, Observed, RunSubmitted, StepEnded, StepStarted, TaskEnded
from aver.model.record import Mutable, field
from aver.protocol.messages import Message, Refusal

LATENCIES_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.3, 1.0, 5.0, 30.0)  # bounds of what `Latency` counts
GATHER_S = 0.005  # commits that nobody waits for are this far apart, so that a burst of ends is few commits
FLOOD_GATHER_S = 0.03  # the same while jobs are so short that their engine has the next ones already
RETRY_S = 1.0
ASIDE_S = 60.0  # between two tries of what a bug keeps from being stored
Send = Callable[[Peer, Message], None]


class Begun(Enum):
    """What became of `Commits.begin`."""

    NOTHING = "nothing to commit; replies have been sent"
    DONE = "`finish` can be called"
    LATER = "`finish` can be called when the committer says so, or it is not time to commit"


class Batch(Mutable):
    """Events that are committed together, and who waits for them."""

    events: list[Event] = field(default_factory=list)
    replies: list[tuple[Peer, Message]] = field(default_factory=list)


class Latency:
    """Seconds from the end of an attempt, as its record says, until its verdict is durable: counted by bounds."""

    def __init__(self) -> None:
        self.counts = [0] * (len(LATENCIES_S) + 1)
        self.sum_s = 0.0

    def note(self, events: Sequence[Event], now: float) -> None:
        """These are durable since now."""
        for event in events:
            if not isinstance(event, Observed) or event.verdict is None:
                continue
            usage = event.usage
            if usage is not None and usage.elapsed_s is not None:
                took_s = max(0.0, now - usage.started_at - usage.elapsed_s)
                self.counts[bisect_left(LATENCIES_S, took_s)] += 1
                self.sum_s += took_s


class Commits:
    """`give_back`: a run's submission could not be made durable."""

    def __init__(self, committer: Committer, machine: Machine, send: Send, give_back: Callable[[int], None]) -> None:
        self._committer = committer
        self._machine = machine
        self._send = send
        self._give_back = give_back
        self._batch = Batch()
        self._flying: Batch | None = None
        self._cant_write: AverError | None = None
        self._retry_at: float | None = None
        self._alone: list[int] = []  # runs whose events are committed each by itself
        self._aside: dict[int, list[Event]] = {}  # by run: events that a bug keeps from being stored
        self._aside_at = 0.0  # when they are tried again
        self._bug = ""
        self._last_at = 0.0
        self._due: float | None = None
        self.latency = Latency()

    @property
    def is_idle(self) -> bool:
        return not (self._committer.is_busy or self._flying or self._batch.events)

    def dues(self) -> list[float]:
        """When there is something to do, whatever comes."""
        dues = [at for at in (self._retry_at, self._due) if at is not None]
        return [*dues, self._aside_at] if self._aside else dues

    @property
    def problem(self) -> str:
        """What is decided and can't be stored at the moment; empty: nothing."""
        if self._aside:
            runs = ", ".join(map(str, sorted(self._aside)))
            return f"what became of run {runs} can't be stored: {self._bug}; please report it"
        return "" if self._cant_write is None else str(self._cant_write)

    def check_writable(self) -> None:
        """Raise CantWriteError while what is decided can't be written."""
        self._committer.check_store()
        if self._cant_write is not None:
            raise CantWriteError(f"nothing new is taken at the moment: {self._cant_write}")

    def has_events_of(self, run: int) -> bool:
        """Whether something of the run waits to be committed."""
        return run in self._aside or any(event.run == run for event in self._batch.events)

    def reply(self, peer: Peer, message: Message) -> None:
        """Send it when all that was decided so far, and all of this turn, is durable."""
        self._batch.replies.append((peer, message))

    def add(self, events: Sequence[Event]) -> None:
        self._batch.events += [one for one in events if not self._put_aside(one)] if self._aside else events

    def _put_aside(self, event: Event) -> bool:
        """Whether it belongs to a run of which nothing more can be stored."""
        if event.run not in self._aside:
            return False
        self._aside[event.run].append(event)
        return True

    def begin(self) -> Begun:
        """Begin to commit, if it is time to."""
        if self._committer.is_busy or (self._retry_at is not None and time.monotonic() < self._retry_at):
            return Begun.LATER
        if self._aside and time.monotonic() >= self._aside_at:
            self._alone = [*self._aside]
            self._batch.events = [*(one for some in self._aside.values() for one in some), *self._batch.events]
            self._aside = {}
        if not self._batch.events:
            self.send_replies()
            return Begun.NOTHING
        now = time.monotonic()
        due = self._last_at + (FLOOD_GATHER_S if self._machine.live.is_flooded else GATHER_S)
        if now < due and not self._is_waited_for(self._batch):
            self._due = due
            return Begun.LATER
        self._due = None
        self._last_at = now
        self._flying, self._batch = self._next_batch()
        reached("before-commit")
        return Begun.DONE if self._committer.begin(self._flying.events) else Begun.LATER

    def _next_batch(self) -> tuple[Batch, Batch]:
        """What is committed now, and what later: all of it, or what there is of one run."""
        while self._alone:
            number = self._alone.pop(0)
            events = [one for one in self._batch.events if one.run == number]
            if events:
                return Batch(events), Batch(
                    [one for one in self._batch.events if one.run != number], self._batch.replies
                )
        return self._batch, Batch()

    def _is_waited_for(self, batch: Batch) -> bool:
        """Whether something can go on only after this commit: a start, a step, a signal, somebody's answer."""
        if batch.replies or any(
            isinstance(one, (GpusGiven, StepStarted, TaskEnded, StepEnded)) for one in batch.events
        ):
            return True
        return self._machine.is_waited_for(batch.events)

    def finish(self) -> Batch | None:
        """The batch that is durable now; None: it could not be written, and what can be kept is tried again."""
        error = self._committer.finish()
        assert self._flying is not None
        batch, self._flying = self._flying, None
        if error is not None:
            self._keep(batch, error)
            return None
        if self._cant_write is not None:
            log("writing works again")
        self._cant_write = self._retry_at = None
        reached("committed")
        self.latency.note(batch.events, time.time())
        return batch

    def _keep(self, batch: Batch, error: AverError) -> None:
        """The disk is full, or the like: submissions are given back, all else is kept and tried again."""
        is_bug = isinstance(error, InternalError)
        if self._cant_write is None and not is_bug:
            log(f"can't commit: {error}")
        events = [*batch.events, *self._batch.events]
        submitted = {event.run for event in events if isinstance(event, RunSubmitted)}  # all of them are refused
        for number in submitted:
            self._give_back(number)
        kept = [event for event in events if event.run not in submitted]
        for peer, _ in (*batch.replies, *self._batch.replies):
            self._send(peer, Refusal(str(error), error.exit_status))
        self._batch = Batch(kept)
        if is_bug:
            self._set_apart([*dict.fromkeys(event.run for event in batch.events if event.run not in submitted)], error)
        else:
            self._cant_write, self._retry_at = error, time.monotonic() + RETRY_S

    def _set_apart(self, runs: Sequence[int], error: AverError) -> None:
        """Find the run whose events can't be stored: each is tried alone, and the one that fails alone is put aside."""
        if len(runs) > 1:
            self._alone = [*runs, *(one for one in self._alone if one not in runs)]
            return
        for number in runs:
            if f"{error}" != self._bug:
                log(f"events of run {number} can't be stored and are kept; other runs go on: {error}")
            self._bug = str(error)
            self._aside[number] = [one for one in self._batch.events if one.run == number]
            self._aside_at = time.monotonic() + ASIDE_S
            self._batch.events = [one for one in self._batch.events if one.run != number]

    def send_replies(self) -> None:
        """Nothing that they rest on is missing, or we leave."""
        replies, self._batch.replies = self._batch.replies, []
        for peer, reply in replies:
            self._send(peer, reply)

    def hurry(self) -> None:
        """Try now what was to be tried later."""
        self._retry_at = None
