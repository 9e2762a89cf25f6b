"""What is seen at a glance: tables that fit a terminal, filters, `last`, synonyms, completion, `aver` alone."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest
from product import Product
from stored_past import SECRET, Aver

from aver.cli.address import runs_back, typed_address
from aver.cli.commands.look.overview import SHOWN
from aver.cli.completion import complete_address
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


def test_jobs_are_filtered(past: Path, call: Aver) -> None:
    """By state, by name and by time; what does not fit is not said to be no job at all."""

    def numbers(*args: str) -> list[int]:
        return [job["id"] for job in call("jobs", *args, "--json").document["jobs"]]

    assert numbers() == [6, 5, 4, 2, 1]
    assert numbers("--failed") == [5, 2]
    assert numbers("--state", "failed,out_of_memory") == [5, 2]
    assert numbers("--state", "completed", "--name", "train*") == [4]
    assert numbers("--name", "train") == [5, 4]
    assert numbers("--running") == []
    assert numbers("--since", "2h") == []
    assert numbers("--since", "2020-01-01", "--limit", "1") == [6]
    assert numbers("--sort", "time")[0] == 2
    empty = call("jobs", "--running")
    assert (empty.status, empty.out, empty.err) == (0, "", "aver: no job matches; `aver jobs` lists all\n")
    assert call("jobs", "--since", "tuesday-ish").status == 2


def test_failures_come_first_where_not_all_are_shown(past: Path, call: Aver) -> None:
    """Job 5 of run 3 failed: one row is that one."""
    assert [job["id"] for job in call("jobs", "3", "-n", "1", "--json").document["jobs"]] == [5]
    assert [job["id"] for job in call("jobs", "3", "--json").document["jobs"]] == [4, 5, 6]


def test_last_is_the_newest_run(past: Path, call: Aver) -> None:
    """`last`, `last/eval` and `-1` for every command that takes an address; `-2` is the run before."""
    assert call("show", "last", "--json").document["run"]["id"] == 3
    assert call("show", "last/eval", "--json").document["job"]["id"] == 6
    assert call("show", "-1/eval", "--json").document["job"]["id"] == 6
    assert call("why", "-2", "--json").document["job"]["id"] == 2
    assert call("log", "-3").out == "hello\n"
    assert call("results", "-1", "--json").document["run"] == 3
    assert "only 3 runs" in call("show", "-9").err
    assert call("jobs", "-n", "1", "--json").status == 0


def test_words_that_are_no_addresses_stay_as_they_are() -> None:
    """Only a dash and a number mean a run."""
    words = ("-1", "-2/a", "-n", "--all", "-0", "-1x", "7")
    assert [typed_address(word) for word in words] == ["last", "last~1/a", "-n", "--all", "-0", "-1x", "7"]
    assert runs_back("last~2/x") == (2, "/x")
    assert runs_back("last.0") == (0, ".0")
    assert runs_back("lastly") is None


def test_words_of_other_tools_are_understood(past: Path, call: Aver) -> None:
    """ls, logs, wait and the like are commands; only a near miss gets a suggestion."""
    assert call("ls", "--json").document == call("jobs", "--json").document
    assert call("logs", "1").out == "hello\n"
    assert call("ps", "--json").document["jobs"] == []
    assert call("describe", "1").out == call("show", "1").out
    assert "did you mean `aver jobs`?" in call("jbos").err
    assert "did you mean" not in call("zebra").err
    assert "`aver cancel 2` ends jobs" in call("stop", "2").err


def test_a_shell_completes_numbers_and_names(past: Path) -> None:
    """The newest first; after a run's slash its jobs; values of secrets are not among them."""
    assert [item.value for item in complete_address("")] == ["last", "6", "5", "4", "3", "2", "1"]
    assert [item.value for item in complete_address("3/tr")] == ["3/train[seed=1]", "3/train[seed=2]"]
    assert [item.value for item in complete_address("last/e")] == ["last/eval"]
    assert complete_address("9/") == []
    assert all(SECRET not in (item.help or "") for item in complete_address(""))


def test_aver_alone_says_what_failed_since_the_last_look(past: Path, call: Aver) -> None:
    """The second look has no news; a home without jobs shows the help."""
    first = call()
    assert first.status == 0
    assert first.out.splitlines()[0] == "0 running, 0 waiting"
    assert "\n2 failed\n" in first.out
    assert "OUT_OF_MEMORY" in first.out
    assert "aver why" in first.out
    assert "\nnone failed since " in call().out


def test_aver_alone_names_an_old_job_that_failed_late(aver: Product) -> None:
    """However many with higher numbers failed before the last look."""
    aver.submit("--", "sh", "-c", "until test -e go; do sleep 0.05; done; exit 1")
    for _ in range(SHOWN + 1):
        aver("run", "--", "false")
    assert f"{SHOWN + 1} failed" in aver().out
    (aver.folder / "go").touch()
    aver("watch", "1")
    (line,) = [line for line in aver().out.splitlines() if "FAILED" in line]
    assert line.split()[0] == "1"


def test_aver_alone_in_an_empty_home_is_the_help(aver: Product) -> None:
    """There is nothing to look at yet."""
    answer = aver()
    assert answer.status == 0
    assert "Usage: aver" in answer.out


def test_show_says_what_was_asked_for(past: Path, call: Aver) -> None:
    """Also before there is an attempt that could say it."""
    shown = call("show", "2", "--json").document
    assert shown["asked"]["mem_bytes"] == 2 << 30
    assert shown["waiting_since"] is None
    assert "asked       cpus 1, memory 2.0 GiB" in call("show", "2").out


def test_python_is_not_buffered(aver: Product) -> None:
    """What a killed program wrote last is in its log, unless the environment says otherwise."""
    script = "echo $PYTHONUNBUFFERED"
    assert aver("run", "-q", "--", "sh", "-c", script).out == "1\n"
    assert aver("run", "-q", "--env", "PYTHONUNBUFFERED=", "--", "sh", "-c", script).out == "\n"


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
