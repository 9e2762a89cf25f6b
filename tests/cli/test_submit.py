"""`aver submit`: what it prints, and its preview."""

from __future__ import annotations

from pathlib import Path

from product import Product

FLOW = """\
name: story
defaults: {time: 1h}
jobs:
  prep: {run: echo prepared}
  train: {needs: [prep], matrix: {seed: [1, 2]}, mem: 1G, run: "echo {seed} $TOKEN"}
"""


def test_submit_prints_the_number_and_nothing_else(aver: Product) -> None:
    """For scripts: job=$(aver submit …)."""
    answer = aver("submit", "--", "true")
    assert (answer.status, answer.out, answer.err) == (0, "1\n", "")
    assert aver("submit", "--json", "--", "true").document == {"kind": "submitted", "run": 2, "first_job": 2, "jobs": 1}


def test_submit_of_a_flow_prints_the_runs_number(aver: Product) -> None:
    """Its jobs have the numbers after it."""
    (aver.folder / "flow.yaml").write_text("jobs:\n  a: {run: 'true'}\n  b: {run: 'true'}\n")
    assert aver("submit", "--json", "flow.yaml").document == {
        "kind": "submitted", "run": 1, "first_job": 2, "jobs": 2,
    }  # fmt: skip


def test_a_preview_submits_nothing(aver: Product, aver_home: Path) -> None:
    """The jobs with their requests and needs, for people and as JSON; no run and no coordinator comes of it."""
    (aver.folder / "flow.yaml").write_text(FLOW)
    answer = aver("submit", "--preview", "flow.yaml")
    assert answer.status == 0
    assert "train" in answer.out
    assert "1.0 GiB" in answer.out
    assert "3 jobs" in answer.err
    assert "nothing was submitted" in answer.err
    document = aver("submit", "--preview", "--json", "flow.yaml").document
    assert (document["kind"], document["jobs"]) == ("preview", 3)
    train = document["definitions"][1]
    assert (train["jobs"], train["needs"], train["time_s"]) == (2, ["prep"], 3600)
    assert not (aver_home / "sock").exists()
    assert not (aver_home / "aver.db").exists()


def test_a_preview_refuses_what_could_never_run(aver: Product) -> None:
    """As `aver check` does."""
    answer = aver("submit", "--preview", "--gpus", "99", "--", "true")
    assert answer.status == 2
    assert "99 GPUs" in answer.err


def test_a_preview_masks_secrets(aver: Product) -> None:
    """Nothing is stored, and the value is not shown either."""
    secret = "hunter2-token"
    answer = aver("submit", "--preview", "--env", f"TOKEN={secret}", "--secret", "TOKEN", "--", "echo", secret)
    assert "hunter2" not in answer.out
    assert "***" in answer.out
