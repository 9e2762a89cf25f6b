"""An srun whose coordinator dies, and whose next ones die too: it waits, and ends as its step."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from aver.model.job import Request
from aver.model.states import State
from live_home import LiveHome, shell_job, wait_for

DYING = "AVER_CRASH_AT=attached"  # every coordinator that this srun starts
TASK = "touch began.$SLURM_PROCID; while [ ! -e go.$SLURM_PROCID ]; do sleep 0.05; done; exit 5"
SLACK_S = 0.1  # of the clocks of two witnesses


def in_a_step(live: LiveHome, dying_at: str, options: str, task: str = TASK) -> int:
    """Submit a job with a step of two tasks, whose srun starts coordinators that die at this point."""
    (live.folder / "task").write_text(f"echo >> starts.$SLURM_PROCID; {task}")
    text = f'AVER_CRASH_AT={dying_at} "$AVER_HOME/bin/srun" -n2 {options} sh task; echo $? > srun; exit 0'
    settings = {"AVER_CONFIG": os.environ["AVER_CONFIG"]}
    run = live.submit(shell_job("job", text, request=Request(cpus=2)), env=settings)
    wait_for_tasks(live, 2)
    return run


def assert_step(live: LiveHome, run: int, code: int, step_end: tuple[State, str], first_failed: int | None) -> None:
    """How srun and its step ended; task 0 was ended because of the other, and the job ran once."""
    live.settle([run])
    assert (live.folder / "srun").read_text() == f"{code}\n"
    assert (live.job(run).state, live.job(run).attempt) == (State.COMPLETED, 1)
    with live.reader() as reader:
        (step,) = reader.steps(run)
        assert [task.because for task in reader.tasks(run, 1, 0)] == [True, False]
    assert (step.state, str(step.exit), step.srun_code, step.first_failed) == (*step_end, code, first_failed)
    assert [(live.folder / f"starts.{task}").read_text() for task in range(2)] == ["\n"] * 2
    live.assert_store_is_whole()
    live.assert_nothing_left()


def wait_for_tasks(live: LiveHome, count: int) -> None:
    wait_for(lambda: len([*live.folder.glob("began.*")]) == count, f"{count} tasks have begun")


def wait_for_tries(live: LiveHome) -> None:
    """Until a coordinator that srun started has died."""
    lock = live.home.lock.read_bytes()
    wait_for(lambda: live.home.lock.read_bytes() not in (lock, b""), "the next coordinator has begun")
    wait_for(lambda: live.coordinator() is None, "and has died")


def test_coordinators_that_die_while_they_begin(live: LiveHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not being able to start one now is no end of the step, whose tasks run on."""
    (live.folder / "task").write_text(TASK)
    text = f'{DYING} "$AVER_HOME/bin/srun" -n2 -K sh task; echo $? > srun; exit 0'
    settings = {"AVER_CONFIG": os.environ["AVER_CONFIG"]}
    run = live.submit(shell_job("job", text, request=Request(cpus=2)), env=settings)
    wait_for_tasks(live, 2)
    live.kill_coordinator()
    wait_for_tries(live)
    (live.folder / "go.1").touch()
    wait_for_tries(live)
    live.connect_again()
    live.settle([run])
    assert (live.folder / "srun").read_text() == "143\n"
    assert live.job(run).state is State.COMPLETED
    with live.reader() as reader:
        (step,) = reader.steps(run)
    assert (step.state, str(step.exit), step.srun_code) == (State.FAILED, "5:0", 143)


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM])
def test_a_signal_while_there_is_no_coordinator(live: LiveHome, number: signal.Signals) -> None:
    """Srun passes it on when the next one is there, and does not end of it."""
    name = number.name.removeprefix("SIG")
    (live.folder / "task").write_text(f"trap 'echo {name} > got; exit 7' {name}; {TASK}")
    text = f'{DYING} "$AVER_HOME/bin/srun" -n1 sh task & echo $! > pid.new; mv pid.new pid; wait $!; echo $? > srun'
    settings = {"AVER_CONFIG": os.environ["AVER_CONFIG"]}
    run = live.submit(shell_job("job", text, request=Request(cpus=2)), env=settings)
    wait_for_tasks(live, 1)
    live.kill_coordinator()
    wait_for_tries(live)
    pid = int((live.folder / "pid").read_text())
    for _ in range(3):
        os.kill(pid, number)
        wait_for_tries(live)
    assert Path(f"/proc/{pid}").exists()
    live.connect_again()
    live.settle([run])
    assert (live.folder / "got").read_text() == f"{name}\n"
    assert (live.folder / "srun").read_text() == "7\n"


@pytest.mark.parametrize(("options", "code"), [("-K", 143), ("-W1", 137)])
@pytest.mark.parametrize("point", ["heard", "before-commit", "committed", "acted", "told"])
def test_a_step_whose_first_task_fails(live: LiveHome, options: str, code: int, point: str) -> None:
    """Wherever coordinators die of its end: the other task is ended, and the failing one is named with its code."""
    run = in_a_step(live, point, options)
    live.kill_coordinator()
    (live.folder / "go.1").touch()
    wait_for_tries(live)
    live.connect_again()
    assert_step(live, run, code, (State.FAILED, "5:0"), 1)


@pytest.mark.parametrize("was_heard", [False, True])
def test_the_time_of_wait_counts_from_the_first_end(live: LiveHome, was_heard: bool) -> None:
    """While coordinators die as they begin it passes too, whether one has heard of that end or not."""
    wait_s, away_s = 5, 2.5
    run = in_a_step(live, "attached", f"-W{wait_s}", TASK.replace("exit 5", "exit 0"))
    if was_heard:
        (live.folder / "go.1").touch()
        wait_for(lambda: _ends(live, run), "the end of the first task is durable")
    live.kill_coordinator()
    (live.folder / "go.1").touch()
    time.sleep(away_s)
    live.connect_again()
    assert_step(live, run, 137, (State.CANCELLED, "0:9"), None)
    last, first = sorted(_ends(live, run).values(), reverse=True)
    assert wait_s - SLACK_S <= last - first < wait_s + away_s / 2


def _ends(live: LiveHome, run: int) -> dict[int, float]:
    """When the tasks ended that have."""
    with live.reader() as reader:
        return {one.task: one.ended_at for one in reader.tasks(run, 1, 0) if one.ended_at is not None}
