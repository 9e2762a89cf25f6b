"""Orders on their way to Slurm: which are handed over together, when, and again after what.

One thread calls this. An order is in one place at a time: in turn, waiting, or tracked with its batch. What Slurm
clearly did not take is tried again or refused; what it may have taken is tracked and asked for, and never handed over
a second time from here. What is cancelled before its turn comes never reaches sbatch.
"""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol

from aver.engines.api import Heard, Order
from aver.engines.slurm.batches import Batch, Shelf, batch_name
from aver.engines.slurm.commands.questions import Questions
from aver.engines.slurm.submit.sbatch_answer import Answer, Busy, Handed, Lost, Refusal, Unreachable
from aver.engines.slurm.track.ledger import SBATCH, Ledger
from aver.engines.slurm.track.pace import Pace
from aver.model.evidence import CancelledBefore, DeadlinePassed, HeldBack, Refused
from aver.model.record import Mutable

NO_SUCH_ARRAY = "invalid job array specification"
TIME_LIMIT_IS_WRONG = "requested time limit is invalid"
FOR_ONE_SUBMITTER = ("NoConfiguration", "CommandNotFound")  # why nobody was reached: others may reach somebody


class Handing(Protocol):
    """Calls sbatch: `handing.Hander` that of this machine, `remote.RemoteHander` that of another."""

    def chunks(self, orders: Sequence[Order], most: int) -> list[list[Order]]:
        """Parts that fit in one array and one script."""

    def hand_over(self, batch: Batch, orders: Sequence[Order], shelf: Shelf) -> Answer:
        """Make the batch durable and call sbatch."""

    def is_at_it(self, batch: Batch) -> bool:
        """Whether an sbatch whose answer was lost may still be handing this batch over."""


class Waiting(Mutable):
    """Orders that Slurm does not take now, or whose turn is to come."""

    orders: list[Order]
    due: float
    pause_s: float


class Handover:
    """`is_tracked` is told each batch that is asked for from now on: its id is known, or it may have been taken."""

    def __init__(
        self, ledger: Ledger, hander: Handing, questions: Questions, calls: Counter[str], pace: Pace,
        is_tracked: Callable[[Batch], None], reached: Callable[[str], None],
    ) -> None:  # fmt: skip
        self._ledger = ledger
        self._hander = hander
        self._questions = questions
        self._calls = calls
        self._pace = pace
        self._is_tracked = is_tracked
        self._reached = reached
        self._in_turn: deque[Waiting] = deque()
        self._waiting: list[Waiting] = []
        self._held: dict[str, str] = {}  # by key: why it waits, as it was told
        self._cancel_when_taken: set[str] = set()

    # ---- turns ------------------------------------------------------------------------------------

    @property
    def has_turns(self) -> bool:
        return bool(self._in_turn)

    def dues(self) -> list[float]:
        """When those that wait come again."""
        return [waiting.due for waiting in self._waiting]

    def add(self, orders: Sequence[Order]) -> None:
        self._in_turn += [Waiting(group, 0.0, self._pace.retry_least_s) for group in self._grouped(orders)]

    def turn(self) -> None:
        """Hand over what is to be, for a while; what Slurm would not take either is not tried."""
        self._come_again()
        until = time.monotonic() + self._pace.at_once_s
        while self._in_turn and time.monotonic() < until:
            group = self._in_turn.popleft()
            answer = self._hand_over(group.orders, group.pause_s)
            if isinstance(answer, (Busy, Unreachable)):
                self._hold_back_the_like(group, answer)

    def _come_again(self) -> None:
        now = time.monotonic()
        due = [one for one in self._waiting if one.due <= now]
        self._waiting = [one for one in self._waiting if one.due > now]
        for waiting in due:
            waiting.pause_s = min(waiting.pause_s * 2, self._pace.retry_most_s)
        self._in_turn += due

    def _hold_back_the_like(self, tried: Waiting, answer: Busy | Unreachable) -> None:
        """Those that ask for the same wait with it, and come before it: all of them, where nobody was reached."""
        is_for_all = isinstance(answer, Unreachable) and answer.reason not in FOR_ONE_SUBMITTER
        like = [
            one for one in self._in_turn
            if is_for_all or one.orders[0].options == tried.orders[0].options
        ]  # fmt: skip
        if not like:
            return
        due = time.monotonic() + self._pace.retry_least_s
        for one in like:
            one.due = due
            self._tell_held([order.key for order in one.orders], answer)
        held = {id(one) for one in like}
        self._in_turn = deque(one for one in self._in_turn if id(one) not in held)
        self._waiting = [*like, *self._waiting]

    def _tell_held(self, keys: Sequence[str], answer: Busy | Unreachable) -> None:
        """Once for each reason: it may be held back for days."""
        news = [key for key in keys if self._held.get(key) != answer.reason]
        self._held.update(dict.fromkeys(news, answer.reason))
        now = time.time()
        self._ledger.put([Heard(key, SBATCH, answer.text, HeldBack(now, answer.reason, answer.text)) for key in news])

    def _grouped(self, orders: Sequence[Order]) -> list[list[Order]]:
        """Those that may be one array, in chunks that the site and a script's size allow."""
        groups: dict[str, list[Order]] = {}
        alone: list[list[Order]] = []
        for order in orders:
            if order.group:
                groups.setdefault(order.group, []).append(order)
            else:
                alone.append([order])
        most = self._questions.facts().max_array_size if groups else 1
        for group in groups.values():
            alone += self._hander.chunks(group, most)
        return alone

    # ---- one call of sbatch -------------------------------------------------------------------------

    def _hand_over(self, orders: list[Order], pause_s: float) -> Answer | None:
        orders = self._without_cancelled(orders)
        if not orders:
            return None
        keys = tuple(order.key for order in orders)
        batch = Batch(batch_name(orders[0].name, keys), keys, time.time(), is_array=len(keys) > 1)
        self._calls[SBATCH] += 1
        self._reached("slurm-before-sbatch")
        answer = self._hander.hand_over(batch, orders, self._ledger.shelf)
        self._reached("slurm-after-sbatch")
        self._take_answer(batch, orders, answer, pause_s)
        return answer

    def _without_cancelled(self, orders: list[Order]) -> list[Order]:
        gone = {order.key for order in orders if order.key in self._cancel_when_taken}
        if not gone:
            return orders
        now = time.time()
        text, taken_back = "a request before Slurm took it", CancelledBefore(now, "a request", "Slurm took it")
        cancelled = [order.key for order in orders if order.key in gone]
        self._ledger.put([Heard(key, "engine", text, taken_back) for key in cancelled])
        self._cancel_when_taken -= gone
        return [order for order in orders if order.key not in gone]

    def _take_answer(self, batch: Batch, orders: list[Order], answer: Answer, pause_s: float) -> None:
        now = time.time()
        ledger = self._ledger
        if isinstance(answer, (Handed, Lost)):
            for key in batch.keys:
                self._held.pop(key, None)
        match answer:
            case Handed(id=number, cluster=cluster):
                batch.id, batch.cluster = number, cluster
                ledger.keep(batch)
                self._reached("slurm-id-kept")
                ledger.add(batch)
                ledger.tell_taken(batch, batch.keys)
                self._is_tracked(batch)
            case Refusal(text=text) if batch.is_array and NO_SUCH_ARRAY in text.lower():
                ledger.shelf.remove(batch)
                self._questions.forget_facts()  # its limit is another one by now
                parts = [Waiting(part, 0.0, pause_s) for part in _halves(orders)]
                self._in_turn.extendleft(reversed(parts))
            case Refusal(text=text):
                ledger.shelf.remove(batch)
                ledger.put([Heard(order.key, SBATCH, text, _refused(order, text, now)) for order in orders])
            case Busy() | Unreachable():
                ledger.shelf.remove(batch)
                self._tell_held(batch.keys, answer)
                due = time.monotonic() + pause_s
                self._waiting += [Waiting(part, due, pause_s) for part in _parts(orders, answer.reason)]
            case Lost(text=text):
                ledger.add(batch)
                ledger.put([Heard(key, SBATCH, text, HeldBack(now, "Unsure", text)) for key in batch.keys])
                self._is_tracked(batch)

    # ---- cancelling ---------------------------------------------------------------------------------

    def cancel(self, keys: Collection[str]) -> None:
        """What Slurm has not taken is cancelled now; the others of its array go on waiting.

        What it may have taken is to be cancelled when that is known: see `to_cancel`.
        """
        self._cancel_when_taken.update(keys)
        for waiting in (*self._waiting, *self._in_turn):
            if any(order.key in keys for order in waiting.orders):
                waiting.orders = self._without_cancelled(waiting.orders)
        self._waiting = [one for one in self._waiting if one.orders]
        self._in_turn = deque(one for one in self._in_turn if one.orders)

    def to_cancel(self, batch: Batch) -> list[str]:
        """Its id is known: those of it that were to be cancelled then. They are given once."""
        wanted = [key for key in batch.keys if key in self._cancel_when_taken]
        self._cancel_when_taken.difference_update(wanted)
        return wanted

    def forget(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._cancel_when_taken.discard(key)
            self._held.pop(key, None)


def _refused(order: Order, text: str, now: float) -> Refused | DeadlinePassed:
    """Since 23.02 Slurm refuses a job that can't end before its deadline, in the words for a wrong time limit."""
    if order.deadline_at is not None and TIME_LIMIT_IS_WRONG in text.lower():
        least_s = math.ceil((order.request.time_s or 0) / 60) * 60
        if now + least_s > order.deadline_at:
            return DeadlinePassed(now, text)
    return Refused(now, text)


def _parts(orders: list[Order], reason: str) -> list[list[Order]]:
    """What is handed over later: an array over a limit on the number of jobs goes in halves, or it never goes."""
    if len(orders) == 1 or not ("SubmitJob" in reason or reason in ("AccountingPolicy", "MaxJobCount")):
        return [orders]
    return _halves(orders)


def _halves(orders: list[Order]) -> list[list[Order]]:
    middle = len(orders) // 2
    return [orders[:middle], orders[middle:]]
