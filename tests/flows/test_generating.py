"""Jobs that jobs generate: all or nothing, after a verified completion, once."""

from __future__ import annotations

import json

import pytest
from flow_lab import Lab, reasons, states, wait_for_file

import aver


def generating(batch: object, more: str = "") -> str:
    text = batch if isinstance(batch, str) else json.dumps(batch)
    return f"""
jobs:
  before: {{run: "true"}}
  gen:
    needs: before
    generates: more.json
    run: |
      cat > more.json <<'END'
      {text}
      END
  after: {{needs: gen, run: "true"}}
{more}
"""


def test_generated_jobs_join_the_run(lab: Lab) -> None:
    """They may need any job of the run, have matrices, and generate further; the run's state counts them."""
    deeper = {"leaf": {"run": "echo leaf >> order"}}
    batch = {
        "one": {"run": "echo one >> order", "needs": ["before"]},
        "many": {"run": "echo {n} >> order", "matrix": {"n": [1, 2]}, "needs": ["one", "after"]},
        "nested": {"run": f"echo {json.dumps(json.dumps(deeper))} > deeper.json", "generates": "deeper.json"},
    }
    run = lab.run(generating(batch))
    assert run.state == "COMPLETED", [(job.name, job.verdict) for job in run]
    assert set(states(run)) == {"before", "gen", "after", "one", "many[n=1]", "many[n=2]", "nested", "leaf"}
    assert sorted(lab.lines("order")) == ["1", "2", "leaf", "one"]
    assert set(states(run)) == {job["name"] for job in lab("jobs", str(run.number), "--json").document["jobs"]}


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        ("{not json", "not JSON"),
        ({"a": {"run": "true", "nedes": "before"}}, "nedes"),
        ({"a": {"run": "true", "needs": "b"}, "b": {"run": "true", "needs": "a"}}, "a -> b -> a"),
        ({"a": {"run": "true"}, "after": {"run": "true"}}, "after"),
        ({"a": {"run": "true", "needs": "nobody"}}, "nobody"),
        ({"a": {"run": "true", "cpus": 1000}}, "1000 cpus"),
    ],
    ids=["malformed", "unknown-key", "cyclic", "duplicate", "unknown-need", "too-large"],
)
def test_a_batch_with_a_mistake_fails_its_job(lab: Lab, batch: object, said: str) -> None:
    """The generating job is FAILED with a clear reason, nothing of the batch is added, and the run is not green."""
    run = lab.run(generating(batch))
    assert states(run) == {"before": "COMPLETED", "gen": "FAILED", "after": "SKIPPED"}
    verdict = run["gen"].verdict
    assert verdict is not None
    assert verdict.reason == "GeneratedJobs"
    assert said in verdict.detail
    assert str(verdict.exit) == "0:0"
    assert run.state == "FAILED"
    shown = lab("show", str(run["gen"].number), "--json").document
    assert [attempt["state"] for attempt in shown["attempts"]] == ["FAILED"]
    results = lab("results", str(run.number), "--json").document
    assert [row["state"] for row in results["results"] if row["name"] == "gen"] == ["FAILED"]
    why = lab("why", str(run["gen"].number)).out
    assert why.startswith("Failed, though it exited with code 0")
    assert said in why


def test_a_missing_batch_fails_its_job(lab: Lab) -> None:
    """A job that did not write what it was to generate is FAILED, though it exited 0."""
    run = lab.run("jobs:\n  gen: {run: 'true', generates: more.json}\n")
    assert run["gen"].reason == "GeneratedJobs"
    assert run.state == "FAILED"


def test_a_job_that_failed_generates_nothing(lab: Lab) -> None:
    """Only a verified completion adds jobs."""
    run = lab.run(generating({"a": {"run": "true"}}).replace("      END\n", "      END\n      exit 3\n"))
    assert states(run) == {"before": "COMPLETED", "gen": "FAILED", "after": "SKIPPED"}
    assert run["gen"].reason == "NonZeroExitCode"


@pytest.mark.parametrize("point", ["generated-asked", "generated-read", "generated-added"])
def test_killed_between_the_completion_and_the_adding(lab: Lab, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """SIGKILL between the maker's end and the moment in which its jobs are durable: they are added, once."""
    monkeypatch.setenv("AVER_CRASH_AT", point)
    run = lab.submit(generating({"late": {"run": "echo late >> order", "needs": "gen"}}))
    lab.until(lambda: _crashed(lab), "the coordinator did not crash")
    assert "late" not in states(run)
    monkeypatch.delenv("AVER_CRASH_AT")
    run.wait(60)
    assert run.state == "COMPLETED"
    assert sorted(states(run)) == ["after", "before", "gen", "late"]
    assert lab.lines("order") == ["late"]
    assert len(run["gen"].attempts) == 1


def _crashed(lab: Lab) -> bool:
    from aver.errors import UnreachableError
    from aver.home import Home
    from aver.protocol.client import Client

    try:
        Client.connect(Home(lab.home), start=False).close()
    except UnreachableError:
        return True
    return False


def test_a_generating_job_that_is_retried_adds_nothing_twice(lab: Lab) -> None:
    """The same batch again is fine and adds nothing; the jobs of the first time are as they were."""
    run = lab.run(generating({"late": {"run": "echo late >> order"}}))
    assert run.state == "COMPLETED"
    run.retry("gen")
    assert aver.Run(run.number).wait(60) == "COMPLETED"
    assert sorted(states(run)) == ["after", "before", "gen", "late"]
    assert lab.lines("order") == ["late"]
    assert reasons(run)["gen"] is None


@pytest.mark.parametrize(("rule", "attempts"), [("GeneratedJobs", 2), ("MissingOutput", 1)])
def test_a_retry_for_what_was_generated(lab: Lab, rule: str, attempts: int) -> None:
    """The first file can't be used: a rule that names this reason tries again, and another one does not."""
    run = lab.run(
        f"""
jobs:
  gen:
    run: |
      [ "$AVER_ATTEMPT" = 1 ] && echo "late: {{needs: nobody, run: 'true'}}" > more.yaml && exit 0
      echo "late: {{run: 'true'}}" > more.yaml
    generates: more.yaml
    retry: {{max: 1, on: [{rule}]}}
"""
    )
    found = [(str(one.state), one.reason) for one in run["gen"].attempts]
    assert found == [("FAILED", "GeneratedJobs"), ("COMPLETED", None)][:attempts]


def test_defaults_of_the_flow_reach_generated_jobs(lab: Lab) -> None:
    """Their environment too, whose values are in no store; also after kill -9 of the coordinator."""
    text = generating({"late": {"run": "echo $SECRET $AVER_CPUS $AVER_PARAM_n > late"}})
    text = text.replace('run: "true"', f'run: "touch begun; {wait_for_file("go")}"', 1)
    run = lab.submit(f"params: {{n: 7}}\ndefaults: {{cpus: 2, env: {{SECRET: 'hush-{{n}}'}}}}\n{text}")
    lab.wait_for("begun")
    lab.kill()
    lab.let_go("go")
    lab("runs")
    assert run.wait(60) == "COMPLETED"
    assert lab.lines("late") == ["hush-7", "2", "7"]
    assert b"hush" not in (lab.home / "aver.db").read_bytes()
