"""A home with a real coordinator, and the command line as a user types it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from live_home import DEADLINE_S, LiveHome

Typed = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder of ours that every user can enter."""
    path = Path(tempfile.mkdtemp(prefix="avs-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def live(aver_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveHome]:
    config = tmp_path / "config.toml"
    config.write_text("cpus = 4\nkill_wait = 2\nidle_exit = 1\n")
    monkeypatch.setenv("AVER_CONFIG", str(config))
    folder = tmp_path / "jobs"
    folder.mkdir()
    live = LiveHome(aver_home, folder)
    yield live
    live.end_everything()


@pytest.fixture
def typed(live: LiveHome) -> Typed:
    """Type an `aver` command in the folder of the jobs."""

    def run(
        *args: str | bytes, env: Mapping[str, str] = {}, stdin: bytes = b"", **options: object
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "aver", *args],
            cwd=live.folder, env={**os.environ, **env}, input=stdin, capture_output=True, timeout=DEADLINE_S,
            check=False, **options,
        )  # type: ignore[call-overload, no-any-return] # fmt: skip

    return run
