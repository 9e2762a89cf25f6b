"""`aver show`: a job, a run, a step."""

from __future__ import annotations

from pathlib import Path

from product import Product
from stored_past import Aver

from aver.api.job import Job


def test_show_a_job_has_its_attempts_and_files(past: Path, call: Aver) -> None:
    """All facts, the verdict's sentence first."""
    document = call("show", "1", "--json").document
    assert document["kind"] == "job"
    assert document["job"]["exit"] == {
        "text": "0:0", "code": 0, "signal": 0, "core_dumped": False, "return_code": 0,
    }  # fmt: skip
    (attempt,) = document["attempts"]
    assert attempt["stdout"].endswith("/work/aver-1.out")
    assert attempt["node"] == "node1"
    assert call("show", "1").out.splitlines()[1] == "Completed with exit code 0 after 1.2 s."


def test_show_a_run(past: Path, call: Aver) -> None:
    """A flow's number shows the run and its jobs."""
    document = call("show", "3", "--json").document
    assert document["kind"] == "run"
    assert [job["address"] for job in document["jobs"]] == ["3/train[seed=1]", "3/train[seed=2]", "3/eval"]


def test_a_members_command_has_its_values(past: Path, call: Aver) -> None:
    """What is shown is what was run."""
    assert call("show", "3/train[seed=2]", "--json").document["command"][-1] == "python train.py --seed '2'"


def test_a_success_has_no_reason(call: Aver, past: Path) -> None:
    """null in JSON, as in Python: "None" is a text like any other to a program."""
    assert call("show", "1", "--json").document["job"]["reason"] is None
    assert call("show", "1", "--json").document["attempts"][0]["reason"] is None
    assert call("results", "1", "--json").document["results"][0]["reason"] is None
    assert Job(1).reason is None
    assert Job(2).reason == "OutOfMemory"


def test_the_environment_of_a_job_is_shown_and_masked(aver: Product) -> None:
    """Where Python is found comes first; secrets and what looks like one are hidden."""
    env = {"VIRTUAL_ENV": "/opt/venv", "MY_API_KEY": "k123", "COLOUR": "red"}
    aver("run", "-q", "--env", "DB=hunter2", "--secret", "DB", "--", "true", env=env)
    lines = aver("show", "1", "--env").out.splitlines()
    assert {"VIRTUAL_ENV=/opt/venv", "MY_API_KEY=***", "COLOUR=red", "DB=***", "PYTHONUNBUFFERED=1"} <= set(lines)
    assert lines.index("VIRTUAL_ENV=/opt/venv") < lines.index("COLOUR=red")
    assert not {"k123", "hunter2"} & set("=".join(lines).split("="))


def test_show_says_what_was_asked_for(past: Path, call: Aver) -> None:
    """Also before there is an attempt that could say it."""
    shown = call("show", "2", "--json").document
    assert shown["asked"]["mem_bytes"] == 2 << 30
    assert shown["waiting_since"] is None
    assert "asked       cpus 1, memory 2.0 GiB" in call("show", "2").out
