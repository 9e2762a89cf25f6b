"""From files, queue and accounting to evidence on each step of an allocation: what is new, what has been silent.

No IO and no clock, as `tracking`. A step is over when its srun has ended or its allocation is; then its record settles
a clean exit 0, and for anything else accounting's row of the step is waited for, with that of its allocation where
that has ended too. That accounting has no row says nothing, it may be late: that no step was made, srun must have said.
What they mean together, the judge says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from aver.engines.slurm.allocation.folder import Claim, Size
from aver.engines.slurm.commands.rows import AccountRow
from aver.engines.slurm.states import read_word, state_of
from aver.engines.slurm.track.evidence import Settle
from aver.judge.scheduler import is_clean
from aver.model.evidence import (
    AccountingSaid,
    Evidence,
    LeftQueue,
    NeverSeen,
    NobodySaid,
    QueueSaid,
    WitnessRecord,
)
from aver.model.record import Mutable, field, replace

NO_STEP = "srun made no step of it"
_MADE_NONE = re.compile(r"^srun: (fatal: |error: Unable to (create|confirm|contact) ).*$", re.MULTILINE)
_NOT_LAUNCHED = re.compile(r"^srun: error: (Task launch for .* failed|Application launch failed)", re.MULTILINE)


class StepTrack(Mutable):
    """What is known of one attempt."""

    key: str
    run: int
    which: tuple[int, int]  # job and attempt, as the name of its step has them
    size: Size | None = None
    name: str = ""  # of its file, while nobody has taken it
    deadline_at: float | None = None  # not later than this is it started
    claim: Claim | None = None
    status: int | None = None  # of its srun, which has ended
    is_over: bool = False
    record: WitnessRecord | None = None
    shown_reason: str = ""
    shown_text: str = ""
    is_cancelled: bool = False  # it was sent a cancellation while it ran
    rows: tuple[AccountRow, ...] = ()
    same_s: float = 0.0
    silent_s: float = 0.0
    answered_at: float | None = None  # when accounting last answered a question of which this was part
    given_up_at: float | None = None  # when it was told that nobody says how it ended
    told: set[str] = field(default_factory=set)

    def hear_claim(self, claim: Claim, at: float) -> list[Evidence]:
        if self.claim is not None:
            return []
        self.claim, self.name = claim, ""
        return [QueueSaid(at, read_word("RUNNING"), started_at=claim.at, node=claim.node, allocation=claim.job)]

    def hear_over(self, at: float) -> list[Evidence]:
        if self.is_over:
            return []
        self.is_over = True
        return [LeftQueue(at)]

    def hear_record(self, record: WitnessRecord) -> list[Evidence]:
        if self.record is not None:
            return []
        self.record = record
        return [record]

    @property
    def asks_accounting(self) -> bool:
        """Whether accounting can say something that is missing. A record without srun's end: its end may be lost."""
        if self.claim is None or self.told & {"account", "never"}:
            return False
        if not self.is_over:
            return self.record is not None
        return self.record is None or not is_clean(self.record)

    def hear_accounting(
        self, of_step: Sequence[AccountRow], of_allocation: AccountRow | None, allocation_is_over: bool, said: str,
        asked_for_s: float, at: float, settle: Settle, has_whole_codes: bool,
    ) -> list[Evidence]:  # fmt: skip
        """What accounting's answer adds. `of_allocation` is its job's row, `said` what srun printed."""
        assert self.claim is not None
        ended = of_allocation is not None and of_allocation.ended_at is not None
        row = next((one for one in reversed(of_step) if _has_ended(one)), None)
        mine = (*of_step, *((of_allocation,) if of_allocation is not None and allocation_is_over else ()))
        self.same_s = self.same_s + asked_for_s if mine == self.rows else 0.0
        self.rows = mine
        if not self.is_over:  # it is over by accounting's word alone
            return [] if row is None else self.hear_over(at)
        if allocation_is_over and not ended:
            return self._silence("silent", asked_for_s, at, settle)
        if row is None and not allocation_is_over:
            why = _MADE_NONE.search(said) if self.status not in (None, 0) and self.record is None else None
            if why is not None and not of_step and self.same_s >= settle.stable_s:
                self.told.add("never")
                return [NeverSeen(at, self.same_s, f"{NO_STEP}: {why[0]}")]
            return self._silence("silent", asked_for_s, at, settle)
        if (row is None or self.record is None) and self.same_s < settle.stable_s:
            return []
        self.told.add("account")
        over = of_allocation if allocation_is_over else None
        row = row or (of_step[-1] if of_step else None)
        if row is not None and self.record is None and _NOT_LAUNCHED.search(said) is not None:
            row = replace(row, exit="")  # it is the number of srun's error, and no program's exit
        return [_account(self, row, over, at, has_whole_codes)]

    def hear_disabled(self, asked_for_s: float, at: float, settle: Settle) -> list[Evidence]:
        """There is no accounting at this site."""
        return self._silence("disabled", asked_for_s, at, settle) if self.is_over else []

    def _silence(self, word: str, asked_for_s: float, at: float, settle: Settle) -> list[Evidence]:
        self.silent_s += asked_for_s
        enough = settle.record_s if word == "disabled" and self.record is not None else settle.long_s
        if self.silent_s < enough or self.given_up_at is not None:
            return []
        self.given_up_at = at
        return [NobodySaid(at, self.silent_s, word)]


def _has_ended(row: AccountRow) -> bool:
    return row.ended_at is not None and not state_of(row.word).is_present


def _account(
    track: StepTrack, row: AccountRow | None, over: AccountRow | None, at: float, has_whole_codes: bool
) -> AccountingSaid:
    claim = track.claim
    assert claim is not None
    word = None if row is None else read_word(row.word)
    ended = "" if row is None else row.exit
    if row is not None and not has_whole_codes and (whole := _whole(row.exit, track.status)) is not None:
        ended, has_whole_codes = whole, True
    return AccountingSaid(
        at=at,
        word=word,
        exit=ended,
        batch_word=word,
        batch_exit=ended,
        has_whole_codes=has_whole_codes,
        started_at=claim.at if row is None else row.started_at,
        ended_at=row.ended_at if row is not None and row.ended_at is not None else over.ended_at if over else None,
        elapsed_s=None if row is None else row.elapsed_s,
        user_s=None if row is None else row.user_s,
        sys_s=None if row is None else row.sys_s,
        maxrss_bytes=None if row is None else row.maxrss_bytes,
        node=claim.node,
        allocation=str(claim.job),
        allocation_word=None if over is None else read_word(over.word),
        allocation_ended_at=None if over is None else over.ended_at,
        is_cancelled=track.is_cancelled,
    )


def _whole(said: str, status: int | None) -> str | None:
    """Accounting takes 128 off a code; srun's own exit status has it whole. None: they are not of one exit."""
    code, _, signal = said.partition(":")
    if status is None or signal != "0" or not code.isdecimal() or status not in (int(code), int(code) + 128):
        return None
    return f"{status}:0"
