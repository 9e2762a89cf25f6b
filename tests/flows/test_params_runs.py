"""Params of a flow in runs: what the jobs get, what the run keeps, and what `reinit` makes of another value."""

from __future__ import annotations

import shlex

from flow_lab import Lab, states, wait_for_file

import aver

FLOW = """
params: {n: 3, data: it's "x" $HOME}
jobs:
  a: {run: 'printf "%s\\n" {n} "$AVER_PARAM_n" >> a', output: "a-{n}.out", outputs: a}
  b: {needs: a, matrix: {s: "1..{n}"}, run: "echo {s}-{n} >> b"}
  c: {run: ["sh", "-c", 'printf "%s" "$1" > c', sh, "{data}"]}
  d: {run: echo d >> d}
"""


def test_defaults_and_values_that_are_set(lab: Lab) -> None:
    """The program gets exactly the value; members come from it; the run says which values it had."""
    run = lab.run(FLOW)
    assert run.state == "COMPLETED"
    assert lab.lines("a") == ["3", "3"]
    assert sorted(lab.lines("b")) == ["1-3", "2-3", "3-3"]
    assert (lab.folder / "c").read_text() == 'it\'s "x" $HOME'
    assert (lab.folder / "a-3.out").exists()
    answer = lab("submit", "--set", "n=1", "--set", "data=a b", str(lab.write(FLOW)))
    other = aver.Run(int(answer.out))
    assert other.wait(60) == "COMPLETED"
    assert list(states(other)) == ["a", "b[s=1]", "c", "d"]
    assert (lab.folder / "c").read_text() == "a b"
    assert lab("show", str(other.number), "--json").document["params"] == {"n": "1", "data": "a b"}
    assert "n=1, data=a b" in lab("show", str(other.number)).out
    assert shlex.quote("1") in lab("show", f"{other.number}/a").out


def test_reinit_keeps_the_values(lab: Lab) -> None:
    """Another default in the file changes nothing; `--set` reruns the jobs that use the param, and those below."""
    text = FLOW.replace('"1..{n}"', "[1, 2]").replace("echo {s}-{n}", "echo {s}")
    run = aver.Run(int(lab("submit", "--set", "n=5", str(lab.write(text))).out))
    assert run.wait(60) == "COMPLETED"
    lab.write(text.replace("n: 3", "n: 4"))
    assert run.reinit(dry_run=True) == ()
    assert "nothing" in lab("reinit", str(run.number)).err
    assert {one.name: one.why for one in run.reinit(params={"n": 6}, dry_run=True)} == {
        "a": "its params changed (n)",
        "b[s=1]": "it needs a, which runs again",
        "b[s=2]": "it needs a, which runs again",
    }
    assert "its params changed (n)" in lab("reinit", str(run.number), "--set", "n=6").out
    assert run.wait(60) == "COMPLETED"
    assert lab.lines("a") == ["5", "5", "6", "6"]
    assert lab("show", str(run.number), "--json").document["params"]["n"] == "6"
    assert run.reinit(dry_run=True) == ()


def test_mistakes_of_the_command_line(lab: Lab) -> None:
    """An unknown name with its hint, in `check` too; a script and a command have no params."""
    path = str(lab.write(FLOW))
    for command in (("check",), ("run",), ("graph",)):
        answer = lab(*command, "--set", "dta=1", path)
        assert answer.status == 2
        assert '--set dta: the flow has no param of that name; did you mean "data"?' in answer.out + answer.err
    assert lab("check", "--set", "n=2", path).out.endswith("no mistakes; 5 jobs\n")
    assert "a command has no params" in lab("run", "--set", "n=1", "--", "true").err
    script = str(lab.write("#!/bin/sh\ntrue\n", "x.sh"))
    assert "is a batch script" in lab("run", "--set", "n=1", script).err
    run = aver.Run(int(lab("submit", "--", "true").out))
    run.wait(60)
    assert "--set needs the flow's file" in lab("reinit", str(run.number), "--set", "n=1").err


def test_python(lab: Lab) -> None:
    """A flow of Python has params, and a file's can be set."""
    flow = aver.Flow(folder=lab.folder, params={"n": 3})
    flow.job("a", "echo {n} >> p")
    assert flow.run(60).state == "COMPLETED"
    assert aver.Flow.from_file(lab.write(FLOW), folder=lab.folder, params={"n": 2}).run(60).state == "COMPLETED"
    assert lab.lines("p") == ["3"]
    assert lab.lines("a") == ["2", "2"]


def test_after_kill_9(lab: Lab) -> None:
    """The values are those of the submission, whatever the file says when the coordinator is back."""
    text = f"""
params: {{n: 3}}
jobs:
  a: {{run: "touch begun; {wait_for_file("go")}; echo {{n}} >> order"}}
  b: {{needs: a, run: "echo {{n}} $AVER_PARAM_n >> order"}}
"""
    run = aver.Run(int(lab("submit", "--set", "n=7", str(lab.write(text))).out))
    lab.wait_for("begun")
    lab.kill()
    lab.write(text.replace("n: 3", "n: 4"))
    lab("runs")
    lab.let_go("go")
    assert run.wait(60) == "COMPLETED"
    assert lab.lines("order") == ["7", "7", "7"]


def test_recover_keeps_values_and_parts(lab: Lab) -> None:
    """A job that ran out of time is given more of it in the file, and runs again with the value that it had."""
    text = """
params: {n: 30}
jobs:
  other: {run: "echo other >> order"}
  a: {needs: other, time: 1s, run: "test -e again || sleep {n}; echo {n} >> order"}
"""
    path = lab.write(text)
    run = aver.Run(int(lab("submit", "--set", "n=31", "--skip", "other", str(path)).out))
    assert run.wait(60) == "TIMEOUT"
    lab.let_go("again")
    answer = lab("recover", str(run.number), "--yes")
    assert answer.status == 0, answer
    assert run.wait(60) == "COMPLETED"
    assert lab.lines("order") == ["31"]
    assert "time: 1s" not in path.read_text()
    assert "params: {n: 30}" in path.read_text()
