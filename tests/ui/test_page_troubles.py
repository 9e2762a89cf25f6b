"""The live page in a real Chromium, each test in a home of its own: what dies and comes back, long logs, secrets."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from page import Page
from page_server import GATE, aver, page_server

from aver.model.job import Need, Needs
from chromium import Browser
from live_home import LiveHome, shell_job, wait_for

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


def test_an_empty_home_says_so(page: Page) -> None:
    page.see("Nothing runs.")
    page.see("live", "#live")
    page.open("runs", "Runs")
    page.see("0 runs.")
    page.is_quiet()


def test_it_is_live_while_a_flow_runs(live: LiveHome, page: Page, tmp_path: Path) -> None:
    """States move without a reload; what waits says why; the end comes with its verdict."""
    gate = tmp_path / "gate"
    run = live.submit(shell_job("first", GATE), shell_job("second", "exit 3", needs=Needs((Need("first"),))),
                      env={"GATE": str(gate)}, name="moving")  # fmt: skip
    page.see("first", "#running")
    page.see("(first) RUNNING", "#waiting")
    page.open(f"runs/{run}", "moving: RUNNING")
    page.value("window.mark = 'the same page'")
    gate.touch()
    page.wait("document.title.includes('moving: FAILED')")
    page.see("failed with exit 3", "#causes")
    assert page.value("window.mark") == "the same page"
    page.open("now", "0 running")
    page.see("second", "#failed")
    page.is_quiet()


def test_recover_shows_the_diff_first(live: LiveHome, page: Page) -> None:
    """Nothing is changed by looking; then the flow's file has the larger limit, and the run goes on."""
    file = live.folder / "short.yaml"
    file.write_text('name: short\njobs:\n  nap: {run: "sleep 3", time: 1s}\n  other: {run: "true"}\n')
    subprocess.run([sys.executable, "-m", "aver", "run", str(file)], capture_output=True, check=False)
    run = 1
    page.open(f"runs/{run}", "short: TIMEOUT")
    page.click(".actions [data-act=recover]")
    page.see("-  nap:", "#dialog pre")
    assert "time: 1s" in file.read_text()
    page.click("#dialog button[value=yes]")
    page.wait("document.title.includes('short: COMPLETED')")
    assert "time: 1s" not in file.read_text()
    page.is_quiet()


def test_a_dropped_flow_is_checked_and_submitted(live: LiveHome, page: Page, tmp_path: Path) -> None:
    """Mistakes are shown at their lines; a right one runs in the folder that was chosen."""
    page.open("submit", "Submit")

    file = tmp_path / "dropped.yaml"
    page.choose(file, "name: x\njobs:\n  a: {runs: true}\n")
    page.see("line 3", "#checked")
    page.see("3    a: {runs: true}", "#checked pre")
    page.choose(file, "name: x\njobs:\n  a: {run: pwd}\n  b: {run: exit 4, needs: a}\n")
    page.see("x has 2 jobs.", "#checked")
    page.click("#go")
    page.wait("document.title.includes('x: FAILED')")
    assert (live.folder / "aver-1" / "a.out").read_text() == f"{live.folder}\n"
    assert len(list(live.home.flows.glob("*/dropped.yaml"))) == 1
    page.is_quiet()


def test_a_read_only_page_has_no_buttons(live: LiveHome, browser: Browser) -> None:
    run = live.run_text("sleep 600")
    live.wait_running(run)
    with page_server(live.home.path, live.folder, read_only=True) as server:
        page = Page(browser, server)
        page.open(f"jobs/{run}", "job: RUNNING")
        page.see("aver cancel", ".commands")
        assert page.value("document.querySelectorAll('[data-act]').length") == 0


def test_the_coordinator_may_die_and_come_back(live: LiveHome, page: Page) -> None:
    """The page says that none runs, goes on showing what is stored, and sees the next one's work."""
    run = live.run_text("sleep 600")
    live.wait_running(run)
    page.open(f"jobs/{run}", "job: RUNNING")
    live.kill_coordinator()
    page.see("no coordinator", "#live")
    page.open("now", "1 running")
    page.see("1 run is unfinished, and no coordinator runs")
    live.connect_again()
    page.wait("document.querySelector('#live').innerText === 'live'")
    with live.client() as client:
        client.call("cancel", ids=[run])
    page.see("cancelled", "#failed")
    page.is_quiet()


def test_a_server_that_dies_is_told(live: LiveHome, browser: Browser) -> None:
    """Reconnecting at once, then stale since when; a server that hangs is stale too."""
    with page_server(live.home.path, live.folder) as server:
        page = Page(browser, server)
        page.see("live", "#live")
        server.process.send_signal(signal.SIGSTOP)
        page.see("stale since ", "#live")
        server.process.send_signal(signal.SIGCONT)
        page.wait("document.querySelector('#live').dataset.state === 'live'")
        server.process.kill()
        page.wait("['reconnecting', 'stale'].includes(document.querySelector('#live').dataset.state)")
        page.see("stale since ", "#live")


def test_a_log_of_200_mb_is_followed_and_searched(live: LiveHome, page: Page, tmp_path: Path) -> None:
    """Its end is there at once, new lines come, the needle far away is found, and the page keeps a small part of it."""
    gate = tmp_path / "gate"
    filler = "i" * 99
    text = (
        f"yes {filler} | head -c 100000000; echo; echo the needle; yes {filler} | head -c 100000000; echo; "
        f"echo before the gate; {GATE}; echo after the gate"
    )
    run = live.submit(shell_job("job", text), env={"GATE": str(gate)})
    log = next(iter(live.folder.glob("aver-*.out")), None) or wait_for(
        lambda: next(iter(live.folder.glob("aver-*.out")), None), "the log"
    )
    wait_for(lambda: log.read_bytes()[-40:].endswith(b"before the gate\n"), "the log's end")
    page.open(f"jobs/{run}", "job: RUNNING")
    page.see("before the gate", ".log-box")
    gate.touch()
    page.see("after the gate", ".log-box")
    assert page.value("document.querySelector('.log-box').innerText.length") < 3_000_000
    page.type(".log-tools input", "the needle")
    page.click("[data-find=down]")
    page.wait("document.querySelector('.log-box mark')?.innerText === 'the needle'")
    assert page.value("document.querySelector('.log-box').innerText.length") < 3_000_000
    at = page.value("document.querySelector('[data-at]').dataset.at")
    assert log.read_bytes()[int(at) : int(at) + 10] == b"the needle"
    page.open("now", "running")
    page.open(f"jobs/{run}?at={at}", "job: COMPLETED")
    page.wait("document.querySelector('.log-box mark')?.innerText === 'the needle'")
    page.is_quiet()


def test_a_secret_is_nowhere(live: LiveHome, page: Page) -> None:
    """Not in the output, also where a part of it ends within the secret, and not in the environment."""
    secret = "hunter2-token"
    script = live.folder / "leak.sh"
    script.write_text(
        "#!/bin/bash\nprintf 'x%.0s' $(seq 1 65530); echo $TOKEN; printf 'y%.0s' $(seq 1 65531); echo $TOKEN\n"
    )
    env = {**os.environ, "TOKEN": secret}
    command = [sys.executable, "-m", "aver", "run", "--secret", "TOKEN", str(script)]
    subprocess.run(command, env=env, capture_output=True, check=True)
    for at in (0, 65520, 65530, 65535, 65540, 131070):
        for size in (5, 20, 65535, 65540):
            part = page.server.get(f"jobs/1/log?at={at}&bytes={size}")["text"]
            assert secret not in part
            assert not any(secret[cut:] in part or secret[:-cut] in part for cut in range(1, len(secret) - 4)), part[
                -40:
            ]
    page.open("jobs/1", "COMPLETED")
    page.see("***", ".log-box")
    page.click("[data-environment] summary")
    page.see("TOKEN=***", "[data-environment]")
    assert secret not in page.value("document.documentElement.outerHTML")


def test_use_of_a_running_job_is_shown(live: LiveHome, page: Page) -> None:
    """CPUs and memory now, against the limit."""
    run = live.run_text("while :; do :; done", mem_bytes=256 << 20)
    live.wait_running(run)
    page.see("of 256.0 MiB", "#running")
    page.wait("/[0-9.]+ of 1/.test(document.querySelector('#running').innerText)")
    with live.client() as client:
        client.call("cancel", ids=[run], force=True)
    live.settle([run])


def test_a_store_that_is_removed_is_told(live: LiveHome, page: Page) -> None:
    """The page says so: a home whose store is gone is not one in which nothing ever ran. It goes on when it is back."""
    run = live.submit(shell_job("gone", "true"))
    live.settle([run])
    page.open("runs", "Runs")
    page.see("COMPLETED")
    aver(live.home.path, "stop")
    aside = live.home.path.parent / "aside"
    aside.mkdir()
    files = [path for path in live.home.path.iterdir() if path.name.startswith("aver.db")]
    for path in files:
        path.rename(aside / path.name)
    page.see(f"the database is gone: {live.home.database}")
    page.open("now", "aver")
    page.see("the database is gone")
    assert "Nothing runs" not in page.text()
    for path in files:
        (aside / path.name).rename(path)
    page.open("runs", "Runs")
    page.see("COMPLETED")
    page.wait("document.querySelector('.problem') === null")
