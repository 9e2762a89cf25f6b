"""Failures grouped by cause: each in one group, with numbers, and the next command."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.model.exit import ExitStatus
from aver.model.states import SETTLED, State
from aver.render.causes import Cause, Failed, group_causes, is_failure

GIB = 1 << 30
KILLED = ExitStatus(signal=9)


def out_of_memory(job: int, limit: int = 4 * GIB, peak: int | None = 4 * GIB) -> Failed:
    return Failed(job, f"train[i={job}]", "OUT_OF_MEMORY", "OutOfMemory", KILLED, "", 1, limit, 3600, peak)


def test_the_sentences_of_a_bad_evening() -> None:
    """Numbers, limits and peaks; worst first; skipped jobs last, with what they wait for."""
    failed = [
        *(out_of_memory(job, peak=4 * GIB - job * (GIB // 4)) for job in range(3)),
        out_of_memory(9, limit=8 * GIB, peak=None),
        *(Failed(job, "x", "FAILED", "NonZeroExitCode", ExitStatus(code=1), "", 1) for job in (10, 11)),
        Failed(12, "seg", "FAILED", "RaisedSignal:11(Segmentation_fault)", ExitStatus(signal=11), "", 1),
        Failed(13, "gone", "FAILED", "JobLaunchFailure", None, "exec /no/such: No such file or directory", 1),
        Failed(19, "either", "FAILED", "NonZeroExitCode", None, "exit code 9 or 137: accounting takes 128 off", 1),
        *(Failed(job, "late", "TIMEOUT", "TimeLimit", ExitStatus(signal=15), "", 1, None, 3600) for job in (14, 15)),
        Failed(20, "due", "TIMEOUT", "DeadLine", ExitStatus(signal=15), "", 1, None, 3600),
        Failed(16, "lost", "UNVERIFIED", "WitnessVanished", None, "", 1),
        *(Failed(job, "eval", "SKIPPED", "NeedFailed:train(OUT_OF_MEMORY)", None, "", 0) for job in (17, 18)),
    ]
    causes = group_causes(3, failed)
    assert [cause.sentence for cause in causes] == [
        "3 jobs ran out of memory at 4 GiB; peaks 3.5 GiB to 4.0 GiB",
        "job 9 (train[i=9]) ran out of memory at 8 GiB; peak not known",
        "2 jobs failed with exit 1",
        "job 12 (seg) ended by signal 11, SIGSEGV: Segmentation fault",
        "job 13 (gone) could not start: exec /no/such: No such file or directory",
        "job 19 (either) failed, exit code not known: exit code 9 or 137: accounting takes 128 off",
        "2 jobs passed their time limit of 1 h",
        "job 20 (due) passed its deadline while it ran",
        "job 16 (lost) left no record of how it ended",
        "2 jobs never ran: train, which they need, is OUT_OF_MEMORY",
    ]
    assert causes[0].next[0] == "aver recover 3 --dry-run"
    assert causes[2].next == ("aver log 10", "aver retry 3", "aver reinit 3")
    assert causes[4].next == ("aver why 13",)
    assert causes[7].next == ("aver log 20",)
    assert [cause.has_log for cause in causes] == [True, True, True, True, False, True, True, True, True, False]


def test_a_job_that_was_cancelled_while_it_ran_is_not_said_to_have_never_begun() -> None:
    """Its exit may be unknown all the same; one that had not begun is another cause."""
    ran = Failed(1, "x", "CANCELLED", "None", None, "", 1)
    waited = Failed(2, "y", "CANCELLED", "None", None, "", 0)
    sentences = [cause.sentence for cause in group_causes(3, [ran, waited])]
    assert sentences == ["job 1 (x) was cancelled", "job 2 (y) was cancelled before the start"]


@pytest.mark.parametrize("state", sorted(SETTLED - {State.COMPLETED}))
def test_every_state_has_a_sentence_for_one_and_for_many(state: str) -> None:
    """No state falls through."""
    jobs = [Failed(job, "x", state, "NeedFailed:a(FAILED)", None, "it went wrong", 1) for job in (1, 2)]
    (one,), (many,) = group_causes(1, jobs[:1]), group_causes(1, jobs)
    assert one.sentence.startswith("job 1 (x) ")
    assert many.sentence.startswith("2 jobs ")


@given(
    st.lists(st.tuples(st.sampled_from(sorted(SETTLED)), st.integers(0, 2), st.none() | st.integers(1, 9)), max_size=40)
)
def test_each_failure_is_in_one_cause(rows: list[tuple[str, int, int | None]]) -> None:
    """The counts add up, whatever there is."""
    failed = [
        Failed(job, "x", state, "R", None if code == 0 else ExitStatus(code=code), "", 1, limit, limit)
        for job, (state, code, limit) in enumerate(rows)
        if is_failure(state, "R")
    ]
    causes: list[Cause] = group_causes(1, failed)
    assert sum(cause.count for cause in causes) == len(failed)
    assert sorted(one.job for cause in causes for one in cause.jobs) == [one.job for one in failed]


def test_what_is_no_failure() -> None:
    """A condition that did not apply is a success, and what is not settled is nothing yet."""
    assert not is_failure("COMPLETED", "None")
    assert not is_failure("SKIPPED", "ConditionNotMet")
    assert not is_failure("RUNNING", "None")
    assert is_failure("SKIPPED", "NeedFailed:a(FAILED)")
