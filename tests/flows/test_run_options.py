"""Options of one run: how many jobs at once, and a flow that comes from stdin."""

from __future__ import annotations

import json

import pytest
from flow_lab import Lab, states, wait_for_file

import aver
from aver.errors import UsageError

TWO = f"""
jobs:
  a: {{run: "touch begun; {wait_for_file("go")}; echo a >> order"}}
  b: {{run: echo b >> order}}
"""


def test_so_many_jobs_at_once(lab: Lab) -> None:
    """The second waits for the first, with that reason, also after kill -9; what the flow says holds too."""
    run = aver.Run(int(lab("submit", "-j", "1", str(lab.write(TWO))).out))
    lab.wait_for("begun")
    lab.until(lambda: run["b"].reason == "JobArrayTaskLimit", "b does not wait for a")
    lab.kill()
    lab("runs")
    assert states(run) == {"a": "RUNNING", "b": "PENDING"}
    assert run["b"].reason == "JobArrayTaskLimit"
    lab.let_go("go")
    assert run.wait(60) == "COMPLETED"
    assert lab.lines("order") == ["a", "b"]
    (lab.folder / "go").unlink()
    (lab.folder / "begun").unlink()
    lower = aver.Run(int(lab("submit", "-j", "8", str(lab.write("max_parallel: 1" + TWO))).out))
    lab.wait_for("begun")
    lab.until(lambda: lower["b"].reason == "JobArrayTaskLimit", "the flow's own limit does not hold")
    lab.let_go("go")
    assert lower.wait(60) == "COMPLETED"


def test_so_many_jobs_at_once_again(lab: Lab) -> None:
    """A round that `retry` begins has the limit too."""
    text = TWO.replace("echo a >> order", "exit 1").replace("echo b >> order", "exit 1")
    lab.let_go("go")
    run = aver.Flow.from_file(lab.write(text), folder=lab.folder).run(60, max_parallel=1)
    assert run.state == "FAILED"
    (lab.folder / "go").unlink()
    (lab.folder / "begun").unlink()
    run.retry()
    lab.wait_for("begun")
    lab.until(lambda: run["b"].reason == "JobArrayTaskLimit", "b does not wait for a")
    lab.let_go("go")
    assert run.wait(60) == "FAILED"


def test_no_such_number(lab: Lab) -> None:
    """Zero jobs at once are none."""
    for number in ("0", "x"):
        assert lab("run", "-j", number, "--", "true").status == 2
    with pytest.raises(UsageError, match="least is 1"):
        aver.Flow.from_file(lab.write(TWO)).submit(max_parallel=0)


@pytest.mark.parametrize(
    "text",
    [
        "name: x\nparams: {n: 1}\njobs:\n  a: {run: 'echo {n} >> order'}\n",
        json.dumps({"params": {"n": 1}, "jobs": {"a": {"run": "echo {n} >> order\t"}}}, indent="\t"),
        "{params: {n: 1}, jobs: {a: {run: 'echo {n} >> order'}}}",
    ],
)
def test_a_flow_from_stdin(lab: Lab, text: str) -> None:
    """YAML or JSON; `run` and `submit` take it, `check` checks it, and there is no file that `reinit` would read."""
    assert lab("check", "-", stdin=text).out == "-: no mistakes; 1 job\n"
    assert lab("run", "--set", "n=2", "-", stdin=text).status == 0
    run = aver.Run(int(lab("submit", "-", stdin=text).out))
    assert run.wait(60) == "COMPLETED"
    assert lab.lines("order") == ["2", "1"]
    assert "nothing to rerun" in lab("reinit", str(run.number)).err
    assert "--set needs the flow's file" in lab("reinit", str(run.number), "--set", "n=1").err


def test_a_flow_from_stdin_after_kill_9(lab: Lab) -> None:
    """The run has all of it: nothing is read again."""
    run = aver.Run(int(lab("submit", "-", stdin=TWO).out))
    lab.wait_for("begun")
    lab.kill()
    lab("runs")
    lab.let_go("go")
    assert run.wait(60) == "COMPLETED"
    assert sorted(lab.lines("order")) == ["a", "b"]


def test_a_script_and_mistakes_from_stdin(lab: Lab) -> None:
    """A batch script works too; mistakes have their line; stdin is not used twice."""
    assert lab("run", "-", stdin="#!/bin/sh\necho hello\n").out == "hello\n"
    wrong = lab("run", "-", stdin="jobs:\n  a: {run: x, rnu: y}\n").err
    assert 'stdin:2:15: unknown key "rnu" in job "a"' in wrong
    assert "stdin can't be both" in lab("run", "--stdin", "-", "-", stdin="jobs: {a: {run: x}}").err
    assert lab("run", "-").status == 2
