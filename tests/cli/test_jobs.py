"""`aver jobs`: rows, columns, filters, and what does not fit."""

from __future__ import annotations

from pathlib import Path

import pytest
from drawn_terminal import Terminal
from product import Product
from stored_past import T0, Aver

from aver.cli.output.documents import JobFacts
from aver.cli.output.views import job_table
from aver.model.record import replace


def test_jobs_lists_all_with_stable_columns(past: Path, call: Aver) -> None:
    """Plain text: one line for each job, aligned, no colours, no boxes."""
    answer = call("jobs")
    lines = answer.out.splitlines()
    assert lines[0].split() == ["JOB", "RUN", "NAME", "STATE", "EXIT", "DERIVED", "TIME", "PEAK", "REASON", "WARNING"]
    assert [line.split()[0] for line in lines[1:]] == ["6", "5", "4", "2", "1"]
    assert "\x1b" not in answer.out
    assert "OUT_OF_MEMORY" in lines[4]
    assert "0:9" in lines[4]


def test_a_job_that_runs_has_a_time() -> None:
    """What has passed since it began; one that waits, or of which nobody knows when it began, has none."""
    runs = JobFacts(
        1, 1, "a", "1/a", "RUNNING", False, "None", None, None, None, None, (), "", 1, False, T0, T0, None, None, None,
        None, "0:0", None,
    )  # fmt: skip
    jobs = [runs, replace(runs, started_at=None), replace(runs, state="PENDING")]
    assert [row[6] for row in job_table(jobs, T0 + 90).rows] == ["1 min 30 s", "-", "-"]


def test_jobs_of_a_run_and_by_state(past: Path, call: Aver) -> None:
    """A run's number and a state choose rows."""
    assert [job["id"] for job in call("jobs", "3", "--json").document["jobs"]] == [4, 5, 6]
    assert [job["id"] for job in call("jobs", "--state", "failed", "--json").document["jobs"]] == [5]
    assert [job["id"] for job in call("jobs", "3/train", "--json").document["jobs"]] == [4, 5]


def test_jobs_are_cut_and_say_so(past: Path, call: Aver) -> None:
    """-n keeps the newest, and says how many are left out."""
    answer = call("jobs", "-n", "2", "--json").document
    assert [job["id"] for job in answer["jobs"]] == [6, 5]
    assert answer["left_out"] == 3
    assert "3 more" in call("jobs", "-n", "2").err
    assert len(call("jobs", "-n", "9" * 30, "--json").document["jobs"]) == 5
    assert call("runs", "-n", "9" * 30).status == 0


def test_a_wrong_state_is_refused_with_the_states(past: Path, call: Aver) -> None:
    """The sentence lists what there is."""
    answer = call("jobs", "--state", "dead")
    assert answer.status == 2
    assert "OUT_OF_MEMORY" in answer.err


def test_an_empty_home_has_no_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Aver) -> None:
    """Reading makes nothing and fails at nothing."""
    monkeypatch.setenv("AVER_HOME", str(tmp_path / "none"))
    assert call("jobs").status == 0
    assert call("runs", "--json").document["runs"] == []
    assert call("show", "1").status == 2
    assert not (tmp_path / "none").exists()


def test_chosen_keys_are_printed_with_tabs(past: Path, call: Aver) -> None:
    """No head; an exit is code:signal, and nothing is empty."""
    assert call("jobs", "3", "--format", "id,state,exit,source").out.splitlines() == [
        "4\tCOMPLETED\t0:0\twitness",
        "5\tFAILED\t3:0\twitness",
        "6\tSKIPPED\t\tcoordinator",
    ]
    answer = call("jobs", "--format", "id,colour")
    assert (answer.status, "no key 'colour'; the keys are id, run, name" in answer.err) == (2, True)
    assert call("jobs", "--format", "id", "--json").status == 2


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


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
def test_a_table_shows_what_it_leaves_out(past: Path, aver: Product, width: int) -> None:
    """States are never cut; a reason in words that is shortened has an ellipsis, and at 200 columns it is whole."""
    terminal = Terminal(aver, ["jobs"], width, 24, AVER_HOME=str(past), NO_COLOR="1")
    text = terminal.read_until(None)
    assert terminal.close() == 0
    assert "OUT_OF_MEMORY" in text
    assert "exit 3" in text
    assert "NonZeroExitCode" not in text
    assert ("…" in text) <= (width < 200)
