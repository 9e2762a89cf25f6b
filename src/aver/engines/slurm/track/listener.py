"""What becomes of the jobs that Slurm has: the records of their witnesses, one question to the queue for all, and one
to accounting for those that have ended without a word on how.

One thread calls this. "Not listed", "could not ask" and "a line that can't be read" stay three things: what could not
be asked ages nothing, and only the time between two answers counts. A batch whose sbatch's answer was lost is known by
its name; it is called not taken only if Slurm would know it, and nobody may still be handing it over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from aver.engines.api import Heard
from aver.engines.slurm.batches import Batch
from aver.engines.slurm.commands.questions import Questions
from aver.engines.slurm.commands.rows import AccountRow, Accounts, Disabled, NoAnswer, QueueRow
from aver.engines.slurm.track.evidence import Settle, Track
from aver.engines.slurm.track.exit_records import in_order
from aver.engines.slurm.track.ledger import Ledger
from aver.engines.slurm.track.pace import LATE_S
from aver.model.evidence import NobodySaid, NotTaken

Row = TypeVar("Row", QueueRow, AccountRow)
QUEUE = "squeue"
ACCOUNTING = "sacct"
WITNESS = "witness"
MARGIN_S = 3600.0  # accounting's clock may be another one


class Listening:
    """`is_at_it`: whether an sbatch may still be handing a batch over. `found`: a batch's id has become known."""

    def __init__(
        self, ledger: Ledger, questions: Questions, settle: Settle, late_pause_s: float,
        is_at_it: Callable[[Batch], bool], found: Callable[[Batch], None], log: Callable[[str], None],
    ) -> None:  # fmt: skip
        self._ledger = ledger
        self._tracks = ledger.tracks
        self._questions = questions
        self._settle = settle
        self._late_pause_s = late_pause_s
        self._is_at_it = is_at_it
        self._found = found
        self._log = log
        self._at_it: set[str] = set()  # names of batches that an sbatch may be handing over at this moment
        self._last_queue_answer: float | None = None
        self._last_accounting_answer: float | None = None
        self._last_late_answer: float | None = None
        self._late_due = 0.0  # when accounting is asked next for those of which nobody said how they ended
        self._trouble = ""

    # ---- records ------------------------------------------------------------------------------------

    def hear_records(self) -> None:
        by_record = {track.record_name: track for track in self._tracks.values()}
        for name, task, text, record in in_order(self._ledger.records, by_record.keys()):
            track = by_record[name]
            if task:
                track.tasks.add(task)
                self._ledger.put([Heard(track.key + task, WITNESS, text, record)])
            else:
                self._ledger.tell(track, WITNESS, text, track.hear_record(record))

    def can_read_records(self) -> bool:
        """Where records could not be asked for, their absence must not age: it is as if nothing was answered."""
        trouble = self._ledger.records.trouble
        if trouble:
            self._last_queue_answer = self._last_accounting_answer = None
            self._note_trouble(trouble)
        return not trouble

    # ---- the queue ----------------------------------------------------------------------------------

    def ask_queue(self) -> bool:
        """One question for all; False if it was not answered."""
        batches = list({id(track.batch): track.batch for track in self._tracks.values()}.values())
        ids = [batch.id for batch in batches if batch.id is not None]
        names = [batch.name for batch in batches if batch.id is None]
        self._at_it = {batch.name for batch in batches if batch.id is None and self._is_at_it(batch)}
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
            self._ledger.tell(track, QUEUE, _queue_text(row), evidence)
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
                self._note_id(batch, row.job)

    def _note_id(self, batch: Batch, number: int) -> None:
        batch.id = number
        self._ledger.keep(batch)
        self._ledger.tell_taken(batch, batch.keys, QUEUE, "found by its name: ")
        self._found(batch)

    # ---- accounting ---------------------------------------------------------------------------------

    def ask_accounting(self) -> None:
        """One question for those that have ended without a word on how."""
        is_late_due = time.monotonic() >= self._late_due
        asked = [
            track for track in self._tracks.values()
            if self._should_ask(track) and (is_late_due or track.given_up_at is None)
        ]  # fmt: skip
        lost = [batch for batch in self._ledger.batches.values() if batch.id is None and batch.name not in self._at_it]
        if not asked and not lost:
            self._last_accounting_answer = None
            return
        ids = sorted({track.batch.id for track in asked if track.batch.id is not None})
        since_when = min(batch.made_at for batch in [*(track.batch for track in asked), *lost]) - MARGIN_S
        answer = self._questions.accounting(ids, [batch.name for batch in lost], since_when)
        if is_late_due:
            self._late_due = time.monotonic() + self._late_pause_s
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
        self._hear_accounts(asked, answer, since, late_since)
        for batch in lost:
            self._hear_of_lost(batch, answer, since, now)

    def _hear_accounts(
        self, asked: Sequence[Track], answer: Accounts | Disabled, since: float, late_since: float
    ) -> None:
        rows: Sequence[AccountRow] = () if isinstance(answer, Disabled) else answer.rows
        by_job: dict[tuple[int, int | None], list[AccountRow]] = {}
        for row in rows:
            by_job.setdefault((row.job, row.index), []).append(row)
        whole_arrays = _of_whole_arrays([row for row in rows if not row.step])
        at = time.time()
        whole = self._questions.facts().has_whole_codes
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
            self._ledger.tell(track, ACCOUNTING, _account_text(mine), evidence)

    def _hear_of_lost(self, batch: Batch, answer: Accounts | Disabled, since: float, now: float) -> None:
        """Its sbatch's answer was lost: accounting may know its name, or Slurm would know it if it had been taken."""
        named = [] if isinstance(answer, Disabled) else [row for row in answer.rows if row.name == batch.name]
        named = [row for row in named if row.step == ""]
        first = self._tracks.get(batch.keys[0])
        if isinstance(answer, Accounts) and answer.is_whole:
            batch.silent_s += min(since, now - batch.tracked_at)
        if named:
            self._note_id(batch, named[-1].job)
        elif first is None or first.was_listed or first.unseen_s < self._settle.unsure_s:
            return
        elif self._would_be_remembered(batch) or batch.silent_s >= self._settle.unsure_s:
            self._never_taken(batch)
        elif first.unseen_s >= self._settle.long_s:
            self._nobody_knows(batch, time.time())

    def _should_ask(self, track: Track) -> bool:
        if not track.asks_accounting:
            return False
        return track.is_over or track.unseen_s >= self._settle.ask_accounting_s

    def _would_be_remembered(self, batch: Batch) -> bool:
        """Whether the queue alone tells: it was first asked before it could have forgotten a job of that time."""
        age_s = self._questions.facts().min_job_age_s
        return age_s is not None and batch.asked_at is not None and batch.asked_at - batch.made_at < age_s

    # ---- what nobody says ---------------------------------------------------------------------------

    def too_old(self) -> list[str]:
        """What nobody has said for a week nobody will say."""
        oldest = time.time() - LATE_S
        tracks = self._tracks.values()
        return [track.key for track in tracks if track.given_up_at is not None and track.given_up_at < oldest]

    def _nobody_knows(self, batch: Batch, at: float) -> None:
        """Give up on a batch that Slurm may have run and forgotten; it is not handed over a second time."""
        for key in batch.keys:
            track = self._tracks.get(key)
            if track is not None and "nobody" not in track.told:
                track.told.add("nobody")
                track.given_up_at = at
                text = "Slurm does not list its name, may have forgotten it, and accounting does not tell"
                self._ledger.tell(track, QUEUE, text, [NobodySaid(at, track.unseen_s, "not to be asked")])

    def _never_taken(self, batch: Batch) -> None:
        """Slurm answers and knows no job of this name: it was not taken, and may be handed over again."""
        self._ledger.drop(batch)
        text = "Slurm has no job of its name: sbatch did not hand it over"
        self._ledger.put([Heard(key, ACCOUNTING, text, NotTaken(time.time())) for key in batch.keys])

    def _note_trouble(self, text: str) -> None:
        if text != self._trouble:
            self._trouble = text
            self._log(f"slurm can't be asked: {text}" if text else "slurm answers again")


def _of_whole_arrays(rows: Sequence[Row]) -> dict[int | None, list[Row]]:
    """Rows that speak of several members of an array at once, or of all, by the array's id."""
    found: dict[int | None, list[Row]] = {}
    for row in rows:
        if row.index is None:
            found.setdefault(row.job, []).append(row)
    return found


def _queue_text(row: QueueRow | None) -> str:
    if row is None:
        return "not listed"
    words = [row.word, row.exit, row.derived, row.reason, row.nodes]
    return " ".join(word for word in words if word)


def _account_text(rows: Sequence[AccountRow]) -> str:
    return "; ".join(f"{row.step or 'job'} {row.word} {row.exit}" for row in rows) or "no row of it"
