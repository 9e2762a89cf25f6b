"""The folder in which an agent works."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def folder(aver_home: Path, tmp_path: Path) -> Path:
    """Where the agent works; the home is empty."""
    made = tmp_path / "here"
    made.mkdir()
    return made
