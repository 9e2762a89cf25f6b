"""`aver jobs --format` and `aver show --env`."""

from __future__ import annotations

from pathlib import Path

from product import Product
from stored_past import Aver


def test_chosen_keys_are_printed_with_tabs(past: Path, call: Aver) -> None:
    """No head; an exit is code:signal, and nothing is empty."""
    assert call("jobs", "3", "--format", "id,state,exit,source").out.splitlines() == [
        "4\tCOMPLETED\t0:0\twitness",
        "5\tFAILED\t3:0\twitness",
        "6\tSKIPPED\t\tcoordinator",
    ]
    answer = call("jobs", "--format", "id,colour")
    assert (answer.status, "no key 'colour'; the keys are id, run, name" in answer.err) == (2, True)
    assert call("jobs", "--format", "id", "--json").status == 2


def test_the_environment_of_a_job_is_shown_and_masked(aver: Product) -> None:
    """Where Python is found comes first; secrets and what looks like one are hidden."""
    env = {"VIRTUAL_ENV": "/opt/venv", "MY_API_KEY": "k123", "COLOUR": "red"}
    aver("run", "-q", "--env", "DB=hunter2", "--secret", "DB", "--", "true", env=env)
    lines = aver("show", "1", "--env").out.splitlines()
    assert {"VIRTUAL_ENV=/opt/venv", "MY_API_KEY=***", "COLOUR=red", "DB=***", "PYTHONUNBUFFERED=1"} <= set(lines)
    assert lines.index("VIRTUAL_ENV=/opt/venv") < lines.index("COLOUR=red")
    assert not {"k123", "hunter2"} & set("=".join(lines).split("="))
