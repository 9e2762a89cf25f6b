"""A job with steps at its time limit: TIMEOUT however script and steps race, and no step ends before the limit."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
from pathlib import Path

import pytest
from slurm_commands import Slurm

from aver.home import Home
from aver.model.reasons import TIME_LIMIT
from aver.model.states import State
from aver.store.read.reader import Reader
from aver.store.read.rows import JobRow, StepRow
from live_home import LiveHome, is_alive, processes_with, wait_for

LIMIT_S = 2
DEAF = "trap '' TERM; while :; do sleep 0.1; done"


@pytest.fixture
def live(aver_home: Path, tmp_path: Path) -> LiveHome:
    return LiveHome(aver_home, tmp_path)


def ended(slurm: Slurm, text: str, *options: str) -> tuple[JobRow, list[StepRow], str]:
    """Run a batch script under the limit to its verdict; return the job, its steps and its output."""
    job = slurm.submit("-o", "out", "-t", f"0:{LIMIT_S:02}", *options, stdin=f"#!/bin/bash\n{text}\n")
    row = slurm.until_settled(job)
    return row, steps_of(slurm.home, job), (slurm.folder / "out").read_text()


def steps_of(home: Path, job: int) -> list[StepRow]:
    reader = Reader.open(Home(home).database)
    assert reader is not None
    with reader:
        return reader.steps(job)


def of_step(mark: str) -> tuple[int, int] | None:
    """The task `sleep MARK` and its srun, once both run."""
    lines = {pid: Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") for pid in processes_with(mark)}
    tasks = [pid for pid, line in lines.items() if line[0] == b"sleep"]
    sruns = [pid for pid, line in lines.items() if any(word.endswith(b"srun") for word in line)]
    return (tasks[0], sruns[0]) if tasks and sruns else None


def until_step_runs(mark: str) -> tuple[int, int]:
    found = wait_for(lambda: of_step(mark), "the step runs")
    assert found is not None
    return found


def words(step: StepRow) -> str:
    return f"{step.state} {step.exit} {step.reason}"


@pytest.mark.parametrize(
    ("script", "exits"),
    [
        ("srun sleep 100; exit 0", {"0:15"}),
        ("sleep 0.7; srun sleep 100", {"0:15", "143:0"}),
        ("trap : TERM; srun sleep 100; echo srun=$?; exit 0", {"0:0"}),
        ("trap '' TERM; srun sleep 100; echo srun=$?; exit 0", {"0:0"}),
        ("trap '' TERM; srun sleep 100; exit $?", {"143:0"}),
    ],
)  # fmt: skip
def test_the_job_is_timeout_and_its_step_was_cancelled_by_that(slurm: Slurm, script: str, exits: set[str]) -> None:
    """Whatever the script makes of the end of its step; the step was not ended before the job's limit."""
    job, (step,), output = ended(slurm, script)
    assert (job.state, job.reason, str(job.exit) in exits) == (State.TIMEOUT, TIME_LIMIT, True), job
    assert words(step) == f"CANCELLED 0:15 {TIME_LIMIT}"
    assert step.ended_at is not None
    assert job.started_at is not None
    assert step.ended_at - job.started_at >= LIMIT_S - 0.001  # the store rounds
    assert "srun=143" in output or "echo" not in script


@pytest.mark.parametrize(
    ("task", "end"),
    [("trap 'exit 0' TERM; sleep 100 & wait", "0:0"), ("trap 'exit 3' TERM; sleep 100 & wait", "3:0"), (DEAF, "0:9")],
)
def test_a_step_keeps_its_own_exit(slurm: Slurm, monkeypatch: pytest.MonkeyPatch, task: str, end: str) -> None:
    """It was ended by its job's limit however it then ended, and the script's exit decides nothing."""
    (slurm.folder / "config.toml").write_text("kill_wait = 3\n")
    monkeypatch.setenv("AVER_CONFIG", str(slurm.folder / "config.toml"))
    job, (step,), _ = ended(slurm, f'trap "" TERM; srun bash -c "{task}"; exit 0')
    assert job.state is State.TIMEOUT
    assert words(step) == f"CANCELLED {end} {TIME_LIMIT}"


def test_several_steps_at_once_and_one_that_waits(slurm: Slurm) -> None:
    """All that run are ended; one that waits for CPUs never begins."""
    script = "srun -n1 --exact sleep 100 & srun -n1 --exact sleep 100 & sleep 0.7; srun -n2 sleep 100 & wait"
    job, steps, _ = ended(slurm, script, "-n", "2")
    assert job.state is State.TIMEOUT
    assert [words(step) for step in steps] == [f"CANCELLED 0:15 {TIME_LIMIT}"] * 2


def test_a_signal_of_srun_does_not_come_before_the_limit_that_sent_it(slurm: Slurm, live: LiveHome) -> None:
    """The coordinator hears of the limit and of what two sruns passed on of its TERM at once, while a step waits."""
    script = "srun -n1 --exact sleep 100 & srun -n1 --exact sleep 100 & sleep 0.5; srun -n2 sleep 100 & wait"
    job = slurm.submit("-o", "out", "-n", "2", "-t", f"0:{LIMIT_S:02}", stdin=f"#!/bin/bash\n{script}\n")
    slurm.until_file("out", "step creation temporarily disabled")
    key = slurm.attempts(job)[-1].key
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(_Wire(slurm.home)) for _ in range(2)]
        coordinator = live.coordinator()
        assert coordinator is not None
        os.kill(coordinator, signal.SIGSTOP)
        stack.callback(os.kill, coordinator, signal.SIGCONT)
        logs = slurm.home / "witness"
        wait_for(lambda: any(b'"ev":"limit"' in log.read_bytes() for log in logs.glob("*.log")), "the limit passed")
        for step, wire in enumerate(wires):
            wire.send({"op": "signal_step", "key": key, "step": step, "signal": int(signal.SIGTERM)})
    assert slurm.until_settled(job).state is State.TIMEOUT
    assert [words(step) for step in steps_of(slurm.home, job)] == [f"CANCELLED 0:15 {TIME_LIMIT}"] * 2


class _Wire:
    """A connection that the coordinator has accepted."""

    def __init__(self, home: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(os.fspath(home / "sock"))
        self.send({"op": "ping"})
        assert self._socket.recv(4096)

    def send(self, request: dict[str, object]) -> None:
        self._socket.sendall(json.dumps(request).encode() + b"\n")

    def __enter__(self) -> _Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


def test_a_steps_own_limit_is_the_steps(slurm: Slurm) -> None:
    """The step is TIMEOUT, the job goes on; a limit of its own beyond the job's changes nothing."""
    job = slurm.submit("-o", "out", "-t", "5", stdin="#!/bin/bash\nsrun -t 0:01 sleep 100; echo srun=$?; exit 0\n")
    row = slurm.until_settled(job)
    assert (row.state, [words(step) for step in steps_of(slurm.home, job)]) == (
        State.COMPLETED,
        [f"TIMEOUT 0:15 {TIME_LIMIT}"],
    )
    later, steps, _ = ended(slurm, "srun -t 0:50 sleep 100; exit 0")
    assert (later.state, [words(step) for step in steps]) == (State.TIMEOUT, [f"CANCELLED 0:15 {TIME_LIMIT}"])


def test_a_new_limit_counts_for_the_steps(slurm: Slurm) -> None:
    """A running job's limit is changed: its step is ended when that passes."""
    job = slurm.submit(
        "-o", "out", "-t", "10", stdin="#!/bin/bash\nsrun bash -c 'echo ready; exec sleep 100'; exit 0\n"
    )
    slurm.until_file("out", "ready")
    assert slurm("scontrol", "update", f"JobId={job}", "TimeLimit=0:01").status == 0
    assert slurm.until_settled(job).state is State.TIMEOUT
    assert [words(step) for step in steps_of(slurm.home, job)] == [f"CANCELLED 0:15 {TIME_LIMIT}"]


def test_suspended_time_does_not_count_for_steps(slurm: Slurm) -> None:
    """The job's clock stands still, and its step is not ended before the limit by that clock."""
    script = "trap '' TERM; srun bash -c 'echo ready; exec sleep 100'; exit 0"
    job = slurm.submit("-o", "out", "-t", f"0:{LIMIT_S:02}", stdin=f"#!/bin/bash\n{script}\n")
    slurm.until_file("out", "ready")
    assert slurm("scontrol", "suspend", str(job)).status == 0
    slurm.until_state(job, State.SUSPENDED)
    began = os.times().elapsed
    wait_for(lambda: os.times().elapsed - began > LIMIT_S + 1, "time has passed")
    assert slurm("scontrol", "resume", str(job)).status == 0
    row = slurm.until_settled(job)
    (step,) = steps_of(slurm.home, job)
    assert (row.state, words(step)) == (State.TIMEOUT, f"CANCELLED 0:15 {TIME_LIMIT}")
    assert step.ended_at is not None
    assert row.started_at is not None
    assert step.ended_at - row.started_at >= 2 * LIMIT_S


def test_with_no_coordinator_the_steps_end_too(slurm: Slurm, live: LiveHome) -> None:
    """Killed before the limit, it is not there when that passes: the task's witness ends it, and all is known later."""
    mark = "977.13"
    script = f"srun sleep {mark} & while :; do sleep 0.1; done"
    job = slurm.submit("-o", "out", "-t", f"0:{LIMIT_S:02}", stdin=f"#!/bin/bash\n{script}\n")
    task, srun = until_step_runs(mark)
    os.kill(srun, signal.SIGSTOP)
    live.kill_coordinator()
    os.kill(srun, signal.SIGKILL)  # it would start another one
    wait_for(lambda: not is_alive(task), "the task has ended")
    assert live.coordinator() is None
    live.connect_again()
    row = slurm.until_settled(job)
    assert row.state is State.TIMEOUT
    assert [words(step) for step in steps_of(slurm.home, job)] == [f"CANCELLED 0:15 {TIME_LIMIT}"]


def test_a_coordinator_that_came_back_ends_the_steps_at_the_limit(slurm: Slurm, live: LiveHome) -> None:
    """The next one has not begun the step: the verdict is the same."""
    mark = "977.14"
    job = slurm.submit("-o", "out", "-t", f"0:{LIMIT_S:02}", stdin=f"#!/bin/bash\nsrun sleep {mark}; exit 0\n")
    until_step_runs(mark)
    live.kill_coordinator()
    live.connect_again()
    row = slurm.until_settled(job)
    assert row.state is State.TIMEOUT
    assert [words(step) for step in steps_of(slurm.home, job)] == [f"CANCELLED 0:15 {TIME_LIMIT}"]


def test_a_deadline_bounds_a_running_job(slurm: Slurm) -> None:
    """Its time limit ends then, and `scontrol update` moves it no further."""
    job = slurm.submit("--deadline=now+8", "-o", "job.out", "--wrap", "echo begun; sleep 60")
    slurm.until_file("job.out", "begun")
    assert slurm("squeue", "-ho", "%l").out.strip() in [f"0:0{seconds}" for seconds in range(1, 9)]
    assert slurm("scontrol", "update", f"JobId={job}", "TimeLimit=10").status == 0
    assert slurm.until_settled(job).state is State.TIMEOUT
    assert "TIMEOUT" in slurm("sacct", "-nPXo", "state", "-j", str(job)).out


def test_a_least_time_beyond_the_deadline_is_refused(slurm: Slurm) -> None:
    said = slurm("sbatch", "--deadline=now+60", "--time-min=10", "--wrap", "true")
    why = "Invalid time-min specification (exceeds job's time or other limits)"
    assert (said.status, said.err) == (1, f"sbatch: error: Batch job submission failed: {why}\n")


def test_a_memory_limit_below_slurms_least(slurm: Slurm) -> None:
    """As with MinRAMSpace, --mem=1 is enforced as 30 MB, so that a shell can run; shown is what was asked for."""
    eats = "x=$(head -c 6000000 /dev/zero | tr '\\0' x); echo ${#x} $SLURM_MEM_PER_NODE"
    said = slurm("srun", "--mem=1", "sh", "-c", eats)
    assert (said.status, said.out) == (0, "6000000 1\n"), said.err
