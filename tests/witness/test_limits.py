"""Time limit, warning, cancel, suspend: what the witness does to its job, and says that it did."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from witness_driver import Line, Slot, acts, is_running, sh, sig, state_of, until

TERM, KILL, USR1 = signal.SIGTERM, signal.SIGKILL, signal.SIGUSR1
WAITING = "while :; do sleep 0.05; done"


def ready(path: Path) -> None:
    until(lambda: path.exists() and path.read_text().startswith("ready"))


def test_time_limit_plain(slot: Slot) -> None:
    """The limit passes: TERM to all, and the record says so."""
    end = slot.run("time", "t100", "asleep", "a60")
    assert (sig(end), acts(end)) == ((0, TERM), [("time", TERM)])
    assert 0.1 <= end["acts"][0]["at"] <= end["elapsed"]


def test_time_limit_trapped(slot: Slot, tmp_path: Path) -> None:
    """A job that traps TERM and exits 0 still has the act in its record."""
    slot.start("trap", "t60000", f"o{tmp_path}/out", *sh(f"trap 'exit 0' TERM; echo ready; {WAITING}"))
    ready(tmp_path / "out")
    slot.send("T", "ktrap", "t1")
    end = slot.expect("end")
    assert (end["raw"], acts(end)) == (0, [("time", TERM)])


def test_time_limit_ignored(slot: Slot, tmp_path: Path) -> None:
    """Who ignores TERM is killed after the kill wait, with all its processes."""
    script = f"trap '' TERM; sleep 61 & echo ready; {WAITING}"
    slot.start("ignore", "t60000", "K200", f"o{tmp_path}/out", *sh(script))
    ready(tmp_path / "out")
    slot.send("T", "kignore", "t1")
    end = slot.expect("end")
    assert (sig(end), acts(end)) == ((0, KILL), [("time", TERM), ("kill", KILL)])
    assert end["acts"][1]["at"] - end["acts"][0]["at"] >= 0.199


def test_warning_comes_its_lead_before_the_limit(slot: Slot) -> None:
    """Not before, and the limit not with it."""
    end = slot.run("warn", "t700", "w10 400 p", "asleep", "a60")  # a program that does not catch it is spared
    assert acts(end) == [("warn", USR1), ("time", TERM)]
    warned, ended = (act["at"] for act in end["acts"])
    assert (warned >= 0.299, ended >= 0.699) == (True, True)


def warn_when_ready(slot: Slot, key: str, out: Path, script: str) -> Line:
    """Run a script whose warning, for the program, is due when it has said `ready`; return its end."""
    slot.start(key, "t600000", "w10 300000 p", f"o{out}", f"EPATH={os.environ['PATH']}", *sh(script))
    ready(out)
    slot.send("T", f"k{key}", "t300001")
    return slot.expect("end")


def test_warning_for_the_program_spares_a_script_without_trap(slot: Slot, tmp_path: Path) -> None:
    """Scope p: the program under the script gets the signal; bash without a trap does not, and goes on."""
    out = tmp_path / "out"
    script = "bash -c 'trap \"echo warned; exit 0\" USR1; echo ready; while :; do sleep 0.05; done'; exit 5"
    end = warn_when_ready(slot, "warn", out, script)
    assert (end["raw"], acts(end)) == (5 << 8, [("warn", USR1)])
    assert "warned" in out.read_text()


def test_warning_for_the_program_reaches_a_trap(slot: Slot, tmp_path: Path) -> None:
    """Scope p: a script that catches the signal gets it."""
    end = warn_when_ready(slot, "trap", tmp_path / "out", f"trap 'exit 6' USR1; echo ready; {WAITING}")
    assert end["raw"] == 6 << 8


def test_signal_for_the_program_reaches_an_execed_program(slot: Slot, tmp_path: Path) -> None:
    """Scope p: a program that a script exec'ed gets the signal if it catches it."""
    out = tmp_path / "out"
    inner = "trap 'exit 6' USR1; echo ready; while :; do sleep 0.05; done"
    slot.start("exec", f"o{out}", f"EPATH={os.environ['PATH']}", *sh(f'exec bash -c "{inner}"'))
    ready(out)
    slot.send("S", "kexec", f"s{USR1}", "cp")
    end = slot.expect("end")
    assert (end["raw"], acts(end)) == (6 << 8, [("signal", USR1)])


def test_signal_for_the_program_spares_a_script_of_env(slot: Slot, tmp_path: Path) -> None:
    """Scope p: `#!/usr/bin/env bash` execs bash, which is still the script that was started."""
    script, out = tmp_path / "script", tmp_path / "out"
    script.write_text("#!/usr/bin/env bash\necho ready\nread <fifo\nexit 5\n")
    script.chmod(0o755)
    os.mkfifo(tmp_path / "fifo")
    slot.start("env", f"d{tmp_path}", f"EPATH={os.environ['PATH']}", f"o{out}", "a./script", "aword")
    ready(out)
    slot.send("S", "kenv", f"s{USR1}", "cp")
    slot.send("X")
    slot.expect("error")
    (tmp_path / "fifo").write_text("go\n")
    assert slot.expect("end")["raw"] == 5 << 8


def test_signal_for_the_script_alone(slot: Slot, tmp_path: Path) -> None:
    """Scope b: the child gets the signal, its own children do not."""
    out = tmp_path / "out"
    script = "trap 'kill -0 $other && echo alive; exit 7' USR1; sleep 60 & other=$!; echo ready; while :; do wait; done"
    slot.start("b", f"o{out}", *sh(script))
    ready(out)
    slot.send("S", "kb", f"s{USR1}", "cb")
    end = slot.expect("end")
    assert (end["raw"], end["left"]) == (7 << 8, 1)
    assert "alive" in out.read_text()


def test_warning_longer_than_the_limit_comes_at_once(slot: Slot) -> None:
    """A lead that is longer than the limit warns at the start, once."""
    end = slot.run("early", "t60000", "w10 120000 b", *sh("sleep 61"))
    assert (sig(end), acts(end)) == ((0, USR1), [("warn", USR1)])
    assert end["acts"][0]["at"] < 30


def test_suspended_time_does_not_count(slot: Slot) -> None:
    """While suspended the job stands still and so does its limit; afterwards the limit holds."""
    pid = slot.start("stop", "t60000", "asleep", "a60")["pid"]
    slot.send("P", "kstop")
    until(lambda: state_of(pid) == "T")
    slot.send("T", "kstop", "t600")
    slot.send("P", "kstop")
    until(lambda: slot_age(slot) > 1.2)
    assert state_of(pid) == "T"
    slot.send("U", "kstop")
    end = slot.expect("end")
    assert acts(end) == [("time", TERM)]
    assert end["suspended"] > 0.5
    assert end["elapsed"] - end["suspended"] >= 0.599


def slot_age(slot: Slot) -> float:
    """Seconds since the slot's last begin line."""
    return time.time() - float(slot.lines()[-1]["at"])


def test_suspended_job_can_be_cancelled(slot: Slot) -> None:
    """A cancel wakes a stopped job, so that TERM reaches it."""
    pid = slot.start("stop", "asleep", "a60")["pid"]
    slot.send("P", "kstop")
    until(lambda: state_of(pid) == "T")
    slot.send("C", "kstop")
    end = slot.expect("end")
    assert (sig(end), acts(end)) == ((0, TERM), [("cancel", TERM)])


def test_new_time_limit(slot: Slot) -> None:
    """A limit can be set, moved and lifted while the job runs."""
    slot.start("new", "t60000", "asleep", "a60")
    slot.send("T", "knew", "t")
    slot.send("T", "knew", "t100")
    assert acts(slot.expect("end")) == [("time", TERM)]


def test_cancel(slot: Slot, tmp_path: Path) -> None:
    """Cancel is TERM to all, then KILL; a second cancel changes nothing."""
    slot.start("cancel", "K200", f"o{tmp_path}/out", *sh(f"trap '' TERM; echo ready; {WAITING}"))
    ready(tmp_path / "out")
    slot.send("C", "kcancel")
    slot.send("C", "kcancel")
    end = slot.expect("end")
    assert acts(end)[0] == ("cancel", TERM)
    assert [name for name, _ in acts(end)].count("cancel") == 1


def test_cancel_at_once(slot: Slot) -> None:
    """With `s` 9 a cancel is KILL, and the record says that it was a cancel; other signals are refused."""
    slot.start("at-once", *sh(f"trap '' TERM; {WAITING}"))
    slot.send("C", "kat-once", "s2")
    assert "KILL at once" in slot.expect("error")["text"]
    slot.send("C", "kat-once", "s9")
    end = slot.expect("end")
    assert (acts(end), end["raw"]) == ([("cancel", 9)], 9)


def test_daemon_does_not_get_away(slot: Slot, tmp_path: Path) -> None:
    """A double fork with a session of its own is killed at the end, and counted."""
    out = tmp_path / "pid"
    daemon = f"trap '' TERM HUP; echo $$ >{out}; while :; do sleep 1; done"
    script = f'(setsid bash -c "{daemon.replace("$", chr(92) + "$")}" &); until [ -s {out} ]; do sleep 0.01; done'
    end = slot.sh("daemon", script, f"EPATH={os.environ['PATH']}")
    assert end["raw"] == 0
    assert end["left"] >= 1
    assert not is_running(int(out.read_text()))


def test_fork_bomb_ends(slot: Slot, tmp_path: Path) -> None:
    """Processes that fork faster than they are listed are ended too."""
    flag = tmp_path / "bomb"
    bomb = f"f() {{ [ -e {flag} ] || exit; sleep 0.2; f & f & wait; }}"
    flag.touch()
    end = slot.sh("bomb", f"{bomb}; f & f & sleep 1; exit 3", f"EPATH={os.environ['PATH']}")
    flag.unlink()
    assert end["raw"] == 3 << 8
    assert end["left"] > 2
    assert slot.sh("next", "exit 0")["left"] == 0


def test_nested_subreaper_is_swept(slot: Slot, tmp_path: Path) -> None:
    """Processes that hang under a sub-reaper of the job's own are found and killed."""
    script = (
        "import ctypes, os, subprocess, time\n"
        "ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\n"
        "subprocess.Popen(['sh', '-c', 'sleep 60 & echo $! >pid'])\n"
        "time.sleep(60)\n"
    )
    slot.start("reaper", f"d{tmp_path}", f"EPATH={os.environ['PATH']}", "apython3", "a-c", "a" + script)
    pid = int(until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text()))
    slot.send("S", "kreaper", "s9", "cb")
    end = slot.expect("end")
    assert (sig(end), end["left"]) == ((0, KILL), 1)
    assert not is_running(pid)


def test_signals_to_the_witness_are_forwarded_and_noted(slot: Slot, tmp_path: Path) -> None:
    """A signal that was sent to the witness itself reaches the child, and is in `got`, not in `acts`."""
    out = tmp_path / "out"
    slot.start("got", f"o{out}", *sh(f"trap 'exit 9' USR1; echo ready; {WAITING}"))
    ready(out)
    os.kill(slot.process.pid, USR1)
    end = slot.expect("end")
    assert (end["raw"], end["got"], end["acts"]) == (9 << 8, [USR1], [])


@pytest.mark.parametrize("number", [32, 33])
def test_signals_that_libc_keeps_for_itself_are_signals(slot: Slot, number: int) -> None:
    """Signals 32 and 33, which no program of libc's can block, are noted and forwarded as any other."""
    slot.start("odd", "asleep", "a60")
    os.kill(slot.process.pid, number)
    end = slot.expect("end")
    assert (sig(end), end["got"]) == ((0, number), [number])


def test_idle_witness_ends_on_term(slot: Slot) -> None:
    """Without a job TERM ends the witness."""
    os.kill(slot.process.pid, TERM)
    assert slot.process.wait(20) == 0
