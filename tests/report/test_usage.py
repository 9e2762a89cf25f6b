"""`aver usage`: asked for against used, by job and by group; and what --correct says without a file."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from aver.model import events as ev
from aver.model.job import FlowSpec, JobSpec, Request, Shell, Submission
from aver.model.states import State
from aver.store.write.writer import Writer
from past_runs import Call, attempt, origin

GIB = 1 << 30


def document(call: Call, *args: str) -> Any:
    status, out, err = call("usage", "1", "--json", *args)
    assert (status, err) == (0, "")
    return json.loads(out)


def test_groups_and_jobs(past: Path, call: Call) -> None:
    """A group has its highest peak and longest time; shares are of what was asked for; marks say what stands out."""
    found = document(call)
    train = next(one for one in found["groups"] if one["name"] == "train")
    assert train["jobs"] == 3
    assert train["mem"] == {"asked": 64 << 20, "used": 64 << 20, "share": 1.0, "mark": "over"}
    assert train["time"] == {"asked": 60, "used": 3.0, "share": 0.05, "mark": "fine"}
    assert train["cpus"]["share"] == 0.625
    assert train["measured_by"] == ["witness"]
    jobs = {one["job"]: one for one in found["jobs"]}
    assert sorted(jobs) == [2, 3, 4, 5, 7, 8]
    assert jobs[5]["attempt"] == 2
    assert jobs[3]["mem"]["share"] == 0.75
    assert jobs[2]["mem"] == {"asked": None, "used": 48 << 20, "share": None, "mark": "fine"}
    assert jobs[8]["time"]["mark"] == "over"
    assert found["never_ran"] == 2


def test_the_tables(past: Path, call: Call) -> None:
    """Both in the answer, and each alone; no bars where there is no terminal."""
    both = call("usage", "1")[1]
    assert "GROUP  JOBS" in both
    assert "JOB  NAME" in both
    assert "█" not in both
    assert both.splitlines()[-1] == "run 1: ? of cpu time used, of ? asked for"  # job 9 may have run
    train = call("usage", "1/train*")[1]
    assert train.splitlines()[-1] == "run 1: 4.4 s of cpu time used, of 7.0 s asked for (62%)"
    assert "JOB  NAME" not in call("usage", "1", "--by", "group")[1]
    assert "GROUP" not in call("usage", "1", "--by", "job")[1]


def test_csv_of_jobs_and_of_groups(past: Path, call: Call) -> None:
    """One row for each, with plain numbers."""
    jobs = list(csv.DictReader(io.StringIO(call("usage", "1", "--csv")[1])))
    groups = list(csv.DictReader(io.StringIO(call("usage", "1", "--csv", "--by", "group")[1])))
    assert [row["job"] for row in jobs] == ["2", "3", "4", "5", "7", "8"]
    assert [row["group"] for row in groups] == ["prep", "train", "lint", "slow"]
    assert jobs[3]["mem_peak_bytes"] == str(64 << 20)


def test_figures_that_nobody_measured(tmp_path: Path, call: Call, monkeypatch: Any) -> None:
    """They are null and `?`, never 0; who measured is said; a witness's 0 is one that the kernel had not counted."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("AVER_HOME", str(home))
    request = Request(mem_bytes=GIB, time_s=60)
    specs = tuple(JobSpec(name, Shell("true"), request) for name in ("a", "b"))
    quick = attempt(1, 2, 1, 0.5, 1.0, 0, request, peak=0)
    slurm = attempt(1, 3, 1, 0.5, 1.0, 0, request)
    last = slurm[-1]
    assert isinstance(last, ev.Observed)
    assert last.verdict is not None
    verdict = type(last.verdict)(State.COMPLETED, last.verdict.exit, "None", True, "accounting")
    usage = ev.Usage(last.at - 1, 1.0, None, None, GIB // 2, "node1")
    slurm[-1] = ev.Observed(last.at, 1, 3, 1, "sacct", "…", State.COMPLETED, "None", verdict, usage)
    submission = Submission(FlowSpec("flow", specs), origin(tmp_path))
    writer = Writer.open(home / "aver.db")
    writer.commit([ev.RunSubmitted(1.0, 1, 2, submission), *quick, *slurm, ev.RunMoved(9.0, 1, State.COMPLETED)])
    writer.close()
    jobs = {one["name"]: one for one in document(call)["jobs"]}
    assert jobs["a"]["mem"] == {"asked": GIB, "used": None, "share": None, "mark": "unknown"}
    assert jobs["a"]["measured_by"] == "witness"
    assert jobs["b"]["cpus"] == {"asked": 1, "used": None, "share": None, "mark": "unknown"}
    assert jobs["b"]["measured_by"] == "sacct"
    assert jobs["b"]["mem"]["share"] == 0.5
    out = call("usage", "1")[1]
    assert "?" in next(line for line in out.splitlines() if " a " in line)
    assert out.splitlines()[-1] == "run 1: ? of cpu time used, of 2.0 s asked for"


@pytest.mark.parametrize(
    "args",
    [
        ("usage", "1", "--correct", "--dry-run", "--max-time", "UNLIMITED"),
        ("usage", "1", "--correct", "--dry-run", "--time-floor", "infinite"),
        ("recover", "1", "--dry-run", "--max-time", "UNLIMITED"),
        ("watch", "1", "--timeout", "UNLIMITED"),
        ("prune", "--older-than", "UNLIMITED"),
    ],
)
def test_no_limit_is_no_bound_of_0(past: Path, call: Call, args: tuple[str, ...]) -> None:
    """The word for no limit is refused where an amount is asked for: it is not taken for none at all."""
    status, out, err = call(*args)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "is not a limit" in err


def test_a_run_without_a_file_is_told_what_to_ask_for(past: Path, call: Call) -> None:
    """The proposals are shown; there is nothing to edit, and it is said."""
    status, out, err = call("usage", "1", "--correct", "--dry-run")
    assert status == 0
    assert "train: mem 64M to 96M: 2 of 4 attempts ran out of memory at 64 MiB\n" in out
    assert "slow: time 2s to 1m: it passed the limit of 2.0 s\n" in out
    assert "did not come from a flow's file" in err
