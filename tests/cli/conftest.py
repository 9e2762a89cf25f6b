"""Fixtures of the command line's tests: commands called in this process, and a home with a settled past."""

from __future__ import annotations

from pathlib import Path

import pytest
from product import Product
from stored_past import Answer, Aver, fill_home

from aver.cli import main


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Aver:
    """Call the command line in this process."""
    monkeypatch.delenv("AVER_DEBUG", raising=False)

    def invoke(*args: str) -> Answer:
        capfd.readouterr()
        status = main.invoke(list(args))
        captured = capfd.readouterr()
        return Answer(status, captured.out, captured.err)

    return invoke


@pytest.fixture
def past(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in which job 1 completed, job 2 was out of memory, and flow 3 failed with a skipped job. The folder of
    the jobs is `tmp_path / "work"`."""
    home = tmp_path / "home"
    monkeypatch.setenv("AVER_HOME", str(home))
    fill_home(home, tmp_path / "work")
    return home


@pytest.fixture
def aver(aver_home: Path, tmp_path: Path) -> Product:
    """The real product, with an empty home and a folder to work in."""
    folder = tmp_path / "here"
    folder.mkdir()
    return Product(folder)
