"""The test lab's own folder: root takes nothing from one that somebody else made under its name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from second_user import OTHER, needs_root, other_does

LAB = Path(__file__).resolve().parents[2] / "scripts" / "slurm-lab"


@pytest.fixture
def place() -> Iterator[Path]:
    """As /tmp: everybody may make something in it."""
    path = Path(tempfile.mkdtemp(prefix="avl-", dir="/tmp"))
    path.chmod(0o1777)
    yield path
    shutil.rmtree(path)


def _lab(action: str, folder: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "AVER_SLURM_LAB": str(folder), "AVER_SLURM_LAB_PORT": "17290"}
    return subprocess.run(
        [sys.executable, str(LAB), action], env=env, capture_output=True, text=True, timeout=120, check=False
    )


@needs_root
@pytest.mark.parametrize("action", ["start", "stop", "status", "env"])
@pytest.mark.parametrize("kind", ["folder", "link", "open"])
def test_folder_of_somebody_else(place: Path, action: str, kind: str) -> None:
    """A folder or a link of another user, or one that others can write: one line, nothing is started or signalled."""
    folder = place / "lab"
    target = place / "target"
    target.mkdir(mode=0o755)
    if kind == "folder":
        other_does(lambda: folder.mkdir(mode=0o755))
    elif kind == "link":
        other_does(lambda: folder.symlink_to(target))
    else:
        folder.mkdir()
        folder.chmod(0o777)
    done = _lab(action, folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert str(folder) in done.stderr or str(place) in done.stderr
    assert "AVER_SLURM_LAB" in done.stderr
    assert kind == "open" or f"uid {OTHER}" in done.stderr
    assert list(target.iterdir()) == []
    assert list(folder.iterdir()) == []
