"""Wheels, built once for all processes of a session."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from pathlib import Path

import pytest
from packages import EARLIER, build_wheel, copy_checkout, unpack_commit


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This checkout's wheel."""
    return _build_once(tmp_path_factory, "wheel", copy_checkout)


@pytest.fixture(scope="session")
def earlier_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of an earlier version, 0.1.0."""
    return _build_once(tmp_path_factory, "earlier", lambda folder: unpack_commit(EARLIER, folder))


def _build_once(factory: pytest.TempPathFactory, name: str, fill: Callable[[Path], Path]) -> Path:
    base = factory.getbasetemp()
    folder = (base.parent if base.name.startswith("popen-") else base) / f"aver-{name}"  # xdist's processes share it
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        built = sorted((folder / "out").glob("*.whl"))
        return built[0] if built else build_wheel(fill(folder / "source"), folder / "out")
