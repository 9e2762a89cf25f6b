"""Tables and notes that fit a terminal, and the short words of verdicts."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest
from product import Product

from aver.cli.output.table import Table, cell_count, draw, shortened
from aver.cli.output.text import folded
from aver.cli.output.views import near_moment
from aver.model.exit import ExitStatus
from aver.model.states import State
from aver.render.verdict import short_words

LONG = "prepare-the-data-of-the-whole-year[learning_rate=0.0001,seed=17]"


@pytest.mark.parametrize("width", [80, 110, 200])
def test_a_table_fits_the_terminal(width: int) -> None:
    """Columns that say nothing are left out, long names keep both ends, and nothing is cut where there is room."""
    heads = ("JOB", "RUN", "NAME", "STATE", "EXIT", "DERIVED", "TIME", "REASON", "WARNING")
    row = ("123456", "123400", LONG, "OUT_OF_MEMORY", "0:125", "0:0", "2 h 5 min", f"NeedFailed:{LONG}(FAILED)", "-")
    lines = draw(Table(heads, (row,), frozenset({0, 1, 6}), 2, ((5, ("0:0",)),)), width, has_colours=False)
    assert all(cell_count(line) <= width for line in lines)
    assert "DERIVED" not in lines[0]
    assert "WARNING" not in lines[0]
    assert "OUT_OF_MEMORY" in lines[1]
    assert ("…" in lines[1]) == (width < 200)
    assert "=17]" in lines[1]


def test_a_short_name_keeps_both_ends() -> None:
    """Members of a matrix differ at their ends; a wide character is not cut in two."""
    assert shortened("train[seed=1]", 13) == "train[seed=1]"
    assert shortened("train[rate=0.1,seed=17]", 12) == "train[…d=17]"
    assert cell_count(shortened("名前" * 10, 12)) <= 12


def test_a_date_is_shown_where_it_is_not_today() -> None:
    """The time of day is enough today."""
    now = time.time()
    assert len(near_moment(now)) == len("12:00:00")
    assert near_moment(now - 3 * 86400).startswith(time.strftime("%Y-", time.localtime(now - 3 * 86400)))


@pytest.mark.parametrize(
    ("command", "row"), [("jobs 3", "exit 3"), ("results 3", "exit 3"), ("usage 3", "train"), ("", "exit 3")]
)
def test_listings_fit_80_columns_in_words(past: Path, aver: Product, command: str, row: str) -> None:
    """No line is folded by the terminal, and no exit or reason needs Slurm's manual."""
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "aver", *command.split()]
    environment = {**os.environ, "AVER_HOME": str(past), "COLUMNS": "80", "NO_COLOR": "1"}
    done = subprocess.run(words, stdout=theirs, env=environment, timeout=60, check=True)
    os.close(theirs)
    lines = os.read(ours, 65536).decode().splitlines()
    os.close(ours)
    assert done.returncode == 0
    assert max(map(len, lines)) <= 80, lines
    assert any(row in line for line in lines), lines
    assert not any("NonZeroExitCode" in line for line in lines)


def test_a_note_is_folded_between_words_and_not_inside_a_command() -> None:
    """What is to be typed stays in one line."""
    text = "aver: job 4 FAILED in 7.2 s, and a long text up to the edge of it; aver why 4"
    assert folded(text, 80) == [text]
    lines = folded(text, 76)
    assert lines == ["aver: job 4 FAILED in 7.2 s, and a long text up to the edge of it;", "aver why 4"]
    assert folded("say `aver jobs 3 --all` or", 16) == ["say", "`aver jobs 3 --all`", "or"]


@pytest.mark.parametrize(
    ("state", "ended", "reason", "words"),
    [
        (State.FAILED, ExitStatus(3), "NonZeroExitCode", "exit 3"),
        (State.FAILED, ExitStatus(0, 11), "RaisedSignal:11(Segmentation_fault)", "signal 11 (SIGSEGV)"),
        (State.FAILED, ExitStatus(0), "MissingOutput", "output missing"),
        (State.FAILED, None, "JobLaunchFailure", "could not start"),
        (State.OUT_OF_MEMORY, ExitStatus(0, 9), "OutOfMemory", ""),
        (State.SKIPPED, None, "NeedFailed:prep(FAILED)", "needs prep (FAILED)"),
        (State.PENDING, None, "JobHeldUser", "held"),
        (State.PENDING, None, "QOSMaxCpuPerUserLimit", "QOSMaxCpuPerUserLimit"),
        (State.COMPLETED, ExitStatus(0), "FromRun:12(14)", ""),
    ],
)
def test_short_words(state: State, ended: ExitStatus | None, reason: str, words: str) -> None:
    """A reason of Slurm's that has no words of ours stays as it is."""
    assert short_words(state, ended, reason) == words
