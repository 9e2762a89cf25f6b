"""Attempts on a Slurm cluster.

One worker thread calls Slurm's commands; the coordinator's loop never waits for them. All that must not be lost is on
disk before it is acted on (`batches`), the jobs are Slurm's, and their witnesses' records are files: after a restart
the engine reads its shelf and asks. It decides no outcome: `tracking` makes evidence of the answers, core judges it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from aver.core.evidence import (
    CancelledBefore,
    Evidence,
    HeldBack,
    NobodySaid,
    NotTaken,
    Refused,
    Taken,
)
from aver.core.model import Scope
from aver.engines.api import (
    Control,
    CouldNotAsk,
    Heard,
    NotListed,
    ObserveReply,
    Order,
    Rejected,
    Seen,
    SubmitReply,
    Totals,
    Unsure,
)
from aver.engines.slurm.asking import Questions
from aver.engines.slurm.batches import Batch, Shelf, batch_name
from aver.engines.slurm.commands import Commands, Reply, Trouble
from aver.engines.slurm.exit_records import RecordsFolder, in_order
from aver.engines.slurm.refusals import Answer, Busy, Handed, Lost, Refusal, Unreachable
from aver.engines.slurm.rows import AccountRow, Accounts, Disabled, NoAnswer, QueueRow
from aver.engines.slurm.scontrol import Facts, ask_facts
from aver.engines.slurm.tracking import Settle, Track
from aver.engines.slurm.worker import Worker

Row = TypeVar("Row", QueueRow, AccountRow)
QUEUE = "squeue"
ACCOUNTING = "sacct"
WITNESS = "witness"
SBATCH = "sbatch"
UNLIMITED = Totals(cpus=1 << 40, gpus=1 << 40, mem_bytes=1 << 60)
RECENT_S = 10.0  # after a change the next question comes soon
GROWTH = 1.3
CALM = 5.0  # times what a call takes is the least pause after it
ACCOUNTING_MARGIN_S = 3600.0
LATE_S = 7 * 86400.0
NO_SUCH_ARRAY = "invalid job array specification"


@dataclass(frozen=True, slots=True)
class Pace:
    """How often Slurm is asked, in seconds."""

    least_s: float = 1.0
    most_s: float = 30.0
    trouble_most_s: float = 60.0
    retry_least_s: float = 5.0
    retry_most_s: float = 120.0
    timeout_s: float = 60.0
    at_once_s: float = 2.0  # so long orders are handed over before anything else has its turn


@dataclass(slots=True)
class Waiting:
    """Orders that Slurm does not take now."""

    orders: list[Order]
    due: float
    pause_s: float


@dataclass(slots=True)
class Work:
    """What the loop has given to the thread."""

    orders: list[Order] = field(default_factory=list)
    controls: list[Control] = field(default_factory=list)
    settled: list[str] = field(default_factory=list)
    adoptions: list[tuple[str, str]] = field(default_factory=list)


class Handing(Protocol):
    """Calls sbatch: `handing.Hander` that of this machine, `remote.RemoteHander` that of another."""

    def chunks(self, orders: Sequence[Order], most: int) -> list[list[Order]]:
        """Parts that fit in one array and one script."""

    def hand_over(self, batch: Batch, orders: Sequence[Order], shelf: Shelf) -> Answer:
        """Make the batch durable and call sbatch."""

    def is_at_it(self, batch: Batch) -> bool:
        """Whether an sbatch whose answer was lost may still be handing this batch over."""


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
        self._commands = commands
        self._hander = hander
        self._records = records
        self._settle = settle
        self._pace = pace
        self._questions = Questions(commands, pace.timeout_s)
        self._log = log
        self._reached = reached  # names of moments, at which tests end us
        self._tracks: dict[str, Track] = {}
        self._batches: dict[str, Batch] = {}  # by name
        self._groups: deque[Waiting] = deque()  # to be handed over in turn
        self._waiting: list[Waiting] = []
        self._held: dict[str, str] = {}  # by key: why it waits, as it was told
        self._cancel_when_taken: set[str] = set()
        self._cancel_again: set[str] = set()  # scancel did not reach Slurm
        self._at_it: set[str] = set()  # names of batches that an sbatch may be handing over at this moment
        self._known: set[str] = set()  # keys that this engine has or is about to hand over; the loop's side
        self._facts: Facts | None = None
        self._work = Work()
        self._last_queue_answer: float | None = None
        self._last_accounting_answer: float | None = None
        self._last_late_answer: float | None = None
        self._late_due = 0.0  # when accounting is asked next for those of which nobody said how they ended
        self._changed_at = 0.0
        self._polls = 0
        self._pause_s = pace.least_s
        self._next_poll = 0.0
        self._trouble = ""
        self.calls = self._questions.calls

    # ---- the loop's side ------------------------------------------------------------------------

    def attach(self) -> None:
        for batch in self._shelf.load():
            self._add(batch)
            for key in sorted(batch.left):
                if batch.id is not None:
                    self._tracks[key].was_listed = True  # nobody here knows whether it was: gone is not "never there"
                    self._tell(self._tracks[key], SBATCH, _taken_text(batch, key), [_taken(batch, key, time.time())])
        for path in self._shelf.damaged:
            self._log(f"{path} is damaged: nobody knows what it says of jobs that were handed to Slurm")
        if self._tracks:
            self._start()

    def submit(self, orders: Sequence[Order]) -> list[SubmitReply]:
        replies: list[SubmitReply] = []
        taken = []
        for order in orders:
            if order.streams:
                replies.append(Rejected(order.key, "descriptors can't be handed to a cluster's node"))
            else:
                taken.append(order)
                replies.append(Unsure(order.key, "being handed to sbatch"))
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
                while not (self._is_closing or self._has_work()):
                    self._lock.wait(self._idle_s())
                    if self._is_due():
                        break
                if self._is_closing:
                    return
                work, self._work = self._work, Work()
            self._adopt(work.adoptions)
            self._forget(work.settled)
            self._groups += [Waiting(group, 0.0, self._pace.retry_least_s) for group in self._grouped(work.orders)]
            self._control(work.controls)
            self._submit_again()
            self._submit()
            if self._is_due():
                self._poll()

    def _has_work(self) -> bool:
        return bool(
            self._groups or self._work.orders or self._work.controls or self._work.settled or self._work.adoptions
        )

    def _idle_s(self) -> float | None:
        due = [waiting.due for waiting in self._waiting]
        if self._tracks:
            due.append(self._next_poll)
        return max(0.01, min(due) - time.monotonic()) if due else None

    def _is_due(self) -> bool:
        now = time.monotonic()
        return (bool(self._tracks) and now >= self._next_poll) or any(one.due <= now for one in self._waiting)

    def _drop_old(self) -> None:
        """What nobody has said for a week nobody will say."""
        oldest = time.time() - LATE_S
        tracks = [track for track in self._tracks.values() if track.given_up_at is not None]
        self._forget([track.key for track in tracks if track.given_up_at is not None and track.given_up_at < oldest])

    def _add(self, batch: Batch) -> None:
        keys = (*batch.keys, *(key for _, key in batch.starts))
        batch.left = set(keys)
        batch.tracked_at = time.monotonic()
        self._batches[batch.name] = batch
        self._known.update(keys)
        for key in keys:
            self._tracks[key] = Track(key, batch, batch.index_of(key), batch.restarts_of(key))

    def _tell(self, track: Track, source: str, said: str, evidence: Iterable[Evidence]) -> None:
        found = [Heard(track.key, source, said, one) for one in evidence]
        if found:
            self._changed_at = time.monotonic()
            self._put(found)

    # ---- handing over -------------------------------------------------------------------------------

    def _submit(self) -> None:
        """Hand over what is to be, for a while; what Slurm would not take either is not tried."""
        until = time.monotonic() + self._pace.at_once_s
        while self._groups and time.monotonic() < until:
            group = self._groups.popleft()
            answer = self._hand_over(group.orders, group.pause_s)
            if isinstance(answer, (Busy, Unreachable)):
                self._hold_back_the_like(group, answer)

    def _submit_again(self) -> None:
        now = time.monotonic()
        due = [one for one in self._waiting if one.due <= now]
        self._waiting = [one for one in self._waiting if one.due > now]
        for waiting in due:
            waiting.pause_s = min(waiting.pause_s * 2, self._pace.retry_most_s)
        self._groups += due

    def _hold_back_the_like(self, tried: Waiting, answer: Busy | Unreachable) -> None:
        """Those that ask for the same wait with it, and come before it: all of them, where nobody was reached."""
        is_for_all = isinstance(answer, Unreachable) and answer.reason not in ("NoConfiguration", "CommandNotFound")
        like = [
            one for one in self._groups
            if is_for_all or one.orders[0].options == tried.orders[0].options
        ]  # fmt: skip
        if not like:
            return
        due = time.monotonic() + self._pace.retry_least_s
        for one in like:
            one.due = due
            self._tell_held([order.key for order in one.orders], answer)
        held = {id(one) for one in like}
        self._groups = deque(one for one in self._groups if id(one) not in held)
        self._waiting = [*like, *self._waiting]

    def _tell_held(self, keys: Sequence[str], answer: Busy | Unreachable) -> None:
        """Once for each reason: it may be held back for days."""
        news = [key for key in keys if self._held.get(key) != answer.reason]
        self._held.update(dict.fromkeys(news, answer.reason))
        now = time.time()
        self._put([Heard(key, SBATCH, answer.text, HeldBack(now, answer.reason, answer.text)) for key in news])

    def _grouped(self, orders: Sequence[Order]) -> list[list[Order]]:
        """Those that may be one array, in chunks that the site and a script's size allow."""
        groups: dict[str, list[Order]] = {}
        alone: list[list[Order]] = []
        for order in orders:
            if order.group:
                groups.setdefault(order.group, []).append(order)
            else:
                alone.append([order])
        most = self._facts_now().max_array_size if groups else 1
        for group in groups.values():
            alone += self._hander.chunks(group, most)
        return alone

    def _facts_now(self) -> Facts:
        if self._facts is None:
            self.calls["scontrol"] += 1
            facts = ask_facts(self._commands, self._pace.timeout_s)
            if not isinstance(facts, Facts):
                return Facts()
            self._facts = facts
        return self._facts

    def _hand_over(self, orders: list[Order], pause_s: float) -> Answer | None:
        cancelled = [order for order in orders if order.key in self._cancel_when_taken]
        if cancelled:
            now = time.time()
            text = "a request before Slurm took it"
            self._put([Heard(order.key, "engine", text, CancelledBefore(now, text)) for order in cancelled])
            self._cancel_when_taken.difference_update(order.key for order in cancelled)
            gone = {order.key for order in cancelled}
            orders = [order for order in orders if order.key not in gone]
        if not orders:
            return None
        keys = tuple(order.key for order in orders)
        batch = Batch(batch_name(orders[0].name, keys), keys, time.time(), is_array=len(keys) > 1)
        self.calls[SBATCH] += 1
        self._reached("slurm-before-sbatch")
        answer = self._hander.hand_over(batch, orders, self._shelf)
        self._reached("slurm-after-sbatch")
        self._take_answer(batch, orders, answer, pause_s)
        return answer

    def _take_answer(self, batch: Batch, orders: list[Order], answer: Answer, pause_s: float) -> None:
        now = time.time()
        if isinstance(answer, (Handed, Lost)):
            for key in batch.keys:
                self._held.pop(key, None)
        match answer:
            case Handed(id=number, cluster=cluster):
                batch.id, batch.cluster = number, cluster
                self._keep(batch)
                self._reached("slurm-id-kept")
                self._add(batch)
                for key in batch.keys:
                    self._tell(self._tracks[key], SBATCH, _taken_text(batch, key), [_taken(batch, key, now)])
                self._cancel_taken(batch)
                soon = time.monotonic() + self._pace.least_s / 4
                is_first = len(self._tracks) == len(batch.keys)
                self._next_poll = soon if is_first else min(self._next_poll, soon)
                self._pause_s = self._pace.least_s
            case Refusal(text=text) if batch.is_array and NO_SUCH_ARRAY in text.lower():
                self._shelf.remove(batch)
                self._facts = None  # its limit is another one by now
                parts = [Waiting(part, 0.0, pause_s) for part in _halves(orders)]
                self._groups.extendleft(reversed(parts))
            case Refusal(text=text):
                self._shelf.remove(batch)
                self._put([Heard(key, SBATCH, text, Refused(now, text)) for key in batch.keys])
            case Busy() | Unreachable():
                self._shelf.remove(batch)
                self._tell_held(batch.keys, answer)
                due = time.monotonic() + pause_s
                self._waiting += [Waiting(part, due, pause_s) for part in _parts(orders, answer.reason)]
            case Lost(text=text):
                self._add(batch)
                self._put([Heard(key, SBATCH, text, HeldBack(now, "Unsure", text)) for key in batch.keys])
                self._next_poll = time.monotonic()

    def _keep(self, batch: Batch) -> None:
        """Without its id on disk it is found by its name after a restart."""
        try:
            self._shelf.put(batch)
        except OSError as error:
            self._log(f"can't keep the id of {batch.name}: {error.strerror}")

    def _cancel_taken(self, batch: Batch) -> None:
        wanted = [key for key in batch.keys if key in self._cancel_when_taken]
        self._cancel_when_taken.difference_update(wanted)
        if wanted:
            self._control([Control(key, "cancel") for key in wanted])

    # ---- controls -----------------------------------------------------------------------------------

    def _control(self, controls: Sequence[Control]) -> None:
        by_words: dict[tuple[str, ...], list[Track]] = {}
        early: set[str] = set()
        for control in controls:
            track = self._tracks.get(control.key)
            if track is None or track.batch.id is None:
                if control.verb == "cancel":
                    early.add(control.key)
                continue
            words = _scancel_words(control)
            if words is not None and not track.has_ended:  # its id may be another's by now
                by_words.setdefault(words, []).append(track)
        if early:
            self._cancel_when_taken |= early
            self._drop_waiting(early)
        for words, tracks in by_words.items():
            for first in range(0, len(tracks), 500):
                self._scancel(words, tracks[first : first + 500])
        if controls:
            self._pause_s = self._pace.least_s
            self._next_poll = min(self._next_poll, time.monotonic() + self._pace.least_s / 4)

    def _scancel(self, words: tuple[str, ...], tracks: Sequence[Track]) -> None:
        ids = [track.batch.id_of(track.index) for track in tracks]
        self.calls["scancel"] += 1
        reply = self._commands.call(["scancel", *words, *ids], timeout_s=self._pace.timeout_s)
        if not isinstance(reply, Reply) or reply.status != 0:
            self._log(f"scancel did not reach Slurm: {reply.text if isinstance(reply, Trouble) else reply.err.strip()}")
            if not words:
                self._cancel_again.update(track.key for track in tracks)

    def _cancel_what_was_not_reached(self) -> None:
        """A cancellation holds until the job has ended: Slurm answers again, and hears it again."""
        keys, self._cancel_again = self._cancel_again, set()
        tracks = [self._tracks[key] for key in sorted(keys) if key in self._tracks]
        tracks = [track for track in tracks if not track.has_ended]
        for first in range(0, len(tracks), 500):
            self._scancel((), tracks[first : first + 500])

    def _drop_waiting(self, keys: Collection[str]) -> None:
        """What Slurm has not taken is cancelled now; the others of its array go on waiting."""
        for waiting in (*self._waiting, *self._groups):
            orders = [order for order in waiting.orders if order.key in keys]
            if orders:
                self._hand_over(orders, waiting.pause_s)
                waiting.orders = [order for order in waiting.orders if order.key not in keys]
        self._waiting = [one for one in self._waiting if one.orders]
        self._groups = deque(one for one in self._groups if one.orders)

    def _adopt(self, adoptions: Sequence[tuple[str, str]]) -> None:
        for before, key in adoptions:
            track = self._tracks.get(before)
            if track is None or key in self._tracks:
                continue
            batch = track.batch
            batch.starts = (*batch.starts, (batch.script_key(before), key))
            batch.left.add(key)
            self._keep(batch)
            again = self._tracks[key] = Track(key, batch, track.index, batch.restarts_of(key))
            again.was_listed = True  # by its row the one before was known to be over
            self._tell(again, SBATCH, "started again by Slurm", [Taken(time.time(), batch.id_of(track.index))])
            self._next_poll = time.monotonic()

    def _forget(self, keys: Sequence[str]) -> None:
        gone: list[str] = []
        over: list[Batch] = []
        for key in keys:
            self._cancel_when_taken.discard(key)
            self._held.pop(key, None)
            track = self._tracks.pop(key, None)
            if track is None:
                continue
            track.batch.left.discard(key)
            if not track.batch.starts:
                gone.append(key)
            elif not track.batch.left:
                gone += track.batch.keys
            if not track.batch.left:
                over.append(track.batch)
        if gone:
            self._records.remove(gone)
        for batch in over:  # last: after a crash before this, all of it is done again
            self._reached("slurm-before-forget")
            self._batches.pop(batch.name, None)
            self._shelf.remove(batch)

    # ---- asking ---------------------------------------------------------------------------------------

    def _poll(self) -> None:
        began = time.monotonic()
        if not self._tracks:
            return
        self._polls += 1
        self._hear_records()
        self._reached("slurm-records-heard")
        answered = self._can_read_records() and self._ask_queue()
        self._reached("slurm-queue-heard")
        if answered:
            self._cancel_what_was_not_reached()
            self._ask_accounting()
        self._drop_old()
        took = time.monotonic() - began
        self._next_poll = time.monotonic() + self._pause(answered, took)

    def _can_read_records(self) -> bool:
        """Where records could not be asked for, their absence must not age: it is as if nothing was answered."""
        if self._records.trouble:
            self._last_queue_answer = self._last_accounting_answer = None
            self._note_trouble(self._records.trouble)
        return not self._records.trouble

    def _pause(self, answered: bool, took: float) -> float:
        if not answered:
            self._pause_s = min(max(self._pause_s, self._pace.least_s) * 2, self._pace.trouble_most_s)
        elif time.monotonic() - self._changed_at < RECENT_S or any(
            track.is_over and "nobody" not in track.told for track in self._tracks.values()
        ):
            self._pause_s = self._pace.least_s
        else:
            self._pause_s = min(self._pause_s * GROWTH, self._pace.most_s)
        return max(self._pause_s, min(took * CALM, self._pace.most_s))

    def _hear_records(self) -> None:
        by_record = {track.record_name: track for track in self._tracks.values()}
        for name, task, text, record in in_order(self._records, by_record.keys()):
            track = by_record[name]
            key = track.key
            if task:
                track.tasks.add(task)
                self._put([Heard(key + task, WITNESS, text, record)])
            else:
                self._tell(track, WITNESS, text, track.hear_record(record))

    def _ask_queue(self) -> bool:
        """One question for all; False if it was not answered."""
        batches = list({id(track.batch): track.batch for track in self._tracks.values()}.values())
        ids = [batch.id for batch in batches if batch.id is not None]
        names = [batch.name for batch in batches if batch.id is None]
        self._at_it = {batch.name for batch in batches if batch.id is None and self._hander.is_at_it(batch)}
        answer = self._questions.queue(ids, names)
        if isinstance(answer, NoAnswer):
            self._last_queue_answer = None
            self._note_trouble(answer.text)
            return False
        self._note_trouble("")
        now = time.monotonic()
        since = 0.0 if self._last_queue_answer is None else now - self._last_queue_answer
        self._last_queue_answer = now
        self._find_lost(batches, answer.rows)
        rows = {(row.job, row.index): row for row in answer.rows}
        whole_arrays = _of_whole_arrays(answer.rows)
        at = time.time()
        ran = self._that_ran()
        for track in list(self._tracks.values()):
            asked_for_s = min(since, now - track.batch.tracked_at)
            if track.batch.id is None and track.batch.name in self._at_it:
                track.unseen_s = track.batch.silent_s = 0.0  # it may come to be at any moment
                continue
            if track.batch.id is None and answer.is_whole and track.batch.name not in ran:
                track.unseen_s += asked_for_s
                track.batch.asked_at = track.batch.asked_at or at
                continue
            row = None if track.batch.id is None else rows.get((track.batch.id, track.index))
            if row is None:
                row = track.in_one_row(whole_arrays.get(track.batch.id, ()))
            if row is None and not answer.is_whole:
                continue  # it may be among the lines that can't be read
            if row is not None and row.name != track.batch.name:
                row = None  # somebody else's: ids are used again
            if row is None and not track.was_listed:
                track.batch.asked_at = track.batch.asked_at or at
            evidence = track.hear_queue(row, asked_for_s, at, self._settle)
            self._tell(track, QUEUE, _queue_text(row), evidence)
        return True

    def _that_ran(self) -> set[str]:
        """Names of batches of which a witness has left a record: whatever else is known, Slurm took them."""
        ran = {track.batch.name for track in self._tracks.values() if track.record is not None or track.tasks}
        for track in self._tracks.values():
            track.was_listed = track.was_listed or track.batch.name in ran
        return ran

    def _find_lost(self, batches: Sequence[Batch], answer: Sequence[QueueRow]) -> None:
        """Those whose sbatch's answer was lost are known by their names."""
        by_name = {row.name: row for row in answer}
        for batch in batches:
            row = by_name.get(batch.name) if batch.id is None else None
            if row is not None:
                self._found(batch, row.job)

    def _found(self, batch: Batch, number: int) -> None:
        batch.id = number
        self._keep(batch)
        now = time.time()
        for key in batch.keys:
            track = self._tracks.get(key)
            if track is not None:
                self._tell(track, QUEUE, f"found by its name: {_taken_text(batch, key)}", [_taken(batch, key, now)])
        self._cancel_taken(batch)

    def _ask_accounting(self) -> None:
        """One question for those that have ended without a word on how."""
        is_late_due = time.monotonic() >= self._late_due
        asked = [
            track for track in self._tracks.values()
            if self._should_ask(track) and (is_late_due or track.given_up_at is None)
        ]  # fmt: skip
        lost = [batch for batch in self._batches.values() if batch.id is None and batch.name not in self._at_it]
        if not asked and not lost:
            self._last_accounting_answer = None
            return
        ids = sorted({track.batch.id for track in asked if track.batch.id is not None})
        since_when = min(batch.made_at for batch in [*(track.batch for track in asked), *lost]) - ACCOUNTING_MARGIN_S
        answer = self._questions.accounting(ids, [batch.name for batch in lost], since_when)
        if is_late_due:
            self._late_due = time.monotonic() + self._pace.trouble_most_s
        if isinstance(answer, NoAnswer):
            self._last_accounting_answer = self._last_late_answer = None
            self._note_trouble(answer.text)
            return
        now = time.monotonic()
        since = 0.0 if self._last_accounting_answer is None else now - self._last_accounting_answer
        self._last_accounting_answer = now
        late_since = 0.0 if self._last_late_answer is None else now - self._last_late_answer
        if is_late_due:
            self._last_late_answer = now
        rows: Sequence[AccountRow] = () if isinstance(answer, Disabled) else answer.rows
        by_job: dict[tuple[int, int | None], list[AccountRow]] = {}
        for row in rows:
            by_job.setdefault((row.job, row.index), []).append(row)
        whole_arrays = _of_whole_arrays([row for row in rows if not row.step])
        at = time.time()
        whole = self._facts_now().has_whole_codes
        for track in asked:
            mine = [] if track.batch.id is None else by_job.get((track.batch.id, track.index), [])
            if not mine and (shared := track.in_one_row(whole_arrays.get(track.batch.id, ()))) is not None:
                mine = [shared]
            asked_for_s = since if track.given_up_at is None else late_since
            if isinstance(answer, Disabled):
                # it was taken, and may have ended and been forgotten before anybody could ask
                track.was_listed = track.was_listed or not self._would_be_remembered(track.batch)
                evidence = track.hear_disabled(asked_for_s, at, self._settle)
            else:
                evidence = track.hear_accounting(mine, asked_for_s, at, self._settle, whole)
            self._tell(track, ACCOUNTING, _account_text(mine), evidence)
        is_whole = isinstance(answer, Accounts) and answer.is_whole
        for batch in lost:
            named = [row for row in rows if row.name == batch.name and row.step == ""]
            first = self._tracks.get(batch.keys[0])
            if is_whole:
                batch.silent_s += min(since, now - batch.tracked_at)
            if named:
                self._found(batch, named[-1].job)
            elif first is None or first.was_listed or first.unseen_s < self._settle.unsure_s:
                continue
            elif self._would_be_remembered(batch) or batch.silent_s >= self._settle.unsure_s:
                self._never_taken(batch)
            elif first.unseen_s >= self._settle.long_s:
                self._nobody_knows(batch, at)

    def _should_ask(self, track: Track) -> bool:
        if not track.asks_accounting:
            return False
        return track.is_over or track.unseen_s >= self._settle.ask_accounting_s

    def _would_be_remembered(self, batch: Batch) -> bool:
        """Whether the queue alone tells: it was first asked before it could have forgotten a job of that time."""
        age_s = self._facts_now().min_job_age_s
        return age_s is not None and batch.asked_at is not None and batch.asked_at - batch.made_at < age_s

    def _nobody_knows(self, batch: Batch, at: float) -> None:
        """It may have been taken, have ended and be forgotten: it is not handed over a second time."""
        for key in batch.keys:
            track = self._tracks.get(key)
            if track is not None and "nobody" not in track.told:
                track.told.add("nobody")
                track.given_up_at = at
                text = "Slurm does not list its name, may have forgotten it, and accounting does not tell"
                self._tell(track, QUEUE, text, [NobodySaid(at, track.unseen_s, "not to be asked")])

    def _never_taken(self, batch: Batch) -> None:
        """Slurm answers and knows no job of this name: it was not taken, and may be handed over again."""
        self._shelf.remove(batch)
        self._batches.pop(batch.name, None)
        text = "Slurm has no job of its name: sbatch did not hand it over"
        for key in batch.keys:
            self._tracks.pop(key, None)
        self._put([Heard(key, ACCOUNTING, text, NotTaken(time.time())) for key in batch.keys])

    def _note_trouble(self, text: str) -> None:
        if text != self._trouble:
            self._trouble = text
            self._log(f"slurm can't be asked: {text}" if text else "slurm answers again")


def _parts(orders: list[Order], reason: str) -> list[list[Order]]:
    """What is handed over later: an array over a limit on the number of jobs goes in halves, or it never goes."""
    if len(orders) == 1 or not ("SubmitJob" in reason or reason in ("AccountingPolicy", "MaxJobCount")):
        return [orders]
    return _halves(orders)


def _halves(orders: list[Order]) -> list[list[Order]]:
    middle = len(orders) // 2
    return [orders[:middle], orders[middle:]]


def _of_whole_arrays(rows: Sequence[Row]) -> dict[int | None, list[Row]]:
    """Rows that speak of several members of an array at once, or of all, by the array's id."""
    found: dict[int | None, list[Row]] = {}
    for row in rows:
        if row.index is None:
            found.setdefault(row.job, []).append(row)
    return found


def _taken(batch: Batch, key: str, at: float) -> Taken:
    return Taken(at, batch.id_of(batch.index_of(key)))


def _taken_text(batch: Batch, key: str) -> str:
    where = f" on cluster {batch.cluster}" if batch.cluster else ""
    return f"Submitted batch job {batch.id_of(batch.index_of(key))}{where}"


def _queue_text(row: QueueRow | None) -> str:
    if row is None:
        return "not listed"
    words = [row.word, row.exit, row.derived, row.reason, row.nodes]
    return " ".join(word for word in words if word)


def _account_text(rows: Sequence[AccountRow]) -> str:
    return "; ".join(f"{row.step or 'job'} {row.word} {row.exit}" for row in rows) or "no row of it"


def _scancel_words(control: Control) -> tuple[str, ...] | None:
    """The options of scancel for this; None: it is not in a user's power on a cluster."""
    match control.verb:
        case "cancel":
            return ("--signal=KILL", "--full") if control.signal == 9 else ()
        case "signal":
            reached = {None: ("--full",), Scope.STEPS: ()}.get(control.scope, ("--batch",))
            return (f"--signal={control.signal}", *reached)
        case _:
            return None
