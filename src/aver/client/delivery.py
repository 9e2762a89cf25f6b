"""Progress of a home's notifications, kept in a file."""

from __future__ import annotations

from pathlib import Path

from aver.durable_files import write_file
from aver.home import Home
from aver.model.codec import decode, dumps, parse
from aver.model.record import Record


class Told(Record):
    """How far it has come. `rules` names the settings' rules that hold from `since` on."""

    done: int
    rules: str = ""
    since: int = 0
    delivered: int = 0
    given_up: int = 0
    problem: str = ""
    problem_at: float = 0.0
    trying: str = ""  # what could not be delivered yet, and why


def told_path(home: Home) -> Path:
    return home.path / "notified"


def read_told(home: Home) -> Told | None:
    """None if the file is missing or unreadable."""
    try:
        return decode(Told, parse(told_path(home).read_bytes()))
    except (OSError, ValueError):
        return None


def write_told(home: Home, told: Told) -> None:
    """Whole and durable; raise OSError."""
    write_file(told_path(home), dumps(told).encode())
