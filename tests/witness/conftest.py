"""Fixtures: a slot witness, as many as a test needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from witness_driver import Slot, StartSlot


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
