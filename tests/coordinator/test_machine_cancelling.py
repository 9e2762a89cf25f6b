"""A cancelled run with very many jobs: these end in parts, and none of them begins meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from test_machine import TRUE, Turn

from aver.coordinator.requests import cancel, hold, retry
from aver.coordinator.state import cancellation
from aver.coordinator.state.run import LiveRun
from aver.model.events import JobMoved, JobsEnded, RunMoved
from aver.model.exit import ExitStatus
from aver.model.job import Condition, JobSpec, Matrix, Need, Needs
from aver.model.slurm_options import SlurmOptions
from aver.model.states import State

COUNT = 300


@pytest.fixture(autouse=True)
def parts() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cancellation, "AT_ONCE", 100)
        yield


def members(name: str = "m", **fields: object) -> JobSpec:
    matrix = Matrix((("i", tuple(str(at) for at in range(COUNT))),))
    return JobSpec(name, TRUE, matrix=matrix, **fields)  # type: ignore[arg-type]


def settled(run: LiveRun) -> int:
    return sum(run.settled_state(index) is not None for index in range(run.job_count))


def test_the_request_comes_first_and_the_jobs_in_parts() -> None:
    """It is acknowledged before all are ended; nothing is planned or started, whatever happens; then all are."""
    turn = Turn(cpus=2)
    run = turn.submit(members(), JobSpec("last", TRUE, needs=Needs((Need("m"),)), condition=Condition.ALWAYS))
    turn.commit()
    turn.started()
    turn.hear_start(2)
    assert cancel.cancel_run(turn.machine, run, "me", turn.now, at_once=False) == "cancelling"
    assert settled(run) < COUNT - 2
    assert len(turn.machine.packer) == 0
    hold.hold(turn.machine, run, COUNT - 1, "me", turn.now)
    hold.release(turn.machine, run, COUNT - 1, "me", turn.now)
    turn.machine.tick(turn.now + 100)
    turn.commit()
    assert turn.started() == []
    assert sorted(turn.machine.by_job) == [2, 3]
    while turn.machine.live.cancelling:
        before = settled(run)
        turn.machine.go_on_cancelling(turn.now, most=100)
        events = turn.commit()
        assert settled(run) - before == sum(one.count for one in events if isinstance(one, JobsEnded))
    assert settled(run) == COUNT - 2
    turn.hear_end(2)
    turn.hear_start(3)
    turn.hear_end(3)
    turn.commit()
    assert turn.started() == ["last"]
    assert {run.states[index] for index in range(2, COUNT)} == {State.CANCELLED}


def test_a_retry_meanwhile_begins_with_what_was_cancelled() -> None:
    """The others are CANCELLED first: nothing of the cancellation is forgotten, and one job runs again."""
    turn = Turn(cpus=1)
    run = turn.submit(members(), JobSpec("other", TRUE))
    turn.commit()
    turn.run_to_end(2)
    turn.commit()
    cancel.cancel_run(turn.machine, run, "me", turn.now, at_once=True)
    turn.commit()
    turn.started()
    assert run.settled_state(COUNT) is None
    retry.retry(turn.machine, run, [0], "me", turn.now)
    assert settled(run) == COUNT - 1  # but for the one that runs again, and the one that runs
    turn.hear_end(3)
    turn.commit()
    assert turn.started() == ["m[i=0]"]


def test_all_below_a_failure_are_skipped_with_one_event() -> None:
    turn = Turn(cpus=1)
    run = turn.submit(JobSpec("a", TRUE), members(needs=Needs((Need("a"),))))
    turn.commit()
    turn.hear_start(2)
    turn.hear_end(2, ExitStatus(1))
    events = turn.commit()
    (ended,) = [event for event in events if isinstance(event, JobsEnded)]
    assert (ended.first, ended.last, ended.verdict.state) == (3, COUNT + 2, State.SKIPPED)
    assert [event.state for event in events if isinstance(event, RunMoved)][-1] is State.FAILED
    assert set(run.states[1:]) == {State.SKIPPED}


def test_jobs_of_slurm_keep_the_reason_with_which_they_waited() -> None:
    """Held members keep JobHeldUser, as in Slurm, and are one event with that reason."""
    turn = Turn(cpus=1)
    turn.submit(members(slurm=SlurmOptions()))
    turn.commit()
    run = turn.machine.runs[1]
    for index in range(150, 250):
        hold.hold(turn.machine, run, index, "me", turn.now)
    turn.commit()
    cancel.cancel_run(turn.machine, run, "me", turn.now, at_once=True)
    turn.machine.go_on_cancelling(turn.now, most=None)
    turn.hear_start(2)
    turn.hear_end(2)
    events = turn.commit()
    reasons = {}
    for event in events:
        if isinstance(event, JobsEnded):
            reasons |= dict.fromkeys(range(event.first, event.last + 1), event.verdict.reason)
        elif isinstance(event, JobMoved) and event.state.is_settled:
            reasons[event.job] = event.reason
    assert {job for job, reason in reasons.items() if reason == "JobHeldUser"} == set(range(152, 252))
    assert len(reasons) == COUNT - 1
