"""Fixtures: Slurm's reading commands called in this process, on a home that the test has filled."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from queue_past import Call, Past, ReleaseIs, Reply, fill
from slurm_commands import Slurm, make_slurm

from aver.slurm_cli.facts import Book


@pytest.fixture
def empty_past(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Past:
    """A home without jobs, which no coordinator is started for."""
    past = Past.make(tmp_path)
    use(past, monkeypatch)
    return past


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Past:
    past = Past.make(tmp_path_factory.mktemp("filled"))
    fill(past)
    return past


@pytest.fixture
def past(filled: Past, monkeypatch: pytest.MonkeyPatch) -> Past:
    """The home of the recorded session, jobs 31 to 37. Shared: to be read only."""
    use(filled, monkeypatch)
    return filled


def use(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AVER_HOME", str(past.home))
    for name in ("SQUEUE_FORMAT", "SACCT_FORMAT", "SINFO_FORMAT", "SLURM_TIME_FORMAT", "SQUEUE_STATES", "AVER_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Book, "refresh", lambda self: False)


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Call:
    """Call a command by its name."""

    def invoke(command: str, *argv: str) -> Reply:
        name = "scontrol.show" if command == "scontrol" else command
        capfd.readouterr()
        status = importlib.import_module(f"aver.slurm_cli.{name}").main(list(argv))
        captured = capfd.readouterr()
        return Reply(status, captured.out, captured.err)

    return invoke


@pytest.fixture
def release_is(tmp_path: Path, past: Past, monkeypatch: pytest.MonkeyPatch) -> ReleaseIs:
    """Make the commands those of a release of Slurm (`slurm.version`)."""

    def choose(release: str) -> None:
        settings = tmp_path / f"{release}.toml"
        settings.write_text(f'[slurm]\nversion = "{release}"\n')
        monkeypatch.setenv("AVER_CONFIG", str(settings))

    return choose


@pytest.fixture
def slurm(aver_home: Path, tmp_path: Path) -> Slurm:
    """Slurm's commands as processes, of an empty home, called in a folder of their own."""
    return make_slurm(aver_home, tmp_path / "here")
