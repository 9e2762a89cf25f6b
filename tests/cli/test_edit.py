"""`aver edit`: what a pending job asks for can be changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from product import Product, wait_for_file

MIB = 1 << 20


def shown(aver: Product, number: int) -> dict[str, object]:
    document = aver("show", str(number), "--json").document
    return {name: document["asked"][name] for name in ("cpus", "mem_bytes", "time_s", "priority")}


def test_a_held_job_is_changed_and_runs_as_changed(aver: Product) -> None:
    """The job asks for what was changed last; the rest stays."""
    number = aver.submit("--hold", "--mem", "32M", "--", "true")
    answer = aver("edit", str(number), "--mem", "64M", "--time", "5m", "--priority", "3")
    assert (answer.status, answer.out) == (0, f"{number}: changed\n")
    assert aver("edit", str(number), "--time", "2m").status == 0
    assert shown(aver, number) == {"cpus": 1, "mem_bytes": 64 * MIB, "time_s": 120, "priority": 3}
    aver("release", str(number))
    aver("watch", str(number))
    (attempt,) = aver("show", str(number), "--json").document["attempts"]
    assert (attempt["attempt"], attempt["mem_bytes"], attempt["time_s"]) == (1, 64 * MIB, 120)


def test_a_job_that_is_planned_already_is_recorded_as_changed(
    aver: Product, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for a CPU, and its intent is on disk: the attempt asks for what was changed."""
    settings = tmp_path / "config.toml"
    settings.write_text("cpus = 1\n")
    monkeypatch.setenv("AVER_CONFIG", str(settings))
    first = aver.submit("--", "sh", "-c", "touch started; exec sleep 600")
    wait_for_file(aver.folder / "started")
    second = aver.submit("--", "true")
    assert aver("edit", str(second), "--mem", "48M").status == 0
    aver("cancel", str(first), "--force")
    aver("watch", str(second))
    (attempt,) = aver("show", str(second), "--json").document["attempts"]
    assert (attempt["state"], attempt["mem_bytes"]) == ("COMPLETED", 48 * MIB)


def test_what_runs_or_is_settled_is_refused(aver: Product) -> None:
    """With a sentence that says what can be done, and exit status 1."""
    number = aver.submit("--", "sh", "-c", "touch started; exec sleep 600")
    wait_for_file(aver.folder / "started")
    refused = aver("edit", str(number), "--mem", "64M")
    assert (refused.status, refused.err) == (1, f"aver: {number}: it runs: only --time and --priority can be changed\n")
    assert aver("edit", str(number), "--time", "2h").status == 0
    aver("cancel", str(number), "--force")
    aver("watch", str(number))
    assert "it is settled" in aver("edit", str(number), "--mem", "64M").err
    assert aver("edit", str(number)).status == 2


def test_what_it_waits_for_is_what_it_asks_for_now(aver: Product) -> None:
    """`aver why` speaks of the job as it was changed, and what the machine has not got is refused by name."""
    cpus = len(os.sched_getaffinity(0))
    first = aver.submit("-q", "-c", str(cpus), "--", "sleep", "600")
    second = aver.submit("--", "true")
    assert aver("edit", str(second), "--cpus", str(cpus)).status == 0
    assert f"Waiting for {cpus} CPU{'s' if cpus > 1 else ''}: job {first} has " in aver("why", str(second)).out
    refused = aver("edit", str(second), "--cpus", str(cpus + 1))
    assert (refused.status, refused.err) == (2, f"aver: --cpus {cpus + 1}: this machine has {cpus}\n")
    assert aver("edit", str(second), "--mem", "1000T").err.startswith("aver: --mem: this machine has ")
    aver("cancel", "--force", str(first), str(second))
