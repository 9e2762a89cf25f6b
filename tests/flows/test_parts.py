"""Parts of a flow in runs: what runs, what is said of the rest, and how the run goes on."""

from __future__ import annotations

import os
import time

import pytest
from flow_lab import Lab, states, wait_for_file

import aver

FLOW = f"""
jobs:
  prep: {{run: echo prep >> order}}
  train: {{needs: prep, matrix: {{s: [1, 2]}}, run: "echo train{{s}} >> order; touch begun; {wait_for_file("go")}"}}
  eval: {{needs: {{train: same}}, matrix: {{s: [1, 2]}}, run: "echo eval{{s}} >> order"}}
  plot: {{needs: eval, run: echo plot >> order}}
"""


@pytest.mark.parametrize(
    ("options", "ran", "rest"),
    [
        (["--only", "eval*"], ["eval1", "eval2"], "prep, train, plot"),
        (["--until", "train"], ["prep", "train1", "train2"], "eval, plot"),
        (["--from", "train", "--skip", "plot"], ["eval1", "eval2", "train1", "train2"], "prep, plot"),
    ],
)
def test_what_runs_and_what_is_said(lab: Lab, options: list[str], ran: list[str], rest: str) -> None:
    """The rest is named on stderr, in `show` and in `check`, and is no job of the run."""
    lab.let_go("go")
    path = str(lab.write(FLOW))
    answer = lab("run", *options, path)
    assert answer.status == 0
    assert f"not selected: {rest}" in answer.err
    assert sorted(lab.lines("order")) == ran
    shown = lab("show", "1", "--json").document
    assert shown["unselected"] == rest.split(", ")
    assert len(shown["jobs"]) == len(ran)
    count = f"{len(rest.split())} not selected: {rest}"
    assert f"not selected {rest}\n" in lab("show", "1").out
    assert f"; {count}" in answer.err.splitlines()[-1]
    assert f"; {count}" in lab("watch", "1").err
    assert f"; {count};" in lab("results", "1").out.splitlines()[-1]
    assert lab("results", "1", "--json").document["unselected"] == rest.split(", ")
    for document in (lab("watch", "1", "--json").document, lab("runs", "--json").document):
        assert document["runs"][0]["unselected"] == rest.split(", ")
    assert f"not selected: {rest}" in lab("check", *options, path).out
    assert lab("check", *options, path, "--json").document["files"][0]["unselected"] == rest.split(", ")


def test_mistakes(lab: Lab) -> None:
    """A wrong name is refused by `run` and `check`; a command has no parts."""
    path = str(lab.write(FLOW))
    assert 'did you mean "train"?' in lab("run", "--from", "trian", path).err
    assert 'did you mean "train"?' in lab("check", "--from", "trian", path).out
    assert "are for a flow" in lab("run", "--only", "x", "--", "true").err


def test_the_run_goes_on_as_it_is(lab: Lab) -> None:
    """`reinit` reads the whole file and takes the same part of it; a job of the run that is gone is still told."""
    lab.let_go("go")
    run = aver.Flow.from_file(lab.write(FLOW), folder=lab.folder).run(60, from_=["train"], skip=["plot"])
    assert list(states(run)) == ["train[s=1]", "train[s=2]", "eval[s=1]", "eval[s=2]"]
    assert run.reinit(dry_run=True) == ()
    lab.write(FLOW.replace("echo eval", "echo EVAL").replace("echo plot", "echo PLOT"))
    assert [one.name for one in run.reinit()] == ["eval[s=1]", "eval[s=2]"]
    assert run.wait(60) == "COMPLETED"
    assert sorted(lab.lines("order")) == ["EVAL1", "EVAL2", "eval1", "eval2", "train1", "train2"]
    assert lab("show", str(run.number), "--json").document["unselected"] == ["prep", "plot"]


def test_after_kill_9(lab: Lab) -> None:
    """The run has the same part when the coordinator is back."""
    run = aver.Run(int(lab("submit", "--from", "train", "--skip", "plot", str(lab.write(FLOW))).out))
    lab.wait_for("begun")
    lab.kill()
    lab("runs")
    lab.let_go("go")
    assert run.wait(60) == "COMPLETED"
    assert sorted(lab.lines("order")) == ["eval1", "eval2", "train1", "train2"]
    assert lab("show", str(run.number), "--json").document["unselected"] == ["prep", "plot"]


def test_tags(lab: Lab) -> None:
    """Jobs with one of the tags; a tag of the defaults is every job's that has none of its own. The rest is named."""
    path = str(
        lab.write(
            "defaults: {tags: daily}\njobs:\n  a: {run: echo a >> order}\n"
            "  b: {tags: [nightly, slow], needs: a, run: echo b >> order}\n  c: {tags: weekly, run: echo c >> order}\n"
        )
    )
    answer = lab("run", "--tag", "slow", "--tag", "weekly", path)
    assert "; 1 not selected: a" in answer.err
    assert sorted(lab.lines("order")) == ["b", "c"]
    assert aver.Flow.from_file(path, folder=lab.folder).run(60, tag=["daily"])["a"].state == "COMPLETED"
    assert 'no job of the flow has that tag; did you mean "nightly"?' in lab("run", "--tag", "nightl", path).err
    wrong = lab("check", str(lab.write("jobs: {a: {run: x, tags: [a b]}}\n")))
    assert 'has "a b"; a tag is a word of letters' in wrong.out


def test_included_files_are_read_again(lab: Lab) -> None:
    """`reinit` sees what changed in them, and `retry` says so."""
    (lab.folder / "parts").mkdir()
    part = lab.write("jobs: {prep: {run: echo prep >> order; exit 1}}\n", "parts/prep.yaml")
    path = lab.write("include: parts/prep.yaml\njobs: {train: {run: echo train >> order}}\n")
    run = aver.Run(int(lab("submit", str(path)).out))
    assert run.wait(60) == "FAILED"
    part.write_text("jobs: {prep: {run: echo PREP >> order}}\n")
    os.utime(part, (time.time() + 10, time.time() + 10))
    assert "has changed since" in lab("retry", str(run.number)).err
    assert run.wait(60) == "FAILED"
    assert [one.name for one in run.reinit()] == ["prep"]
    assert run.wait(60) == "COMPLETED"
    assert sorted(lab.lines("order")) == ["PREP", "prep", "prep", "train"]
