"""Memory and CPUs over time on the live page and in the report, of a real job."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from page import Page
from page_server import GATE, aver

from aver.model.job import Request
from live_home import LiveHome, shell_job

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

HOLD = f"{sys.executable} -c 'x = b\"1\" * (48 << 20); import time; time.sleep(600)' & {GATE}; kill $!"


def test_use_over_time_is_drawn_against_the_limit(live: LiveHome, page: Page, tmp_path: Path) -> None:
    """While it runs, and after its end on the page and in the report; a short job says that it was not measured."""
    gate = tmp_path / "gate"
    job = live.submit(shell_job("holds", HOLD, request=Request(mem_bytes=256 << 20)), env={"GATE": str(gate)})
    page.open(f"jobs/{job}", "holds: RUNNING")
    page.wait("document.querySelectorAll('#over-time svg.curve polyline').length === 2")
    words = page.text("#over-time")
    assert "of 256.0 MiB" in words
    assert "CPUs over time: up to 0." in words
    assert page.value("document.querySelectorAll('#over-time .limit').length") == 2
    gate.touch()
    page.wait("document.title.includes('holds: COMPLETED')")
    page.wait("document.querySelectorAll('#over-time svg.curve polyline').length === 2")
    short = live.run_text("true")
    live.settle([short])
    page.open(f"jobs/{short}", "job: COMPLETED")
    page.see("Not measured", "#over-time")
    page.is_quiet()
    report = tmp_path / "report.html"
    aver(live.home.path, "report", str(job), "-o", str(report))
    assert report.read_text().count('<svg class="curve"') == 2
