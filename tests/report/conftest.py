"""Fixtures of the reports' tests: commands called in this process, a past to report on, one browser for all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from aver.cli import main
from chromium import Browser, chromium
from past_runs import Call, fill


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Call the command line; status, stdout, stderr."""
    monkeypatch.delenv("AVER_DEBUG", raising=False)

    def invoke(*args: str) -> tuple[int, str, str]:
        capfd.readouterr()
        status = main.invoke(list(args))
        captured = capfd.readouterr()
        return status, captured.out, captured.err

    return invoke


@pytest.fixture
def past(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with run 1 of `past_runs`; its folder is `tmp_path / "work"`."""
    monkeypatch.setenv("AVER_HOME", str(tmp_path / "home"))
    fill(tmp_path / "home", tmp_path / "work")
    return tmp_path / "home"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A real Chromium; skipped, and said so, where there is none."""
    with chromium() as found:
        yield found
