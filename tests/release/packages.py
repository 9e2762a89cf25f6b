"""Wheels of this checkout and of an earlier commit, and an environment that they are installed into."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
EARLIER = "95c1e1d"  # the last commit whose coordinator does not write its version into the lock
PARTS = ("src", "docs/en", "docs/zh", "pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "NOTICE")
COMMAND_S = 60.0


def build_wheel(source: Path, out: Path, **environment: str) -> Path:
    """Build with the setuptools of the tests, offline."""
    words = ["wheel", "-q", "--disable-pip-version-check", "--no-deps", "--no-index", "--no-build-isolation"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", *words, "-w", out, source],
        env={**os.environ, **environment}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (wheel,) = out.glob("*.whl")
    return wheel


def copy_checkout(folder: Path) -> Path:
    """What a wheel is built from, without anything that was built: setuptools writes into the folder."""
    for name in PARTS:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "aver-witness", "*.tmp")
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        else:
            folder.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, folder)
    return folder


def unpack_commit(commit: str, folder: Path) -> Path:
    """The files of an earlier commit; the test is skipped where this clone does not have it."""
    packed = subprocess.run(["git", "-C", ROOT, "archive", commit], capture_output=True, check=False)
    if packed.returncode != 0:
        pytest.skip(f"this clone has no commit {commit}, so there is no earlier version to upgrade from")
    with tarfile.open(fileobj=BytesIO(packed.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


class Environment:
    """A virtual environment with a version of Aver, a home, and a folder to type commands in.

    What Aver needs comes from the tests' own environment: nothing is fetched.
    """

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder
        self.home = home
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        site = folder / "venv" / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
        (site / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def install(self, wheel: Path) -> None:
        words = ["install", "-q", "--disable-pip-version-check", "--no-index", "--no-deps"]
        subprocess.run([self.folder / "venv/bin/pip", *words, wheel], check=True)

    def words(self, *args: str) -> list[str]:
        return [str(self.folder / "venv/bin/aver"), *args]

    def __call__(self, *args: str, status: int = 0) -> str:
        """Type a command, and return what it prints: its output, or its errors where it fails as wanted."""
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run(
            self.words(*args), cwd=self.folder, capture_output=True, text=True, check=False, timeout=COMMAND_S,
            env={**environment, "AVER_HOME": str(self.home)},
        )  # fmt: skip
        assert done.returncode == status, (args, done.stdout, done.stderr)
        return done.stdout if status == 0 else done.stderr

    def submit(self, command: str, *options: str) -> int:
        return int(self("submit", "--time", "5m", "--mem", "64M", *options, "--", "sh", "-c", command).split()[-1])

    def job(self, number: int) -> dict[str, Any]:
        (found,) = [job for job in json.loads(self("jobs", "--json"))["jobs"] if job["id"] == number]
        return dict(found)

    def lock(self) -> dict[str, Any]:
        return dict(json.loads((self.home / "lock").read_bytes()))

    def pid(self) -> int:
        """The coordinator's."""
        return int(self.lock()["pid"])
