"""The machine of the tests in this folder: started once, used by one test at a time, stopped after the last.

Without `--long` the tests run only where its Debian trees were made before: making them takes minutes.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

pytest.register_assert_rewrite("vm_desk")

from vm_desk import FOLDER, SUITE, Vm, is_built, lab  # noqa: E402

HERE = Path(__file__).resolve().parent
LEFT = ("/home/alice/.local/state/aver", "/home/alice/.config/systemd", "/home/alice/.config/aver")
NOT_BUILT = f"no virtual machine in {FOLDER}: `scripts/vm-lab build` makes it (root, Debian's packages, 10 minutes)"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wants_long = "long or not long" in config.getoption("-m")
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.vm)
            item.add_marker(pytest.mark.timeout(7200))
            if not is_built() and not (wants_long and os.geteuid() == 0):
                item.add_marker(pytest.mark.skip(reason=NOT_BUILT))


@pytest.fixture(scope="session")
def booted() -> Iterator[None]:
    """The machine runs; the last process that uses it stops it."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / f"users-{SUITE}").open("w") as users, (FOLDER / f"in-use-{SUITE}").open("w") as turn:
        fcntl.flock(users, fcntl.LOCK_SH)
        fcntl.flock(turn, fcntl.LOCK_EX)
        lab("start")
        fcntl.flock(turn, fcntl.LOCK_UN)
        yield
        with suppress(BlockingIOError):
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            lab("stop")


@pytest.fixture
def vm(booted: None) -> Iterator[Vm]:
    """The machine, for this test alone, with nothing of an earlier test in alice's home of Aver."""
    with (FOLDER / f"in-use-{SUITE}").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        machine = Vm()
        machine.set_linger(False)
        yield machine
        end = "loginctl kill-user --signal=KILL alice; loginctl terminate-user alice"  # a closing session is left alone
        machine.ask(f"{end}; rm -rf {' '.join(LEFT)}", user="root", status=None)
