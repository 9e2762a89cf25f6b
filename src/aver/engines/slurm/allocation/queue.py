"""The allocations of runs at Slurm: taken one after the other, and followed in the queue until they are over.

All that must not be lost is files: what was asked for is kept before sbatch is called, so an allocation whose answer
was lost is found by its name. A word that nobody knows ends no allocation, and neither does the absence of one that
was never listed, for a while. One too many would do no harm: orders are taken once.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator

from aver.engines.api import AllocationAsk
from aver.engines.slurm.allocation.accounting import Standing
from aver.engines.slurm.allocation.folder import Allocation, Asked, Listing, RunFolder
from aver.engines.slurm.allocation.request import AnyTaker, outcome_of
from aver.engines.slurm.allocation.steps import allocation_name
from aver.engines.slurm.commands.questions import Questions
from aver.engines.slurm.commands.rows import NoAnswer, QueueRow
from aver.engines.slurm.states import state_of
from aver.engines.slurm.track.evidence import Settle
from aver.model.record import Mutable, field, replace

ENDING = "COMPLETING"  # its steps' rows have its own word meanwhile
SBATCH = "sbatch"


class LiveFolder(Mutable):
    """One run's."""

    folder: RunFolder
    asks: list[Asked] = field(default_factory=list)
    listing: Listing = field(default_factory=Listing)
    is_let_go: bool = False  # the run is over; what nobody told of it may still be heard

    def allocations(self) -> Iterable[Allocation]:
        return (one for asked in self.asks for one in asked.allocations)

    @property
    def refused(self) -> str:
        """What the run itself asked for will never come: sbatch's sentence. Empty: something may come yet."""
        of_round = [asked for asked in self.asks if not asked.ask.is_extra]
        if any(not asked.is_complete for asked in self.asks) or any(not one.is_over for one in self.allocations()):
            return ""
        return of_round[-1].refused if of_round else ""


class AllocationQueue:
    """`runs` is shared with the engine."""

    def __init__(
        self, runs: dict[int, LiveFolder], taker: AnyTaker, questions: Questions, settle: Settle, retry_s: float,
        log: Callable[[str], None], reached: Callable[[str], None],
    ) -> None:  # fmt: skip
        self._runs = runs
        self._taker = taker
        self._questions = questions
        self._settle = settle
        self._retry_s = retry_s
        self._log = log
        self._reached = reached
        self._last_answer: float | None = None

    # ---- taking ---------------------------------------------------------------------------------------

    def ask(self, live: LiveFolder, ask: AllocationAsk) -> None:
        """Keep the wish. A run that still has allocations gets no more by going on; one that had given them back and
        goes on in the same round, since somebody accepted a job or late evidence came, takes them again."""
        folder = live.folder
        try:
            folder.make()
            if folder.is_closed and not ask.is_extra and folder.has_asked(ask.name):
                again = (f"{ask.name}b{number}" for number in itertools.count(1))
                ask = replace(ask, name=next(name for name in again if not folder.has_asked(name)))
            if not folder.has_asked(ask.name):
                has_some = any(not one.is_over for one in live.allocations())
                asked = Asked(replace(ask, count=0) if has_some and not ask.is_extra else ask)
                folder.keep(asked)
                live.asks.append(asked)
            folder.open()
        except OSError as error:
            self._log(f"can't keep what run {ask.run} asked for: {error.strerror}")

    def take_due(self) -> bool:
        """Call sbatch for what is due; whether it was called."""
        was_called = False
        for live in self._runs.values():
            for asked in live.asks:
                while not asked.is_complete and asked.due <= time.monotonic():
                    last = asked.allocations[-1] if asked.allocations else None
                    if last is not None and last.id is None:
                        break  # until it is found: the next one comes after it
                    asked.due = 0.0
                    was_called = True
                    if not self._take_one(live, asked, last):
                        break
        return was_called

    def due(self) -> list[float]:
        """When sbatch is called again for what was held back."""
        asks = (asked for live in self._runs.values() for asked in live.asks)
        return [asked.due for asked in asks if not asked.is_complete and asked.due]

    def let_go(self, live: LiveFolder) -> list[str]:
        """All of them count as over; the ids of those that may still wait in the queue, or run."""
        ids = [str(one.id) for one in live.allocations() if one.id is not None and not one.is_over]
        for asked in live.asks:
            asked.ask = replace(asked.ask, count=len(asked.allocations))  # no more are taken for this wish
            for one in asked.allocations:
                one.is_over = True
            self._keep(live, asked)
        return ids

    def _take_one(self, live: LiveFolder, asked: Asked, last: Allocation | None) -> bool:
        name = allocation_name(asked.ask.run, self._taker.home, asked.ask.name, len(asked.allocations))
        one = Allocation(name, time.time())
        asked.allocations.append(one)
        self._keep(live, asked)
        self._reached("allocation-before-sbatch")
        return self._hand_over(live, asked, one, last)

    def _hand_over(self, live: LiveFolder, asked: Asked, one: Allocation, last: Allocation | None) -> bool:
        self._questions.calls[SBATCH] += 1
        answer = self._taker.take(asked.ask, one.name, None if last is None else last.id, live.folder)
        self._reached("allocation-after-sbatch")
        outcome = outcome_of(answer)
        one.id, one.made_at, one.unseen_s = outcome.id, time.time(), 0.0
        if outcome.is_not_taken:
            asked.allocations.remove(one)
            asked.held_back, asked.due = outcome.reason, time.monotonic() + self._retry_s
        asked.refused = outcome.refused
        self._keep(live, asked)
        if outcome.refused:
            self._log(f"run {asked.ask.run}: sbatch refused its allocation: {outcome.refused}")
        return outcome.id is not None

    def _keep(self, live: LiveFolder, asked: Asked) -> None:
        """Without its id on disk an allocation is found by its name after a restart."""
        try:
            live.folder.keep(asked)
        except OSError as error:
            self._log(f"can't keep what run {asked.ask.run} asked for: {error.strerror}")

    # ---- following --------------------------------------------------------------------------------------

    def standing(self) -> Standing:
        mine = [(one.id, one) for one in self._all() if one.id is not None]
        return Standing(
            over={number for number, one in mine if one.is_over},
            ending={number for number, one in mine if one.word == ENDING and not one.is_over},
            made_at={number: one.made_at for number, one in mine},
        )

    def hear(self) -> bool | NoAnswer:
        """One question for all; whether one of them was found to be over."""
        mine = [one for one in self._all() if not one.is_over]
        if not mine:
            self._last_answer = None
            return False
        ids = [one.id for one in mine if one.id is not None]
        answer = self._questions.queue(ids, [one.name for one in mine if one.id is None])
        if isinstance(answer, NoAnswer):
            self._last_answer = None
            return answer
        now = time.monotonic()
        since = 0.0 if self._last_answer is None else now - self._last_answer
        self._last_answer = now
        by_name = {row.name: row for row in answer.rows}
        for live in self._runs.values():
            for asked in live.asks:
                for one in [one for one in asked.allocations if not one.is_over]:
                    self._hear_row(live, asked, one, by_name.get(one.name), answer.is_whole, since)
        return any(one.is_over for one in mine)

    def _all(self) -> Iterator[Allocation]:
        return (one for live in self._runs.values() for one in live.allocations())

    def _hear_row(
        self, live: LiveFolder, asked: Asked, one: Allocation, row: QueueRow | None, is_whole: bool, since: float
    ) -> None:
        before = (one.id, one.is_over, bool(one.word))
        if row is not None:
            one.id = row.job if one.id is None else one.id
            one.word, one.reason = row.word, row.reason
            one.is_over = state_of(row.word).is_end
        elif is_whole and one.word:
            one.is_over = True
        elif is_whole:
            one.unseen_s += since
            one.is_over = one.id is not None and one.unseen_s >= self._settle.never_seen_s
        if (one.id, one.is_over, bool(one.word)) != before:
            self._keep(live, asked)
        if one.id is None and one.unseen_s >= self._settle.unsure_s:  # sbatch's answer was lost, and nobody lists it
            place = asked.allocations.index(one)
            self._hand_over(live, asked, one, asked.allocations[place - 1] if place else None)
