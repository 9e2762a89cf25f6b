"""A job that is warned before its limit, and continued: whenever the coordinator dies, once."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from campaign import RECORD, crash_at

from aver.errors import AverError
from aver.model.events import Observed
from aver.model.exit import ExitStatus
from aver.model.job import CheckpointRule, JobSpec, Need, Needs, Request, Scope, WarningSignal
from aver.model.states import State
from live_home import LiveHome, is_alive, shell_job, wait_for

LIMIT_S = 60
WARNING = WarningSignal(15, LIMIT_S - 1, Scope.PROGRAM)
BEGIN = f'{RECORD}echo "$AVER_ATTEMPT" >> numbers; n=$AVER_ATTEMPT; '
LAST = '[ "$n" = 1 ] || exit 0; '  # it has less to do
TAKE = "trap 'warned=1' TERM; touch began; while [ ! \"$warned\" ]; do sleep 0.02; done; touch warned; "
GO = "while [ ! -e go ]; do sleep 0.02; done; exit 0"
CONTINUED = [(1, State.CHECKPOINTED, ExitStatus()), (2, State.COMPLETED, ExitStatus())]


def train(text: str) -> JobSpec:
    rule = CheckpointRule()
    return shell_job("train", BEGIN + text, request=Request(time_s=LIMIT_S), warning=WARNING, checkpoint=rule)


def submit(live: LiveHome, text: str) -> int:
    """Submit the job, and one that needs it."""
    evaluate = f"{RECORD}cp numbers evaluated"
    return live.submit(train(text), shell_job("eval", evaluate, needs=Needs((Need("train"),))))


def wait_for_file(live: LiveHome, name: str) -> Path:
    path = live.folder / name
    wait_for(path.exists, name)
    return path


def assert_ends(live: LiveHome, run: int, expected: list[tuple[int, State, ExitStatus]]) -> None:
    """Each attempt ran once, in order; the job had one verdict, that of the last, and nobody went before it."""
    live.connect_again()
    live.settle([run])
    with live.reader() as reader:
        job, after = reader.jobs(run=run)
        attempts = [(one.attempt, one.state, one.exit) for one in reader.attempts(job.id)]
        events = [stored.event for stored in reader.events(job=job.id)]
    assert attempts == expected
    numbers = [str(number) for number, _, _ in expected]
    assert (live.folder / "numbers").read_text().split() == numbers
    assert (live.folder / "evaluated").read_text().split() == numbers
    assert (job.state, job.attempt, after.state, after.attempt) == (State.COMPLETED, len(expected), State.COMPLETED, 1)
    assert sorted(live.keys_run().values()) == [1] * (len(expected) + 1)
    verdicts = [one for one in events if isinstance(one, Observed) and one.verdict is not None]
    shown = [one.state if one.job_state is None else one.job_state for one in verdicts]
    assert shown == [State.PENDING] * (len(expected) - 1) + [State.COMPLETED]
    live.assert_store_is_whole()
    live.assert_nothing_left()


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("point", ["heard", "before-commit", "committed", "acted", "told"])
def test_death_between_the_warning_and_the_next_attempt(live: LiveHome, point: str, count: int) -> None:
    """It is CHECKPOINTED and continued once, wherever the coordinator dies of its end."""
    run = submit(live, LAST + TAKE + GO)
    wait_for_file(live, "warned")
    live.kill_coordinator()
    with crash_at(f"{point}:{count}"), contextlib.suppress(AverError), live.client() as client:
        client.call("ping")
    pid = live.coordinator()
    (live.folder / "go").touch()
    wait_for(lambda: pid is None or not is_alive(pid), f"the death at {point}:{count}")
    assert_ends(live, run, CONTINUED)


@pytest.mark.parametrize("is_warned", [False, True])
def test_nobody_is_there_when_it_ends(live: LiveHome, is_warned: bool) -> None:
    """Its witness warns it and sees its end, whether the coordinator died before the warning or after it."""
    run = submit(live, LAST + TAKE + GO)
    wait_for_file(live, "warned" if is_warned else "began")
    live.kill_coordinator()
    wait_for_file(live, "warned")
    (live.folder / "go").touch()
    wait_for(lambda: not live.processes(), "the end of the first attempt")
    assert_ends(live, run, CONTINUED)


@pytest.mark.parametrize("is_back", [False, True])
def test_finished_work_that_took_no_warning(live: LiveHome, is_back: bool) -> None:
    """The program ignores the warning, whoever is there when it comes: it is COMPLETED, and does not run again."""
    run = submit(live, "trap '' TERM; touch began; sleep 2")
    wait_for_file(live, "began")
    live.kill_coordinator()
    if is_back:
        live.connect_again()
    wait_for(lambda: not live.processes(), "the end of the attempt")
    live.kill_coordinator()
    assert_ends(live, run, [(1, State.COMPLETED, ExitStatus())])
    with live.reader() as reader:
        said = [one.event.said for one in reader.events(job=run + 1) if isinstance(one.event, Observed)]
    assert '"act":"warn"' in said[-1]


def test_the_warning_that_a_task_took_outlives_the_coordinator(live: LiveHome) -> None:
    """The task has ended and that is durable; the script, which ignores the warning, ends after the restart."""
    task = "trap 'exit 0' TERM; while :; do sleep 0.02; done"
    (live.folder / "task").write_text(task)
    run = submit(live, LAST + f'trap "" TERM; "$AVER_HOME/bin/srun" -n1 sh task; touch warned; {GO}')
    wait_for_file(live, "warned")
    live.kill_coordinator()
    (live.folder / "go").touch()
    assert_ends(live, run, CONTINUED)
