"""One verdict everywhere: for each outcome the live page, `--json`, sacct and Python say the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from page import Page
from page_server import PageServer

import aver
from aver.model.job import JobSpec, Need, Needs, Request
from chromium import Browser
from live_home import LiveHome, shell_job, wait_for

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

HOG = f"{sys.executable} -c 'x = bytearray(300 << 20); x[::4096] = b\"1\" * len(x[::4096])'"
OUTCOMES = {  # name: the job, and how sacct calls its end
    "good": (shell_job("good", "true"), "COMPLETED"),
    "three": (shell_job("three", "exit 3"), "FAILED"),
    "segv": (shell_job("segv", "kill -SEGV $$"), "FAILED"),
    "late": (shell_job("late", "sleep 60", request=Request(time_s=1)), "TIMEOUT"),
    "hungry": (shell_job("hungry", HOG, request=Request(mem_bytes=64 << 20)), "OUT_OF_MEMORY"),
    "nowhere": (shell_job("nowhere", "true", folder="/nowhere"), "FAILED"),
    "skipped": (shell_job("skipped", "true", needs=Needs((Need("three"),))), "CANCELLED"),
    "stopped": (shell_job("stopped", "sleep 600"), "CANCELLED"),
}


def run_all(live: LiveHome) -> dict[str, int]:
    """Submit all of them as one run, cancel one, wait for the end; the jobs' numbers by name."""
    jobs: list[JobSpec] = [spec for spec, _ in OUTCOMES.values()]
    run = live.submit(*jobs, name="outcomes")
    numbers = {name: run + 1 + at for at, name in enumerate(OUTCOMES)}
    wait_for(lambda: live.job(numbers["stopped"]).state == "RUNNING", "the job that is cancelled", 120)
    with live.client() as client:
        client.call("cancel", ids=[numbers["stopped"]])
    live.settle([run], 180)
    return numbers


def output_of(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_page_json_sacct_and_python_agree(
    live: LiveHome, server: PageServer, browser: Browser, witness_binary: Path
) -> None:
    """State and exit of every job, four times; the page's table, its job view and its API."""
    numbers = run_all(live)
    page = Page(browser, server)
    sacct = str(live.home.bin / "sacct")
    output_of(sys.executable, "-m", "aver", "env")  # makes Slurm's commands
    page.open(f"runs/{numbers['good'] - 1}", "outcomes: ")
    tables = {}
    for name, job in numbers.items():
        row = f"document.querySelector(\"#table tr[data-key='job-{job}']\")?.innerText"
        tables[name] = page.wait(row)
    for name, job in numbers.items():
        shown = json.loads(output_of(sys.executable, "-m", "aver", "show", str(job), "--json"))["job"]
        from_api = server.get(f"jobs/{job}")["shown"]["job"]
        assert from_api == shown, name
        verdict = aver.Job(job, live.home).verdict
        assert verdict is not None
        assert verdict.state.value == shown["state"], name
        assert (None if verdict.exit is None else str(verdict.exit)) == (shown["exit"] or {}).get("text"), name
        line = output_of(sacct, "-n", "-P", "-X", "-j", str(job), "-o", "State,ExitCode").strip()
        state, exit_code = line.split("|")
        assert state.split()[0] == OUTCOMES[name][1], (name, line)
        if shown["exit"] is not None and shown["state"] in (
            "COMPLETED",
            "FAILED",
        ):  # of others Slurm has words of its own
            assert exit_code == shown["exit"]["text"], (name, line)
        page.open(f"jobs/{job}", f"{name}: {shown['state']}")
        words = page.text()
        assert shown["state"] in tables[name]
        if shown["exit"] is not None:
            assert shown["exit"]["text"] in words
        sentence = json.loads(output_of(sys.executable, "-m", "aver", "why", str(job), "--json"))["sentence"]
        assert sentence in words, name
    page.is_quiet()
