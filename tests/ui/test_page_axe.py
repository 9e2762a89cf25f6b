"""axe-core finds nothing serious in any view of the live page, nor in the report: light, dark and on a phone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from page import Page
from page_server import GATE, PageServer, aver, mixed_flow

from aver.model.job import Request
from chromium import Browser
from live_home import LiveHome, shell_job, wait_for

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

ONE_HOME = True
GRAVE = ("serious", "critical")


@pytest.fixture
def page(browser: Browser, server: PageServer) -> Iterator[Page]:
    """Without the policy of the page: axe-core itself makes elements in ways that it forbids."""
    browser.call("Page.setBypassCSP", enabled=True)
    yield Page(browser, server)
    browser.call("Page.setBypassCSP", enabled=False)
    browser.resize(1280, 900)
    browser.prefer("light")


def script() -> str:
    return resources.files("axe_core_python").joinpath("axe.min.js").read_text("utf-8")


def found_in(browser: Browser) -> list[str]:
    """What axe-core calls serious or critical in what is shown now, one line for each element."""
    if not browser.value("typeof axe === 'object'"):
        browser.value(f"{script()}; true")
    results: dict[str, Any] = json.loads(browser.value("axe.run(document).then((one) => JSON.stringify(one))"))
    assert results["passes"], "nothing was looked at"
    return [
        f"{one['id']} ({one['impact']}): {node['html'][:200]} {node['failureSummary']}"
        for one in results["violations"]
        if one["impact"] in GRAVE
        for node in one["nodes"]
    ]


def test_axe_finds_what_is_wrong(browser: Browser) -> None:
    """A page with a nameless button and pale letters is not passed."""
    browser.go("data:text/html,<html lang=en><title>x</title><button></button><p style='color:%23ccc'>pale</p>")
    found = " ".join(found_in(browser))
    assert "button-name" in found
    assert "color-contrast" in found


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390)])
def test_axe_finds_nothing_serious(live: LiveHome, page: Page, scheme: str, width: int) -> None:
    """Each view with something in it, and the dialogs."""
    page.browser.prefer(scheme)
    page.browser.resize(width, 900, is_phone=width < 600)
    run = mixed_flow(live)
    gate = live.folder / f"gate-{scheme}-{width}"
    runs = shell_job("runs", GATE, request=Request(mem_bytes=1 << 30))
    busy = live.submit(runs, shell_job("held", "true", hold=True), env={"GATE": str(gate)})
    wait_for(lambda: live.job(busy + 1).state == "RUNNING", "the running job")
    failed = next(job for job in range(run + 1, run + 6) if live.job(job).state == "FAILED")
    wrong: dict[str, list[str]] = {}

    def look(name: str) -> None:
        wrong[name] = found_in(page.browser)

    page.open("now", "running")
    page.see("held", "#waiting")
    look("now")
    page.open("runs", "Runs")
    look("runs")
    page.open(f"runs/{run}?group={run + 1}.1", "mixed: FAILED")
    for part in ("usage", "grid"):
        page.click(f"[data-part$='{part}']")
    page.wait("['svg.graph', '.grid a', '#use table'].every((one) => document.querySelector(one) !== null)")
    page.see("failed with exit 1", "#causes")
    look("run")
    page.open(f"jobs/{failed}", "FAILED")
    page.see("seed 2", ".log-box")
    look("failed job")
    page.open(f"jobs/{busy + 1}", "runs: RUNNING")
    page.wait("document.querySelector('#over-time svg.curve') !== null")
    look("running job")
    page.click("[data-act=signal]")
    page.wait("document.querySelector('#dialog').open")
    look("dialog")
    page.click("[data-no]")
    page.click("#help")
    page.wait("document.querySelector('#dialog').open")
    look("keys")
    page.key("Escape")
    page.open(f"compare?first={run}&second={run}", f"runs {run} and {run}")
    look("compare")
    page.open("submit", "Submit")
    look("submit")
    gate.touch()
    with live.client() as client:
        client.call("cancel", ids=[busy])
    live.settle([busy])
    bad = [f"{name}: {one}" for name, found in wrong.items() for one in found]
    assert not bad, "\n".join(bad)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_the_report(live: LiveHome, browser: Browser, tmp_path: Path, scheme: str) -> None:
    run = mixed_flow(live)
    path = tmp_path / "report.html"
    aver(live.home.path, "report", str(run), "-o", str(path))
    browser.prefer(scheme)
    browser.call("Page.setBypassCSP", enabled=True)
    browser.open(path)
    found = found_in(browser)
    browser.call("Page.setBypassCSP", enabled=False)
    browser.prefer("light")
    assert not found, "\n".join(found)
