"""What files and accounting say of a step of an allocation: what is late, what is missing, what was never made."""

from __future__ import annotations

import pytest

from aver.engines.slurm.allocation.evidence import StepTrack
from aver.engines.slurm.allocation.folder import Claim
from aver.engines.slurm.commands.rows import AccountRow
from aver.engines.slurm.states import read_word
from aver.engines.slurm.track.evidence import Settle
from aver.model.evidence import AccountingSaid, Evidence, LeftQueue, NeverSeen, NobodySaid, QueueSaid
from aver.model.record import replace

SETTLE = Settle(stable_s=10, long_s=60)
STEP = AccountRow(
    job=9, index=None, step="0", word="COMPLETED", exit="0:0", derived="", submitted_at=10.0, started_at=10.0,
    ended_at=50.0, elapsed_s=40.0, user_s=1.0, sys_s=0.5, maxrss_bytes=None, nodes="n1", name="wf1_j5_r1_a1",
)  # fmt: skip
REFUSED = "srun: error: Unable to create step for job 9: Job/step already completing or completed\n"


def over(status: int | None) -> StepTrack:
    """A step that an allocation took and whose srun has ended, without a record."""
    track = StepTrack("h.5.1.b", 1, (5, 1))
    assert isinstance(track.hear_claim(Claim(9, "n1", 10.0), 11.0)[0], QueueSaid)
    track.status = status
    assert track.hear_over(20.0) == [LeftQueue(20.0)]
    return track


def ask(
    track: StepTrack, since: float, *rows: AccountRow, said: str = "", job: AccountRow | None = None
) -> list[Evidence]:
    return track.hear_accounting(rows, job, job is not None, said, since, 99.0, SETTLE, False)


@pytest.mark.parametrize(("status", "said"), [(0, ""), (1, ""), (0, REFUSED), (None, REFUSED), (7, "srun: error: x\n")])
def test_accounting_without_a_row_says_nothing(status: int | None, said: str) -> None:
    """Rows may be late: only the long wait ends it, and then nobody knows."""
    track = over(status)
    assert ask(track, 0.0, said=said) == []
    assert ask(track, 59.0, said=said) == []
    assert ask(track, 1.0, said=said) == [NobodySaid(99.0, 60.0, "silent")]
    assert ask(track, 100.0, said=said) == []


@pytest.mark.parametrize("said", [REFUSED, "srun: Job 9 step creation disabled\n" + REFUSED, REFUSED + "srun: Check\n"])
def test_a_step_that_srun_says_it_did_not_make(said: str) -> None:
    track = over(1)
    assert ask(track, 0.0, said=said) == []
    (never,) = ask(track, 10.0, said=said)
    assert isinstance(never, NeverSeen)
    assert never.text.startswith("srun made no step of it: srun: error: Unable to create step")
    assert not track.asks_accounting


def test_a_row_that_comes_after_it_was_given_up_is_told() -> None:
    track = over(0)
    ask(track, 0.0)
    ask(track, 60.0)
    assert track.given_up_at == 99.0
    assert track.asks_accounting
    assert ask(track, 60.0, STEP) == []  # it is rewritten for a while
    (said,) = ask(track, 60.0, STEP)
    assert isinstance(said, AccountingSaid)
    assert (said.word, said.exit) == (read_word("COMPLETED"), "0:0")
    assert not track.asks_accounting


def test_rows_that_change_begin_to_wait_again() -> None:
    track = over(0)
    assert ask(track, 0.0, STEP) == []
    assert ask(track, 9.0, STEP) == []
    assert ask(track, 9.0, replace(STEP, word="FAILED", exit="7:0")) == []
    (said,) = ask(track, 10.0, replace(STEP, word="FAILED", exit="7:0"))
    assert isinstance(said, AccountingSaid)
    assert said.exit == "7:0"


@pytest.mark.parametrize(
    ("word", "ended", "status", "whole"),
    [
        ("FAILED", "7:0", 7, "7:0"),
        ("FAILED", "7:0", 135, "135:0"),
        ("FAILED", "0:0", 128, "128:0"),
        ("FAILED", "7:0", 9, None),
        ("FAILED", "7:0", None, None),
        ("CANCELLED", "0:15", 143, None),
        ("FAILED", "odd", 7, None),
    ],
)
def test_srun_s_own_status_has_the_128_that_accounting_takes_off(
    word: str, ended: str, status: int | None, whole: str | None
) -> None:
    track = over(status)
    row = replace(STEP, word=word, exit=ended)
    ask(track, 0.0, row)
    (said,) = ask(track, 10.0, row)
    assert isinstance(said, AccountingSaid)
    assert (said.batch_exit, said.has_whole_codes) == ((ended, False) if whole is None else (whole, True))


def test_a_step_that_srun_could_not_launch_has_no_exit() -> None:
    """Its row has the number of srun's error as if it were a signal: 4008, the credential was revoked, is 0:40."""
    revoked = "srun: error: Task launch for StepId=9.0 failed on node n1: Job credential revoked\n"
    row = replace(STEP, word="CANCELLED", exit="0:40")
    for said, exits in ((revoked, ""), ("srun: error: n1: task 0: Real-time signal 6\n", "0:40")):
        track = over(1)
        ask(track, 0.0, row, said=said)
        (told,) = ask(track, 10.0, row, said=said)
        assert isinstance(told, AccountingSaid)
        assert (told.word, told.exit, told.batch_exit) == (read_word("CANCELLED"), exits, exits)
