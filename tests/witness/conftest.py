"""Fixtures: a slot witness, as many as a test needs."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from witness_driver import CGROUP1, Slot, StartSlot

_numbers = itertools.count()


@pytest.fixture
def start_slot(witness_binary: Path, tmp_path: Path) -> Iterator[StartSlot]:
    """Start a slot witness; `prepare` runs in it before the exec."""
    slots: list[Slot] = []

    def start(prepare: Callable[[], None] | None = None) -> Slot:
        folder = tmp_path / f"slot{len(slots)}"
        folder.mkdir(exist_ok=True)
        slot = Slot(witness_binary, folder, prepare)
        slots.append(slot)
        return slot

    yield start
    for slot in slots:
        slot.close()


@pytest.fixture
def slot(start_slot: StartSlot) -> Slot:
    """A slot witness that we are connected to."""
    slot = start_slot()
    slot.connect()
    return slot


@pytest.fixture
def cgroup1() -> Iterator[Path]:
    """A v1 memory cgroup folder of this test's own."""
    folder = CGROUP1 / f"aver-test-{os.getpid()}-{next(_numbers)}"
    if not (CGROUP1 / "memory.limit_in_bytes").exists():
        pytest.skip("this machine has no v1 memory cgroup")
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"the v1 memory cgroup can't be written: {error}")
    yield folder
    for inner, _, _ in os.walk(folder, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(inner)
