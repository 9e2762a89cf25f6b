"""Steps on every surface: the tasks of each, DerivedExitCode, and the warning of a step that was out of memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from stored_past import T0, Aver, origin, record
from test_json import SCHEMA, problems

from aver.model import events as ev
from aver.model.evidence import Verdict
from aver.model.exit import ExitStatus
from aver.model.job import Argv, FlowSpec, JobSpec, Request, StepSpec, Submission
from aver.model.states import State
from aver.store.write.writer import Writer


@pytest.fixture
def stepped(past: Path, tmp_path: Path) -> Path:
    """Job 7 completed; its step 0 had a task that failed, its step 1 was out of memory. Job 8 runs a step of two."""
    writer = Writer.open(past / "aver.db")
    writer.commit(job(tmp_path, 7) + step(7, 0, [0, 3 << 8]) + step(7, 1, [9], State.OUT_OF_MEMORY) + over(7))
    writer.commit(job(tmp_path, 8) + step(8, 0, [0], tasks=2))
    writer.close()
    return past


def job(work: Path, number: int) -> list[ev.Event]:
    spec = JobSpec("steps", Argv(("x",)))
    submission = Submission(FlowSpec("steps", (spec,), is_single=True), origin(work, ()))
    usage = ev.Usage(T0 + 1)
    return [
        ev.RunSubmitted(T0, number, number, submission),
        ev.AttemptPlanned(T0, number, number, 1, f"k{number}", "local", Request()),
        ev.Observed(T0 + 1, number, number, 1, "witness", "", State.RUNNING, "None", usage=usage),
    ]


def step(
    number: int, which: int, raws: list[int], bad: State = State.FAILED, tasks: int | None = None
) -> list[ev.Event]:
    spec = StepSpec(f"s{which}", ("prog", "arg"), "/", tasks=tasks or len(raws))
    happened: list[ev.Event] = [ev.StepStarted(T0 + 2, number, number, 1, which, f"t{which}", spec)]
    for task, raw in enumerate(raws):
        state = bad if raw else State.COMPLETED
        verdict = Verdict(state, ExitStatus.from_wait(raw), "None", True, "witness")
        happened.append(ev.TaskEnded(T0 + 3 + task, number, number, 1, which, task, "{}", verdict))
    if tasks is None:
        worst = max(raws)
        verdict = Verdict(bad, ExitStatus.from_wait(worst), "None", True, "witness")
        derived = 125 if bad is State.OUT_OF_MEMORY else worst
        happened.append(ev.StepEnded(T0 + 9, number, number, 1, which, verdict, derived, len(raws) - 1, 1))
    return happened


def over(number: int) -> list[ev.Event]:
    verdict = Verdict(State.COMPLETED, ExitStatus(), "None", True, "witness")
    usage = ev.Usage(T0 + 1, 10.0)
    said = record(number, raw=0)
    return [
        ev.Observed(T0 + 11, number, number, 1, "witness", said, State.COMPLETED, "None", verdict, usage),
        ev.RunMoved(T0 + 11, number, State.COMPLETED),
    ]


def test_show_a_step_has_the_summary_of_its_tasks(stepped: Path, call: Aver) -> None:
    """`aver show 7.0`: how each task ended."""
    lines = call("show", "7.0").out.splitlines()
    assert lines[0] == "step 7.0 s0 FAILED"
    assert "  Task Exit Code Summary: step 7.0, 2 tasks: 1 completed, 1 failed" in lines
    assert any(line.split() == ["task", "1", "failed", "with", "exit", "code", "3"] for line in lines)


def test_a_task_without_an_end_runs_while_its_step_does(
    stepped: Path, call: Aver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is guessed about it. A coordinator, which would look for its witness, can't start."""
    monkeypatch.setenv("AVER_CRASH_AT", "attached")
    answer = call("show", "8.0")
    assert "shown as of the last time a coordinator ran" in answer.err
    assert "1 completed, 1 running" in answer.out


def test_a_task_whose_witness_is_gone_is_lost(stepped: Path, call: Aver) -> None:
    """The first command after the machine's restart says so: the coordinator looks before anybody reads."""
    assert "1 completed, 1 lost" in call("show", "8.0").out


def test_show_a_job_lists_its_steps_and_its_derived_exit(stepped: Path, call: Aver) -> None:
    """`aver show 7`: both steps, and DerivedExitCode."""
    text = call("show", "7").out
    assert "step 7.0 s0 FAILED" in text
    assert "step 7.1 s1 OUT_OF_MEMORY" in text
    assert "derived     3:0, from its steps" in text
    assert "derived" not in call("show", "1").out


@pytest.mark.parametrize("args", [("show", "7"), ("show", "7.0"), ("why", "7"), ("jobs",), ("jobs", "7")])
def test_a_step_that_was_out_of_memory_is_a_warning_everywhere(
    stepped: Path, call: Aver, args: tuple[str, ...]
) -> None:
    """The job completed, and every surface warns."""
    assert "step 7.1 (s1) was out of memory" in call(*args).out


def test_the_documents_fit_the_schema(stepped: Path, call: Aver) -> None:
    """`show 7 --json` and `show 7.0 --json`."""
    shown = call("show", "7", "--json").document
    assert problems(shown, SCHEMA) == []
    assert [one["address"] for one in shown["steps"]] == ["7.0", "7.1"]
    one = call("show", "7.1", "--json").document
    assert problems(one, SCHEMA) == []
    assert (one["kind"], one["step"]["task_ends"][0]["state"]) == ("step", "OUT_OF_MEMORY")
    assert one["job"]["warnings"] == ["step 7.1 (s1) was out of memory"]


def test_a_step_that_is_not_there_is_a_sentence(stepped: Path, call: Aver) -> None:
    """Exit 2, and where to look."""
    answer = call("show", "7.5")
    assert (answer.status, answer.err) == (2, "aver: job 7 has no step 5; `aver show 7` lists its steps\n")


def unseen(number: int) -> list[ev.Event]:
    """A step whose witness vanished: nobody saw its exit."""
    verdict = Verdict(State.UNVERIFIED, None, "WitnessVanished", False, "coordinator")
    spec = StepSpec("s0", ("prog",), "/")
    return [
        ev.StepStarted(T0 + 2, number, number, 1, 0, "t0", spec),
        ev.TaskEnded(T0 + 3, number, number, 1, 0, 0, "gone", verdict),
        ev.StepEnded(T0 + 3, number, number, 1, 0, verdict, None),
    ]


def test_a_step_that_nobody_saw_end_is_an_unknown_and_a_warning(past: Path, tmp_path: Path, call: Aver) -> None:
    """The job completed; its derived exit is `?`, in JSON null, and never 0:0."""
    writer = Writer.open(past / "aver.db")
    writer.commit(job(tmp_path, 7) + unseen(7) + over(7))
    writer.close()
    text = call("show", "7").out
    assert "derived     ?, from its steps" in text
    assert "step 7.0 (s0) ended unseen; exit code unknown" in text
    (line,) = [line for line in call("jobs", "7").out.splitlines() if line.split()[:1] == ["7"]]
    assert line.split()[3:6] == ["COMPLETED", "0:0", "?"]
    shown = call("show", "7", "--json").document
    assert problems(shown, SCHEMA) == []
    assert shown["job"]["derived_exit"] is None
    assert "ended unseen" in call("why", "7").out
