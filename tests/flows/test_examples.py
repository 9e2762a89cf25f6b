"""The flows of the folder examples run as the pages say."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from flow_lab import Lab, states

import aver

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def examples(lab: Lab) -> Lab:
    shutil.copytree(EXAMPLES, lab.folder, dirs_exist_ok=True)
    return lab


def test_every_example_is_a_right_flow(examples: Lab) -> None:
    """`aver check` finds no mistake in any of them."""
    flows = sorted(path.name for path in EXAMPLES.glob("*.yaml"))
    assert len(flows) >= 3
    for name in flows:
        assert aver.Flow.from_file(examples.folder / name).check().jobs


def test_train(examples: Lab) -> None:
    """Three members, a finisher and a background page, all COMPLETED."""
    answer = examples("run", "train.yaml")
    assert answer.status == 0, answer
    run = aver.Run(1)
    assert run.wait(60) == "COMPLETED"
    assert len(run) == 7
    assert (examples.folder / "page.html").exists()


def test_checkpoint(examples: Lab) -> None:
    """It is warned, saves, is continued, and ends COMPLETED with all of its work done once."""
    run = aver.Flow.from_file(examples.folder / "checkpoint.yaml", folder=examples.folder).run(60)
    assert states(run) == {"count": "COMPLETED", "done": "COMPLETED"}
    attempts = [str(attempt.state) for attempt in run["count"].attempts]
    assert attempts[-1] == "COMPLETED"
    assert set(attempts[:-1]) == {"CHECKPOINTED"}
    assert (examples.folder / "count.txt").read_text() == "5"


def test_generate(examples: Lab) -> None:
    """Four jobs are added by the first one."""
    run = aver.Flow.from_file(examples.folder / "generate.yaml", folder=examples.folder).run(60)
    assert run.state == "COMPLETED"
    assert set(states(run)) == {"split", "part-a", "part-b", "part-c", "join"}
    assert run["join"].log() == "a\nb\nc\n"
