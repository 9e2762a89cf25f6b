"""`aver timeline`: each transition with its evidence, through all attempts."""

from __future__ import annotations

import json
from pathlib import Path

from past_runs import Call


def test_all_attempts_with_states_and_words(past: Path, call: Call) -> None:
    """Both attempts of the job: the state that each line led to, and the witness's own words below."""
    status, out, _ = call("timeline", "5")
    assert status == 0
    states = [line.split()[3 if "#" in line else 2] for line in out.splitlines() if line.startswith("2023-")]
    assert states == [
        "PENDING", "-", "RUNNING", "-", "OUT_OF_MEMORY", "PENDING", "-", "RUNNING", "-", "OUT_OF_MEMORY",
    ]  # fmt: skip
    assert out.count('"oom": 1') == 2


def test_the_document_has_the_same(past: Path, call: Call) -> None:
    """Times are unix seconds; a line that led to no other state has null."""
    document = json.loads(call("timeline", "5", "--json")[1])
    assert document["kind"] == "timeline"
    last = document["transitions"][-1]
    assert (last["attempt"], last["state"], last["source"]) == (2, "OUT_OF_MEMORY", "judge")
    assert document["transitions"][1]["state"] is None
    assert document["job"]["state"] == "OUT_OF_MEMORY"


def test_a_verdict_without_a_reason_names_none(past: Path, call: Call) -> None:
    """A completed job has no reason, and no word stands for it."""
    assert call("timeline", "1/prep")[1].rstrip().endswith("verdict: COMPLETED 0:0")


def test_a_skipped_job_has_a_story_too(past: Path, call: Call) -> None:
    """Submitted, then skipped."""
    document = json.loads(call("timeline", "1/eval", "--json")[1])
    assert [one["state"] for one in document["transitions"]] == ["PENDING", "SKIPPED"]
