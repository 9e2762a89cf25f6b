"""Cancelling jobs, runs and patterns; finishers; twice; pending jobs."""

from __future__ import annotations

from flow_lab import Lab, reasons, states, wait_for_file


def test_one_job_its_dependents_and_its_siblings(lab: Lab) -> None:
    """Its dependents skip, its siblings go on; who cancelled and when is evidence; twice is harmless."""
    run = lab.submit(
        f"""
jobs:
  a: {{run: touch a-runs; sleep 100}}
  b: {{needs: a, run: touch never}}
  c: {{run: "{wait_for_file("go")}"}}
  d: {{needs: c, run: "true"}}
"""
    )
    lab.wait_for("a-runs")
    first = lab("cancel", f"{run.number}/a")
    assert first.status == 0, first
    assert run["a"].wait(60).state == "CANCELLED"
    second = lab("cancel", f"{run.number}/a")
    assert second.status == 0
    assert "already CANCELLED" in second.out
    lab.let_go("go")
    assert run.wait(60) == "CANCELLED"
    assert states(run) == {"a": "CANCELLED", "b": "SKIPPED", "c": "COMPLETED", "d": "COMPLETED"}
    assert reasons(run)["b"] == "NeedFailed:a(CANCELLED)"
    assert not (lab.folder / "never").exists()
    why = lab("why", str(run["a"].number)).out
    assert "cancel" in why.lower()
    verdict = run["a"].verdict
    assert verdict is not None
    assert str(verdict.exit) == "0:15"


def test_a_pending_job_never_starts(lab: Lab) -> None:
    """Cancelling what waits for a need settles it at once, and it never runs."""
    run = lab.submit(
        f"""
jobs:
  a: {{run: "{wait_for_file("go")}"}}
  b: {{needs: a, run: touch never}}
  c: {{needs: b, run: touch never}}
"""
    )
    run["b"].cancel()
    assert run["b"].wait(60).state == "CANCELLED"
    assert run["c"].wait(60).state == "SKIPPED"
    lab.let_go("go")
    run.wait(60)
    assert states(run) == {"a": "COMPLETED", "b": "CANCELLED", "c": "SKIPPED"}
    assert not (lab.folder / "never").exists()
    assert run["b"].attempts == [] or all(one.started_at is None for one in run["b"].attempts)


FINISHERS = """
jobs:
  a: {run: touch a-runs; sleep 100}
  b: {needs: a, run: touch never}
  clean: {needs: [a, b], if: always, run: touch cleaned}
"""


def test_finishers_run_after_a_cancelled_run(lab: Lab) -> None:
    """What had not started is CANCELLED, not SKIPPED; `if: always` still runs."""
    run = lab.submit(FINISHERS)
    lab.wait_for("a-runs")
    run.cancel()
    assert run.wait(60) == "CANCELLED"
    assert states(run) == {"a": "CANCELLED", "b": "CANCELLED", "clean": "COMPLETED"}
    assert (lab.folder / "cleaned").exists()
    assert not (lab.folder / "never").exists()


def test_no_finishers_after_cancel_now(lab: Lab) -> None:
    """`cancel --now` ends everything, also after a cancel without it; and it is harmless twice."""
    run = lab.submit(FINISHERS.replace("touch cleaned", "touch begun; sleep 100"))
    lab.wait_for("a-runs")
    number = str(run.number)
    assert lab("cancel", number, "--now").status == 0
    assert run.wait(60) == "CANCELLED"
    assert states(run) == {"a": "CANCELLED", "b": "CANCELLED", "clean": "CANCELLED"}
    assert not (lab.folder / "begun").exists()
    assert "already CANCELLED" in lab("cancel", number, "--now").out


def test_cancel_now_ends_a_finisher_that_runs(lab: Lab) -> None:
    """First cancel, whose finisher begins; then --now, which ends it."""
    run = lab.submit(FINISHERS.replace("touch cleaned", "touch begun; sleep 100"))
    lab.wait_for("a-runs")
    run.cancel()
    lab.wait_for("begun")
    run.cancel(now=True)
    assert run.wait(60) == "CANCELLED"
    assert states(run)["clean"] == "CANCELLED"


def test_by_pattern(lab: Lab) -> None:
    """A glob and a matrix member name what is cancelled, and nothing else is."""
    run = lab.submit(
        f"""
jobs:
  train: {{matrix: {{seed: [1, 2]}}, run: "touch t{{seed}}; {wait_for_file("go")}"}}
  other: {{run: "{wait_for_file("go")}"}}
"""
    )
    for name in ("t1", "t2"):
        lab.wait_for(name)
    answer = lab("cancel", f"{run.number}/tr*[seed=2]")
    assert answer.status == 0, answer
    assert run["train[seed=2]"].wait(60).state == "CANCELLED"
    lab.let_go("go")
    run.wait(60)
    assert states(run) == {"train[seed=1]": "COMPLETED", "train[seed=2]": "CANCELLED", "other": "COMPLETED"}


def test_a_retry_that_is_due_is_cancelled_with_its_run(lab: Lab) -> None:
    """A job that waits for its next attempt never gets it; its last attempt keeps its own verdict."""
    run = lab.submit("jobs:\n  a: {run: exit 1, retry: {max: 1, backoff: 1h}}\n  b: {needs: a, run: 'true'}\n")
    lab.until(lambda: run["a"].reason == "Retry", "no retry is due")
    run.cancel()
    assert run.wait(60) == "CANCELLED"
    assert states(run) == {"a": "CANCELLED", "b": "CANCELLED"}
    assert [str(one.state) for one in run["a"].attempts] == ["FAILED"]


def test_what_a_finisher_generates_after_a_cancel_does_not_run(lab: Lab) -> None:
    """The run was cancelled: jobs that are added afterwards are CANCELLED, and the run settles."""
    run = lab.submit(
        """
jobs:
  a: {run: touch a-runs; sleep 100}
  z: {needs: a, if: always, generates: m.json, run: 'echo ''{"late": {"run": "touch never"}}'' > m.json'}
"""
    )
    lab.wait_for("a-runs")
    run.cancel()
    assert run.wait(60) == "CANCELLED"
    assert states(run) == {"a": "CANCELLED", "z": "COMPLETED", "late": "CANCELLED"}
    assert not (lab.folder / "never").exists()


def test_held_then_cancelled_then_retried(lab: Lab) -> None:
    """The retry is a new start: the old hold does not come back."""
    run = lab.submit("jobs:\n  a: {hold: true, run: 'true'}\n  b: {run: 'until test -e go; do sleep 0.02; done'}\n")
    assert run["a"].reason == "JobHeldUser"
    run["a"].cancel()
    assert run["a"].wait(60).state == "CANCELLED"
    run.retry("a")
    assert run["a"].wait(60).state == "COMPLETED"
    lab.let_go("go")
    run.wait(60)


def test_a_suspended_job_can_be_cancelled(lab: Lab) -> None:
    """A job that stands still gets its TERM too."""
    run = lab.submit("jobs:\n  a: {run: touch a-runs; sleep 100}\n")
    lab.wait_for("a-runs")
    lab.until(lambda: run["a"].state == "RUNNING", "it does not run")
    assert lab("suspend", str(run["a"].number)).status == 0
    lab.until(lambda: run["a"].state == "SUSPENDED", "it is not suspended")
    run.cancel()
    assert run.wait(60) == "CANCELLED"
