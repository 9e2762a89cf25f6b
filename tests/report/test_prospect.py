"""What a further attempt can mend: by state, and by whether the request has grown."""

from __future__ import annotations

import pytest

from aver.model.states import SETTLED, State
from aver.report.recover import LOST, SHORT_OF, prospect
from aver.store.columns import Outcome


def row(job: int, state: str, name: str = "train[i=1]", reason: str = "R") -> Outcome:
    """A job with one attempt that ended so."""
    known = {
        "job": job, "name": name, "first_job": 2, "spec": 0, "member": 0, "job_state": state, "job_reason": reason,
        "job_verified": 1, "job_source": "witness", "job_detail": "it went wrong", "job_ended_at": 9.0, "attempt": 1,
        "engine": "local", "state": state, "reason": reason, "verified": 1, "source": "witness",
    }  # fmt: skip
    return Outcome(known.get(column) for column in Outcome.columns)


@pytest.mark.parametrize("state", sorted(SETTLED))
def test_every_state_is_mended_or_left_alone_or_fine(state: State) -> None:
    """Lost ones run again as they were; what ran out of something only with more of it; the rest is for a person."""
    bare = prospect([row(7, state)], {}, {"train": "no more is to be had"})
    grown = prospect([row(7, state)], {"train": "mem 1G to 2G"}, {})
    if state is State.COMPLETED:
        assert bare == grown
        assert not bare.mended
        assert not bare.hopeless
    elif state in LOST:
        assert [one.why for one in bare.mended] == [LOST[state]]
    elif state in SHORT_OF:
        assert [one.why for one in bare.hopeless] == ["no more is to be had"]
        assert [one.why for one in grown.mended] == [f"it was {state}: mem 1G to 2G"]
    else:
        assert [one.job for one in bare.hopeless] == [7]
        assert grown == bare


def test_skipped_jobs_wait_or_are_fine() -> None:
    """Those whose need failed come back by themselves; a condition that did not apply is no failure."""
    found = prospect(
        [row(7, "SKIPPED", reason="NeedFailed:a(FAILED)"), row(8, "SKIPPED", reason="ConditionNotMet")], {}, {}
    )
    assert (found.waiting, found.mended, found.hopeless) == (1, (), ())


def test_only_the_newest_attempt_counts() -> None:
    """A job that completed at last has nothing to be mended."""
    first = row(7, "COMPLETED").changed(state="OUT_OF_MEMORY")
    found = prospect([first, first.changed(attempt=2, state="COMPLETED")], {"train": "x"}, {})
    assert not found.mended


def test_more_time_is_no_help_after_a_deadline() -> None:
    """What ended the job was no limit of its own, and its deadline is still past."""
    found = prospect([row(7, "TIMEOUT", reason="DeadLine")], {"train": "time 1h to 2h"}, {})
    assert [(one.job, one.why) for one in found.hopeless] == [(7, "its deadline passed")]
    assert not found.mended
