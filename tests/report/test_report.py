"""The report's page in a real Chromium: it says nothing in its console, shows what it should, and answers to clicks."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from chromium import Browser
from past_runs import SECRET, Call, fill, fill_huge, fill_waiting

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


@pytest.fixture
def page(past: Path, call: Call, tmp_path: Path) -> Path:
    path = tmp_path / "report.html"
    assert call("report", "1", "-o", str(path))[0] == 0
    return path


@pytest.fixture
def opened(browser: Browser, page: Path) -> Browser:
    browser.console.clear()
    browser.requests.clear()
    browser.resize(1200, 900)
    browser.prefer("light")
    browser.open(page)
    return browser


def test_the_page_is_whole_and_asks_for_nothing(opened: Browser, page: Path) -> None:
    """Graph, timeline, use and table are there; the console is empty; nothing but the file itself was fetched."""
    assert opened.console == []
    assert opened.requests == [page.as_uri()]
    assert opened.value("document.querySelectorAll('svg.graph .node').length") == 6
    assert opened.value("document.querySelectorAll('svg.gantt .bar').length") == 7
    assert opened.value("document.querySelectorAll('table.use tbody tr').length") == 6
    assert opened.value("document.querySelectorAll('#table tbody tr').length") == 8
    assert opened.value("document.querySelectorAll('details.failure').length") == 4
    assert "run 1" in opened.value("document.querySelector('h1').innerText")


@pytest.mark.parametrize(
    "selector", ["#table tr[data-job='5'] td", "svg.gantt [data-job='5'] text", "table.use tr[data-job='5'] th"]
)
def test_a_click_on_a_job_shows_its_evidence(opened: Browser, selector: str) -> None:
    """Wherever the job is clicked, its panel has the witness's own words, each attempt and the end of its log."""
    opened.click(selector)
    assert opened.value("document.querySelector('#panel').open") is True
    text = opened.value("document.querySelector('#panel').innerText")
    assert "train[seed=3]" in text
    assert '"oom": 1' in text
    assert "#1" in text
    assert "#2" in text
    assert "Killed" in text
    assert opened.console == []


def test_a_node_of_the_graph_answers(opened: Browser) -> None:
    """One job: its evidence. Several: the table shows just them."""
    opened.click("svg.graph [data-job='2'] rect")
    assert "Completed with exit code 0" in opened.value("document.querySelector('#panel').innerText")
    opened.value("document.querySelector('#panel').close()")
    opened.click("svg.graph [data-group] rect")
    assert opened.value("document.querySelector('#count').innerText") == "3 of 8 jobs"


def test_the_keyboard_is_enough(opened: Browser) -> None:
    """Enter on a row opens its panel, Escape closes it."""
    opened.value("document.querySelector(\"#table tr[data-job='7']\").focus()")
    opened.key("Enter")
    assert opened.value("document.querySelector('#panel').open") is True


def test_the_table_is_filtered_and_sorted(opened: Browser) -> None:
    """By text, by state and by a click on a head; failed jobs come first without any."""
    ids = "[...document.querySelectorAll('#table tbody tr')].map((row) => Number(row.dataset.job))"
    assert opened.value(ids) == [5, 7, 8, 9, 6, 2, 3, 4]
    opened.click("#table thead th:first-child button")
    assert opened.value(ids) == [2, 3, 4, 5, 6, 7, 8, 9]
    opened.click("#chips .s-COMPLETED")
    assert opened.value(ids) == [2, 3, 4]
    opened.value("(() => { const one = document.querySelector('#text'); one.value = 'SEED=2'; "
                 "one.dispatchEvent(new Event('input')); })()")  # fmt: skip
    assert opened.value(ids) == [4]


def test_text_of_users_stays_text(
    browser: Browser, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What looks like markup in names and logs is shown as it is; no element is made of them, no secret shows."""
    name = "</script><b>"
    monkeypatch.setenv("AVER_HOME", str(tmp_path / "home"))
    fill(tmp_path / "home", tmp_path / "work", name="<img src=x onerror=alert(1)>{{js}}", job_name=name)
    path = tmp_path / "nasty.html"
    assert call("report", "1", "-o", str(path))[0] == 0
    browser.console.clear()
    browser.requests.clear()
    browser.open(path)
    assert browser.console == []
    assert browser.requests == [path.as_uri()]
    assert browser.value("document.querySelectorAll('img').length") == 0
    assert browser.value("document.querySelectorAll('script').length") == 2
    assert "<img src=x onerror=alert(1)>{{js}}" in browser.value("document.querySelector('h1').innerText")
    shown = browser.value("[...document.querySelectorAll('#table td:nth-child(2)')].map((one) => one.innerText)")
    assert name in shown
    browser.click("#table tr[data-job='7'] td")
    assert r"\x1b[31m" in browser.value("document.querySelector('#panel .log').innerText")
    assert SECRET not in path.read_text()
    assert "token ***" in path.read_text()


def test_a_phone_shows_it_without_scrolling_sideways(opened: Browser, page: Path) -> None:
    """At 390 pixels nothing is wider than the screen but what scrolls by itself; the panel fits too."""
    opened.resize(390, 844, is_phone=True)
    opened.open(page)
    assert opened.value("document.documentElement.scrollWidth") == 390
    opened.click("#table tbody tr td")
    assert opened.value("document.querySelector('#panel').getBoundingClientRect().width") <= 390


def test_it_is_dark_where_the_user_wants_that(opened: Browser, page: Path) -> None:
    """The colours follow the preference."""
    colour = "getComputedStyle(document.body).backgroundColor"
    assert opened.value(colour) == "rgb(255, 255, 255)"
    opened.prefer("dark")
    assert opened.value(colour) == "rgb(13, 17, 23)"


def test_it_prints(opened: Browser, tmp_path: Path) -> None:
    """On paper: all failures are open, what can only be clicked is left out, colours are those of paper."""
    opened.value("document.querySelectorAll('details').forEach((one) => { one.open = false; })")
    opened.pdf(tmp_path / "print.pdf")
    assert (tmp_path / "print.pdf").read_bytes().startswith(b"%PDF")
    assert opened.value("[...document.querySelectorAll('details')].every((one) => one.open)") is True
    opened.call("Emulation.setEmulatedMedia", media="print")
    try:
        assert opened.value("getComputedStyle(document.querySelector('nav')).display") == "none"
    finally:
        opened.call("Emulation.setEmulatedMedia", media="")


def test_a_run_of_which_nothing_has_started(
    browser: Browser, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is nothing to measure and no time to show: the page says so."""
    monkeypatch.setenv("AVER_HOME", str(tmp_path / "home"))
    fill_waiting(tmp_path / "home", tmp_path / "work")
    assert call("report", "1", "-o", str(tmp_path / "r.html"))[0] == 0
    browser.console.clear()
    browser.open(tmp_path / "r.html")
    assert browser.console == []
    text = browser.value("document.body.innerText")
    for words in ("Nothing failed; 2 jobs are not settled yet.", "Nothing has started.", "Nothing was measured."):
        assert words in text
    browser.click("svg.graph [data-job='2'] rect")
    assert "JobHeldUser" in browser.value("document.querySelector('#panel').innerText")


def test_a_hundred_thousand_jobs_open_and_are_grouped(
    browser: Browser, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A huge run is no hairball: three nodes, three rows, a table by pages; failures have their evidence."""
    monkeypatch.setenv("AVER_HOME", str(tmp_path / "home"))
    fill_huge(tmp_path / "home", tmp_path / "work")
    path = tmp_path / "huge.html"
    assert call("report", "1", "-o", str(path))[0] == 0
    browser.console.clear()
    browser.resize(1200, 900)
    begun = time.monotonic()
    browser.open(path)
    print(f"{path.stat().st_size} bytes opened in {time.monotonic() - begun:.2f} s")
    assert browser.console == []
    assert browser.value("document.querySelectorAll('svg.graph .node').length") == 3
    assert browser.value("document.querySelectorAll('svg.gantt .row').length") == 3
    assert browser.value("document.querySelectorAll('*').length") < 20_000
    assert browser.value("document.querySelector('#count').innerText") == "100000 jobs"
    assert browser.value("document.querySelectorAll('#table tbody tr').length") == 200
    browser.click("#table tbody tr td")
    assert "Failed with exit code 3" in browser.value("document.querySelector('#panel').innerText")
