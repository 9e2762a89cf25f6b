"""`aver submit --preview`: what would run, and nothing is submitted."""

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
