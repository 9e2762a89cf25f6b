"""What daft's document promises of background jobs that need each other, each behaviour by its words."""

from __future__ import annotations

import pytest
from flow_lab import Lab, reasons, states, wait_for_file

import aver
from live_home import wait_for

STAMP = "python3 -c 'import time; print(time.time_ns())' >> "


def test_bg_dependent_waits_for_dep_to_finish(lab: Lab) -> None:
    """ "Two background jobs where the second `needs:` the first; the scenario asserts dep-b's start timestamp is >=
    dep-a's finish timestamp." """
    run = lab.run(
        f"""
jobs:
  dep-a: {{background: true, run: "sleep 0.2; {STAMP} a-finish"}}
  dep-b: {{background: true, needs: [dep-a], run: "{STAMP} b-start"}}
"""
    )
    assert run.state == "COMPLETED"
    assert int(lab.lines("b-start")[0]) >= int(lab.lines("a-finish")[0])
    first, second = run["dep-a"].attempts[0], run["dep-b"].attempts[0]
    assert first.started_at is not None
    assert first.elapsed_s is not None
    assert second.started_at is not None
    assert second.started_at >= first.started_at + first.elapsed_s


def test_bg_dependent_skipped_when_dep_fails(lab: Lab) -> None:
    """ "(a) the dependent's command never runs (no marker file produced), and (b) the coordinator synthesizes a
    JobStatus::Skipped meta on disk so the job remains visible"; "marks transitive dependents DepFailed"."""
    run = lab.run(
        """
jobs:
  a: {background: true, run: exit 1}
  b: {background: true, needs: [a], run: touch marker}
  c: {background: true, needs: [b], run: touch marker}
"""
    )
    assert states(run) == {"a": "FAILED", "b": "SKIPPED", "c": "SKIPPED"}
    assert not (lab.folder / "marker").exists()
    listed = {job["name"]: job["state"] for job in lab("jobs", str(run.number), "--json").document["jobs"]}
    assert listed == {"a": "FAILED", "b": "SKIPPED", "c": "SKIPPED"}


def test_bg_dependent_skipped_when_dep_cancelled(lab: Lab) -> None:
    """ "Killer thread per-job-cancels A mid-run via cancel_single_job; B (needs: [A]) must not run and must appear on
    disk as Skipped". The record keeps Cancelled apart from Failed."""
    run = lab.submit(
        """
jobs:
  a: {background: true, run: touch a-runs; sleep 100}
  b: {background: true, needs: [a], run: touch marker}
"""
    )
    lab.wait_for("a-runs")
    run["a"].cancel()
    run.wait(60)
    assert states(run) == {"a": "CANCELLED", "b": "SKIPPED"}
    assert reasons(run)["b"] == "NeedFailed:a(CANCELLED)"
    assert not (lab.folder / "marker").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: {background: true, needs: b, run: touch ran}\n  b: {background: true, needs: a, run: touch ran}", "->"),
        ("a: {background: true, needs: nowhere, run: touch ran}", "nowhere"),
    ],
    ids=["bg_cycle_in_needs_returns_error", "bg_missing_dep_in_needs_returns_error"],
)
def test_wrong_needs_return_an_error(lab: Lab, text: str, said: str) -> None:
    """ "Cycles and missing-dependency references in the bg bucket surface as errors rather than silently fanning
    out", and "produce a visible diagnostic instead of a silent coordinator exit"."""
    lab.write(f"jobs:\n  {text}\n")
    answer = lab("run", "flow.yaml")
    assert answer.status == 2
    assert said in answer.err
    assert not (lab.folder / "ran").exists()


def test_independent_fast_chains_are_not_held_up_behind_slow_ones(lab: Lab) -> None:
    """daft's wave loop "intentionally waits for the whole wave before advancing"; Aver has no waves."""
    run = lab.submit(
        f"""
jobs:
  slow: {{background: true, run: "{wait_for_file("go")}"}}
  a: {{background: true, run: "true"}}
  b: {{background: true, needs: a, run: "true"}}
"""
    )
    assert run["b"].wait(60).state == "COMPLETED"
    wait_for(lambda: run["slow"].state == "RUNNING", "the slow one runs")
    lab.let_go("go")
    run.wait(60)


def test_cancel_all_starts_nothing_more(lab: Lab) -> None:
    """ "The cancel-all early-return": what had not started never starts, and says that it was cancelled."""
    run = lab.submit(
        """
jobs:
  a: {background: true, run: touch a-runs; sleep 100}
  b: {background: true, needs: {a: any}, run: touch marker}
"""
    )
    lab.wait_for("a-runs")
    run.cancel()
    assert run.wait(60) == "CANCELLED"
    assert states(run) == {"a": "CANCELLED", "b": "CANCELLED"}
    assert not (lab.folder / "marker").exists()


def test_mixed_foreground_and_background(lab: Lab) -> None:
    """ "mixed-fg-bg-invocation": the foreground's end is seen while the background goes on, both honour needs."""
    lab.write(
        f"""
jobs:
  fg: {{run: echo fg >> order}}
  bg: {{background: true, needs: fg, run: "{wait_for_file("go")}; echo bg >> order"}}
"""
    )
    assert lab("run", "flow.yaml").status == 0
    assert lab.lines("order") == ["fg"]
    lab.let_go("go")
    assert aver.Run(1).wait(60) == "COMPLETED"
    assert lab.lines("order") == ["fg", "bg"]
