"""The live page in a real Chromium when things come late, twice or not at all: clicks, answers, views, servers."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page import Page
from page_server import GATE, PageServer, aver, mixed_flow, page_server

from chromium import Browser
from live_home import LiveHome, shell_job, wait_for

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

ONE_HOME = True
FLOW = "name: {name}\njobs:\n  a: {{run: 'true'}}\n"


class Held:
    """Requests of a pattern, kept back in the browser until the test lets them go; stage Response: after the answer."""

    def __init__(self, page: Page, pattern: str, stage: str = "Request") -> None:
        self._page = page
        self._seen: list[dict[str, Any]] = []
        page.browser.call("Fetch.enable", patterns=[{"urlPattern": f"*{pattern}*", "requestStage": stage}])

    def wait(self, count: int) -> list[str]:
        """The ids of the requests, as soon as there are so many."""

        def look() -> list[str] | None:
            self._page.value("1")  # what Chromium said since is read
            events = self._page.browser._events
            self._seen += [one["params"] for one in events if one["method"] == "Fetch.requestPaused"]
            events.clear()
            return [one["requestId"] for one in self._seen] if len(self._seen) >= count else None

        return wait_for(look, f"{count} requests")

    def go_on(self, request: str) -> None:
        self._page.browser.call("Fetch.continueRequest", requestId=request)

    def lose(self, request: str) -> None:
        self._page.browser.call("Fetch.failRequest", requestId=request, errorReason="ConnectionReset")


@contextlib.contextmanager
def held(page: Page, pattern: str, stage: str = "Request") -> Iterator[Held]:
    try:
        yield Held(page, pattern, stage)
    finally:
        page.browser.call("Fetch.disable")


def running(live: LiveHome, page: Page) -> int:
    job = live.run_text("sleep 600")
    live.wait_running(job)
    page.open(f"jobs/{job}", "job: RUNNING")
    return job


def end(live: LiveHome, *jobs: int) -> None:
    with live.client() as client:
        client.call("cancel", ids=list(jobs), force=True)
    live.settle(jobs)


def choose(page: Page, path: Path, name: str) -> None:
    page.choose(path / f"{name}.yaml", FLOW.format(name=name))


def test_the_second_click_of_a_double_click_confirms_nothing(live: LiveHome, page: Page) -> None:
    """Nor does it act on what was beneath the question."""
    job = running(live, page)
    page.click("[data-act=cancel]")
    page.wait("document.querySelector('#dialog').open")
    middle = (
        "(() => { const box = document.querySelector('%s').getBoundingClientRect(); return [box.x + 9, box.y + 9]; })()"
    )

    def press(selector: str, count: int) -> None:
        x, y = page.value(middle % selector)
        for kind in ("mousePressed", "mouseReleased"):
            page.browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=count)

    press("#dialog button[value=yes]", 2)
    time.sleep(0.5)
    assert page.value("document.querySelector('#dialog').open") is True
    assert live.job(job).state == "RUNNING"
    page.click("[data-no]")
    page.wait("!document.querySelector('#dialog').open")
    press("nav a", 2)
    time.sleep(0.3)
    assert f"#/jobs/{job}" in page.value("location.hash")
    end(live, job)


def test_a_held_key_confirms_nothing(live: LiveHome, page: Page) -> None:
    """Enter on a button opens its question; the repetitions of the same key are no answer."""
    job = running(live, page)
    page.value("document.querySelector('[data-act=cancel]').focus()")
    enter = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
    page.browser.call("Input.dispatchKeyEvent", type="keyDown", **enter)
    page.wait("document.querySelector('#dialog').open")
    for _ in range(3):
        page.browser.call("Input.dispatchKeyEvent", type="keyDown", autoRepeat=True, **enter)
    page.browser.call("Input.dispatchKeyEvent", type="keyUp", **enter)
    time.sleep(0.5)
    assert live.job(job).state == "RUNNING"
    assert page.value("document.querySelector('#dialog').open") is True
    page.browser.call("Input.dispatchKeyEvent", type="keyDown", **enter)
    page.wait("document.title.includes('CANCELLED')")


def test_a_question_is_closed_with_its_view(live: LiveHome, page: Page) -> None:
    """Back and forward lead to other views; what was asked of the one before is not answered there."""
    page.open("runs", "Runs")
    job = running(live, page)
    page.click("[data-act=cancel]")
    page.wait("document.querySelector('#dialog').open")
    page.value("history.back()")
    page.wait("document.title.includes('Runs')")
    page.wait("!document.querySelector('#dialog').open")
    page.value("history.forward()")
    page.wait("document.title.includes('job: RUNNING')")
    page.click("[data-act=cancel]")
    page.click("#dialog button[value=yes]")
    page.wait("document.title.includes('CANCELLED')")
    live.settle([job])


def test_a_late_plan_takes_no_other_question_away(live: LiveHome, page: Page) -> None:
    """Recover looks for what can be done first: what it finds after it was closed is not asked."""
    run = mixed_flow(live)
    page.open(f"runs/{run}", "mixed: FAILED")
    with held(page, "act/recover") as requests:
        page.click(".actions [data-act=recover]")
        page.see(f"Recover run {run}?", "#dialog")
        late = requests.wait(1)[0]
        page.click("[data-no]")
        page.wait("!document.querySelector('#dialog').open")
        page.click(".actions [data-act=retry]")
        page.see(f"Retry run {run}?", "#dialog")
        requests.go_on(late)
        time.sleep(1)
        assert f"Retry run {run}?" in page.text("#dialog")
    page.click("[data-no]")


def test_an_action_whose_answer_is_lost_says_that_it_may_be_done(live: LiveHome, page: Page) -> None:
    """And the view shows whether it is."""
    job = running(live, page)
    with held(page, "act/cancel", "Response") as requests:
        page.click("[data-act=cancel]")
        page.click("#dialog button[value=yes]")
        requests.lose(requests.wait(1)[0])
        page.see("it may have been done", "#said")
    page.wait("document.title.includes('CANCELLED')")
    live.settle([job])


def test_a_flow_whose_answer_is_lost_is_submitted_once(live: LiveHome, page: Page, tmp_path: Path) -> None:
    page.open("submit", "Submit")
    choose(page, tmp_path, "once")
    page.see("once has 1 job.", "#checked")
    with held(page, "act/submit", "Response") as requests:
        page.click("#go")
        requests.lose(requests.wait(1)[0])
        page.see("it may have been done", "#said")
    page.click("#go")
    page.wait("document.title.includes('once: COMPLETED')")
    with live.reader() as reader:
        assert reader.fetch("SELECT count(*) FROM runs WHERE name = 'once'")[0][0] == 1
    page.open("submit", "Submit")
    choose(page, tmp_path, "once")
    page.see("once has 1 job.", "#checked")
    page.click("#go")
    page.wait("document.title.includes('once: COMPLETED')")
    with live.reader() as reader:
        assert reader.fetch("SELECT count(*) FROM runs WHERE name = 'once'")[0][0] == 2, "chosen again is another run"


def test_the_last_chosen_file_is_shown(page: Page, tmp_path: Path) -> None:
    """Also when the answer about the one before comes later."""
    page.open("submit", "Submit")
    with held(page, "act/check") as requests:
        choose(page, tmp_path, "first")
        first = requests.wait(1)[0]
        choose(page, tmp_path, "second")
        second = requests.wait(2)[1]
        requests.go_on(second)
        page.see("second has 1 job.", "#checked")
        requests.go_on(first)
        time.sleep(0.5)
    assert "second has 1 job." in page.text("#checked")


def test_a_view_that_gets_no_answer_keeps_no_other_one_waiting(live: LiveHome, page: Page) -> None:
    run = mixed_flow(live)
    page.open("runs", "Runs")
    with held(page, "api/now") as requests:
        page.value("location.hash = '#/now'")
        requests.wait(1)
        page.value(f"location.hash = '#/runs/{run}'")
        page.wait("document.title.includes('mixed: FAILED')", 20)


def test_a_filter_that_was_typed_stays_with_its_view(live: LiveHome, page: Page) -> None:
    """Not with the one that is opened a moment later; and the field shows what the address says."""
    run = mixed_flow(live)
    page.open(f"runs/{run}", "mixed: FAILED")
    page.value(
        "(() => { const field = document.querySelector('[data-filter-field=text]'); field.value = 'prep'; "
        "field.dispatchEvent(new Event('input', { bubbles: true })); location.hash = '#/runs'; })()"
    )
    page.wait("document.title.includes('Runs')")
    time.sleep(0.5)
    assert page.value("location.hash") == "#/runs"
    page.type("[data-filter-field=text]", "mixe")
    page.wait("location.hash === '#/runs?text=mixe'")
    page.type("[data-filter-field=text]", "d")
    page.wait("location.hash === '#/runs?text=mixed'")
    page.wait("document.querySelector('[data-filter-field=text]').value === 'mixed'")
    page.click("nav a[href='#/runs']")
    page.wait("document.querySelector('[data-filter-field=text]').value === ''")
    page.value("history.back()")
    page.wait("document.querySelector('[data-filter-field=text]').value === 'mixed'")


def test_the_way_to_the_content_stays_in_the_view(live: LiveHome, page: Page) -> None:
    run = mixed_flow(live)
    page.open(f"runs/{run}", "mixed: FAILED")
    page.value("document.querySelector('.skip').focus()")
    page.browser.call("Input.dispatchKeyEvent", type="keyDown", key="Enter", windowsVirtualKeyCode=13, text="\r")
    page.wait("document.activeElement === document.querySelector('main')")
    assert page.value("location.hash") == f"#/runs/{run}"


def test_a_click_in_the_log_is_not_lost_while_it_is_read(live: LiveHome, page: Page, tmp_path: Path) -> None:
    """The output is followed, and its answer is late: `begin` and the search wait for it, and are done."""
    gate = tmp_path / "gate"
    text = f"echo the first line; seq 100000; echo the last line; {GATE}"
    job = live.submit(shell_job("job", text), env={"GATE": str(gate)})
    live.wait_running(job)
    page.open(f"jobs/{job}", "job: RUNNING")
    page.see("the last line", ".log-box")
    with held(page, f"jobs/{job}/log") as requests:
        late = requests.wait(1)[0]
        page.click("[data-go=begin]")
        requests.go_on(late)
        requests.go_on(requests.wait(2)[1])
        page.see("the first line", ".log-box")
    page.click("[data-follow]")
    page.see("the last line", ".log-box")
    with held(page, f"jobs/{job}/log") as requests:
        late = requests.wait(1)[0]
        page.type(".log-tools input", "the first line")
        page.click("[data-find=down]")
        time.sleep(0.5)
        requests.go_on(late)
        requests.go_on(requests.wait(2)[1])
        page.wait("document.querySelector('.log-box mark')?.innerText === 'the first line'")
    gate.touch()
    live.settle([job])


def test_a_line_that_is_written_in_pieces_is_one_line(live: LiveHome, page: Page, tmp_path: Path) -> None:
    """It is followed, so that the pieces are read one by one."""
    gate = tmp_path / "gate"
    job = live.submit(shell_job("job", f"printf 'the first '; {GATE}; echo and the rest"), env={"GATE": str(gate)})
    page.open(f"jobs/{job}", "job: RUNNING")
    page.see("the first", ".log-box")
    gate.touch()
    page.see("the first and the rest", ".log-box")
    live.settle([job])


def test_a_command_is_shown_as_one_can_type_it(live: LiveHome, page: Page) -> None:
    """With the quotes that a shell needs."""
    job = aver(live.home.path, "submit", "--", "sh", "-c", "echo 'two words'").strip()
    live.settle([int(job)])
    page.open(f"jobs/{job}", "sh: COMPLETED")
    words = "sh -c 'echo '\"'\"'two words'\"'\"''"
    assert page.text("#given pre").strip() == words
    page.see(f"aver submit -- {words}", "#given")


def test_times_are_those_of_the_server(live: LiveHome, page: Page) -> None:
    """A browser whose clock is a day ahead shows the same runs of the last hour."""
    run = mixed_flow(live)
    made = page.browser.call(
        "Page.addScriptToEvaluateOnNewDocument", source="const now = Date.now; Date.now = () => now() + 86400000;"
    )
    try:
        page.browser.call("Page.reload")
        page.wait("document.querySelector('main h1') !== null && Date.now() > 1000 * 86400")
        page.open("runs?within=3600", "Runs")
        page.wait(f"document.querySelector(\"tr[data-key='run-{run}']\") !== null", 20)
        page.see("live", "#live")
    finally:
        page.browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=made["identifier"])


def test_what_another_tab_did_is_said(live: LiveHome, server: PageServer, page: Page) -> None:
    """The question was open in both; the second answer finds that it is done."""
    job = running(live, page)
    page.click("[data-act=cancel]")
    page.wait("document.querySelector('#dialog').open")
    assert server.post("cancel", ids=[job]).status == 200
    live.settle([job])
    page.wait("document.title.includes('CANCELLED')")
    page.click("#dialog button[value=yes]")
    page.see(f"{job}: ", "#said")
    assert "already" in page.text("#said")


def test_another_server_in_its_place_is_said(live: LiveHome, browser: Browser) -> None:
    """The link of the server before leads nowhere: the page says so instead of connecting for ever."""
    job = live.run_text("sleep 600")
    live.wait_running(job)
    with page_server(live.home.path, live.folder) as before:
        page = Page(browser, before)
        page.open(f"jobs/{job}", "job: RUNNING")
        page.see("live", "#live")
        port = int(before.host.rpartition(":")[2])
    with page_server(live.home.path, live.folder, port=port):
        page.see("open the link that", "#live")
        page.click("[data-act=cancel]")
        page.click("#dialog button[value=yes]")
        page.see("open the link that `aver ui` printed", "#said")
        assert live.job(job).state == "RUNNING"
    end(live, job)
