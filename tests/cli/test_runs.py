"""`aver runs`."""

from __future__ import annotations

from pathlib import Path

from stored_past import Aver


def test_runs_lists_runs_with_counts(past: Path, call: Aver) -> None:
    """Newest first; a flow with how its jobs stand."""
    runs = call("runs", "--json").document["runs"]
    assert [run["id"] for run in runs] == [3, 2, 1]
    assert runs[0]["counts"] == {"COMPLETED": 1, "FAILED": 1, "SKIPPED": 1}
    assert "1 COMPLETED, 1 FAILED, 1 SKIPPED" in call("runs").out
