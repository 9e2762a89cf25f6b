"""A signal reaches the process that was meant, and nobody who has its number since."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator

import pytest

from aver.engines.local.process import send_signal, start_of
from aver.engines.local.sweep import _kill


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


def test_a_number_that_is_another_process_by_now_is_left_alone(bystander: subprocess.Popen[bytes]) -> None:
    """It was found with another start: its number is somebody else's."""
    start = start_of(bystander.pid)
    assert start is not None
    assert _kill({bystander.pid: start - 1}) == set()
    assert start_of(bystander.pid) == start
    assert _kill({bystander.pid: start}) == set()
    assert bystander.wait(60) == -signal.SIGKILL


def test_the_last_look_comes_after_the_descriptor(bystander: subprocess.Popen[bytes]) -> None:
    """Who ends during that look is not signalled any more, whoever has the number then."""

    def ends_now() -> bool:
        bystander.kill()
        bystander.wait(60)
        return True

    assert not send_signal(bystander.pid, signal.SIGTERM, ends_now)
    assert not send_signal(bystander.pid, signal.SIGTERM, lambda: True)
