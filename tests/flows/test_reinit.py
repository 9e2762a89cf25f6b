"""`aver reinit`: only what has a cause runs again, and all below it; each with its cause in words."""

from __future__ import annotations

import os

import pytest
from flow_lab import Lab, states

import aver
from aver.errors import UsageError

FLOW = """
jobs:
  prep:
    inputs: [data.txt, {files: "extra/*.csv", required: false}]
    outputs: prep.txt
    run: "echo prep >> order; cat data.txt > prep.txt"
  train: {needs: prep, inputs: prep.txt, outputs: model, env: {LR: 1}, run: "echo train >> order; cat prep.txt > model"}
  eval: {needs: train, matrix: {n: [1, 2]}, run: "echo eval{n} >> order"}
  other: {run: echo other >> order}
"""


@pytest.fixture
def done(lab: Lab) -> aver.Run:
    """The flow has run to its end, and its inputs are noted."""
    (lab.folder / "data.txt").write_text("one\n")
    run = lab.run(FLOW)
    assert run.state == "COMPLETED"
    lab.until(lambda: len(_noted(lab, run)) == 2, "the inputs are not noted")
    (lab.folder / "order").unlink()
    return run


def _noted(lab: Lab, run: aver.Run) -> set[int]:
    from aver.store.read.reader import Reader

    reader = Reader.open(lab.home / "aver.db")
    assert reader is not None
    with reader:
        return {event.job for event in reader.fingerprints(run.number)}


def causes(lab: Lab, run: aver.Run, *args: str) -> dict[str, str]:
    """What `--dry-run` says, by the job's name."""
    answer = lab("reinit", str(run.number), *args, "--dry-run", "--json")
    assert answer.status == 0, answer
    names = {job.number: job.name for job in run}
    return {names[one["id"]]: one["did"] for one in answer.document["results"]}


def test_nothing_changed(lab: Lab, done: aver.Run) -> None:
    """Nothing runs again, not even for a file that was written anew with the same content."""
    assert causes(lab, done) == {}
    os.utime(lab.folder / "data.txt")
    assert causes(lab, done) == {}
    answer = lab("reinit", str(done.number))
    assert answer.status == 0
    assert "nothing" in answer.err
    assert "retry" not in answer.err
    assert done.round == 1


def test_nothing_changed_for_a_failure(lab: Lab) -> None:
    """What failed and rests on nothing that changed is named with the command that runs it again."""
    run = lab.run("jobs: {a: {run: exit 3}}")
    assert f"`aver retry {run.number}`" in lab("reinit", str(run.number)).err


def test_an_input_changed(lab: Lab, done: aver.Run) -> None:
    """The job and all below it run again, and nothing else; a dry run changes nothing; `why` keeps the cause."""
    (lab.folder / "data.txt").write_text("two\n")
    said = causes(lab, done)
    assert list(said) == ["prep", "train", "eval[n=1]", "eval[n=2]"]
    assert "data.txt changed" in said["prep"]
    assert "it needs" in said["train"]
    assert done.round == 1
    answer = lab("reinit", str(done.number))
    assert "data.txt changed" in answer.out
    assert done.wait(60) == "COMPLETED"
    assert sorted(lab.lines("order")) == ["eval1", "eval2", "prep", "train"]
    assert (lab.folder / "model").read_text() == "two\n"
    assert done.round == 2
    assert len(done["prep"].attempts) == 2
    assert len(done["other"].attempts) == 1
    assert "data.txt changed" in lab("why", str(done["prep"].number)).out


def test_content_counts_even_where_size_and_time_are_kept_apart(lab: Lab, done: aver.Run) -> None:
    """Another content of the same size, with an older time of change, is a change."""
    (lab.folder / "data.txt").write_text("eno\n")
    os.utime(lab.folder / "data.txt", (1, 1))
    assert "data.txt changed" in causes(lab, done)["prep"]


def test_a_new_file_of_a_glob_and_one_that_is_gone(lab: Lab, done: aver.Run) -> None:
    """A glob is compared with what it matched then."""
    (lab.folder / "extra").mkdir()
    (lab.folder / "extra" / "a.csv").touch()
    assert "a.csv" in causes(lab, done)["prep"]
    (lab.folder / "extra" / "a.csv").unlink()
    (lab.folder / "data.txt").unlink()
    assert "data.txt is gone" in causes(lab, done)["prep"]


def test_an_output_is_missing(lab: Lab, done: aver.Run) -> None:
    """The job that made it runs again, and what is below it; not what is above."""
    (lab.folder / "model").unlink()
    said = causes(lab, done)
    assert list(said) == ["train", "eval[n=1]", "eval[n=2]"]
    assert "output model is missing" in said["train"]


def test_the_flow_changed(lab: Lab, done: aver.Run) -> None:
    """Command and environment are read again from the flow's file, and what runs again runs as it says now."""
    lab.write(FLOW.replace("LR: 1", "LR: 2").replace("echo eval{n} >>", "echo new{n} $LR >>"))
    said = causes(lab, done)
    assert list(said) == ["train", "eval[n=1]", "eval[n=2]"]
    assert "its environment changed (LR)" in said["train"]
    assert "its command changed" in said["eval[n=1]"]
    assert lab("reinit", str(done.number)).status == 0
    assert done.wait(60) == "COMPLETED"
    assert sorted(lab.lines("order")) == ["new1", "new2", "train"]
    assert causes(lab, done) == {}


def test_another_file(lab: Lab, done: aver.Run) -> None:
    """`aver reinit RUN FILE` compares with that file; other jobs than the run's are refused with their names."""
    lab.write(FLOW.replace("echo other", "echo another"), "changed.yaml")
    assert list(causes(lab, done, "changed.yaml")) == ["other"]
    lab.write(FLOW.replace("  other:", "  others:"), "changed.yaml")
    answer = lab("reinit", str(done.number), "changed.yaml")
    assert answer.status == 2
    assert "new: others" in answer.err
    assert "gone: other" in answer.err


def test_the_new_definitions_survive_kill_9(lab: Lab, done: aver.Run) -> None:
    """After a crash the run goes on with the flow that replaced the old one."""
    lab.write(FLOW.replace("echo train", "touch begun; sleep 0.3; echo changed"))
    assert lab("reinit", str(done.number)).status == 0
    lab.wait_for("begun")
    lab.kill()
    assert done.wait(60) == "COMPLETED"
    assert sorted(lab.lines("order")) == ["changed", "eval1", "eval2"]


def test_a_failed_job_runs_again_when_its_command_was_mended(lab: Lab) -> None:
    """Mend the flow, reinit: the failed job and what was skipped below it run; finished work is not repeated."""
    text = "jobs:\n  a: {run: echo a >> order}\n  b: {needs: a, run: exit 1}\n  c: {needs: b, run: echo c >> order}\n"
    run = lab.run(text)
    assert run.state == "FAILED"
    lab.write(text.replace("exit 1", "'true'"))
    assert lab("reinit", str(run.number)).status == 0
    assert run.wait(60) == "COMPLETED"
    assert states(run) == {"a": "COMPLETED", "b": "COMPLETED", "c": "COMPLETED"}
    assert lab.lines("order") == ["a", "c"]


def test_a_run_that_goes_on_is_refused(lab: Lab) -> None:
    """What changed can be told when all is settled."""
    run = lab.submit("jobs:\n  a: {run: sleep 100}\n")
    answer = lab("reinit", str(run.number))
    assert answer.status == 2
    assert "settled" in answer.err


def test_an_inherited_variable_changed(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Named with --inherit it is compared and taken; a job that sets it by itself has no cause; values are not told."""
    monkeypatch.setenv("DATA_DIR", "old-place")
    run = lab.run("jobs:\n  a: {run: echo a=$DATA_DIR >> order}\n  b: {env: {DATA_DIR: own}, run: 'true'}\n")
    assert causes(lab, run, "--inherit", "DATA_DIR") == {}
    monkeypatch.setenv("DATA_DIR", "new-place")
    assert causes(lab, run) == {}
    assert causes(lab, run, "--inherit", "DATA_DIR") == {"a": "would run again (a): its environment changed (DATA_DIR)"}
    assert lab("reinit", str(run.number), "--inherit", "DATA_DIR").status == 0
    assert run.wait(60) == "COMPLETED"
    assert lab.lines("order") == ["a=old-place", "a=new-place"]
    assert causes(lab, run, "--inherit", "DATA_DIR") == {}
    assert "place" not in lab("why", str(run["a"].number)).out
    monkeypatch.delenv("DATA_DIR")
    assert "DATA_DIR" in causes(lab, run, "--inherit", "DATA_DIR", "--inherit", "NEVER_SET")["a"]
    answer = lab("reinit", str(run.number), "--inherit", "A=B")
    assert (answer.status, answer.err.count("\n")) == (2, 1)


def test_reinit_in_python(lab: Lab, done: aver.Run) -> None:
    """The same causes, the same effect; a dry run changes nothing."""
    assert done.reinit() == ()
    (lab.folder / "data.txt").write_text("two\n")
    said = done.reinit(dry_run=True)
    assert [cause.name for cause in said] == ["prep", "train", "eval[n=1]", "eval[n=2]"]
    assert "data.txt changed" in said[0].why
    assert [cause.why for cause in said[1:]] == [
        "it needs prep, which runs again", "it needs train, which runs again", "it needs train, which runs again",
    ]  # fmt: skip
    assert done.round == 1
    assert done.reinit() == said
    assert done.wait(60) == "COMPLETED"
    assert (done.round, len(done["prep"].attempts), len(done["other"].attempts)) == (2, 2, 1)


def test_reinit_in_python_with_another_flow(lab: Lab) -> None:
    """A flow that was made in Python has no file: how it is now is said by another Flow."""

    def flow(word: str) -> aver.Flow:
        made = aver.Flow("made", folder=lab.folder)
        made.job("a", run=f"echo {word} >> order")
        made.job("b", run="true")
        return made

    run = flow("one").run(60)
    assert run.reinit() == ()
    assert [(cause.name, cause.why) for cause in run.reinit(flow("two"))] == [("a", "its command changed")]
    assert run.wait(60) == "COMPLETED"
    assert lab.lines("order") == ["one", "two"]
    with pytest.raises(UsageError, match="run 999 does not exist"):
        aver.Run(999).reinit()
