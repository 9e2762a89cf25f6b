"""submitit, as PyPI has it: what it reports of jobs that end well, badly, early and again."""

from __future__ import annotations

from clients_desk import Desk

from aver.model.states import State

PROGRAM = "submit_functions.py"


def test_results_failures_and_logs(desk: Desk) -> None:
    """A result comes back with its logs; an exception is FAILED with its traceback; a lost process is FAILED."""
    found = desk.program(PROGRAM, "outcomes")
    good, bad, gone = found["good"], found["bad"], found["gone"]
    assert (good["value"], good["state"]) == (5, "COMPLETED")
    assert "adding 2 and 3\n" in good["stdout"]
    assert good["stderr"] == "a line of stderr\n"
    assert (bad["error"], bad["exception"], bad["state"]) == ("FailedJobError", "FailedJobError", "FAILED")
    assert "return number / 0\n" in bad["text"]
    assert "ZeroDivisionError: division by zero" in bad["text"]
    assert (gone["error"], gone["state"]) == ("UncompletedJobError", "FAILED")
    assert "has not produced any output (state: FAILED)" in gone["text"]
    assert "task 0: Exited with exit code 9" in gone["text"]
    exits = {str(job.id): (job.state, str(job.exit)) for job in desk.jobs()}
    assert exits == {
        good["id"]: (State.COMPLETED, "0:0"),
        bad["id"]: (State.FAILED, "1:0"),
        gone["id"]: (State.FAILED, "9:0"),
    }


def test_arrays(desk: Desk) -> None:
    """`map_array` gives one result, state and log for each member; a member that fails is the only one that did."""
    found = desk.program(PROGRAM, "array")
    run = found["ids"][0].partition("_")[0]
    assert found["ids"] == [f"{run}_0", f"{run}_1", f"{run}_2"]
    assert found["values"] == [11, 22, 33]
    assert found["states"] == ["COMPLETED"] * 3
    for text, line in zip(found["stdout"], ("1 and 10", "2 and 20", "3 and 30"), strict=True):
        assert f"adding {line}\n" in text
    first, second = found["last"]
    number, _, _ = found["last ids"][0].partition("_")
    assert first["value"] == [f"{number}_0", number, "0"]
    assert [first["state"], second["state"]] == ["COMPLETED", "FAILED"]
    assert "ZeroDivisionError" in second["text"]


def test_a_job_near_its_time_limit_goes_on_where_it_was(desk: Desk) -> None:
    """USR2 comes before the limit; submitit saves, asks for a requeue, and counts on. Not asked to, it gives up."""
    found = desk.program(PROGRAM, "checkpoint")
    goes_on, given_up = found["goes on"], found["given up"]
    assert (goes_on["error"], goes_on["state"]) == (None, "COMPLETED")
    assert goes_on["value"] == {"count": 60, "restarts": [None, "1"]}
    assert goes_on["stdout"].count("Starting with JobEnvironment") == 2, "the log of the first attempt is kept"
    assert "Caught signal SIGUSR2" in goes_on["stderr"]
    assert "this job is timed-out" in goes_on["stderr"]
    assert (given_up["error"], given_up["state"]) == ("FailedJobError", "FAILED")
    assert "Job not requeued because: timed-out too many times." in given_up["text"]
    assert {str(job.id): job.attempt for job in desk.jobs()}[goes_on["id"]] == 2


def test_a_cancelled_job(desk: Desk) -> None:
    """`job.cancel()` is CANCELLED by who asked; another job goes on."""
    found = desk.program(PROGRAM, "cancel")
    assert found["state"].startswith("CANCELLED by ")
    assert found["done"] is True
    assert found["node"]
    assert found["left"] == 2
    assert {str(job.id): job.state for job in desk.jobs()}[found["id"]] is State.CANCELLED


def test_several_tasks(desk: Desk) -> None:
    """Each of three tasks knows its rank, and gives its result."""
    found = desk.program(PROGRAM, "tasks")
    assert found["values"] == [[0, 3], [1, 3], [2, 3]]
    assert found["state"] == "COMPLETED"
