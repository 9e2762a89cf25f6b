"""Signals while a command waits: the first one is an exception where the command waits, the rest are counted.

Only the main thread's wait is interrupted, and only between `listen` and its end; the
dispositions that were there before come back. An exception can get lost (Python drops those that are raised in
a destructor or while an import lock is let go): it is raised again every half second until `heard` is called.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType

AGAIN_S = 0.5


class SignalReceived(Exception):
    """Somebody sent this process a signal while it waited."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextlib.contextmanager
def listen(*numbers: int) -> Iterator[None]:
    """Raise SignalReceived when one of these comes. One that was ignored before (nohup) stays ignored."""
    awaited = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, _raise) for number in awaited}
    try:
        yield
    finally:
        heard()
        for number, disposition in before.items():
            signal.signal(number, disposition)


@contextlib.contextmanager
def held_back(*numbers: int) -> Iterator[Callable[[], None]]:
    """Let these come only at the end of the block, or when the function that it gives is called.

    Nothing may be started before that: it would inherit the mask.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())  # asks only: what blocks may raise when it has blocked

    def release() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
        yield release
    finally:
        release()


@contextlib.contextmanager
def kept_out(*numbers: int) -> Iterator[None]:
    """Start a thread in here: it never gets these. They come at the end of the block."""
    with held_back(*numbers):
        yield


def heard() -> None:
    """Whoever has caught SignalReceived says so; the next signal raises it anew, and no repetition of this one does."""
    global _unheard
    _unheard = None
    signal.setitimer(signal.ITIMER_REAL, 0)


_unheard: int | None = None


def _raise(number: int, frame: FrameType | None) -> None:
    global _unheard
    _unheard = number
    signal.signal(signal.SIGALRM, _raise_again)
    signal.setitimer(signal.ITIMER_REAL, AGAIN_S, AGAIN_S)
    raise SignalReceived(number)


def _raise_again(_: int, frame: FrameType | None) -> None:
    if _unheard is not None:
        raise SignalReceived(_unheard)
