"""One verdict everywhere: for each outcome, the page, `--json`, sacct and Python agree.

Jobs that this machine can end as they should run here; `lossy_engine` says of the others what a cluster says of them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from page import Page
from page_server import PageServer

import aver
from aver.model.job import (
    CheckpointRule,
    Condition,
    JobSpec,
    Need,
    Needs,
    Request,
    RetryRule,
    Script,
    Streams,
    WarningSignal,
)
from aver.model.record import replace
from aver.model.states import State
from chromium import Browser
from live_home import LiveHome, shell_job, wait_for

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

HOG = f"{sys.executable} -c 'x = bytearray(300 << 20); x[::4096] = b\"1\" * len(x[::4096])'"
SECOND = Request(time_s=1)
SMALL = Request(mem_bytes=64 << 20)


class End(NamedTuple):
    """A job, and how it ends: state and exit as Aver says them, and as its sacct does where that has other words."""

    spec: JobSpec
    state: str
    exit: str | None
    sacct: str = ""


def shell(text: str, state: str, ended: str | None, sacct: str = "", **fields: object) -> End:
    return End(shell_job("", text, **fields), state, ended, sacct)


def needs(*names: str) -> Needs:
    return Needs(tuple(map(Need, names)))


OUTCOMES = {
    "good": shell("true", "COMPLETED", "0:0"),
    "one": shell("exit 1", "FAILED", "1:0"),
    "c137": shell("exit 137", "FAILED", "137:0"),
    "c200": shell("exit 200", "FAILED", "200:0"),
    "term": shell("kill -TERM $$", "FAILED", "0:15"),
    "hup": shell("kill -HUP $$", "FAILED", "0:1"),
    "segv": shell("kill -SEGV $$", "FAILED", "0:11"),
    "child-segv": shell("sh -c 'kill -SEGV $$'; exit $?", "FAILED", "139:0"),
    "steps": shell("srun sh -c 'exit 7'; srun sh -c 'exit 3'; srun sh -c 'exit 2'", "FAILED", "2:0"),
    "step-then-true": shell("srun sh -c 'exit 7'; true", "COMPLETED", "0:0"),
    "step-term": shell("srun sh -c 'kill -TERM $$'; exit 0", "COMPLETED", "0:0"),
    "task-fails": shell("srun -O -n4 sh -c 'test $SLURM_PROCID != 0 || exit 3'", "FAILED", "3:0"),
    "no-command": shell("srun /no/such/command", "FAILED", "2:0"),
    "no-interpreter": End(JobSpec("", Script("#!/no/such/shell\n")), "FAILED", None, "FAILED 2:0"),
    "no-folder": shell("true", "FAILED", None, "FAILED 2:0", folder="/proc/nowhere"),
    "no-output": shell("true", "FAILED", None, "FAILED 0:53", streams=Streams(stdout="/proc/nowhere/out")),
    "late": shell("sleep 60", "TIMEOUT", "0:15", request=SECOND),
    "late-zero": shell("trap 'exit 0' TERM; sleep 60 & wait", "TIMEOUT", "0:0", request=SECOND),
    "late-three": shell("trap 'exit 3' TERM; sleep 60 & wait", "TIMEOUT", "3:0", request=SECOND),
    "late-deaf": shell("trap '' TERM; sleep 60", "TIMEOUT", "0:9", request=SECOND, kill_wait_s=1.0),
    "hungry": shell(HOG, "OUT_OF_MEMORY", "137:0", "OUT_OF_MEMORY 0:125", request=SMALL),
    "hungry-zero": shell(f"{HOG}; exit 0", "OUT_OF_MEMORY", "0:0", "OUT_OF_MEMORY 0:125", request=SMALL),
    "hungry-warned": shell(f"{HOG}; exit 0", "COMPLETED", "0:0", request=SMALL, oom_warns=True),
    "hungry-step": shell(f"srun {HOG}; exit 0", "COMPLETED", "0:0", request=SMALL),
    "no-result": shell("true", "FAILED", "0:0", outputs=("never",)),
    "no-input": shell("true", "FAILED", None, "FAILED 2:0", inputs=("never",)),
    "second-try": shell("test $AVER_ATTEMPT = 2", "COMPLETED", "0:0", retry=RetryRule(1, (State.FAILED,))),
    "skipped": shell("true", "SKIPPED", None, "CANCELLED 0:0", needs=needs("one")),
    "unneeded": shell("true", "SKIPPED", None, "CANCELLED 0:0", needs=needs("good"), condition=Condition.FAILURE),
    "cleanup": shell("true", "COMPLETED", "0:0", needs=needs("one"), condition=Condition.FAILURE),
    "to-be-continued": shell("trap 'exit 0' USR1; sleep 60 & wait", "CHECKPOINTED", "0:0", "TIMEOUT 0:0",
                             request=Request(time_s=3), warning=WarningSignal(signal.SIGUSR1, 2),
                             checkpoint=CheckpointRule(rounds=0)),
    "too-late": shell("true", "DEADLINE", None, "DEADLINE 0:1", deadline_at=1.0),
    "cancelled": shell("sleep 600", "CANCELLED", "0:15"),
    "cancelled-zero": shell("trap 'exit 0' TERM; sleep 600 & wait", "CANCELLED", "0:0"),
    "cancelled-held": shell("true", "CANCELLED", None, hold=True),
    "vanished": shell("sleep 600", "UNVERIFIED", None, "NODE_FAIL ?"),
    "vouched-for": shell("sleep 600", "COMPLETED", "0:0"),
    "node-fail": shell("true", "NODE_FAIL", None, engine="lossy"),
    "boot-fail": shell("true", "BOOT_FAIL", None, engine="lossy"),
    "preempted": shell("true", "PREEMPTED", "0:15", engine="lossy"),
}  # fmt: skip


def run_all(live: LiveHome) -> dict[str, int]:
    """Submit all of them as one run, do to some what makes their end, wait for the end; the jobs' numbers by name."""
    jobs = [replace(end.spec, name=name) for name, end in OUTCOMES.items()]
    now = time.time()
    jobs = [replace(spec, begin_at=now + 600, deadline_at=now + 2) if spec.deadline_at else spec for spec in jobs]
    run = live.submit(*jobs, name="outcomes")
    numbers = {name: run + 1 + at for at, name in enumerate(OUTCOMES)}
    with live.client() as client:
        client.call("cancel", ids=[numbers["cancelled-held"]])
        for name in ("cancelled", "cancelled-zero", "vanished", "vouched-for"):
            wait_for(lambda name=name: live.job(numbers[name]).state == "RUNNING", name, 180)  # type: ignore[misc]
            if name.startswith("cancelled"):
                client.call("cancel", ids=[numbers[name]])
            else:
                os.kill(live.witness_of(numbers[name]), signal.SIGKILL)
    live.settle([run], 180)
    with live.client() as client:
        client.call("accept", ids=[numbers["vouched-for"]])
    wait_for(lambda: live.job(numbers["vouched-for"]).state == "COMPLETED", "what was vouched for")
    return numbers


def output_of(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings that know the cluster which loses its jobs."""
    folder = str(Path(__file__).parent)
    (tmp_path / "config.toml").write_text('[engines]\nlossy = "lossy_engine:ENGINE"\n')
    monkeypatch.setenv("AVER_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")]))
    monkeypatch.syspath_prepend(folder)


def test_every_settled_state_is_made() -> None:
    assert {end.state for end in OUTCOMES.values()} == {state.value for state in State if state.is_settled}


def test_page_json_sacct_and_python_agree(
    settings: None, live: LiveHome, server: PageServer, browser: Browser, witness_binary: Path
) -> None:
    """State and exit of every job, four times; the page's table, its job view and its API."""
    output_of(sys.executable, "-m", "aver", "env")  # makes Slurm's commands
    numbers = run_all(live)
    page = Page(browser, server)
    listed = ",".join(str(job) for job in numbers.values())
    lines = output_of(str(live.home.bin / "sacct"), "-n", "-P", "-X", "-j", listed, "-o", "JobIDRaw,State,ExitCode")
    rows = {int(number): (state.split()[0], code) for number, state, code in
            (line.split("|") for line in lines.splitlines())}  # fmt: skip
    page.open(f"runs/{numbers['good'] - 1}", "outcomes: ")
    wrong = []
    for name, job in numbers.items():
        end = OUTCOMES[name]
        table = page.wait(f"document.querySelector(\"#table tr[data-key='job-{job}']\")?.innerText")
        shown = json.loads(output_of(sys.executable, "-m", "aver", "show", str(job), "--json"))
        facts = shown["job"]
        verdict = aver.Job(job, live.home).verdict
        assert verdict is not None
        said = {
            "json": (facts["state"], (facts["exit"] or {}).get("text")),
            "python": (verdict.state.value, None if verdict.exit is None else str(verdict.exit)),
        }
        wrong += [(name, who, what) for who, what in said.items() if what != (end.state, end.exit)]
        expected = tuple((end.sacct or f"{end.state} {end.exit or '0:0'}").split())
        wrong += [(name, "sacct", rows[job])] if rows[job] != expected else []
        api = server.get(f"jobs/{job}")["shown"]
        wrong += [(name, "api", api)] if api != {key: value for key, value in shown.items() if key != "kind"} else []
        wrong += [(name, "table", table)] if end.state not in table else []
        page.value(f"location.hash = '#/jobs/{job}'")
        page.wait(f"document.querySelector('h1 small')?.innerText === 'job {job}'")
        words = page.text()
        for wanted in (end.state, end.exit or "", facts["reason"] or "", shown["sentence"]):
            wrong += [(name, "page", wanted)] if wanted not in words else []
        page.value(f"location.hash = '#/runs/{numbers['good'] - 1}'")
    assert not wrong, "\n".join(map(str, wrong))
    page.is_quiet()
