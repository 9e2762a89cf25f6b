"""What accounting says of steps of allocations: one sacct for all that wait for its word.

Time ages nothing by itself: what counts for a step is the time between two answers of which it was part. Of those that
were given up it is asked seldom, for as long as they are kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from aver.engines.slurm.allocation.evidence import StepTrack
from aver.engines.slurm.allocation.steps import Which, account_text, run_of, which_step
from aver.engines.slurm.commands.questions import Questions
from aver.engines.slurm.commands.rows import AccountRow, Accounts, Disabled, NoAnswer
from aver.engines.slurm.track.evidence import Settle
from aver.model.evidence import Evidence
from aver.model.record import Record

MARGIN_S = 3600.0  # the clocks of two machines
Said = tuple[StepTrack, str, list[Evidence]]


class Standing(Record):
    """Where the allocations are: their ids."""

    over: Collection[int]
    ending: Collection[int]  # what is said of their steps meanwhile is not final
    made_at: Mapping[int, float]


class StepAccounts:
    def __init__(self, questions: Questions, settle: Settle, home: str, late_pause_s: float) -> None:
        self._questions = questions
        self._settle = settle
        self._home = home
        self._late_pause_s = late_pause_s
        self._late_due = 0.0  # when it is asked next for those of which nobody said how they ended

    def ask(
        self, tracks: Iterable[StepTrack], standing: Standing, said: Callable[[StepTrack], str]
    ) -> list[Said] | str:
        """What is new, of each with the words for people; why it could not be asked. `said`: what its srun printed."""
        now = time.monotonic()
        is_late_due = now >= self._late_due
        asked = [one for one in tracks if one.asks_accounting and (is_late_due or one.given_up_at is None)]
        ids = sorted({track.claim.job for track in asked if track.claim is not None})
        if not ids:
            return []
        if is_late_due:
            self._late_due = now + self._late_pause_s
        begun = [track.claim.at for track in asked if track.claim is not None]
        begun += [at for number, at in standing.made_at.items() if number in set(ids)]
        answer = self._questions.accounting(ids, (), min(begun) - MARGIN_S)
        now = time.monotonic()
        sinces = [0.0 if track.answered_at is None else now - track.answered_at for track in asked]
        for track in asked:
            track.answered_at = None if isinstance(answer, NoAnswer) else now
        match answer:
            case NoAnswer(text=text):
                return text
            case Disabled(text=text):
                at = time.time()
                pairs = zip(asked, sinces, strict=True)
                return [(track, text, track.hear_disabled(since, at, self._settle)) for track, since in pairs]
            case Accounts():
                return list(self._heard(asked, sinces, answer, standing, said))

    def _heard(
        self, asked: Sequence[StepTrack], sinces: Sequence[float], answer: Accounts, standing: Standing,
        said: Callable[[StepTrack], str],
    ) -> Iterator[Said]:  # fmt: skip
        jobs, steps = self._by_job(answer.rows)
        whole_codes = self._questions.facts().has_whole_codes
        at = time.time()
        for track, since in zip(asked, sinces, strict=True):
            assert track.claim is not None
            number = track.claim.job
            rows, job = steps.get((track.run, number, track.which), []), jobs.get((track.run, number))
            if number in standing.ending or not (rows or answer.is_whole):
                continue
            is_over = number in standing.over
            evidence = track.hear_accounting(rows, job, is_over, said(track), since, at, self._settle, whole_codes)
            yield track, account_text(rows, job if is_over else None), evidence

    def _by_job(
        self, rows: Iterable[AccountRow]
    ) -> tuple[dict[tuple[int, int], AccountRow], dict[tuple[int, int, Which], list[AccountRow]]]:
        """Rows of allocations of ours, by run and id, and of their steps, which follow them: ids are used again."""
        jobs: dict[tuple[int, int], AccountRow] = {}
        steps: dict[tuple[int, int, Which], list[AccountRow]] = {}
        run = None
        for row in rows:
            if row.step == "":
                run = run_of(row.name, self._home)
                if run is not None:
                    jobs[run, row.job] = row
            elif run is not None and (which := which_step(row.name)) is not None:
                steps.setdefault((run, row.job, which), []).append(row)
        return jobs, steps
