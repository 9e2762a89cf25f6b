"""A step of an allocation that was an attempt: what accounting's words for it mean, with and without a record."""

from __future__ import annotations

import pytest

from aver.engines.slurm.states import read_word
from aver.judge.scheduler import judge_cluster
from aver.model.evidence import (
    AccountingSaid,
    Evidence,
    LeftQueue,
    MemoryWatch,
    NeverSeen,
    QueueSaid,
    Rules,
    Verdict,
    WitnessRecord,
)
from aver.model.exit import ExitStatus
from aver.model.record import replace
from aver.model.states import State

STEP = AccountingSaid(
    at=9.0, word=read_word("CANCELLED"), exit="0:15", batch_word=read_word("CANCELLED"), batch_exit="0:15",
    started_at=1.0, ended_at=8.0,
    allocation="17",
)  # fmt: skip
TERM = ExitStatus(0, 15)


def record(exit_status: ExitStatus, got: tuple[int, ...] = ()) -> WitnessRecord:
    return WitnessRecord("k", 1, exit_status, 1.0, 7.0, watch=MemoryWatch.CGROUP1, got=got)


def judged(said: AccountingSaid, of_witness: WitnessRecord | None = None) -> Verdict:
    evidence: list[Evidence] = [QueueSaid(1.0, read_word("RUNNING"), started_at=1.0), LeftQueue(8.5)]
    evidence += [of_witness] if of_witness is not None else []
    verdict = judge_cluster([*evidence, said], Rules())
    assert verdict is not None
    return verdict


def over(word: str, ended_at: float = 7.0, of_step: str = "CANCELLED") -> AccountingSaid:
    own = read_word(of_step)
    return replace(STEP, word=own, batch_word=own, allocation_word=read_word(word), allocation_ended_at=ended_at)


@pytest.mark.parametrize("of_witness", [record(TERM), record(TERM, (15,)), None])
def test_cancelled_without_a_name_is_a_signal_of_its_own(of_witness: WitnessRecord | None) -> None:
    """Slurm calls every step that a signal ended CANCELLED; while its allocation lives nobody cancelled it."""
    verdict = judged(STEP, of_witness)
    assert (verdict.state, verdict.exit) == (State.FAILED, TERM)


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("CANCELLED by 1001", State.CANCELLED), ("TIMEOUT", State.TIMEOUT), ("NODE_FAIL", State.NODE_FAIL),
        ("PREEMPTED", State.PREEMPTED), ("FAILED", State.NODE_FAIL), ("COMPLETED", State.NODE_FAIL),
    ],
)  # fmt: skip
@pytest.mark.parametrize("of_witness", [record(TERM, (15,)), None])
def test_a_step_that_ended_with_its_allocation(word: str, state: State, of_witness: WitnessRecord | None) -> None:
    """It has the allocation's cause; an executor that was lost is the cluster's loss."""
    verdict = judged(over(word), of_witness)
    assert (verdict.state, verdict.exit) == (state, TERM)
    assert verdict.detail == f"its allocation 17 ended: {word}"


def test_a_step_that_ended_before_its_allocation() -> None:
    """What came later is not its cause."""
    assert judged(over("CANCELLED by 0", 8.5), record(TERM)).state is State.FAILED


def test_an_allocation_that_ended_well_ended_no_step_before_it() -> None:
    """What ends an allocation early may end its sruns first; one that was left by its executor ended nothing."""
    assert judged(over("FAILED", 9.0), record(TERM, (15,))).state is State.NODE_FAIL
    assert judged(over("COMPLETED", 9.0), record(TERM, (15,))).state is State.FAILED


@pytest.mark.parametrize(
    ("word", "text", "state"), [("COMPLETED", "0:0", State.COMPLETED), ("FAILED", "3:0", State.FAILED)]
)
def test_a_step_that_ended_by_itself_in_the_same_second(word: str, text: str, state: State) -> None:
    """Accounting alone, with a word of the step's own: the allocation's end is not its cause."""
    assert judged(replace(over("TIMEOUT", of_step=word), exit=text, batch_exit=text)).state is state


@pytest.mark.parametrize(
    ("word", "state"), [("NODE_FAIL", State.NODE_FAIL), ("FAILED", State.NODE_FAIL), ("TIMEOUT", State.TIMEOUT)]
)
def test_a_step_that_was_being_launched_when_its_allocation_died(word: str, state: State) -> None:
    """Slurm 25.11 calls it FAILED 1:0, and no process of it was measured: it never ran."""
    cut_off = replace(over(word, of_step="FAILED"), exit="1:0", batch_exit="1:0")
    verdict = judged(cut_off)
    assert (verdict.state, verdict.exit) == (state, None)
    assert judged(replace(cut_off, maxrss_bytes=1 << 20)).state is State.FAILED
    assert judged(replace(cut_off, allocation_word=read_word("COMPLETED"))).state is State.FAILED
    assert judged(cut_off, record(ExitStatus(1))).state is State.FAILED


def test_a_witness_without_a_signal_saw_nobody_end_it() -> None:
    """The last step killed itself, and the executor left in the same second."""
    assert judged(over("COMPLETED", 8.0), record(TERM)).state is State.FAILED


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("TIMEOUT", State.TIMEOUT), ("OUT_OF_MEMORY", State.OUT_OF_MEMORY), ("NODE_FAIL", State.NODE_FAIL),
    ],
)  # fmt: skip
def test_a_cause_of_its_own_stays(word: str, state: State) -> None:
    """Whatever became of its allocation."""
    assert judged(over("NODE_FAIL", of_step=word), record(TERM, (15,))).state is state


def test_an_srun_that_ended_with_its_executor_cancels_its_step() -> None:
    """By its user's name, a moment before the allocation is over: nobody cancelled it."""
    assert judged(over("FAILED", 8.5, "CANCELLED by 0")).state is State.NODE_FAIL
    assert judged(over("FAILED", 60.0, "CANCELLED by 0")).state is State.CANCELLED
    assert (
        judged(replace(STEP, word=read_word("CANCELLED by 0"), batch_word=read_word("CANCELLED by 0"))).state
        is State.CANCELLED
    )


def test_a_step_that_we_cancelled() -> None:
    """TERM of ours leaves no name in accounting; one that trapped it and ended well is CANCELLED all the same."""
    assert judged(replace(STEP, is_cancelled=True), record(TERM, (15,))).state is State.CANCELLED
    own = read_word("COMPLETED")
    trapped = replace(STEP, word=own, exit="0:0", batch_word=own, batch_exit="0:0", is_cancelled=True)
    assert judged(trapped, record(ExitStatus(), (15,))).state is State.CANCELLED
    assert judged(trapped, record(ExitStatus())).state is State.COMPLETED  # it had ended before


def test_a_step_that_never_was() -> None:
    """Its allocation ended first: it is lost, and may be tried again, whoever ended the allocation."""
    absent = replace(over("CANCELLED by 0"), word=None, exit="", batch_word=None, batch_exit="")
    verdict = judged(absent)
    assert (verdict.state, verdict.exit) == (State.NODE_FAIL, None)


def test_srun_made_no_step() -> None:
    """While the allocation lives that is a launch failure, with srun's own sentence."""
    evidence: list[Evidence] = [
        QueueSaid(1.0, read_word("RUNNING")),
        LeftQueue(2.0),
        NeverSeen(9.0, 5.0, "srun: no such node"),
    ]
    verdict = judge_cluster(evidence, Rules())
    assert verdict is not None
    assert (verdict.state, verdict.detail) == (State.FAILED, "srun: no such node")
