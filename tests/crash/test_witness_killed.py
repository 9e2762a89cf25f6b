"""Kill witnesses: nobody knows how the job ended, that is said, and nothing of the job is left."""

from __future__ import annotations

import os
import signal
import socket
from dataclasses import dataclass

from aver.model import reasons
from aver.model.exit import ExitStatus
from aver.model.states import State
from live_home import LiveHome, is_alive, processes_with, wait_for

RECORD = 'echo "$AVER_KEY" >> "$RAN"; '
GO = "until [ -e go ]; do sleep 0.02; done; "

DIGITS = str.maketrans("abcdef", "012345")

# What a job may do to get away. MARK is an argument that can be found again whatever the environment says.
SHAPES = {
    "plain": "sleep MARK",
    "exec": "exec sleep MARK",
    "background": "sleep MARK & sleep MARK & wait",
    "setsid": "setsid sleep MARK & setsid setsid sleep MARK & wait",
    "double fork": "(setsid sh -c 'sleep MARK & sleep MARK' &) ; sleep MARK",
    "empty environment": "env -i /bin/sleep MARK",
    "exec with empty environment": "exec env -i /bin/sleep MARK",
    "orphans of their own sessions with an empty environment, and one like a coordinator's": (
        "(setsid env -i /bin/sleep MARK &) ; (setsid env -i AVER_COORDINATOR=1 /bin/sleep MARK &) ; sleep MARK"
    ),
    "ignores TERM": "trap '' TERM HUP INT; sleep MARK; sleep MARK",
}


@dataclass(frozen=True)
class Victim:
    """A running job whose witness is to be killed."""

    number: int
    witness: int
    mark: str


def _start_all(live: LiveHome) -> list[Victim]:
    """One job of each shape, all running with all of their processes."""
    marks = {shape: f"{600 + os.getpid() % 1000}.{os.urandom(4).hex().translate(DIGITS)}" for shape in SHAPES}
    numbers = {shape: live.run_text(RECORD + text.replace("MARK", marks[shape])) for shape, text in SHAPES.items()}
    for shape, number in numbers.items():
        live.wait_running(number)
        mark, wanted = marks[shape], 1 if "TERM" in shape else SHAPES[shape].count("MARK")
        wait_for(lambda mark=mark, wanted=wanted: len(processes_with(mark)) >= wanted, f"all of {shape}")  # type: ignore[misc]
    return [Victim(number, live.witness_of(number), marks[shape]) for shape, number in numbers.items()]


def _assert_unknown(live: LiveHome, victims: list[Victim]) -> None:
    """UNVERIFIED, with the name of who vanished, no process left, nothing run twice."""
    live.settle([victim.number for victim in victims])
    for victim in victims:
        job = live.job(victim.number)
        assert job.state is State.UNVERIFIED, job
        assert job.exit is None
        assert job.verified is False
        assert job.reason == reasons.WITNESS_VANISHED
        assert f"pid {victim.witness}" in job.detail
        wait_for(lambda mark=victim.mark: not processes_with(mark), f"the end of {job}", 10.0)  # type: ignore[misc]
    assert set(live.keys_run().values()) == {1}
    live.assert_store_is_whole()
    live.assert_nothing_left()


def test_jobs_of_killed_witnesses_are_unverified_and_ended(live: LiveHome) -> None:
    """With the coordinator there: UNVERIFIED, naming the witness; no process of the job lives; others go on."""
    victims = _start_all(live)
    other = live.run_text(f"{GO}exit 5", cpus=1)
    live.wait_running(other)
    for victim in victims:
        os.kill(victim.witness, signal.SIGKILL)
    live.settle([victim.number for victim in victims])
    (live.folder / "go").touch()
    live.settle([other])
    assert live.job(other).exit == ExitStatus(5)
    _assert_unknown(live, victims)


def test_witnesses_killed_while_nobody_is_home(live: LiveHome) -> None:
    """Coordinator killed, then the witnesses: the next coordinator says so and ends what the jobs left."""
    victims = _start_all(live)
    live.kill_coordinator()
    for victim in victims:
        os.kill(victim.witness, signal.SIGKILL)
    _assert_unknown(live, victims)


def test_witnesses_of_an_earlier_coordinator_killed(live: LiveHome) -> None:
    """The witness is no child of this coordinator: its orphans go elsewhere, and are found all the same."""
    victims = _start_all(live)
    live.kill_coordinator()
    live.connect_again()
    for victim in victims:
        os.kill(victim.witness, signal.SIGKILL)
    _assert_unknown(live, victims)


def test_one_killed_witness_is_one_unknown_outcome(live: LiveHome) -> None:
    """The neighbours of the job whose witness is killed, left-over processes and all, are undisturbed."""
    victims = _start_all(live)
    os.kill(victims[0].witness, signal.SIGKILL)
    live.settle([victims[0].number])
    assert live.job(victims[0].number).state is State.UNVERIFIED
    for victim in victims[1:]:
        assert live.job(victim.number).state is State.RUNNING
        assert processes_with(victim.mark)
    for victim in victims[1:]:
        os.kill(victim.witness, signal.SIGKILL)
    _assert_unknown(live, victims)


def test_stopped_witness_goes_on_when_continued(live: LiveHome) -> None:
    """SIGSTOP of a witness delays the verdict and changes nothing else, also across a coordinator's death."""
    number = live.run_text(f"{RECORD}{GO}exit 3")
    live.wait_running(number)
    witness = live.witness_of(number)
    os.kill(witness, signal.SIGSTOP)
    try:
        (live.folder / "go").touch()
        wait_for(lambda: not live.processes(), "the job's end, which its witness does not see yet")
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
    number = live.run_text(f"{RECORD}{GO}exit 3")
    live.wait_running(number)
    witness = live.witness_of(number)
    os.kill(witness, signal.SIGSTOP)
    (live.folder / "go").touch()
    try:
        folder = os.open(live.home.witnesses, os.O_RDONLY)
        for _ in range(20):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.setblocking(False)
                connection.connect(f"/proc/self/fd/{folder}/{live.of_witness('sock').name}")
        os.close(folder)
        live.kill_coordinator()
        live.connect_again()
    finally:
        os.kill(witness, signal.SIGCONT)
    live.settle([number])
    assert live.job(number).exit == ExitStatus(3)
    live.assert_nothing_left()


def _idle_witness(live: LiveHome) -> int:
    """A witness whose job has ended; another job, which waits for the file `go`, keeps the coordinator there."""
    waits = live.run_text(GO)
    live.wait_running(waits)
    live.settle([live.run_text("exit 0")])
    (idle,) = set(live.witnesses()) - {live.witness_of(waits)}
    return idle


def test_order_to_a_stopped_witness_is_not_given_twice(live: LiveHome) -> None:
    """An order that lies unread in a witness's socket when the coordinator dies is not given to another one too."""
    witness = _idle_witness(live)
    os.kill(witness, signal.SIGSTOP)
    try:
        number = live.run_text(RECORD + "exit 4")
        live.kill_coordinator()
        live.connect_again()
        wait_for(lambda: live.coordinator() is not None, "a coordinator")
    finally:
        os.kill(witness, signal.SIGCONT)
        (live.folder / "go").touch()
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
    witness = _idle_witness(live)
    os.kill(witness, signal.SIGSTOP)
    number = live.run_text(RECORD + "exit 6")
    os.kill(witness, signal.SIGKILL)
    (live.folder / "go").touch()
    live.settle([number])
    assert live.job(number).exit == ExitStatus(6), live.job(number)
    assert list(live.keys_run().values()) == [1]
    assert not is_alive(witness)
    live.assert_nothing_left()
