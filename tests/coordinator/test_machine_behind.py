"""Attempts that an engine has behind others: which they are, whose room they take, and how they come back."""

from __future__ import annotations

import pytest
from test_machine import TRUE, Turn

from aver.coordinator.requests import cancel, hold, requeue
from aver.coordinator.state.start import BEHIND_S, MOST_BEHIND, SHORT_S
from aver.engines.api import Heard
from aver.model.evidence import NotTaken, RoomTaken, WitnessRecord, WitnessStart
from aver.model.exit import ExitStatus
from aver.model.job import JobSpec, Matrix
from aver.model.states import State
from aver.protocol.messages import ResultCode

COUNT = 80
BEHIND_EACH = 4  # where an attempt takes a quarter of BEHIND_S


def members(name: str = "m", count: int = COUNT, **fields: object) -> JobSpec:
    matrix = Matrix((("i", tuple(str(at) for at in range(count))),), **fields)  # type: ignore[arg-type]
    return JobSpec(name, TRUE, matrix=matrix)


class Behind(Turn):
    """Jobs are told by their numbers."""

    def given(self) -> tuple[list[int], list[int]]:
        """Who was handed over since the last look: at once, and behind another."""
        starts, self.machine.out.starts = self.machine.out.starts, []
        return [one.job for one in starts if not one.is_behind], [one.job for one in starts if one.is_behind]

    def end(self, job: int, elapsed_s: float = 0.001) -> None:
        key = self.key(job)
        self.machine.heard(Heard(key, "witness", "start", WitnessStart(key, 5, 4, self.now)), self.now)
        record = WitnessRecord(key, 5, ExitStatus(), self.now, elapsed_s)
        self.machine.heard(Heard(key, "witness", "end", record), self.now)

    def say(self, job: int, evidence: NotTaken | RoomTaken) -> None:
        self.machine.heard(Heard(self.key(job), "engine", "", evidence), self.now)


def begun(cpus: int = 1, elapsed_s: float = BEHIND_S / BEHIND_EACH, **fields: object) -> tuple[Behind, list[int]]:
    """A run whose first job took so long; and who is behind its second."""
    turn = Behind(cpus)
    turn.submit(members(**fields))
    turn.commit()
    first, behind = turn.given()
    assert (len(first), behind) == (cpus, [])
    turn.end(first[0], elapsed_s)
    turn.commit()
    started, behind = turn.given()
    assert len(started) == 1
    return turn, behind


def test_short_jobs_are_given_ahead() -> None:
    turn, behind = begun()
    assert behind == [4, 5, 6, 7]
    assert len(behind) == BEHIND_EACH
    turn.end(3)
    turn.say(4, RoomTaken(turn.now))
    turn.commit()
    assert turn.given() == ([], [8])


@pytest.mark.parametrize(("elapsed_s", "count"), [(0.0001, MOST_BEHIND), (BEHIND_S / 10, 10), (0.04, 1)])
def test_as_many_as_are_done_in_a_short_time(elapsed_s: float, count: int) -> None:
    assert len(begun(elapsed_s=elapsed_s)[1]) == count


def test_a_long_one_counts_for_a_while() -> None:
    """Else each of many that are not all short could have a long row of others behind it."""
    turn, behind = begun(elapsed_s=0.04)
    assert len(behind) == 1
    turn.end(3, 0.0001)
    turn.commit()
    assert len(turn.given()[1]) <= 1


@pytest.mark.parametrize("elapsed_s", [SHORT_S, 5.0])
def test_others_are_not(elapsed_s: float) -> None:
    assert begun(elapsed_s=elapsed_s)[1] == []


def test_not_while_others_wait_for_room() -> None:
    turn = Behind(1)
    turn.submit(members())
    turn.submit(members("other"))
    turn.commit()
    ((first,), behind) = turn.given()
    turn.end(first)
    turn.commit()
    started, behind = turn.given()
    assert (len(started), behind) == (1, [])


def test_room_is_taken_once() -> None:
    """The one that has begun has the room of the one before it: nobody else starts."""
    turn, behind = begun(cpus=2)
    assert len(behind) == 2 * BEHIND_EACH
    turn.end(3)
    turn.say(behind[0], RoomTaken(turn.now))
    turn.commit()
    assert turn.given()[0] == []
    turn.end(4)  # with none behind it: the next one starts by itself
    turn.commit()
    assert len(turn.given()[0]) == 1


def test_a_limit_of_jobs_at_once_holds() -> None:
    turn, behind = begun(max_parallel=1)
    assert behind == [4, 5, 6, 7]
    turn.end(3)
    turn.say(4, RoomTaken(turn.now))
    turn.commit()
    assert turn.given()[0] == []


def test_one_that_is_given_back_is_next() -> None:
    """And none is put behind others before one more has ended."""
    turn, behind = begun()
    for job in behind:
        turn.say(job, NotTaken(turn.now))
    turn.commit()
    assert turn.given() == ([], [])
    turn.end(3, 5.0)
    turn.commit()
    assert turn.given()[0] == [4]


def test_one_that_is_cancelled_never_runs_if_it_is_given_back() -> None:
    turn, _ = begun()
    run = turn.machine.runs[1]
    assert cancel.cancel(turn.machine, run, 2, "me", turn.now) == "cancelling"
    turn.commit()
    assert [(control.verb, control.key) for control in turn.machine.out.controls] == [("cancel", turn.key(4))]
    turn.say(4, NotTaken(turn.now))
    turn.commit()
    assert turn.state(4) is State.CANCELLED
    turn.end(3)
    turn.commit()
    started, behind = turn.given()
    assert 4 not in [*started, *behind]


def test_one_that_is_cancelled_and_had_begun_ends_as_it_ends() -> None:
    turn, _ = begun()
    run = turn.machine.runs[1]
    cancel.cancel(turn.machine, run, 2, "me", turn.now)
    turn.commit()
    turn.end(3)
    turn.say(4, RoomTaken(turn.now))
    turn.end(4)
    turn.commit()
    assert turn.state(4) is State.COMPLETED


def test_one_that_had_its_room_may_be_given_back_too() -> None:
    """Its witness died before it began."""
    turn, _ = begun()
    turn.end(3, 5.0)
    turn.say(4, RoomTaken(turn.now))
    turn.say(4, NotTaken(turn.now))
    turn.commit()
    assert turn.given() == ([4], [])


def test_nothing_is_claimed_of_one_that_has_not_begun() -> None:
    """It is not signalled, not begun again, and not held: whoever asks is told so, and nothing is passed on."""
    turn, _ = begun()
    run, machine = turn.machine.runs[1], turn.machine
    assert cancel.send_signal(machine, run, 2, 10, "me", turn.now).code is ResultCode.NOT_RUNNING
    assert requeue.requeue(machine, run, 2, "requeue", "me", turn.now).code is ResultCode.NOT_RUNNING
    assert hold.hold(machine, run, 2, "me", turn.now) == "about to begin: it can't be held any more"
    turn.commit()
    assert machine.out.controls == []
