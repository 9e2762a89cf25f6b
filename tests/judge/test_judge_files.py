"""What a job's files say of its end."""

from __future__ import annotations

import pytest

from aver.judge.local import judge
from aver.judge.scheduler import judge_cluster, judge_late
from aver.model.evidence import (
    Accepted,
    AccountingSaid,
    Act,
    ActKind,
    FilesSeen,
    LaunchFailure,
    LeftQueue,
    MemoryWatch,
    NobodySaid,
    QueueSaid,
    Rules,
    SchedulerWord,
    Taken,
    Verdict,
    WitnessRecord,
)
from aver.model.exit import ExitStatus
from aver.model.record import replace
from aver.model.states import SchedulerState, State

MUST = Rules(must_write=True)
RECORD = WitnessRecord("k", 2, ExitStatus(), 100.0, 41.0, watch=MemoryWatch.CGROUP2)
GOOD = FilesSeen(150.0, outputs=2, wrong=0, written=2, names=("a", "b"))
MISSING = FilesSeen(150.0, outputs=2, wrong=1, written=1, missing=("a",), names=("b",))
OLD = FilesSeen(150.0, outputs=1, wrong=1, written=0, old=("a",))
UNSEEN = FilesSeen(150.0, outputs=1, wrong=1, written=0, unseen=("a",))
DONE = SchedulerWord(SchedulerState.COMPLETED, "COMPLETED")
ACCOUNT = AccountingSaid(200.0, DONE, "0:0", DONE, "0:0", True, 100.0, 150.0)


def on(files: FilesSeen | None, rules: Rules = MUST, record: WitnessRecord = RECORD) -> Verdict:
    verdict = judge([replace(record, files=files)], rules)
    assert verdict is not None
    on_cluster = judge_cluster([Taken(90.0, "1"), LeftQueue(160.0), replace(record, files=files), ACCOUNT], rules)
    assert on_cluster is not None
    assert (on_cluster.state, on_cluster.reason, on_cluster.detail) == (verdict.state, verdict.reason, verdict.detail)
    return verdict


def test_a_missing_output_is_a_failure() -> None:
    """The file is named, the exit status stays what it was, and so are the files that are there."""
    verdict = on(MISSING)
    assert (verdict.state, verdict.reason, verdict.exit) == (State.FAILED, "MissingOutput", ExitStatus())
    assert verdict.verified
    assert verdict.detail == "its output a is missing; left of its outputs: b"


def test_an_output_from_before_is_a_failure() -> None:
    """Nobody takes an earlier attempt's file for this one's."""
    assert on(OLD).detail == "its output a is as before its start: it did not write it"


def test_all_outputs_are_there() -> None:
    """A completion stays one."""
    assert (on(GOOD).state, on(GOOD).reason, on(GOOD).detail) == (State.COMPLETED, "None", "")


@pytest.mark.parametrize("files", [None, UNSEEN])
def test_nobody_looked(files: FilesSeen | None) -> None:
    """Not a success and not a failure; a person may say so, and settle.fallback may."""
    verdict = on(files)
    assert (verdict.state, verdict.exit, verdict.verified) == (State.UNVERIFIED, ExitStatus(), False)
    fallback = on(files, replace(MUST, fallback_completes=True))
    assert (fallback.state, fallback.verified, len(fallback.warnings)) == (State.COMPLETED, False, 1)


def test_only_accounting_says_how_it_ended() -> None:
    """The outputs are not known then; a record that comes late has them."""
    evidence = [Taken(90.0, "1"), LeftQueue(160.0), ACCOUNT]
    verdict = judge_cluster([*evidence], MUST)
    assert verdict is not None
    assert verdict.state is State.UNVERIFIED
    late = judge_late([*evidence, replace(RECORD, files=MISSING)], MUST)
    assert late is not None
    assert late.reason == "MissingOutput"
    assert judge_cluster([*evidence], Rules()) == Verdict(State.COMPLETED, ExitStatus(), "None", True, "accounting")


def test_a_persons_word_is_not_checked() -> None:
    """Who accepts a job answers for its outputs too."""
    evidence = [Taken(90.0, "1"), LeftQueue(160.0), NobodySaid(900.0, 600.0, "silent"), Accepted(901.0, "alice")]
    verdict = judge_cluster([*evidence], MUST)
    assert verdict is not None
    assert verdict.state is State.COMPLETED


@pytest.mark.parametrize(
    ("files", "detail"),
    [
        (FilesSeen(150.0, 1, 0, 7, names=("a", "b", "c", "d", "e", "f", "g")),
         "left of its outputs: a, b, c, d, e and 2 more"),
        (FilesSeen(150.0, 1, 1, 1, names=("a",), removed=1), "removed of its outputs: a"),
        (FilesSeen(150.0, 1, 1, 0, missing=("a",)), ""),
    ],
)  # fmt: skip
def test_a_failure_names_what_it_left(files: FilesSeen, detail: str) -> None:
    """Partial outputs are named; the cause stays the program's own."""
    verdict = on(files, MUST, replace(RECORD, exit=ExitStatus(3)))
    assert (verdict.state, verdict.reason, verdict.detail) == (State.FAILED, "NonZeroExitCode", detail)


def test_a_cancelled_look() -> None:
    """A person who cancels while its outputs are looked at cancels the job."""
    record = replace(RECORD, acts=(Act(ActKind.CANCEL, 2.0, 9),))
    verdict = judge([record], MUST)
    assert verdict is not None
    assert verdict.state is State.CANCELLED


def test_missing_inputs() -> None:
    """It never ran: FAILED before its start, and the pattern is named. What can't be seen is not called missing."""
    record = replace(RECORD, pid=0, exit=None, launch=LaunchFailure("input", 2, "data/*.csv"))
    verdict = judge([record], MUST)
    assert verdict is not None
    assert (verdict.state, verdict.exit, verdict.reason) == (State.FAILED, None, "MissingInput")
    assert verdict.detail == "no file matches its inputs: data/*.csv"
    queue = QueueSaid(160.0, SchedulerWord(SchedulerState.FAILED, "FAILED"), "NonZeroExitCode", "127:0")
    assert judge_cluster([Taken(90.0, "1"), record, queue, LeftQueue(161.0), ACCOUNT], MUST) == verdict
    closed = judge([replace(record, launch=LaunchFailure("input", 13, "data"))], MUST)
    assert closed is not None
    assert closed.detail == "its inputs can't be looked at: data: Permission denied"
