"""`aver why` of a job that waits, of one that is being ended, and what it advises."""

from __future__ import annotations

import os
import re

import pytest
from product import Product, wait_for_file

from live_home import wait_for


def sentence(aver: Product, number: int) -> str:
    return str(aver("why", str(number), "--json").document["sentence"])


def reaches(aver: Product, number: int, text: str) -> str:
    """Wait until the sentence has this text in it, and return it."""

    def look() -> str:
        found = sentence(aver, number)
        return found if text in found else ""

    return wait_for(look, f"why {number} says {text}")


def test_a_job_that_waits_for_cpus_names_who_has_them(aver: Product) -> None:
    """Not only that something is missing, but what, and which jobs have it."""
    cpus = len(os.sched_getaffinity(0))
    first = aver.submit("-c", str(cpus), "--", "sh", "-c", "touch started; exec sleep 600")
    wait_for_file(aver.folder / "started")
    number = aver.submit("-c", str(cpus), "--", "true")
    said = reaches(aver, number, "CPU")
    assert said == f"Waiting for {cpus} CPU{'s' if cpus > 1 else ''}: job {first} has them."
    aver("cancel", str(first), "--force")


def test_a_job_names_the_jobs_that_it_needs(aver: Product) -> None:
    """Those that are not settled yet, with their state."""
    (aver.folder / "flow.yaml").write_text(
        "max_parallel: 1\njobs:\n"
        "  a: {run: 'touch started; exec sleep 600'}\n  b: {needs: [a], run: 'true'}\n  c: {run: 'true'}\n"
    )
    run = aver.submit("flow.yaml")
    wait_for_file(aver.folder / "started")
    assert reaches(aver, run + 2, "RUNNING") == f"Waiting for job {run + 1} (a) RUNNING."
    said = reaches(aver, run + 3, "max_parallel")
    assert said == f"Waiting for max_parallel (1) of its run: job {run + 1} runs."
    aver("cancel", str(run), "--force")


def test_the_settings_limit_has_a_name(aver: Product, config: None) -> None:
    """max_running is not said to be a lack of CPUs."""
    first = aver.submit("--", "sh", "-c", "touch started; exec sleep 600")
    wait_for_file(aver.folder / "started")
    number = aver.submit("--", "true")
    assert reaches(aver, number, "max_running") == f"Waiting for max_running (1) of the settings: job {first} runs."
    aver("cancel", str(first), "--force")


@pytest.fixture
def config(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path_factory.mktemp("config") / "config.toml"
    path.write_text("max_running = 1\n")
    monkeypatch.setenv("AVER_CONFIG", str(path))


def test_a_job_that_is_being_ended_says_so(aver: Product) -> None:
    """COMPLETING, when TERM was sent and when KILL follows; the advice is to force it, not to cancel it again."""
    script = "trap '' TERM; touch started; while :; do sleep 0.05; done"
    number = aver.submit("--kill-wait", "600", "--", "sh", "-c", script)
    wait_for_file(aver.folder / "started")
    assert aver("cancel", str(number)).status == 0
    assert aver.state(number) == "COMPLETING"
    answer = aver("why", str(number))
    assert re.match(r"Being cancelled by \S+: TERM sent [0-9.]+ s ago, KILL in (10|9) min.*\.\n", answer.out)
    assert f"  aver cancel {number} --force\n" in answer.out
    assert f"  aver cancel {number}\n" not in answer.out
    assert aver("cancel", str(number), "--force").status == 0
    assert aver("watch", str(number), "-e").status == 5
    shown = aver("show", str(number), "--json").document["job"]
    assert (shown["state"], shown["exit"]["text"]) == ("CANCELLED", "0:9")


def test_waiting_is_one_line_and_the_advice_helps(aver: Product) -> None:
    """However many reasons a job waited for; a job that ran out of time is recovered by the command that is named."""
    first = aver.submit("--hold", "--", "true")
    number = aver.submit("--needs", str(first), "--time", "1s", "--", "sleep", "600")
    aver("release", str(first))
    aver("watch", str(number))
    answer = aver("why", str(number))
    assert re.findall(r"waited .* s: (.*)", answer.out) == ["Dependency → Priority"]
    assert answer.out.endswith(f"Next:\n  aver recover {number}\n  aver log {number}\n")
    assert aver("recover", str(number), "--yes").status == 0
