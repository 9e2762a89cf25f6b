"""Schedules: what is due is submitted once, also after crashes; what was missed is made up for once."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from aver.cli import main
from aver.client.schedules import (
    Progress,
    Schedule,
    add_schedule,
    read_progress,
    write_progress,
)
from live_home import LiveHome, shell_job, wait_for

DAY_S = 86400.0


@pytest.fixture
def live(aver_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LiveHome:
    (tmp_path / "config.toml").write_text("kill_wait = 1\nidle_exit = 1\n")
    monkeypatch.setenv("AVER_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "work").mkdir()
    (tmp_path / "flow.yaml").write_text("jobs: {tell: {run: 'echo $COLOUR >> told'}}\n")
    return LiveHome(aver_home, tmp_path / "work")


def since_days(live: LiveHome, file: str = "flow.yaml") -> Schedule:
    """A schedule for each midnight that nobody has looked after for three days."""
    return add_schedule(live.home, file, "@daily", time.time() - 3 * DAY_S, {**os.environ, "COLOUR": "red"}, False)


def start(live: LiveHome) -> None:
    with live.client():
        pass


def progress(live: LiveHome, schedule: Schedule) -> Progress | None:
    """What became of the last time, once that is known."""
    found = read_progress(live.home, schedule)
    return found if found.due > schedule.created_at else None


def test_missed_times_are_made_up_for_once(live: LiveHome, tmp_path: Path) -> None:
    """With the environment and the folder of whoever made the schedule."""
    schedule = since_days(live)
    start(live)
    done = wait_for(lambda: progress(live, schedule), "the submission")
    assert (done.run, done.note) == (1, "")
    live.settle([1])
    assert (tmp_path / "told").read_text() == "red\n"
    with live.reader() as reader:
        assert [run.id for run in reader.runs()] == [1]


def test_a_crash_before_it_was_noted_submits_nothing_twice(live: LiveHome) -> None:
    """The key names the time: it is the same run."""
    schedule = since_days(live)
    start(live)
    wait_for(lambda: progress(live, schedule), "the submission")
    live.settle([1])
    live.kill_coordinator()
    (live.home.schedules / f"{schedule.id}.state").unlink()
    start(live)
    done = wait_for(lambda: progress(live, schedule), "the submission again")
    with live.reader() as reader:
        assert (done.run, [run.id for run in reader.runs()]) == (1, [1])


def test_a_time_at_which_the_last_run_is_not_settled_is_skipped(live: LiveHome) -> None:
    """And it is said which run that was."""
    run = live.submit(shell_job("long", "exec sleep 600"))
    live.kill_coordinator()
    schedule = since_days(live)
    write_progress(live.home, schedule, Progress(time.time() - 2 * DAY_S, run))
    start(live)
    done = wait_for(lambda: (found := read_progress(live.home, schedule)).note and found, "the skipped time")
    assert (done.run, done.note) == (run, f"skipped: run {run} was not settled")


def test_what_can_not_be_submitted_is_noted(live: LiveHome, tmp_path: Path) -> None:
    """With the reason; the next time is tried again."""
    schedule = since_days(live)
    (tmp_path / "flow.yaml").write_text("jobs: {}\n")
    start(live)
    done = wait_for(lambda: progress(live, schedule), "the attempt")
    assert done.run is None
    assert done.note.startswith("not submitted: ")


def test_schedules_are_made_listed_and_removed(live: LiveHome, capfd: pytest.CaptureFixture[str]) -> None:
    """The coordinator stays for it, and leaves when it is removed."""
    assert main.invoke(["schedule", "flow.yaml", "0 3 * * *"]) == 0
    assert capfd.readouterr().out.startswith("schedule 1: next at ")
    assert main.invoke(["schedule"]) == 0
    out = capfd.readouterr().out
    assert "flow.yaml" in out
    assert "0 3 * * *" in out
    assert live.home.has_coordinator()
    assert main.invoke(["schedule", "remove", "1"]) == 0
    wait_for(lambda: not live.home.has_coordinator(), "its leaving")
    assert main.invoke(["schedule", "remove", "1"]) == 2
    assert "no schedule 1" in capfd.readouterr().err


@pytest.mark.parametrize("words", [("flow.yaml", "0 3 * *"), ("none.yaml", "@daily"), ("flow.yaml",), ("remove",)])
def test_what_can_not_be_scheduled_is_refused_at_once(live: LiveHome, words: tuple[str, ...]) -> None:
    """Nothing is written."""
    assert main.invoke(["schedule", *words]) != 0
    assert not live.home.schedules.exists()
