"""Which events are committed together, when, and what waits for it.

Events become durable in the order in which they were decided, one batch at a time. A reply is given with the batch
that it rests on, after that is durable. When the disk can't be written, what was submitted is given back and nothing
new is taken; all else is kept and tried again, and nothing of it is shown meanwhile.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from aver.coordinator.commit_thread import Committer
from aver.coordinator.server import Peer
from aver.coordinator.state.machine import Machine
from aver.crashpoint import reached
from aver.errors import AverError, CantWriteError
from aver.log import log
from aver.model.events import Event, GpusGiven, Observed, RunSubmitted, StepEnded, StepStarted, TaskEnded
from aver.protocol.messages import Message, Refusal

LATENCIES_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.3, 1.0, 5.0, 30.0)  # bounds of what `Latency` counts
GATHER_S = 0.005  # commits that nobody waits for are this far apart, so that a burst of ends is few commits
RETRY_S = 1.0
Send = Callable[[Peer, Message], None]


class Begun(Enum):
    """What became of `Commits.begin`."""

    NOTHING = "nothing to commit; replies have been sent"
    DONE = "`finish` can be called"
    LATER = "`finish` can be called when the committer says so, or it is not time to commit"


@dataclass(slots=True)
class Batch:
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
        self._last_at = 0.0
        self._due: float | None = None
        self.latency = Latency()

    @property
    def is_idle(self) -> bool:
        return not (self._committer.is_busy or self._flying or self._batch.events)

    def dues(self) -> list[float]:
        """When there is something to do, whatever comes."""
        return [at for at in (self._retry_at, self._due) if at is not None]

    def check_writable(self) -> None:
        """Raise CantWriteError while what is decided can't be written."""
        self._committer.check_store()
        if self._cant_write is not None:
            raise CantWriteError(f"nothing new is taken at the moment: {self._cant_write}")

    def has_events_of(self, run: int) -> bool:
        """Whether something of the run waits to be committed."""
        return any(event.run == run for event in self._batch.events)

    def reply(self, peer: Peer, message: Message) -> None:
        """Send it when all that was decided so far, and all of this turn, is durable."""
        self._batch.replies.append((peer, message))

    def add(self, events: Sequence[Event]) -> None:
        self._batch.events += events

    def begin(self) -> Begun:
        """Begin to commit, if it is time to."""
        if self._committer.is_busy or (self._retry_at is not None and time.monotonic() < self._retry_at):
            return Begun.LATER
        if not self._batch.events:
            self.send_replies()
            return Begun.NOTHING
        now = time.monotonic()
        if now < self._last_at + GATHER_S and not self._is_waited_for(self._batch):
            self._due = self._last_at + GATHER_S
            return Begun.LATER
        self._due = None
        self._last_at = now
        self._flying, self._batch = self._batch, Batch()
        reached("before-commit")
        return Begun.DONE if self._committer.begin(self._flying.events) else Begun.LATER

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
        if self._cant_write is None:
            log(f"can't commit: {error}")
        self._cant_write = error
        submitted = {event.run for event in batch.events if isinstance(event, RunSubmitted)}
        for number in submitted:
            self._give_back(number)
        kept = [event for event in (*batch.events, *self._batch.events) if event.run not in submitted]
        for peer, _ in (*batch.replies, *self._batch.replies):
            self._send(peer, Refusal(str(error), error.exit_status))
        self._batch = Batch(kept)
        self._retry_at = time.monotonic() + RETRY_S

    def send_replies(self) -> None:
        """Nothing that they rest on is missing, or we leave."""
        replies, self._batch.replies = self._batch.replies, []
        for peer, reply in replies:
            self._send(peer, reply)

    def hurry(self) -> None:
        """Try now what was to be tried later."""
        self._retry_at = None
