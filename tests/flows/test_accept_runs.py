"""`aver accept` in flows: what was skipped comes back."""

from __future__ import annotations

from flow_lab import Lab, reasons, states


def test_accept_brings_back_what_was_skipped(lab: Lab) -> None:
    """A person's word for an UNVERIFIED job: COMPLETED with its source named, and the cascade is undone."""
    run = lab.run(
        "jobs:\n  lost: {run: 'kill -KILL $PPID; sleep 100'}\n"
        "  after: {needs: lost, run: 'true'}\n  last: {needs: after, run: 'true'}\n"
    )
    assert states(run) == {"lost": "UNVERIFIED", "after": "SKIPPED", "last": "SKIPPED"}
    assert reasons(run)["after"] == "NeedUnverified:lost(UNVERIFIED)"
    lost = run["lost"].verdict
    assert lost is not None
    assert lost.exit is None
    assert lab("accept", str(run["lost"].number)).status == 0
    assert run.wait(60) == "COMPLETED"
    assert set(states(run).values()) == {"COMPLETED"}
    verdict = run["lost"].verdict
    assert verdict is not None
    assert verdict.source == "person"
    twice = lab("accept", str(run["lost"].number))
    assert "already COMPLETED" in twice.out


def test_accept_is_for_lost_jobs_only(lab: Lab) -> None:
    """A job that failed did fail: nobody's word makes it a success."""
    run = lab.run("jobs:\n  a: {run: exit 1}\n")
    answer = lab("accept", str(run["a"].number))
    assert (answer.status, "whose end nobody saw" in answer.err) == (1, True)
    assert run.state == "FAILED"
