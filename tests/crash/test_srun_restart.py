"""An srun whose coordinator dies, and whose next ones die too: it waits, and ends as its step."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from aver.model.job import Request
from aver.model.states import State
from live_home import LiveHome, shell_job, wait_for

DYING = "AVER_CRASH_AT=attached"  # every coordinator that this srun starts
TASK = "touch began.$SLURM_PROCID; while [ ! -e go.$SLURM_PROCID ]; do sleep 0.05; done; exit 5"


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
