"""`aver status`."""

from __future__ import annotations

from pathlib import Path

from stored_past import Aver


def test_status_without_a_coordinator_starts_none(past: Path, call: Aver) -> None:
    """It says that nobody is there."""
    assert call("status", "--json").document["is_running"] is False
    assert call("stop").status == 0
    assert not (past / "lock").exists()
