"""`aver retry` in flows: while other jobs run, and after all is settled."""

from __future__ import annotations

from flow_lab import Lab, states, wait_for_file

FIXABLE = """
jobs:
  good: {run: echo good >> order}
  bad: {run: "echo bad >> order; test -e fixed"}
  after: {needs: bad, run: echo after >> order}
  last: {needs: [after, good], run: echo last >> order}
"""


def test_retry_brings_back_what_was_skipped_and_repeats_nothing(lab: Lab) -> None:
    """Failed jobs run again, skipped ones come back; COMPLETED ones are not repeated; the round grows."""
    run = lab.run(FIXABLE)
    assert states(run) == {"good": "COMPLETED", "bad": "FAILED", "after": "SKIPPED", "last": "SKIPPED"}
    lab.let_go("fixed")
    assert lab("retry", str(run.number)).status == 0
    assert lab("watch", str(run.number), "--exit-status").status == 0
    assert set(states(run).values()) == {"COMPLETED"}
    assert sorted(lab.lines("order")) == ["after", "bad", "bad", "good", "last"]
    assert [str(one.state) for one in run["bad"].attempts] == ["FAILED", "COMPLETED"]
    assert run.round == 2
    again = lab("retry", str(run.number))
    assert again.status == 2
    assert "nothing to retry" in again.err


def test_retry_that_fails_again_skips_again(lab: Lab) -> None:
    """Nothing was fixed: the same verdicts, one attempt more."""
    run = lab.run(FIXABLE)
    run.retry()
    assert run.wait(60) == "FAILED"
    assert states(run)["after"] == "SKIPPED"
    assert len(run["bad"].attempts) == 2


def test_retry_while_others_run(lab: Lab) -> None:
    """A failed job of a run that still goes on runs again at once, and its dependents come back."""
    run = lab.submit(FIXABLE.replace("echo good >> order", f'"{wait_for_file("go")}"'))
    assert run["bad"].wait(60).state == "FAILED"
    lab.until(lambda: run["after"].state == "SKIPPED", "after is not skipped")
    lab.let_go("fixed")
    assert lab("retry", f"{run.number}/bad").status == 0
    assert run["after"].wait(60).state == "COMPLETED"
    assert run["good"].state == "RUNNING"
    lab.let_go("go")
    assert run.wait(60) == "COMPLETED"


def test_retry_after_a_cancelled_run(lab: Lab) -> None:
    """What was cancelled runs again, and the run counts as cancelled no longer."""
    run = lab.submit("jobs:\n  a: {run: touch begun; test -e go || sleep 100}\n  b: {needs: a, run: 'true'}\n")
    lab.wait_for("begun")
    run.cancel()
    assert run.wait(60) == "CANCELLED"
    assert states(run) == {"a": "CANCELLED", "b": "CANCELLED"}
    lab.let_go("go")
    run.retry()
    assert run.wait(60) == "COMPLETED"


def test_a_job_that_is_not_settled_is_not_retried(lab: Lab) -> None:
    """It is refused with a sentence, and nothing changes."""
    run = lab.submit(f"jobs:\n  a: {{run: '{wait_for_file('go')}'}}\n")
    answer = lab("retry", f"{run.number}/a")
    assert answer.status == 2
    assert "not settled" in answer.err
    lab.let_go("go")
    assert run.wait(60) == "COMPLETED"


def test_a_run_that_was_only_looked_at_is_let_go(lab: Lab) -> None:
    """A refused retry and accept leave the coordinator idle: it goes when its time has come."""
    (lab.folder.parent / "config.toml").write_text("idle_exit = 1\ncpus = 4\n")
    run = lab.run("jobs:\n  a: {run: 'true'}\n")
    assert lab("retry", str(run.number)).status == 2
    assert "already COMPLETED" in lab("accept", str(run["a"].number)).out

    def is_gone() -> bool:
        log = (lab.home / "coordinator.log").read_text()
        return log.count("idle: leaving") == log.count("ready, pid")

    lab.until(is_gone, "the coordinator stays")
