"""Attempts on a Slurm cluster.

One worker thread calls Slurm's commands; the coordinator's loop never waits for them. All that must not be lost is on
disk before it is acted on (`batches`), the jobs are Slurm's, and their witnesses' records are files: after a restart
the engine reads its shelf and asks. It decides no outcome: `tracking` makes evidence of the answers, `judge` decides.
Here is the loop's side and the thread's turn; `handover` gives orders to sbatch, `cancelling` signals to scancel,
`listening` asks and hears.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from aver.engines.api import (
    UNLIMITED,
    Control,
    CouldNotAsk,
    NotListed,
    ObserveReply,
    Order,
    Seen,
    SubmitReply,
)
from aver.engines.slurm.batches import Batch, Shelf
from aver.engines.slurm.commands.call import Commands
from aver.engines.slurm.commands.questions import Questions
from aver.engines.slurm.submit.handover import Handing, Handover
from aver.engines.slurm.track.cancel import Cancelling
from aver.engines.slurm.track.evidence import Settle
from aver.engines.slurm.track.exit_records import RecordsFolder
from aver.engines.slurm.track.ledger import Ledger
from aver.engines.slurm.track.listener import Listening
from aver.engines.slurm.track.pace import RECENT_S, Pace
from aver.engines.slurm.worker import Worker
from aver.model.record import Mutable, field


class Work(Mutable):
    """What the loop has given to the thread."""

    orders: list[Order] = field(default_factory=list)
    controls: list[Control] = field(default_factory=list)
    settled: list[str] = field(default_factory=list)
    adoptions: list[tuple[str, str]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.orders or self.controls or self.settled or self.adoptions)


class SlurmEngine(Worker):
    """See `aver.engines.api.Engine`."""

    name = "slurm"
    totals = UNLIMITED

    def __init__(
        self, shelf: Shelf, commands: Commands, hander: Handing, records: RecordsFolder, settle: Settle, pace: Pace,
        log: Callable[[str], None], reached: Callable[[str], None] = lambda name: None,
    ) -> None:  # fmt: skip
        super().__init__("slurm")
        self._shelf = shelf
        self._pace = pace
        self._log = log
        self._reached = reached  # names of moments, at which tests end us
        questions = Questions(commands, pace.timeout_s)
        self.calls = questions.calls
        self._ledger = Ledger(shelf, records, self._put, log, reached)
        self._tracks = self._ledger.tracks
        self._cancelling = Cancelling(self._tracks, commands, self.calls, pace.timeout_s, self._ledger.tell, log)
        self._handover = Handover(self._ledger, hander, questions, self.calls, pace, self._ask_soon, reached)
        self._listening = Listening(
            self._ledger, questions, settle, pace.trouble_most_s, hander.is_at_it, self._cancel_taken, log
        )
        self._known: set[str] = set()  # keys that this engine has or is about to hand over; the loop's side
        self._work = Work()
        self._polls = 0
        self._pause_s = pace.least_s
        self._next_poll = 0.0

    # ---- the loop's side ------------------------------------------------------------------------

    def attach(self) -> None:
        for batch in self._shelf.load():
            self._known.update(self._ledger.add(batch))
            if batch.id is not None:
                for key in batch.left:
                    self._tracks[key].was_listed = True  # nobody here knows whether it was: gone is not "never there"
                self._ledger.tell_taken(batch, sorted(batch.left))
        for path in self._shelf.damaged:
            self._log(f"{path} is damaged: nobody knows what it says of jobs that were handed to Slurm")
        if self._tracks:
            self._start()

    def submit(self, orders: Sequence[Order]) -> list[SubmitReply]:
        taken, replies = self._accept(orders, "being handed to sbatch")
        self._known.update(order.key for order in taken)
        with self._lock:
            self._work.orders += taken
            self._lock.notify()
        self._start()
        return replies

    def observe(self, keys: Sequence[str]) -> list[ObserveReply]:
        return [Seen(key) if key in self._known else self._unknown(key) for key in keys]

    def _unknown(self, key: str) -> ObserveReply:
        """What is not on the shelf was never handed over, if the shelf can be read."""
        if not self._shelf.damaged:
            return NotListed(key)
        return CouldNotAsk(key, f"{self._shelf.damaged[0]}, which says what was handed to Slurm, is damaged")

    def control(self, controls: Sequence[Control]) -> None:
        with self._lock:
            self._work.controls += controls
            self._lock.notify()

    def settle(self, keys: Sequence[str]) -> None:
        mine = [key for key in keys if key in self._known]
        if not mine:
            return
        self._known.difference_update(mine)
        with self._lock:
            self._work.settled += mine
            self._lock.notify()

    def adopt(self, before: str, key: str) -> None:
        """The scheduler starts an attempt again by itself: what was `before` goes on as the attempt `key`."""
        self._known.add(key)
        with self._lock:
            self._work.adoptions.append((before, key))
            self._lock.notify()
        self._start()

    def close(self) -> None:
        self._stop()
        if self.calls:
            self._log(
                f"slurm: asked {self._polls} times; calls: "
                + ", ".join(f"{count} {name}" for name, count in sorted(self.calls.items()))
            )

    # ---- the thread's side ------------------------------------------------------------------------

    def _turn_until_closed(self) -> None:
        while True:
            with self._lock:
                while not (self._is_closing or self._handover.has_turns or self._work):
                    self._lock.wait(self._idle_s())
                    if self._is_due():
                        break
                if self._is_closing:
                    return
                work, self._work = self._work, Work()
            for before, key in work.adoptions:
                if self._ledger.adopt(before, key):
                    self._next_poll = time.monotonic()
            self._forget(work.settled)
            self._handover.add(work.orders)
            self._control(work.controls)
            self._handover.turn()
            if self._is_due():
                self._poll()

    def _idle_s(self) -> float | None:
        due = self._handover.dues()
        if self._tracks:
            due.append(self._next_poll)
        return max(0.01, min(due) - time.monotonic()) if due else None

    def _is_due(self) -> bool:
        now = time.monotonic()
        return (bool(self._tracks) and now >= self._next_poll) or any(due <= now for due in self._handover.dues())

    def _forget(self, keys: Sequence[str]) -> None:
        self._handover.forget(keys)
        self._ledger.forget(keys)

    def _control(self, controls: Sequence[Control]) -> None:
        if not controls:
            return
        early = self._cancelling.too_early(controls)
        if early:
            self._handover.cancel(early)
        self._cancelling.send(controls)
        self._pause_s = self._pace.least_s
        self._next_poll = min(self._next_poll, time.monotonic() + self._pace.least_s / 4)

    def _cancel_taken(self, batch: Batch) -> None:
        """Its id is known."""
        self._control([Control(key, "cancel") for key in self._handover.to_cancel(batch)])

    def _ask_soon(self, batch: Batch) -> None:
        """Ask soon about a batch that sbatch took, or may have taken."""
        if batch.id is None:
            self._next_poll = time.monotonic()
            return
        self._cancel_taken(batch)
        soon = time.monotonic() + self._pace.least_s / 4
        is_first = len(self._tracks) == len(batch.keys)
        self._next_poll = soon if is_first else min(self._next_poll, soon)
        self._pause_s = self._pace.least_s

    def _poll(self) -> None:
        began = time.monotonic()
        if not self._tracks:
            return
        self._polls += 1
        listening = self._listening
        listening.hear_records()
        self._reached("slurm-records-heard")
        answered = listening.can_read_records() and listening.ask_queue()
        self._reached("slurm-queue-heard")
        if answered:
            self._cancelling.send_again()
            listening.ask_accounting()
        self._forget(listening.too_old())
        took = time.monotonic() - began
        self._next_poll = time.monotonic() + self._pause(answered, took)

    def _pause(self, answered: bool, took: float) -> float:
        if not answered:
            self._pause_s = self._pace.troubled(self._pause_s)
        elif time.monotonic() - self._ledger.changed_at < RECENT_S or any(
            track.is_over and "nobody" not in track.told for track in self._tracks.values()
        ):
            self._pause_s = self._pace.least_s
        else:
            self._pause_s = self._pace.slower(self._pause_s)
        return self._pace.at_least(self._pause_s, took)
