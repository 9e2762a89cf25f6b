"""What the witness notes of what it did: nothing that decides is dropped, and what repeats is counted."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from witness_driver import Slot, acts, sh, until

from aver.judge.witness_record import parse_record

TERM, KILL, USR1, USR2 = signal.SIGTERM, signal.SIGKILL, signal.SIGUSR1, signal.SIGUSR2
MANY = 100  # more than a record has room for, one by one


def start_busy(slot: Slot, key: str, out: Path, *fields: str) -> None:
    """A job that answers USR1 and USR2, and ends with 0 on TERM."""
    script = "trap : USR1 USR2; trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    slot.start(key, f"o{out}", *fields, *sh(script))
    until(lambda: out.exists() and out.read_text().startswith("ready"))


def send_many(slot: Slot, key: str, number: int, times: int = MANY) -> None:
    for _ in range(times):
        slot.send("S", f"k{key}", f"s{number}", "cb")


def test_a_cancel_after_many_signals_is_noted(slot: Slot, tmp_path: Path) -> None:
    """However many signals a job was sent by request, its cancellation is in its record."""
    start_busy(slot, "busy", tmp_path / "out")
    send_many(slot, "busy", USR1)
    slot.send("C", "kbusy")
    end = slot.expect("end")
    assert (end["raw"], acts(end)) == (0, [("signal", USR1), ("cancel", TERM)])


def test_warning_limit_and_kill_after_many_signals_are_noted(slot: Slot, tmp_path: Path) -> None:
    """So are the warning, the time limit and the kill at the end of the kill wait."""
    script = "trap : USR1 USR2; trap '' TERM; echo ready; while :; do sleep 0.05; done"
    out = tmp_path / "out"
    slot.start("busy", f"o{out}", "t600000", f"w{USR2} 1 b", "K100", *sh(script))
    until(lambda: out.exists() and out.read_text().startswith("ready"))
    send_many(slot, "busy", USR1)
    slot.send("T", "kbusy", "t2")
    end = slot.expect("end")
    assert acts(end) == [("signal", USR1), ("warn", USR2), ("time", TERM), ("kill", KILL)]


def test_a_kill_for_memory_after_many_signals_is_noted(slot: Slot, tmp_path: Path) -> None:
    """So is the witness's own kill for memory."""
    script = (
        "trap : USR1; echo ready; until [ -e go ]; do sleep 0.05; done; x=$(head -c 60000000 /dev/zero | tr '\\0' x)"
    )
    out = tmp_path / "out"
    slot.start(
        "busy", f"o{out}", f"d{tmp_path}", f"m{30 << 20}", f"EPATH={os.environ['PATH']}", *sh(script + "; sleep 60")
    )
    until(lambda: out.exists() and out.read_text().startswith("ready"))
    send_many(slot, "busy", USR1)
    (tmp_path / "go").touch()
    assert acts(slot.expect("end"))[-1] == ("memory", KILL)


def test_repeated_signals_are_counted(slot: Slot, tmp_path: Path) -> None:
    """Each signal has one act, at the time of the first one, with how many there were and when the last one was."""
    start_busy(slot, "busy", tmp_path / "out")
    slot.send("S", "kbusy", f"s{USR2}", "cb")
    send_many(slot, "busy", USR1)
    slot.send("C", "kbusy")
    end = slot.expect("end")
    once, often, _ = end["acts"]
    assert "times" not in once
    assert often["times"] == MANY
    assert often["at"] < often["last"] <= end["elapsed"]
    act = parse_record(end).acts[1]
    assert (act.times, act.last_s) == (MANY, often["last"])


def test_a_new_signal_to_the_witness_is_noted_after_many(slot: Slot, tmp_path: Path) -> None:
    """`got` always has each signal that was sent to the witness itself, also the first TERM after many others."""
    start_busy(slot, "got", tmp_path / "out")
    for _ in range(MANY):
        os.kill(slot.process.pid, USR1)
        os.kill(slot.process.pid, USR2)
        slot.send("X")
        slot.expect("error")  # it has read its signals by then
    os.kill(slot.process.pid, TERM)
    end = slot.expect("end")
    assert set(end["got"]) == {USR1, USR2, TERM}
    assert TERM in parse_record(end).got


def test_a_warning_says_how_many_it_reached(slot: Slot, tmp_path: Path) -> None:
    """A script without a trap does not get a warning for its program; one with a trap does."""
    end = slot.run("none", "t60000", f"w{USR1} 60000 p", *sh("sleep 0.3 & wait; exit 0"))
    (warning,) = end["acts"]
    assert (warning["act"], warning["to"]) in (("warn", 0), ("warn", 1))  # its sleep may have begun
    end = slot.run("trapped", "t60000", f"w{USR1} 59800 p", *sh("trap 'exit 0' USR1; while :; do sleep 0.05; done"))
    assert end["acts"][0]["to"] >= 1
    assert parse_record(end).acts[0].reached == end["acts"][0]["to"]


def test_a_warning_for_a_shell_alone_reaches_nobody(slot: Slot) -> None:
    """Only the shell is there, and it has no trap: nobody got the warning."""
    end = slot.run("alone", "t60000", f"w{USR1} 59700 p", *sh("for ((;;)); do ((SECONDS > 1)) && exit 0; done"))
    assert (end["raw"], [(act["act"], act["to"]) for act in end["acts"]]) == (0, [("warn", 0)])


def test_a_warning_that_all_processes_ignore_reached_nobody(slot: Slot) -> None:
    """The kernel drops it: nobody can have heeded it, so an exit 0 after it is no checkpoint."""
    slot.start("deaf", "t60000", f"w{USR1} 59500 p", *sh("trap '' USR1; sleep 1; exit 0"))
    end = slot.expect("end")
    assert (end["raw"], [(act["act"], act["to"]) for act in end["acts"]]) == (0, [("warn", 0)])


@pytest.mark.parametrize(
    ("text", "reached"),
    [
        pytest.param("time.sleep(1)", 0, id="blocked"),
        pytest.param(
            "time.sleep(0.7); signal.pthread_sigmask(signal.SIG_UNBLOCK, [10]); time.sleep(0.1)", 1, id="late"
        ),
        pytest.param("signal.sigwait([10])", 1, id="waited for"),
        pytest.param("signal.sigwait([10]); os.kill(os.getpid(), 12); time.sleep(0.2)", 1, id="another is pending"),
    ],
)
def test_a_warning_that_is_still_pending_at_the_end_reached_nobody(slot: Slot, text: str, reached: int) -> None:
    """A program that blocks the signal, and ends before it takes it, was not warned: its work is done."""
    begin = (
        "import os, signal, time; signal.pthread_sigmask(signal.SIG_BLOCK, [10, 12]); signal.signal(10, lambda *_: 0)"
    )
    end = slot.run("block", "t3000", "w10 2500 a", "a" + sys.executable, "a-I", "a-S", "a-c", f"a{begin}; {text}")
    assert (end["raw"], [(act["act"], act["to"]) for act in end["acts"]]) == (0, [("warn", reached)])


BLOCKS = "import signal, time; signal.pthread_sigmask(signal.SIG_BLOCK, [10])"


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        pytest.param("time.sleep(2)", (0, 1), id="blocked"),
        pytest.param("signal.sigwait([10])", (1, 0), id="waited for"),
        pytest.param("time.sleep(1.5); signal.sigtimedwait([10], 0); time.sleep(0.3)", (1, 0), id="taken late"),
    ],
)
def test_a_process_of_the_program_that_blocks_the_warning(slot: Slot, text: str, counts: tuple[int, int]) -> None:
    """Its parent reaps it, so nobody sees it end: it counts when it was seen to take the signal."""
    program = f"{sys.executable} -ISc '{BLOCKS}; {text}'; exit 0"
    end = slot.run("inner", "t5000", "w10 4500 p", *sh(program))
    assert (end["raw"], [(act["to"], act.get("blocked", 0)) for act in end["acts"]]) == (0, [counts])


HANDLES = "import os, signal, time; signal.signal(10, lambda *_: os.write(1, b'x'))"


@pytest.mark.parametrize("scope", ["p", "a"])
def test_the_launcher_of_steps_is_not_warned(slot: Slot, tmp_path: Path, scope: str) -> None:
    """Its step has a witness that warns it: what the launcher does with signals says nothing about the user's work."""
    launcher = f'{sys.executable} -ISXaver-srun -c "{HANDLES}; time.sleep(1)" > got'
    end = slot.run("step", f"d{tmp_path}", "t3000", f"w10 2500 {scope}", *sh(f"trap '' USR1; {launcher}; exit 0"))
    assert (end["raw"], [act["to"] for act in end["acts"]]) == (0, [0])
    assert (tmp_path / "got").read_text() == ""


@pytest.mark.parametrize(("ignores", "counted"), [(True, 0), (False, 1)])
def test_a_launcher_around_a_task_is_not_its_program(slot: Slot, ignores: bool, counted: int) -> None:
    """With a task epilog the child is srun, which hands signals on: the program below it is warned itself."""
    how = "SIG_IGN" if ignores else "default_int_handler"
    inner = f"import signal, time; signal.signal(10, signal.{how}); time.sleep(1)"
    around = f"{HANDLES}; import subprocess; subprocess.run([{sys.executable!r}, '-ISc', {inner!r}])"
    end = slot.run("around", "t3000", "w10 2500 b", f"a{sys.executable}", "a-ISXaver-srun", "a-c", f"a{around}")
    assert (end["raw"], [act["to"] for act in end["acts"]]) == (0, [counted])


@pytest.mark.parametrize("scope", ["p", "a", "b"])
def test_an_srun_whose_tasks_have_no_witness_says_nothing_of_them(slot: Slot, tmp_path: Path, scope: str) -> None:
    """Slurm's srun gets the warning, and is counted as what it is: one of which nobody knows who took it there."""
    (tmp_path / "srun").symlink_to(sys.executable)
    program = f"{HANDLES}; time.sleep(1)"
    end = slot.run(
        "far", f"d{tmp_path}", f"o{tmp_path}/got", "t3000", f"w10 2500 {scope}", "a./srun", "a-ISc", f"a{program}"
    )
    assert (end["raw"], [(act["to"], act["unseen"]) for act in end["acts"]]) == (0, [(0, 1)])
    assert (tmp_path / "got").read_text() == "x"
    assert parse_record(end).acts[0].unseen == 1
