"""Packing: never more than there is, fair between runs, nothing waits for ever."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from aver.model.job import Request
from aver.plan.packing import NOTHING, Cap, LaneKey, Packer, Room, room_of

MACHINE = Room(4, 1, 8 << 30)


def lane(owner: int = 0, cpus: int = 1, gpus: int = 0, mem: int = 0, caps: tuple[Cap, ...] = ()) -> LaneKey:
    return LaneKey(owner, Room(cpus, gpus, mem), caps)


def start_all(packer: Packer) -> list[int]:
    started = []
    while (job := packer.start_next()) is not None:
        started.append(job)
    return started


def test_first_come_first_served_within_a_lane() -> None:
    """Jobs that ask for the same start in the order in which they came, as many as fit."""
    packer = Packer(MACHINE)
    for job in range(6):
        packer.add(job, lane())
    assert start_all(packer) == [0, 1, 2, 3]
    packer.finish(1)
    assert start_all(packer) == [4]


def test_higher_priority_goes_first() -> None:
    """A later job of a higher priority starts before the others of its lane."""
    packer = Packer(MACHINE)
    packer.add(1, lane(cpus=4))
    packer.add(2, lane(cpus=4), priority=10)
    assert start_all(packer) == [2]


def test_a_higher_priority_that_comes_later_is_not_kept_out() -> None:
    """Nobody is reserved for ahead of a higher priority, neither in the same lane nor in another."""
    packer = Packer(MACHINE)
    packer.add(0, lane(cpus=4))
    assert start_all(packer) == [0]
    packer.add(1, lane(cpus=4))
    assert start_all(packer) == []  # reserved for
    packer.add(2, lane(cpus=4), priority=10)
    packer.add(3, lane(cpus=3), priority=5)
    packer.finish(0)
    assert start_all(packer) == [2]
    packer.finish(2)
    assert start_all(packer) == [3]
    packer.finish(3)
    assert start_all(packer) == [1]


def test_a_big_job_is_not_starved() -> None:
    """Small jobs that come later do not keep a job out that needs the whole machine."""
    packer = Packer(MACHINE)
    packer.add(0, lane())
    assert start_all(packer) == [0]
    packer.add(1, lane(cpus=4))
    for job in range(2, 10):
        packer.add(job, lane())
    assert start_all(packer) == []  # the first that does not fit is reserved for, and it needs all
    packer.finish(0)
    assert start_all(packer) == [1]


def test_small_jobs_run_beside_a_reserved_one() -> None:
    """What leaves the reserved job's room free may start past it."""
    packer = Packer(MACHINE)
    packer.add(0, lane(gpus=1))
    assert start_all(packer) == [0]
    packer.add(1, lane(cpus=2, gpus=1))
    for job in range(2, 8):
        packer.add(job, lane())
    assert start_all(packer) == [2, 3]  # two of four cpus are kept for job 1


def test_runs_take_turns() -> None:
    """A run with thousands of jobs does not keep another run's few out."""
    packer = Packer(MACHINE)
    for job in range(100):
        packer.add(job, lane(owner=1))
    for job in range(200, 203):
        packer.add(job, lane(owner=2))
    first = start_all(packer)
    assert Counter(job >= 200 for job in first) == {False: 2, True: 2}


def test_caps_are_kept() -> None:
    """No more of those that share a cap than it allows, and the head says why it waits."""
    packer = Packer(MACHINE)
    cap = Cap(("run", 7, 0), 2)
    for job in range(5):
        packer.add(job, lane(caps=(cap,)))
    assert start_all(packer) == [0, 1]
    assert list(packer.heads()) == [(2, "JobArrayTaskLimit")]
    packer.finish(0)
    assert start_all(packer) == [2]


def test_a_removed_job_never_starts() -> None:
    """Cancelled or held jobs leave the queue; added again they wait at the end."""
    packer = Packer(MACHINE)
    for job in range(3):
        packer.add(job, lane(cpus=4))
    packer.remove(0)
    packer.add(0, lane(cpus=4))
    assert [packer.start_next()] == [1]
    packer.finish(1)
    assert [packer.start_next()] == [2]
    packer.finish(2)
    assert [packer.start_next()] == [0]


def test_a_job_for_a_larger_machine_keeps_nobody_out() -> None:
    """It came when there was more, and waits until there is again; the others go on."""
    packer = Packer(MACHINE)
    packer.add(1, lane(cpus=5), priority=3)
    packer.add(2, lane())
    assert start_all(packer) == [2]
    assert packer.is_waiting(1)


def test_removing_the_reserved_job_frees_its_room() -> None:
    """When the job that is reserved for is cancelled, the others go on."""
    packer = Packer(MACHINE)
    packer.add(0, lane())
    assert start_all(packer) == [0]
    packer.add(1, lane(cpus=4))
    packer.add(2, lane())
    assert start_all(packer) == []
    packer.remove(1)
    assert start_all(packer) == [2]


def test_memory_that_was_not_asked_for_is_not_counted() -> None:
    """No memory limit takes none of the memory."""
    assert room_of(Request(cpus=2)) == Room(2000, 0, 0)


CAP = Cap(("run", 1, 0), 2)
ROOMS = ((1, 0, 0), (4, 0, 0), (4, 0, 0), (2, 1, 0), (3, 0, 5), (1, 0, 8))  # cpus, gpus, GiB: few, so that lanes fill
actions = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 1), st.sampled_from(ROOMS), st.sampled_from([0, 0, 5]), st.booleans()),
        st.tuples(st.just("ahead"), st.integers(0, 1), st.sampled_from(ROOMS), st.just(0), st.booleans()),
        st.tuples(st.just("finish"), st.integers(0, 50)),
        st.tuples(st.just("remove"), st.integers(0, 50)),
        st.tuples(st.just("start")),
    ),
    max_size=120,
)


@settings(max_examples=600)
@given(actions)
def test_never_more_than_there_is_and_all_start_in_the_end(steps: list[tuple[object, ...]]) -> None:
    """Whatever comes and goes: what runs fits, each job starts at most once, and none is left when room comes back."""
    packer = Packer(MACHINE)
    rooms: dict[int, Room] = {}
    waiting: set[int] = set()
    running: set[int] = set()
    capped: set[int] = set()
    number = 0
    for step in steps:
        match step:
            case (how, int(owner), (int(cpus), int(gpus), int(gib)), int(priority), bool(is_capped)):
                key = lane(owner, cpus, gpus, gib << 30, (CAP,) if is_capped else ())
                rooms[number] = key.room
                capped |= {number} if is_capped else set()
                (packer.add if how == "add" else packer.add_ahead)(number, key, priority)
                waiting.add(number)
                number += 1
            case ("finish", int(which)) if running:
                job = sorted(running)[which % len(running)]
                packer.finish(job)
                running.discard(job)
            case ("remove", int(which)) if waiting:
                job = sorted(waiting)[which % len(waiting)]
                packer.remove(job)
                waiting.discard(job)
            case ("start",):
                for job in start_all(packer):
                    assert job in waiting
                    waiting.discard(job)
                    running.add(job)
        assert len(running & capped) <= CAP.most
        used = sum((rooms[job] for job in running), NOTHING)
        assert MACHINE.holds(used)
        assert packer.free == MACHINE - used
    for _ in range(2 * number + 1):
        for job in start_all(packer):
            waiting.discard(job)
            running.add(job)
        if running:
            job = min(running)
            packer.finish(job)
            running.discard(job)
    assert not waiting
    assert len(packer) == 0
