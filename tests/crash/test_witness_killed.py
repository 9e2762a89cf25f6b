"""Kill witnesses: nobody knows how the job ended, that is said, and nothing of the job is left."""

from __future__ import annotations

import os
import signal
import socket

import pytest

from aver.core import reasons
from aver.core.exit import ExitStatus
from aver.core.states import State
from live_home import LiveHome, is_alive, processes_with, wait_for

RECORD = 'echo "$AVER_KEY" >> "$RAN"; '

# What a job may do to get away. MARK is an argument that can be found again whatever the environment says.
SHAPES = {
    "plain": "sleep MARK",
    "exec": "exec sleep MARK",
    "background": "sleep MARK & sleep MARK & wait",
    "setsid": "setsid sleep MARK & setsid setsid sleep MARK & wait",
    "double fork": "(setsid sh -c 'sleep MARK & sleep MARK' &) ; sleep MARK",
    "empty environment": "env -i /bin/sleep MARK",
    "exec with empty environment": "exec env -i /bin/sleep MARK",
    "ignores TERM": "trap '' TERM HUP INT; sleep MARK; sleep MARK",
}


def _mark(live: LiveHome) -> str:
    """A number of seconds that no other test sleeps."""
    return f"{600 + os.getpid() % 1000}.{abs(hash(live.home.path)) % 10**9:09d}"


def _start(live: LiveHome, text: str) -> tuple[int, str]:
    mark = _mark(live)
    number = live.run_text(RECORD + text.replace("MARK", mark))
    live.wait_running(number)
    wanted = text.count("MARK") if "ignores" not in text and "trap" not in text else 1
    wait_for(lambda: len(processes_with(mark)) >= wanted, "the job's processes")
    return number, mark


def _assert_unknown(live: LiveHome, number: int, witness: int) -> None:
    job = live.job(number)
    assert job.state is State.UNVERIFIED, job
    assert job.exit is None
    assert job.verified is False
    assert job.reason == reasons.WITNESS_VANISHED
    assert f"pid {witness}" in job.detail
    assert max(live.keys_run().values()) == 1


@pytest.mark.parametrize("shape", SHAPES)
def test_job_of_a_killed_witness_is_unverified_and_ended(live: LiveHome, shape: str) -> None:
    """With the coordinator there: UNVERIFIED, naming the witness; no process of the job lives; others go on."""
    other = live.run_text("sleep 1; exit 5")
    number, mark = _start(live, SHAPES[shape])
    witness = live.witness_of(number)
    os.kill(witness, signal.SIGKILL)
    live.settle([number])
    _assert_unknown(live, number, witness)
    wait_for(lambda: not processes_with(mark), "the end of the job's processes", 10.0)
    live.settle([other])
    assert live.job(other).exit == ExitStatus(5)
    live.assert_store_is_whole()
    live.assert_nothing_left()


@pytest.mark.parametrize("shape", SHAPES)
def test_witness_killed_while_nobody_is_home(live: LiveHome, shape: str) -> None:
    """Coordinator killed, then the witness: the next coordinator says so and ends what the job left."""
    number, mark = _start(live, SHAPES[shape])
    witness = live.witness_of(number)
    live.kill_coordinator()
    os.kill(witness, signal.SIGKILL)
    live.settle([number])
    _assert_unknown(live, number, witness)
    wait_for(lambda: not processes_with(mark), "the end of the job's processes", 10.0)
    live.assert_store_is_whole()
    live.assert_nothing_left()


@pytest.mark.parametrize("shape", SHAPES)
def test_witness_of_an_earlier_coordinator_killed(live: LiveHome, shape: str) -> None:
    """The witness is no child of this coordinator: its orphans go elsewhere, and are found all the same."""
    number, mark = _start(live, SHAPES[shape])
    witness = live.witness_of(number)
    live.kill_coordinator()
    live.connect_again()
    os.kill(witness, signal.SIGKILL)
    live.settle([number])
    _assert_unknown(live, number, witness)
    wait_for(lambda: not processes_with(mark), "the end of the job's processes", 10.0)
    live.assert_nothing_left()


def test_stopped_witness_goes_on_when_continued(live: LiveHome) -> None:
    """SIGSTOP of a witness delays the verdict and changes nothing else, also across a coordinator's death."""
    number = live.run_text(RECORD + "sleep 0.2; exit 3")
    live.wait_running(number)
    witness = live.witness_of(number)
    os.kill(witness, signal.SIGSTOP)
    try:
        live.kill_coordinator()
        live.connect_again()
        other = live.run_text(RECORD + "exit 0")
        live.settle([other])
        assert live.job(number).state is State.RUNNING
    finally:
        os.kill(witness, signal.SIGCONT)
    live.settle([number])
    assert live.job(number).exit == ExitStatus(3)
    assert set(live.keys_run().values()) == {1}
    live.assert_nothing_left()


def test_many_coordinators_may_die_while_a_witness_is_stopped(live: LiveHome) -> None:
    """Each leaves a connection that the witness has not taken yet; the next one can still connect."""
    number = live.run_text(RECORD + "sleep 0.2; exit 3")
    live.wait_running(number)
    witness = live.witness_of(number)
    os.kill(witness, signal.SIGSTOP)
    try:
        folder = os.open(live.home.witnesses, os.O_RDONLY)
        for _ in range(20):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.setblocking(False)
                connection.connect(f"/proc/self/fd/{folder}/1.sock")
        os.close(folder)
        live.kill_coordinator()
        live.connect_again()
    finally:
        os.kill(witness, signal.SIGCONT)
    live.settle([number])
    assert live.job(number).exit == ExitStatus(3)
    live.assert_nothing_left()


def test_order_to_a_stopped_witness_is_not_given_twice(live: LiveHome) -> None:
    """An order that lies unread in a witness's socket when the coordinator dies is not given to another one too."""
    live.settle([live.run_text("exit 0")])  # leaves an idle witness
    (witness,) = live.witnesses()
    os.kill(witness, signal.SIGSTOP)
    try:
        number = live.run_text(RECORD + "exit 4")
        live.kill_coordinator()
        live.connect_again()
        wait_for(lambda: live.coordinator() is not None, "a coordinator")
    finally:
        os.kill(witness, signal.SIGCONT)
    live.settle([number])
    assert live.job(number).exit == ExitStatus(4)
    wait_for(lambda: not live.processes(), "all processes ended")
    live.assert_nothing_left()
    assert list(live.keys_run().values()) == [1]


def test_witness_killed_between_jobs_costs_nothing(live: LiveHome) -> None:
    """An idle witness that is killed takes no verdict with it, and the next job runs, once."""
    for _ in range(5):
        live.settle([live.run_text("exit 0")])
        for witness in live.witnesses():
            os.kill(witness, signal.SIGKILL)
        number = live.run_text(RECORD + "exit 6")
        live.settle([number])
        assert live.job(number).exit == ExitStatus(6), live.job(number)
    assert set(live.keys_run().values()) == {1}
    live.assert_nothing_left()


def test_order_to_a_witness_that_is_killed_before_it_reads_it(live: LiveHome) -> None:
    """The witness's journal has no beginning of the attempt: it never ran, and runs elsewhere, once."""
    live.settle([live.run_text("exit 0")])
    (witness,) = live.witnesses()
    os.kill(witness, signal.SIGSTOP)
    number = live.run_text(RECORD + "exit 6")
    os.kill(witness, signal.SIGKILL)
    live.settle([number])
    assert live.job(number).exit == ExitStatus(6), live.job(number)
    assert list(live.keys_run().values()) == [1]
    assert not is_alive(witness)
    live.assert_nothing_left()
