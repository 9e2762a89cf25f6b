"""What scripthut's document promises of settling, each behaviour by its words: on the local engine, and in the core.

On the local engine SETTLING lasts until the record is read: until then the job is not done.
"""

from __future__ import annotations

import time

import pytest
from flow_lab import Lab, states, wait_for_file

from aver.cli.output.documents import RunFacts
from aver.cli.output.progress import bar
from aver.judge.run import fold_run
from aver.model.evidence import Verdict
from aver.model.job import FlowSpec, Need, Needs, Shell
from aver.model.job import JobSpec as Spec
from aver.model.states import State
from aver.plan.planner import Plan, Start


def two_jobs() -> Plan:
    return Plan(FlowSpec("f", (Spec("a", Shell("")), Spec("b", Shell(""), needs=Needs((Need("a"),))))))


def test_settling_is_not_terminal() -> None:
    """ "Non-terminal: `Run.status` keeps the run in RUNNING while any item is SETTLING"."""
    assert not State.SETTLING.is_settled
    assert not fold_run([(State.SETTLING, "None")]).is_settled
    assert not fold_run([(State.COMPLETED, "None"), (State.SETTLING, "None")]).is_settled
    assert not fold_run([(State.FAILED, "NonZeroExitCode"), (State.SETTLING, "None")]).is_settled
    assert fold_run([(State.COMPLETED, "None"), (State.COMPLETED, "None")]) is State.COMPLETED


def test_settling_holds_its_slot() -> None:
    """ "`running_count` includes SETTLING items so the concurrency cap accounts for them"."""
    assert State.SETTLING.is_active


def test_settling_releases_nobody() -> None:
    """ "dependent tasks don't spawn off an unconfirmed completion": b starts when a is COMPLETED, not before."""
    plan = two_jobs()
    assert plan.restore([State.SETTLING, None]) == []
    assert plan.run_state() is None
    assert plan.settle(0, State.COMPLETED) == [Start(1)]


def test_settling_is_excluded_from_progress() -> None:
    """ "`progress`/`completed_count` deliberately exclude SETTLING (it's not "done" yet)"."""
    counts = {"COMPLETED": 1, "SETTLING": 1}
    run = RunFacts(1, "f", "RUNNING", False, 1, False, "me", "/", 0.0, None, 2, 2, counts, (), ("local",))
    assert "1/2 settled" in bar(run)
    assert two_jobs().settled_count == 0


def test_the_first_verdict_that_anybody_sees_is_the_right_one(lab: Lab) -> None:
    """ "the correctness verdict is the FIRST verdict consumers see": whoever polls a failing job as fast as possible
    sees unsettled states and then FAILED, never COMPLETED."""
    run = lab.submit("jobs:\n  a: {run: sleep 0.2; exit 3}\n  b: {needs: a, run: 'true'}\n")
    seen: list[Verdict | None] = []
    end = time.monotonic() + 60
    while not run.state.is_settled:
        assert time.monotonic() < end, seen
        seen.append(run["a"].verdict)
    assert {None if verdict is None else str(verdict.state) for verdict in seen} <= {None, "FAILED"}
    assert str(run["a"].exit) == "3:0"
    assert lab("watch", str(run.number), "--exit-status").status == 1


def test_ended_while_nobody_was_there(lab: Lab) -> None:
    """SETTLING on one machine: the job ends while there is no coordinator. It is not called done until its record is
    read; its exit and "the true `end_time`" are then the record's, not the time of reading."""
    run = lab.submit(f"jobs:\n  a: {{run: '{wait_for_file('go')}; touch ended; exit 3'}}\n")
    lab.until(lambda: run["a"].state == "RUNNING", "it does not run")
    lab.kill()
    lab.let_go("go")
    lab.wait_for("ended")
    assert run["a"].state == "RUNNING"
    assert run["a"].verdict is None
    assert run["a"].exit is None
    witness = next((lab.home / "witness").glob("*.log"))
    lab.until(lambda: b'"ev":"end"' in witness.read_bytes(), "its witness wrote no record")
    now = time.time()
    assert run["a"].state == "RUNNING"
    assert run.wait(60) == "FAILED"
    verdict = run["a"].verdict
    assert verdict is not None
    assert verdict.verified
    assert str(verdict.exit) == "3:0"
    job = lab("show", str(run["a"].number), "--json").document["job"]
    assert job["ended_at"] <= now


def test_no_data_is_not_exit_0(lab: Lab) -> None:
    """ "Unparseable fields surface as `None`, not `0` - distinguishing "no data" from "actually exited 0""; where
    scripthut falls back to COMPLETED with a marker, Aver says UNVERIFIED."""
    run = lab.run("jobs:\n  lost: {run: 'kill -KILL $PPID; sleep 100'}\n  fine: {run: 'true'}\n")
    assert states(run) == {"lost": "UNVERIFIED", "fine": "COMPLETED"}
    jobs = {job["name"]: job for job in lab("jobs", str(run.number), "--json").document["jobs"]}
    assert jobs["lost"]["exit"] is None
    assert jobs["lost"]["return_code"] is None
    assert jobs["lost"]["verified"] is False
    assert jobs["fine"]["exit"]["text"] == "0:0"
    assert "unknown" in jobs["lost"]["detail"]
    assert "?" in lab("jobs", str(run.number)).out


@pytest.mark.parametrize(("command", "code"), [("exit 7", 7), ("exit 137", 137), ("true", 0)])
def test_the_numeric_code_can_be_read_directly(lab: Lab, command: str, code: int) -> None:
    """ "consumers (CI gates, agents) can read the numeric code directly instead of scraping ... stdout"."""
    run = lab.run(f"jobs:\n  a: {{run: '{command}'}}\n")
    ended = run["a"].exit
    assert ended is not None
    assert (ended.code, ended.signal) == (code, 0)
    document = lab("show", str(run["a"].number), "--json").document["job"]
    assert document["exit"]["code"] == code


def test_generated_jobs_wait_for_the_confirmed_completion(lab: Lab) -> None:
    """ "`generates_source` handling is deferred ... to the confirmed SETTLING -> COMPLETED transition": the file is
    there while the job runs, and nothing is added before its verified end."""
    batch = '{"late": {"run": "true"}}'
    run = lab.submit(
        f"jobs:\n  gen:\n    generates: more.json\n    run: |\n      echo '{batch}' > more.json\n"
        f"      {wait_for_file('go')}\n"
    )
    lab.wait_for("more.json")
    assert set(states(run)) == {"gen"}
    lab.let_go("go")
    assert run.wait(60) == "COMPLETED"
    assert set(states(run)) == {"gen", "late"}
