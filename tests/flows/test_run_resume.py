"""`aver run --resume` and `--since`: a new run takes over what an earlier one has done, and says so everywhere."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from flow_lab import Lab, reasons, states

import aver
from aver.client.origin import origin_of
from aver.client.submit import submit_once
from aver.errors import UsageError
from aver.home import Home
from aver.judge.takeover import judge_taken
from aver.model.evidence import TakenOver, Verdict
from aver.model.exit import ExitStatus
from aver.model.job import Submission
from aver.model.reasons import FromRun, parse_from_run
from aver.model.states import State
from aver.spec.load import load
from aver.store.read.reader import Reader

FLOW = """
jobs:
  prep: {inputs: data.txt, outputs: prep.txt, run: "echo prep >> order; cat data.txt > prep.txt"}
  train:
    needs: prep
    matrix: {n: [1, 2]}
    inputs: prep.txt
    outputs: "model-{n}"
    env: {LR: "1"}
    run: "echo train{n} >> order; cat prep.txt > model-{n}"
  last: {needs: train, run: "echo last >> order; test -e fine"}
"""
JOBS = ["prep", "train[n=1]", "train[n=2]", "last"]


@pytest.fixture
def done(lab: Lab) -> aver.Run:
    """All but the last job of the flow have completed, and their files are noted."""
    (lab.folder / "data.txt").write_text("one\n")
    lab.write(FLOW)
    assert lab("run", "flow.yaml").status == 1
    run = aver.Run(1)
    noted(lab, run, 3)
    (lab.folder / "order").unlink()
    return run


def noted(lab: Lab, run: aver.Run, jobs: int) -> None:
    def count() -> bool:
        reader = Reader.open(lab.home / "aver.db")
        assert reader is not None
        with reader:
            return len({event.job for event in reader.fingerprints(run.number)}) == jobs

    lab.until(count, "the files are not noted")


def plan(lab: Lab, *options: str) -> dict[str, str | None]:
    """What a dry run says of each job: why it would run, or the run that it is taken from."""
    document = lab("run", "flow.yaml", *(options or ("--resume",)), "--dry-run", "--json").document
    return {job["name"]: job["why"] if job["runs"] else f"run {job['from_run']}" for job in document["jobs"]}


def test_only_what_is_not_done_runs(lab: Lab, done: aver.Run) -> None:
    """The rest is COMPLETED with the run that did the work, on every surface, and the summary counts it."""
    lab.let_go("fine")
    answer = lab("run", "flow.yaml", "--resume")
    assert answer.status == 0
    assert lab.lines("order") == ["last"]
    assert "taken over from run 1: 3 of 4 jobs" in answer.err
    assert "3 of them taken over from earlier runs" in answer.err
    run = aver.Run(done.number + 5)
    assert set(states(run).values()) == {"COMPLETED"}
    assert reasons(run)["prep"] == "FromRun:1(2)"
    assert run["prep"].from_run == 1
    assert run["last"].from_run is None
    address = f"{run.number}/prep"
    for command in (("jobs", str(run.number)), ("show", address), ("results", str(run.number))):
        assert "COMPLETED (from run 1)" in lab(*command).out, command
    why = lab("why", address).out
    assert "taken over from run 1 (job 2), as attested there by witness" in why
    assert "aver why 2" in why
    facts = {job["name"]: job for job in lab("jobs", "--json", str(run.number)).document["jobs"]}
    prep = facts["prep"]
    assert (prep["from_run"], prep["from_job"], prep["attempt"], prep["elapsed_s"]) == (1, 2, 0, None)
    assert (facts["last"]["from_run"], facts["last"]["attempt"]) == (None, 1)
    assert "Not run: taken over from run 1" in lab("export", str(run.number), "--junit").out
    sacct = [lab.home / "bin" / "sacct", "-nPX", "-j", str(run["prep"].number), "-o", "state,exitcode,reason,elapsed"]
    said = subprocess.run(sacct, env={**os.environ, "AVER_HOME": str(lab.home)}, capture_output=True, check=True)
    assert said.stdout.decode().split("|")[:3] == ["COMPLETED", "0:0", "FromRun:1(2)"]


@pytest.mark.parametrize(
    ("change", "causes"),
    [
        (lambda lab: (lab.folder / "data.txt").write_text("two\n"), {"prep": "data.txt changed since run 1"}),
        (lambda lab: os.utime(lab.folder / "data.txt"), {}),
        (lambda lab: (lab.folder / "model-2").unlink(), {"train[n=2]": "output model-2 is missing"}),
        (lambda lab: (lab.folder / "model-2").write_text("?"), {"train[n=2]": "model-2 changed since run 1"}),
        (lambda lab: lab.write(FLOW.replace("cat data", "sort data")), {"prep": "its command changed since run 1"}),
        (lambda lab: lab.write(FLOW.replace('"1"}', '"2"}')),
         dict.fromkeys(("train[n=1]", "train[n=2]"), "its environment changed (LR) since run 1")),
        (lambda lab: lab.write(FLOW.replace("needs: prep", "needs: {prep: any}")),
         dict.fromkeys(("train[n=1]", "train[n=2]"), "its needs changed since run 1")),
        (lambda lab: lab.write(FLOW.replace("[1, 2]", "[1, 3]")), {"train[n=3]": "run 1 has no such job"}),
        (lambda lab: lab.write(FLOW.replace("outputs: prep.txt, ", "")), {}),
    ],
)  # fmt: skip
def test_what_changed_runs_and_all_below(
    lab: Lab, done: aver.Run, change: Callable[[Lab], object], causes: dict[str, str]
) -> None:
    """Each with its cause; what is only touched has not changed."""
    change(lab)
    said = plan(lab)
    own = {name: why for name, why in said.items() if why is not None and "it needs" not in why}
    assert {name for name, why in own.items() if not why.startswith("run 1") or "no such" in why} == {*causes, "last"}
    for name, cause in causes.items():
        assert cause in own[name]
    if "prep" in causes:
        assert {said[name] for name in ("train[n=1]", "train[n=2]")} == {"it needs prep, which runs"}


def test_single_commands(lab: Lab) -> None:
    """A command is taken over too, unless a variable that --env names is another, or none any more."""
    typed = ("--resume", "--env", "A=1", "--", "sh", "-c", "echo $A >> order")
    assert lab("run", *typed).status == 0
    answer = lab("run", *typed)
    assert (answer.status, "job 2 COMPLETED (from run 1)" in answer.err) == (0, True)
    assert lab.lines("order") == ["1"]
    lab("run", "--resume", "--env=A=2", *typed[3:])
    assert lab.lines("order") == ["1", "2"]
    plain = lab("run", "-n", "--resume", *typed[3:])
    assert "its environment changed (A) since run 3" in plain.out


def test_the_work_keeps_its_origin(lab: Lab, done: aver.Run) -> None:
    """A run that takes over from one that took over names the run that did the work; its files count."""
    lab("run", "flow.yaml", "--resume")
    assert plan(lab) == dict.fromkeys(JOBS[:3], "run 1") | {"last": "it is FAILED in run 6"}
    (lab.folder / "data.txt").write_text("two\n")
    assert "since run 1" in (plan(lab, "--since", "6")["prep"] or "")
    assert "data.txt changed" in lab("reinit", "6", "--dry-run").out


def test_a_run_that_goes_on(lab: Lab) -> None:
    """Verdicts are taken over from a settled run only; a run that is not there is a mistake."""
    lab.write("jobs: {a: {run: 'until test -e go; do sleep 0.02; done'}}")
    lab("submit", "flow.yaml")
    answer = lab("run", "flow.yaml", "--resume")
    assert (answer.status, "verdicts are taken over from a settled run" in answer.err) == (2, True)
    assert lab("run", "flow.yaml", "--since", "99").status == 2
    assert lab("run", "flow.yaml", "--since", "1", "--resume").status == 2
    lab.let_go("go")


def test_without_an_earlier_run(lab: Lab) -> None:
    """All of it runs, and that is said; another folder's run of that name is another."""
    lab.write("jobs: {a: {run: echo a >> order}}")
    answer = lab("run", "flow.yaml", "--resume")
    assert (answer.status, lab.lines("order")) == (0, ["a"])
    assert "no earlier run of flow from this folder" in answer.err


def test_the_coordinator_looks_itself(lab: Lab, done: aver.Run) -> None:
    """A client that asks for a job that is not COMPLETED is refused, and leaves nothing behind."""
    flow = load(str(lab.folder / "flow.yaml"), folder=str(lab.folder))
    origin = origin_of(("test",), (), str(lab.folder))
    for taken in (((3, done["last"].number),), ((0, 999),), ((9, done["prep"].number),)):
        with pytest.raises(UsageError, match="can't be taken over"):
            submit_once(Home(lab.home), Submission(flow, origin, taken=taken), [])
    assert len(lab("runs", "--json").document["runs"]) == 1


def test_after_a_kill(lab: Lab, done: aver.Run) -> None:
    """What was taken over stays so, whoever drives the rest."""
    lab.write(FLOW.replace("test -e fine", "touch begun; until test -e go; do sleep 0.02; done"))
    lab("submit", "flow.yaml", "--resume")
    lab.wait_for("begun")
    lab.kill()
    lab.let_go("go")
    run = aver.Run(6)
    assert run.wait(60) == "COMPLETED"
    assert [reason for reason in reasons(run).values() if reason] == ["FromRun:1(2)", "FromRun:1(3)", "FromRun:1(4)"]
    assert lab.lines("order") == ["last"]


def test_python(lab: Lab, done: aver.Run) -> None:
    """The same in Python."""
    lab.let_go("fine")
    flow = aver.Flow.from_file(lab.folder / "flow.yaml", folder=lab.folder)
    run = flow.run(60, since=1)
    assert [job.from_run for job in run] == [1, 1, 1, None]
    assert [job.from_run for job in flow.run(60, resume=True)] == [1, 1, 1, run.number]


def test_a_dry_run_shows_script_and_environment(lab: Lab) -> None:
    """As they will be, with secrets masked; nothing is run or stored."""
    lab.write("""
params: {who: "a b"}
jobs:
  hi: {matrix: {n: [1]}, env: {TOKEN: s3cret, X: "{n}"}, run: "echo {who} {n}"}
  then: {needs: hi, run: "true"}
""")
    answer = lab("run", "flow.yaml", "--dry-run", "--secret", "TOKEN")
    assert (answer.status, "s3cret" in answer.out) == (0, False)
    for text in ("hi[n=1]: would run\n", "  | echo 'a b' '1'\n", "X=1\n", "TOKEN=***\n",
                 "AVER_PARAM_n=1\n", "then: would run: after hi\n",
                 "shell    bash -eo pipefail\n", f"folder   {lab.folder}\n"):  # fmt: skip
        assert text in answer.out, text
    single = lab("run", "--dry-run", "--env", "A=1", "--", "echo", "x y")
    assert "echo: would run" in single.out
    assert "command  echo 'x y'" in single.out
    assert lab("runs", "--json").document["runs"] == []


def test_the_judge_takes_over_completions_alone() -> None:
    """The exit status, its source and its warnings stay; a failure is nobody's to take."""
    verdict = Verdict(State.COMPLETED, ExitStatus(), "None", True, "witness", ("slow",))
    taken = judge_taken(TakenOver(5.0, FromRun(12, 14), verdict))
    assert taken is not None
    assert (taken.state, taken.exit, taken.verified, taken.source) == (State.COMPLETED, ExitStatus(), True, "witness")
    assert (taken.reason, taken.warnings) == ("FromRun:12(14)", ("slow",))
    assert judge_taken(TakenOver(5.0, FromRun(12, 14), Verdict(State.FAILED, None, "x", True, "witness"))) is None


def test_a_reason_names_its_run() -> None:
    """Only the word that the judge writes is one."""
    assert parse_from_run("FromRun:12(14)") == FromRun(12, 14)
    for text in ("None", "FromRun", "FromRun:x(1)", "FromRun:1", "NeedFailed:a(FAILED)", "FromRun:1(٣)"):
        assert parse_from_run(text) is None


def test_the_page_of_flows_has_it() -> None:
    """Who reads the pages finds it."""
    assert "--resume" in (Path(__file__).parents[2] / "docs" / "en" / "guides" / "continue.md").read_text()
