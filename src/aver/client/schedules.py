"""Schedules: flows that are submitted again and again, each in two files of the home, `schedules/N.json` and `N.env`.

A third file, `N.state`, is the coordinator's: how far it has come. A command writes the first two, durably and the
second one first, so that a schedule is there as a whole or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress

from aver.durable_files import create_file, naming_failures, write_file
from aver.home import Home
from aver.model.codec import dumps, loads
from aver.model.record import Record
from aver.ownership import make_folder


class Schedule(Record):
    """What is submitted, when, and from where. `overlaps`: also while its last run is not settled."""

    id: int
    file: str
    cron: str
    folder: str
    created_at: float
    overlaps: bool = False


class Progress(Record):
    """`due` is the last time that was dealt with; `note` is what became of it."""

    due: float
    run: int | None = None
    note: str = ""


def add_schedule(home: Home, file: str, cron: str, now: float, env: Mapping[str, str], overlaps: bool) -> Schedule:
    """Durable when this returns."""
    home.prepare()
    folder = home.schedules
    make_folder(os.fspath(folder))
    number = 1 + max((int(path.stem) for path in folder.iterdir() if path.stem.isdigit()), default=0)
    schedule = Schedule(number, os.path.abspath(file), cron, os.getcwd(), now, overlaps)
    text = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in env.items())
    with naming_failures(folder):
        create_file(folder / f"{number}.env", text)
        write_file(folder / f"{number}.json", dumps(schedule).encode())
    return schedule


def remove_schedule(home: Home, number: int) -> bool:
    """Whether there was one."""
    folder = home.schedules
    try:
        (folder / f"{number}.json").unlink()
    except FileNotFoundError:
        return False
    for suffix in ("env", "state"):
        with suppress(OSError):
            (folder / f"{number}.{suffix}").unlink()
    return True


def read_schedules(home: Home) -> list[Schedule]:
    """By number; one that can't be read is left out."""
    found = []
    with suppress(FileNotFoundError):
        for path in home.schedules.glob("*.json"):
            with suppress(OSError, ValueError):
                found.append(loads(Schedule, path.read_text()))
    return sorted(found, key=lambda one: one.id)


def read_progress(home: Home, schedule: Schedule) -> Progress:
    """Of a schedule that was never due: that of its creation."""
    with suppress(OSError, ValueError):
        return loads(Progress, (home.schedules / f"{schedule.id}.state").read_text())
    return Progress(schedule.created_at)


def write_progress(home: Home, schedule: Schedule, progress: Progress) -> None:
    write_file(home.schedules / f"{schedule.id}.state", dumps(progress).encode())


def read_environment(home: Home, schedule: Schedule) -> dict[str, str]:
    data = (home.schedules / f"{schedule.id}.env").read_bytes()
    return dict(os.fsdecode(pair).partition("=")[::2] for pair in data.split(b"\0") if pair)
