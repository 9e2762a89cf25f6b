"""A verdict is on the page when it is durable, and never before."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from page import Page
from page_server import GATE, PageServer

from live_home import LiveHome, is_alive, shell_job, wait_for

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


def test_no_verdict_is_shown_before_it_is_durable(
    live: LiveHome, server: PageServer, page: Page, tmp_path: Path
) -> None:
    """The job has ended and its witness has said so, while the store can't be written: the page shows what is there.

    The page reads again and again meanwhile. When the store can be written, the page shows the verdict.
    """
    gate, name = tmp_path / "gate", tmp_path / "pid"
    job = live.submit(shell_job("job", f"echo $$ > {name}; {GATE}; exit 3"), env={"GATE": str(gate)})
    page.open(f"jobs/{job}", "job: RUNNING")
    pid = int(wait_for(lambda: name.exists() and name.read_text(), "the job's pid"))
    lock = sqlite3.connect(live.home.database, isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    try:
        gate.touch()
        wait_for(lambda: not is_alive(pid), "the job's end")
        wait_for(lambda: b'"raw":768' in journals(live), "its record")
        loads = int(page.value("document.querySelector('main').dataset.loads"))
        page.wait(f"Number(document.querySelector('main').dataset.loads) >= {loads + 2}")
        assert "job: RUNNING" in page.value("document.title")
        assert server.get(f"jobs/{job}")["shown"]["job"]["state"] == "RUNNING"
        assert live.job(job).state == "RUNNING"
    finally:
        lock.execute("ROLLBACK")
        lock.close()
    page.wait("document.title.includes('job: FAILED')")
    assert live.job(job).state == "FAILED"
    page.see("Failed with exit code 3")
    page.is_quiet()


def journals(live: LiveHome) -> bytes:
    return b"".join(path.read_bytes() for path in live.home.witnesses.glob("*.log"))
