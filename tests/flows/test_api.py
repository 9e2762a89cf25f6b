"""`import aver`: flows as objects, the same checks, the same verdicts."""

from __future__ import annotations

from pathlib import Path

import pytest
from flow_lab import Lab

import aver
from aver.errors import UsageError
from aver.model.evidence import Verdict
from aver.model.exit import ExitStatus
from aver.model.states import State


def test_build_run_and_read(lab: Lab) -> None:
    """Handles in needs, a matrix, verdict objects, exits, reasons and logs."""
    flow = aver.Flow("train", folder=lab.folder, defaults={"time": "1h"})
    prep = flow.job("prep", run="echo prepared")
    train = flow.job("train", run="echo seed {seed}; test {seed} != 2", needs=prep, matrix={"seed": range(1, 4)})
    flow.job("eval", argv=["/bin/echo", "$HOME *"], needs={train: "any"})
    flow.job("best", run="true", needs=[train["seed=3"], prep])
    flow.job("either", run="true", needs={"any_of": [train, prep]})
    flow.job("report", run="true", needs=train, if_="failure")
    flow.job("last", run="true", needs=train)
    run = flow.run(timeout=60)
    assert run.state is State.FAILED
    assert run["train[seed=2]"].verdict == Verdict(State.FAILED, ExitStatus(code=1), "NonZeroExitCode", True, "witness")
    assert run["train[seed=2]"].exit == ExitStatus(code=1)
    assert run["train[seed=1]"].log() == "seed 1\n"
    assert run["eval"].log() == "$HOME *\n"
    assert run["last"].reason == "NeedFailed:train[seed=2](FAILED)"
    assert [str(run[name].state) for name in ("best", "either", "report")] == ["COMPLETED"] * 3
    assert len(run) == 9
    assert run["prep"].attempts[0].attempt == 1
    assert aver.Run(run.number)["prep"].state is State.COMPLETED


def test_submit_wait_cancel_and_retry(lab: Lab) -> None:
    """In the background; wait with a timeout that cancels nothing; cancel; retry."""
    flow = aver.Flow("slow", folder=lab.folder)
    flow.job("slow", run="touch begun; test -e go || sleep 100")
    run = flow.submit()
    lab.wait_for("begun")
    assert run["slow"].verdict is None
    assert run["slow"].exit is None
    with pytest.raises(TimeoutError, match="not settled"):
        run.wait(timeout=0.1)
    assert not run.state.is_settled
    run.cancel()
    assert run.wait(60) is State.CANCELLED
    assert run["slow"].wait(60).state is State.CANCELLED
    lab.let_go("go")
    run.retry()
    assert run.wait(60) is State.COMPLETED
    assert run.round == 2


def test_all_mistakes_at_once(lab: Lab) -> None:
    """A wrong flow is a UsageError that names every mistake, as for a file; nothing runs, and nothing is a guess."""
    flow = aver.Flow("wrong", max_parallel=0)
    flow.job("a", run="true", needs="b", mem="much")
    flow.job("a", run="true")
    flow.job("c", run="true", matrix={"seed": [1]})
    flow.job("d")
    with pytest.raises(UsageError) as caught:
        flow.submit()
    text = str(caught.value)
    for said in ('"b"', "much", 'duplicate job name "a"', '"seed" is not used', '"run"', "max_parallel"):
        assert said in text, text
    assert "flow 'wrong':" in text
    assert ":1:" not in text
    with pytest.raises(UsageError, match="two of"):
        flow.job("e", run="true", argv=["true"])


def test_the_same_flow_as_its_file(lab: Lab) -> None:
    """What `flow.job` builds is what the same words in YAML mean, key by key."""
    path = lab.write(
        """
name: same
defaults: {time: 1h}
max_parallel: 3
retry_budget: 7
jobs:
  a: {run: "true", cpus: 2, mem: 4G, time: 10, signal: TERM@30s, kill_wait: 5, checkpoint: true, oom: warn}
  b:
    run: [echo, "{x}"]
    needs: {a: [FAILED, TIMEOUT]}
    matrix: {x: [1, 2], max_parallel: 1}
    retry: {max: 2, on: ["exit:75"], backoff: 30s}
    background: true
    inputs: [i]
    outputs: [o]
    env: {K: v}
    folder: sub
    output: "%x.out"
    priority: 3
    comment: hi
"""
    )
    flow = aver.Flow("same", defaults={"time": "1h"}, max_parallel=3, retry_budget=7)
    a = flow.job(
        "a", run="true", cpus=2, mem="4G", time=10, signal="TERM@30s", kill_wait=5, checkpoint=True, oom="warn"
    )
    flow.job(
        "b", argv=["echo", "{x}"], needs={a: ["FAILED", "TIMEOUT"]}, matrix={"x": [1, 2], "max_parallel": 1},
        retry={"max": 2, "on": ["exit:75"], "backoff": "30s"}, background=True, inputs="i", outputs=["o"],
        env={"K": "v"}, folder="sub", output="%x.out", priority=3, comment="hi",
    )  # fmt: skip
    assert flow.check() == aver.Flow.from_file(path).check()


def test_every_key_of_a_job_has_its_argument() -> None:
    """A key that a file may have and Python may not would be a second format."""
    import inspect

    from aver.spec.flow.keys import JOB_KEYS

    arguments = {name.rstrip("_") for name in inspect.signature(aver.Flow.job).parameters}
    assert set(JOB_KEYS) - {"host"} <= arguments


def test_from_file_and_unknown_names(lab: Lab) -> None:
    """A flow's file runs as it is and takes no further jobs; a name that is not there is a KeyError."""
    flow = aver.Flow.from_file(lab.write("jobs:\n  a: {run: 'true'}\n"), folder=lab.folder)
    with pytest.raises(UsageError, match="no further jobs"):
        flow.job("b", run="true")
    run = flow.run(60)
    assert run.state is State.COMPLETED
    with pytest.raises(KeyError, match="no job called 'nobody'"):
        run["nobody"]
    with pytest.raises(UsageError):
        _ = aver.Run(999).state


def test_wait_goes_on_when_the_coordinator_was_killed(lab: Lab) -> None:
    """A script that waits for hours does not care that the coordinator was upgraded meanwhile."""
    flow = aver.Flow("long", folder=lab.folder)
    flow.job("a", run="touch begun; until test -e go; do sleep 0.02; done")
    run = flow.submit()
    lab.wait_for("begun")
    lab.kill()
    lab.let_go("go")
    assert run.wait(60) is State.COMPLETED


def test_values_of_the_environment_are_not_stored(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job inherits the environment; its values are in the run's own file and nowhere in the store."""
    monkeypatch.setenv("AVER_TEST_VALUE", "very-secret-value")
    flow = aver.Flow("env", folder=lab.folder)
    flow.job("a", run="test ${#AVER_TEST_VALUE} = 17")
    assert flow.run(60).state is State.COMPLETED
    holding = [
        path.name for path in Path(lab.home).rglob("*") if path.is_file() and b"very-secret" in path.read_bytes()
    ]
    assert holding == ["1.env"]


def test_secrets_of_a_flow_are_masked(lab: Lab) -> None:
    """Names that Python gives, with values that Python gives."""
    flow = aver.Flow("env", folder=lab.folder, secrets=["TOKEN"])
    flow.job("a", run='echo "$TOKEN" is it', env={"TOKEN": "very-secret-value"})
    run = flow.run(60)
    assert run.state is State.COMPLETED
    assert run["a"].log() == "*** is it\n"
    assert lab("log", str(run["a"].number)).out == "*** is it\n"
