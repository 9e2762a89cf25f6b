"""A signal is heard, also when the exception that tells of it gets lost."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from aver.cli.attach.signals import SignalReceived, heard, held_back, kept_out, listen
from aver.cli.attach.stream import OutputStream
from aver.render.masking import Masking


class Dropping:
    """Python drops what is raised in a destructor."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGUSR1)
        time.sleep(0)  # the handler runs here, and its exception is dropped


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_lost_exception_comes_again() -> None:
    """Until somebody says that it was heard."""

    def lose() -> None:
        Dropping()

    with listen(signal.SIGUSR1):
        lose()
        with pytest.raises(SignalReceived) as caught:
            signal.sigtimedwait([], 30)
        heard()
    assert caught.value.number == signal.SIGUSR1


def test_once_heard_it_does_not_come_again() -> None:
    """The next one is another signal."""
    with listen(signal.SIGUSR1):
        with pytest.raises(SignalReceived):
            os.kill(os.getpid(), signal.SIGUSR1)
        heard()
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_repetition_that_was_on_its_way_is_not_a_second_signal() -> None:
    """The alarm has come, its handler has not run yet, and then the signal is heard: that is the end of it."""
    with listen(signal.SIGUSR1):
        with pytest.raises(SignalReceived):
            os.kill(os.getpid(), signal.SIGUSR1)
        repeat = signal.getsignal(signal.SIGALRM)
        assert callable(repeat)
        heard()
        repeat(signal.SIGALRM, None)


@pytest.mark.parametrize("block", [kept_out, held_back])
def test_a_signal_at_the_door_leaves_no_signal_blocked(
    block: Callable[..., AbstractContextManager[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python runs handlers inside pthread_sigmask, after it has blocked: what it raises must not leave the mask so."""
    real = signal.pthread_sigmask

    def late(how: int, numbers: Iterable[int]) -> object:
        answer = real(how, numbers)
        if how == signal.SIG_BLOCK and list(numbers):
            raise SignalReceived(signal.SIGUSR1)
        return answer

    before = real(signal.SIG_BLOCK, ())
    monkeypatch.setattr(signal, "pthread_sigmask", late)
    with pytest.raises(SignalReceived), block(signal.SIGUSR1):
        pass
    assert real(signal.SIG_BLOCK, ()) == before


def test_a_wait_for_a_thread_can_be_interrupted_and_gone_on_with(tmp_path: Path) -> None:
    """Thread.join() calls a thread ended when a signal interrupts it; the stream must not close what it still uses."""
    release = threading.Event()
    (tmp_path / "out").write_bytes(b"x" * 10)
    written: list[bytes] = []

    def write(data: bytes) -> None:
        release.wait(30)
        written.append(data)

    stream = OutputStream(Masking())
    stream.begin(str(tmp_path / "out"), 0, write)
    with listen(signal.SIGUSR1):
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1))
        timer.start()
        with pytest.raises(SignalReceived):
            stream.finish()
        heard()
    release.set()
    stream.finish()
    assert b"".join(written) == b"x" * 10
    assert stream.end_of(str(tmp_path / "out")) == 10
