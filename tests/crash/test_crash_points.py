"""Kill the coordinator at each named point: between the intent, the act, the record and the word."""

from __future__ import annotations

import os

import pytest
from campaign import RECORD, crash_at

from aver.crashpoint import POINTS
from aver.errors import AverError, UnreachableError
from aver.model.exit import ExitStatus
from aver.model.job import JobSpec, Need, Needs, NotifyOn, NotifyRule, RetryRule
from aver.model.states import State
from live_home import LiveHome, shell_job, wait_for

GENERATED = '{"grown": {"run": "echo \\"$AVER_KEY\\" >> \\"$RAN\\"; exit 2"}}'
AFTER_START = ("attached", "recovered")
TOLD = (NotifyRule(NotifyOn.EVERY, ("/bin/true",)),)


def _jobs() -> list[JobSpec]:
    return [
        shell_job("first", f"{RECORD}echo '{GENERATED}' > grown.json", generates="grown.json"),
        shell_job("again", RECORD + '[ "$AVER_ATTEMPT" = 2 ]', retry=RetryRule(max=1, codes=(1,))),
        shell_job("second", RECORD + "sleep 0.1; exit 3", needs=Needs((Need("first"),))),
        shell_job("never", RECORD, needs=Needs((Need("second"),))),
        shell_job("long", RECORD + "sleep 0.5"),
    ]


def _expect_death(live: LiveHome, point: str) -> bool:
    """Submit to a coordinator that dies at the point; return whether the submission was acknowledged."""
    with crash_at(point):
        if point.partition(":")[0] in AFTER_START:
            with pytest.raises(AverError, match="could not start"):
                live.submit(*_jobs(), notify=TOLD)
            return False
        try:
            live.submit(*_jobs(), notify=TOLD)
            is_acknowledged = True
        except UnreachableError:
            is_acknowledged = False
    pid = live.coordinator()
    wait_for(lambda: pid is None or live.coordinator() != pid, f"the death at {point}")
    assert "leaving" not in live.home.log.read_text(), f"{point} was never reached"
    return is_acknowledged


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("point", POINTS)
def test_death_at_a_named_point_changes_no_outcome(live: LiveHome, point: str, count: int) -> None:
    """Whatever was acknowledged is there and ends as it must; what was not is there wholly or not at all."""
    if count > 1 and (point in (*AFTER_START, "submit-files-written") or point.startswith("generated-")):
        pytest.skip("reached once")
    is_acknowledged = _expect_death(live, f"{point}:{count}")
    live.connect_again()
    with live.reader() as reader:
        runs = [run.id for run in reader.runs()]
    assert len(runs) <= 1
    assert runs or not is_acknowledged, "an acknowledged run is lost"
    if not runs:
        runs = [live.submit(*_jobs())]
    live.settle(runs)
    with live.reader() as reader:
        jobs = {job.name: job for job in reader.jobs(run=runs[0])}
        attempts = [attempt for job in jobs.values() for attempt in reader.attempts(job.id)]
        run = reader.run(runs[0])
    assert run is not None
    assert run.state is State.FAILED
    assert {name: (job.state, job.exit, job.attempt) for name, job in jobs.items()} == {
        "first": (State.COMPLETED, ExitStatus(), 1),
        "again": (State.COMPLETED, ExitStatus(), 2),
        "second": (State.FAILED, ExitStatus(3), 1),
        "never": (State.SKIPPED, None, 0),
        "long": (State.COMPLETED, ExitStatus(), 1),
        "grown": (State.FAILED, ExitStatus(2), 1),
    }
    assert live.keys_run() == {attempt.key: 1 for attempt in attempts}
    live.assert_store_is_whole()
    live.assert_nothing_left()


def test_files_of_a_submission_that_never_was_are_removed(live: LiveHome) -> None:
    """The environment of a run that was not acknowledged does not stay when nobody submits again."""
    with crash_at("submit-files-written"), pytest.raises(AverError):
        live.submit(*_jobs(), env={"SECRET": "x"})
    assert os.listdir(live.home.path / "env") == ["1.env"]
    live.connect_again()
    live.wait_until_gone()
    assert os.listdir(live.home.path / "env") == []
    live.settle([live.submit(*_jobs())])
    live.assert_nothing_left()
