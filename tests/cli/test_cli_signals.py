"""A signal is heard, also when the exception that tells of it gets lost."""

from __future__ import annotations

import os
import signal
import time

import pytest

from aver.cli.signals import SignalReceived, heard, listen


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
