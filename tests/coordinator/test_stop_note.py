"""A shutdown or logout is told from a program's own death, also by the coordinator that comes after it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from aver.coordinator.stop_note import StopNote
from aver.engines.api import Heard
from aver.judge.local import judge
from aver.model.evidence import Act, ActKind, Evidence, MemoryWatch, Rules, Stop, WitnessRecord, WitnessVanished
from aver.model.exit import ExitStatus
from aver.model.states import State
from live_home import LiveHome, wait_for

BOOT = "b" * 32
KEY = f"0123abcd.7.1.{BOOT[:8]}"


def record(ended_at: float, exit_status: ExitStatus, got: tuple[int, ...] = (), acts: tuple[Act, ...] = ()) -> Heard:
    said = WitnessRecord(
        key=KEY, pid=11, exit=exit_status, started_at=ended_at - 60, elapsed_s=60.0, suspended_s=0.0, user_s=0.0,
        sys_s=0.0, peak_bytes=None, maxrss_bytes=None, watch=MemoryWatch.NONE, limit_bytes=None, oom_kills=0,
        host_oom_kills=0, acts=acts, got=got, left_over=0, launch=None, boot=BOOT,
    )  # fmt: skip
    return Heard(KEY, "witness", "", said)


def judged(note: StopNote, one: Heard, started_at: float | None = None) -> tuple[State, str] | None:
    if note.is_in_question(one):
        note.look()
    before = note.evidence_for(one, started_at)
    evidence: list[Evidence] = [one.evidence] if before is None else [before.evidence, one.evidence]
    verdict = judge(evidence, Rules())
    return None if verdict is None else (verdict.state, verdict.detail)


@pytest.mark.parametrize("one", [ExitStatus(signal=15), ExitStatus(1), ExitStatus(0)])
def test_what_the_shutdown_ended_is_node_fail(tmp_path: Path, one: ExitStatus) -> None:
    """Whatever the program made of the signal: its witness got it too while the system was stopping."""
    note = StopNote(tmp_path / "note", BOOT, lambda: Stop.SHUTDOWN)
    said = record(time.time(), one, got=(15,))
    assert judged(note, said) == (State.NODE_FAIL, "ended when the machine was shut down")


def test_the_next_coordinator_judges_by_the_note(tmp_path: Path) -> None:
    """It comes after the reboot, when nothing is stopping any more, and finds the record in the journal."""
    StopNote(tmp_path / "note", BOOT, lambda: Stop.LOGOUT).look()
    after = StopNote(tmp_path / "note", "c" * 32, lambda: None)
    ended = record(time.time(), ExitStatus(signal=15), got=(15,))
    assert judged(after, ended) == (State.NODE_FAIL, "ended when its user logged out")
    vanished = Heard(KEY, "coordinator", "", WitnessVanished(time.time()))
    assert judged(after, vanished, time.time() - 60) == (State.NODE_FAIL, "ended when its user logged out")
    verdict = judged(after, Heard(KEY, "coordinator", "", WitnessVanished(time.time())), time.time() + 60)
    assert verdict is not None
    assert verdict[0] is State.UNVERIFIED  # it started after the logout


def test_a_slow_answer_does_not_move_the_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stop is dated by when it was asked about: on a busy machine systemd's answer takes longer than the slack."""
    clock = [1000.0]
    monkeypatch.setattr(time, "time", lambda: clock[0])

    def answer() -> Stop:
        clock[0] += 3600
        return Stop.LOGOUT

    said = record(1000.0, ExitStatus(signal=15), got=(15,))
    assert judged(StopNote(tmp_path / "note", BOOT, answer), said) == (
        State.NODE_FAIL,
        "ended when its user logged out",
    )


def test_a_program_that_dies_by_itself_has_failed(tmp_path: Path) -> None:
    """Nothing is stopping; or the end is no signal's; or somebody asked for the signal, or
    sent its witness another one; or it was long before."""
    quiet = StopNote(tmp_path / "none", BOOT, lambda: None)
    assert judged(quiet, record(time.time(), ExitStatus(signal=15), got=(15,)))[0] is State.FAILED  # type: ignore[index]
    note = StopNote(tmp_path / "note", BOOT, lambda: Stop.SHUTDOWN)
    act = Act(ActKind.SIGNAL, 1.0, 15)
    for one in (
        record(time.time(), ExitStatus(1)),
        record(time.time(), ExitStatus(signal=11)),
        record(time.time(), ExitStatus(signal=15), acts=(act,)),
        record(time.time() - 600, ExitStatus(signal=15), got=(15,)),
        record(time.time(), ExitStatus(1), got=(10,)),
    ):
        assert judged(note, one)[0] is State.FAILED  # type: ignore[index]


ASKING = """
import sys
if "aver.coordinator" in sys.orig_argv:
    import os, time
    from aver.coordinator import stop_note
    from aver.model.evidence import Stop

    def find():
        open(os.environ["ASKED"], "a").close()
        while not os.path.exists(os.environ["ANSWER"]):
            time.sleep(0.02)
        return Stop.LOGOUT

    stop_note.StopNote.__init__.__defaults__ = (find,)
    stop_note.SYSTEMD = "/"
    stop_note.HOLD_S = float(os.environ.get("HOLD_S", "120"))
"""


@pytest.fixture
def asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Coordinators ask somebody who says that the user logs out, once the file `answer` is there."""
    (tmp_path / "patch").mkdir()
    (tmp_path / "patch" / "sitecustomize.py").write_text(ASKING)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "patch"))
    monkeypatch.setenv("ASKED", str(tmp_path / "asked"))
    monkeypatch.setenv("ANSWER", str(tmp_path / "answer"))


@pytest.mark.usefixtures("asking")
def test_the_end_in_question_waits_for_the_answer_and_nothing_else_does(aver_home: Path, tmp_path: Path) -> None:
    """systemd does not answer for long: others are submitted and end meanwhile. The end is judged once, with what was
    answered, also if the coordinator is killed in between."""
    asked, answer = tmp_path / "asked", tmp_path / "answer"
    live = LiveHome(aver_home, tmp_path)
    ended = live.run_text("sleep 600")
    live.wait_running(ended)
    os.kill(live.witness_of(ended), signal.SIGTERM)
    wait_for(asked.exists, "systemd is asked")
    other = live.run_text("exit 3")
    live.settle([other])
    assert live.job(other).state is State.FAILED
    assert live.job(ended).state is State.RUNNING
    assert live.kill_coordinator()
    asked.unlink()
    live.connect_again()
    wait_for(asked.exists, "systemd is asked again")
    assert live.job(ended).state is State.RUNNING
    answer.touch()
    live.settle([ended])
    assert (live.job(ended).state, live.attempt(ended).detail) == (State.NODE_FAIL, "ended when its user logged out")
    live.assert_store_is_whole()


@pytest.mark.usefixtures("asking")
def test_nothing_begins_while_all_is_being_stopped(
    aver_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The CPUs of what the stop ended are free, and what waits for them would be ended too. A coordinator that comes in
    the middle of the stop waits as well; who is still there long after it goes on."""
    monkeypatch.setenv("HOLD_S", "6")
    (tmp_path / "answer").touch()
    live = LiveHome(aver_home, tmp_path)
    cpus = len(os.sched_getaffinity(0))
    ended = live.run_text("sleep 600", cpus=cpus)
    live.wait_running(ended)
    waiting = live.run_text("echo $$ >>$RAN; exit 3", cpus=cpus)
    os.kill(live.witness_of(ended), signal.SIGTERM)
    live.settle([ended])
    assert live.kill_coordinator()
    live.connect_again()
    time.sleep(2)
    assert (live.job(waiting).state, live.ran.exists()) == (State.PENDING, False)
    live.settle([waiting])
    assert (live.job(waiting).state, len(live.ran.read_text().split())) == (State.FAILED, 1)
