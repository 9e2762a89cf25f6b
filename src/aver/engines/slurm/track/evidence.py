"""From what Slurm answers to evidence on each attempt: what is new, what has been silent for how long.

No IO and no clock: answers and times come in, evidence comes out. Time ages nothing by itself: only the time between
two questions that were answered counts, so a controller that is down or a database that is away moves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from aver.engines.slurm.batches import Batch
from aver.engines.slurm.commands.rows import AccountRow, QueueRow
from aver.engines.slurm.states import REQUEUED, first_word, read_word, state_of
from aver.judge.scheduler import is_clean
from aver.model.evidence import (
    AccountingSaid,
    Evidence,
    LeftQueue,
    NeverSeen,
    NobodySaid,
    QueueSaid,
    RecordIsLate,
    SchedulerWord,
    StartedAgain,
    WitnessRecord,
)
from aver.model.record import Mutable, Record, field, replace
from aver.model.states import SchedulerState

BATCH_STEP = "batch"
Row = TypeVar("Row", QueueRow, AccountRow)
SKEW_S = 3600.0  # the clocks of two machines; the name alone tells whose it is


class Settle(Record):
    """`settle.*`: how long each thing is waited for, in seconds."""

    ask_accounting_s: float = 60.0  # taken and never seen in the queue
    never_seen_s: float = 300.0
    record_s: float = 10.0  # the controller called it failed and its witness's record is not there
    stable_s: float = 10.0  # accounting's rows are rewritten for a while after they have an end
    long_s: float = 600.0
    unsure_s: float = 60.0  # sbatch's answer was lost, and Slurm knows nothing of the job
    fallback: str = "unverified"


class Track(Mutable):
    """What is known of one attempt that Slurm has."""

    key: str
    batch: Batch
    index: int | None
    restarts: int = 0
    was_listed: bool = False
    said: QueueSaid | None = None
    is_gone: bool = False
    record: WitnessRecord | None = None
    unseen_s: float = 0.0
    late_s: float = 0.0
    silent_s: float = 0.0
    same_s: float = 0.0
    account: AccountingSaid | None = None
    rows: tuple[AccountRow, ...] = ()  # all rows of it that accounting showed last
    given_up_at: float | None = None  # when it was told that nobody says how it ended
    told: set[str] = field(default_factory=set)
    tasks: set[str] = field(default_factory=set)  # of its steps, those whose records are there

    @property
    def record_name(self) -> str:
        return f"{self.batch.script_key(self.key)}.r{self.restarts}"

    @property
    def is_over(self) -> bool:
        """Whether the attempt has left the queue, or the queue calls it ended."""
        return self.is_gone or (self.said is not None and not self.said.word.state.is_present)

    @property
    def has_ended(self) -> bool:
        """Whether the attempt is over, and Slurm has not started it again."""
        return self.is_over and "again" not in self.told

    @property
    def asks_accounting(self) -> bool:
        """Whether accounting can say something that is missing."""
        if "account" in self.told:
            return False
        if not self.is_over:
            return not self.was_listed and self.batch.id is not None
        if self.record is not None and (is_clean(self.record) or self.has_final_word):
            return False
        return not (
            self.has_final_word and self.said is not None and self.said.word.state is not SchedulerState.COMPLETED
        )

    @property
    def has_final_word(self) -> bool:
        return self.said is not None and self.said.word.state.is_end

    def hear_queue(self, row: QueueRow | None, asked_for_s: float, at: float, settle: Settle) -> list[Evidence]:
        """What the queue's answer, with or without a row, adds. `asked_for_s`: since the last answer."""
        if row is not None:
            return self._hear_row(row, asked_for_s, at, settle)
        if self.was_listed:
            if self.is_gone:
                return self._late(asked_for_s, at, settle)
            self.is_gone = True
            return [LeftQueue(at)]
        self.unseen_s += asked_for_s
        return []

    def _hear_row(self, row: QueueRow, asked_for_s: float, at: float, settle: Settle) -> list[Evidence]:
        if row.restarts is not None and row.restarts != self.restarts:
            return self._hear_other_start(row.restarts, at)
        self.was_listed = True
        reason = "" if row.reason in ("None", "") else row.reason
        said = QueueSaid(at, read_word(row.word), reason, row.exit, row.derived, _began(row), row.nodes)
        before = self.said
        if before is not None and not self.is_gone and _same(before, said):
            return self._late(asked_for_s, at, settle)
        self.said = said
        self.is_gone = False
        return [said]

    def _hear_other_start(self, restarts: int, at: float) -> list[Evidence]:
        """Slurm has started it again: this attempt is over, and accounting says how; or it is still to come."""
        if restarts < self.restarts or "again" in self.told:
            return []
        self.told.add("again")
        self.was_listed = self.is_gone = True
        return [StartedAgain(at, restarts)]

    def _late(self, asked_for_s: float, at: float, settle: Settle) -> list[Evidence]:
        """The controller called it failed, and the record that would complete its exit does not come."""
        if self.record is not None or not self.has_final_word or "late" in self.told:
            return []
        self.late_s += asked_for_s
        if self.late_s < settle.record_s:
            return []
        self.told.add("late")
        return [RecordIsLate(at, self.late_s)]

    def in_one_row(self, rows: Iterable[Row]) -> Row | None:
        """Members that were cancelled while they waited have no rows of their own: one row, of the array's id alone,
        speaks of them all. It speaks of no member that was seen to run, and its other words of none at all."""
        has_run = self.record is not None or (self.said is not None and first_word(self.said.word.text) != "PENDING")
        if not self.batch.is_array or has_run:
            return None
        for row in rows:
            is_meant = row.members is None or self.index in row.members
            if is_meant and state_of(row.word) is SchedulerState.CANCELLED:
                return replace(row, index=self.index, exit="", nodes="", started_at=None)
        return None

    def hear_record(self, record: WitnessRecord) -> list[Evidence]:
        if self.record is not None:
            return []
        self.record = record
        return [record]

    def hear_accounting(
        self, rows: Sequence[AccountRow], asked_for_s: float, at: float, settle: Settle, has_whole_codes: bool
    ) -> list[Evidence]:
        """What accounting's answer, which may be without rows of it, adds."""
        mine = self._of_my_start(self._of_my_job(rows))
        self.was_listed = self.was_listed or bool(mine)  # there is a record of it, whatever the row says
        said = _settled(mine, at, has_whole_codes)
        if said is None:
            self.rows, self.same_s = mine, 0.0
            return self._silence("silent", asked_for_s, at, settle)
        self.same_s = self.same_s + asked_for_s if mine == self.rows else 0.0
        self.rows = mine
        if self.record is None and self.same_s < settle.stable_s:
            return []
        self.account = said
        self.told.add("account")
        return [said]

    def _of_my_start(self, rows: tuple[AccountRow, ...]) -> tuple[AccountRow, ...]:
        """Of a job that Slurm started again there is a row for each start, with its steps behind it."""
        places = [place for place, row in enumerate(rows) if row.step == ""]
        if len(places) <= self.restarts:
            return ()
        end = places[self.restarts + 1] if len(places) > self.restarts + 1 else len(rows)
        return rows[places[self.restarts] : end]

    def hear_disabled(self, asked_for_s: float, at: float, settle: Settle) -> list[Evidence]:
        """There is no accounting at this site."""
        return self._silence("disabled", asked_for_s, at, settle)

    def _silence(self, word: str, asked_for_s: float, at: float, settle: Settle) -> list[Evidence]:
        self.silent_s += asked_for_s
        if not self.was_listed and self.record is None:
            if self.unseen_s < settle.never_seen_s or "never" in self.told:
                return []
            self.told.add("never")
            return [NeverSeen(at, self.unseen_s)]
        enough = settle.record_s if word == "disabled" and self.record is not None else settle.long_s
        if not self.is_over or self.silent_s < enough or "nobody" in self.told:
            return []
        self.told.add("nobody")
        self.given_up_at = at
        return [NobodySaid(at, self.silent_s, word)]

    def _of_my_job(self, rows: Sequence[AccountRow]) -> tuple[AccountRow, ...]:
        """The rows of our job, and of steps that follow one of these: steps have no name that tells whose they are."""
        mine = []
        is_mine = False
        for row in rows:
            if row.step == "":
                is_mine = self._is_mine(row)
            if is_mine and (row.job, row.index) == (self.batch.id, self.index):
                mine.append(row)
        return tuple(mine)

    def _is_mine(self, row: AccountRow) -> bool:
        """Ids are used again: the row must have our name, and be no older than we are."""
        if (row.job, row.index) != (self.batch.id, self.index) or row.is_placeholder:
            return False
        if row.submitted_at is not None and row.submitted_at < self.batch.made_at - SKEW_S:
            return False
        return row.name == self.batch.name


def _began(row: QueueRow | AccountRow) -> float | None:
    """Slurm calls it a start when somebody cancels what waits: it has then no node."""
    return row.started_at if row.nodes else None


def _same(before: QueueSaid, now: QueueSaid) -> bool:
    shown = ("word", "reason", "exit", "derived", "started_at", "node")
    return all(getattr(before, name) == getattr(now, name) for name in shown)


def _settled(rows: Sequence[AccountRow], at: float, has_whole_codes: bool) -> AccountingSaid | None:
    """The last row of the job with its script's, if it has ended; of a requeued job there are several."""
    jobs = [place for place, row in enumerate(rows) if row.step == ""]
    if not jobs:
        return None
    rows = rows[jobs[-1] :]  # the rows of steps follow that of their own start of the job
    job = rows[0]
    word = read_word(job.word)
    if first_word(job.word) == REQUEUED:  # of a start that is over: evicted by request
        word = SchedulerWord(SchedulerState.PREEMPTED, "PREEMPTED")
    if job.ended_at is None or word.state.is_present:
        return None
    last = next((row for row in rows if row.step == BATCH_STEP), None)
    peaks = [row.maxrss_bytes for row in rows if row.maxrss_bytes is not None]
    return AccountingSaid(
        at=at,
        word=word,
        exit=job.exit,
        batch_word=read_word(last.word) if last is not None else None,
        batch_exit=last.exit if last is not None else "",
        has_whole_codes=has_whole_codes,
        started_at=_began(job),
        ended_at=job.ended_at,
        elapsed_s=job.elapsed_s,
        user_s=job.user_s,
        sys_s=job.sys_s,
        maxrss_bytes=max(peaks, default=None),
        node=job.nodes,
    )
