"""`aver ui` as a command: the link that it prints, its end, and what it says when it can't begin."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

MISSING = "import sys; sys.modules[{name!r}] = None; from aver.cli.main import main; main(['ui'])"


def started(tmp_path: Path, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        args, cwd=tmp_path, env={**os.environ, "AVER_HOME": str(tmp_path / "home")}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["starlette", "uvicorn"])
def test_without_the_extra_it_says_what_to_install(tmp_path: Path, name: str) -> None:
    out, err = started(tmp_path, sys.executable, "-c", MISSING.format(name=name)).communicate()
    assert (out, err) == ("", "aver: aver ui needs starlette and uvicorn: pip install 'aver[ui]'\n")


def test_port_and_socket_are_two_things(tmp_path: Path) -> None:
    process = started(tmp_path, sys.executable, "-m", "aver", "ui", "--port", "8642", "--socket")
    assert process.communicate()[1] == "aver: give --port or --socket, not both\n"
    assert process.returncode == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_its_link_and_ends_without_a_word(tmp_path: Path, number: signal.Signals) -> None:
    """The link is alone on its line, for scripts; a signal ends it at once and leaves nothing in the home's way."""
    process = started(tmp_path, sys.executable, "-m", "aver", "ui", "--socket")
    assert process.stdout is not None
    assert process.stdout.readline().startswith("http://127.0.0.1:8642/")
    assert "ssh -L 8642:" in process.stdout.readline()
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert err == ""
    assert not (tmp_path / "home" / "ui.sock").exists()
