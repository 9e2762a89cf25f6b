"""The live page in a real Chromium: each view, actions by clicking, hostile texts, keys, a phone, paper."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from page import Page
from page_server import GATE, aver, mixed_flow

from aver.model.job import Matrix, Need, Needs
from live_home import LiveHome, shell_job, wait_for

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

ONE_HOME = True


def test_the_token_is_gone_from_the_address(page: Page) -> None:
    """The link leads to an address without the token, and scripts can't see the cookie."""
    assert page.value("location.href").startswith(page.server.base)
    assert page.server.token not in page.value("location.href")
    assert page.value("document.cookie") == ""


def test_each_view_shows_a_run(live: LiveHome, page: Page) -> None:
    """Counts, causes with commands, graph, grid, use, table, evidence, output: all there, nothing asked elsewhere."""
    run = mixed_flow(live)
    page.open("runs", "Runs")
    page.see("1 FAILED, 1 SKIPPED, 3 COMPLETED")
    page.open(f"runs/{run}", "mixed: FAILED")
    page.see("The run is FAILED: 3 of 5 jobs completed, 1 failed, 1 skipped.")
    page.see("failed with exit 1", "#causes")
    page.see(f"aver retry {run}", "#causes")
    page.wait("document.querySelectorAll('svg.graph .node').length === 3")
    page.click("[data-part$='usage']")
    page.see("train", "#use table")
    page.click("svg.graph a.node:nth-of-type(2) rect")
    page.wait("location.hash.includes('group=')")
    page.click("[data-part$='grid']")
    page.wait("document.querySelectorAll('.grid a').length === 3")
    page.wait("document.querySelectorAll('#table tbody tr').length === 3")
    page.click(".grid a.s-FAILED")
    page.see("Failed with exit code 1")
    page.see("seed 2", ".log-box")
    page.see("Reproduce", "#given")
    page.is_quiet()


def test_a_matrix_of_two_axes_is_a_table(live: LiveHome, page: Page) -> None:
    """A row for each value of the first axis, a column for each of the last, and no cell for what is excluded."""
    axes = (("lr", ("0.1", "0.01")), ("seed", ("1", "2", "3")))
    matrix = Matrix(axes, exclude=((("lr", "0.01"), ("seed", "2")),))
    run = live.submit(shell_job("train", "test {seed} != 3", matrix=matrix), name="two", is_single=False)
    live.settle([run])
    page.open(f"runs/{run}?group={run + 1}.0", "two: FAILED")
    page.click("[data-part$='grid']")
    page.wait("document.querySelectorAll('.grid-table a').length === 5")
    shown = "one.innerText || (one.querySelector('a') || {}).className || ''"
    cells = f"[...document.querySelectorAll('.grid-table tr')].map((row) => [...row.cells].map((one) => {shown}))"
    assert page.value(cells) == [
        ["seed", "1", "2", "3"],
        ["lr=0.1", "s-COMPLETED", "s-COMPLETED", "s-FAILED"],
        ["lr=0.01", "s-COMPLETED", "", "s-FAILED"],
    ]
    page.is_quiet()


def test_the_table_is_filtered_sorted_and_cut_at_the_server(live: LiveHome, page: Page) -> None:
    """By text, state and head; a page has a limit, says so, and the next one goes on."""
    numbers = tuple(str(number) for number in range(230))
    run = live.submit(shell_job("n", "true", matrix=Matrix((("n", numbers),))), name="many", is_single=False)
    live.settle([run], 120)
    page.open(f"runs/{run}", "many: COMPLETED")
    page.see("200 of 230 jobs; the others are on the next pages.")
    page.click("a[rel=next]")
    page.wait("document.querySelectorAll('#table tbody tr').length === 30")
    page.open(f"runs/{run}?text=n=22", "many: COMPLETED")
    page.see("11 jobs.")  # 22, 220 to 229
    page.open(f"runs/{run}?order=id&turn=down", "many: COMPLETED")
    page.wait(f"document.querySelector('#table tbody tr a')?.innerText === '{run + 230}'")
    page.click("#table thead button[data-order=id]")
    page.wait(f"document.querySelector('#table tbody tr a')?.innerText === '{run + 1}'")
    page.open(f"runs/{run}?state=FAILED", "many: COMPLETED")
    page.see("0 jobs.")
    page.is_quiet()


def test_cancel_by_clicking(live: LiveHome, page: Page) -> None:
    """The question says what will happen; without a yes nothing does; the reason is kept with who asked."""
    run = live.run_text("sleep 600")
    live.wait_running(run)
    page.open(f"jobs/{run}", "job: RUNNING")
    page.click("[data-act=cancel]")
    page.see("What runs gets TERM now, and KILL after its kill wait.", "#dialog")
    page.click("[data-no]")
    page.wait("!document.querySelector('#dialog').open")
    assert live.job(run).state == "RUNNING"
    page.click("[data-act=cancel]")
    page.wait("document.querySelector('#dialog').open")
    page.type("#dialog [name=reason]", "wrong data")
    page.click("#dialog button[value=yes]")
    page.wait("document.title.includes('CANCELLED')")
    page.see("asked: cancel; wrong data", "#evidence")
    assert "asked: cancel; wrong data" in aver(live.home.path, "why", str(run))
    page.is_quiet()


def test_hold_release_and_retry_by_clicking(live: LiveHome, page: Page, tmp_path: Path) -> None:
    """A held job waits until it is released; a failed one runs again, and the page shows its second attempt."""
    gate, second = tmp_path / "gate", tmp_path / "second"
    run = live.submit(shell_job("first", GATE), shell_job("then", f"test -e {second}", needs=Needs((Need("first"),))),
                      env={"GATE": str(gate)})  # fmt: skip
    job = run + 2
    page.open(f"jobs/{job}", "then: PENDING")
    page.click("[data-act=hold]")
    page.click("#dialog button[value=yes]")
    page.see("held by")
    gate.touch()
    wait_for(lambda: live.job(run + 1).state == "COMPLETED", "the first job")
    assert live.job(job).state == "PENDING"
    page.click("[data-act=release]")
    page.click("#dialog button[value=yes]")
    page.wait("document.title.includes('then: FAILED')")
    second.touch()
    page.click("[data-act=retry]")
    page.click("#dialog button[value=yes]")
    page.wait("document.title.includes('then: COMPLETED')")
    page.see("#2", "#attempts")
    page.is_quiet()


def test_signal_by_clicking(live: LiveHome, page: Page) -> None:
    """The signal that was typed reaches the job, which goes on; it is no cancellation, and the reason is kept."""
    told = live.folder / "told"
    run = live.run_text(f"trap 'echo usr2 > {told}' USR2; trap 'exit 4' USR1; until [ -e go ]; do sleep 0.05; done")
    live.wait_running(run)
    page.open(f"jobs/{run}", "job: RUNNING")
    page.click("[data-act=signal]")
    page.see("It does not cancel anything.", "#dialog")
    page.value("document.querySelector('#dialog [name=signal]').value = ''")
    page.type("#dialog [name=signal]", "USR2")
    page.type("#dialog [name=reason]", "write a checkpoint")
    page.click("#dialog button[value=yes]")
    wait_for(told.exists, "what the job does at the signal")
    assert live.job(run).state == "RUNNING"
    page.see("write a checkpoint", "#evidence")
    page.click("[data-act=signal]")
    page.wait("document.querySelector('#dialog').open")
    page.value("document.querySelector('#dialog [name=signal]').value = 'NONSENSE'")
    page.click("#dialog button[value=yes]")
    page.see("NONSENSE", "#said")
    page.click("[data-act=signal]")
    page.wait("document.querySelector('#dialog').open")
    page.click("#dialog button[value=yes]")  # USR1, as it is offered
    page.wait("document.title.includes('job: FAILED')")
    page.see("Failed with exit code 4")


def test_suspend_and_resume_by_clicking(live: LiveHome, page: Page, tmp_path: Path) -> None:
    """A suspended job does nothing; a resumed one goes on to its end."""
    gate = tmp_path / "gate"
    run = live.submit(shell_job("job", GATE), env={"GATE": str(gate)})
    live.wait_running(run)
    page.open(f"jobs/{run}", "job: RUNNING")
    page.click("[data-act=suspend]")
    page.see("its time limit is paused", "#dialog")
    page.click("#dialog button[value=yes]")
    page.wait("document.title.includes('job: SUSPENDED')")
    gate.touch()
    page.click("[data-act=resume]")
    assert live.job(run).state == "SUSPENDED"
    page.click("#dialog button[value=yes]")
    page.wait("document.title.includes('job: COMPLETED')")
    page.is_quiet()


def test_accept_by_clicking(live: LiveHome, page: Page) -> None:
    """A job whose end nobody saw is vouched for, with the name and the reason of who did; others can't be."""
    run = live.run_text("sleep 600")
    live.wait_running(run)
    os.kill(live.witness_of(run), signal.SIGKILL)
    live.settle([run])
    page.open(f"jobs/{run}", "job: UNVERIFIED")
    page.click(".actions [data-act=accept]")
    page.see("Your name is kept as evidence.", "#dialog")
    page.type("#dialog [name=reason]", "the results are there")
    page.click("#dialog button[value=yes]")
    page.wait("document.title.includes('job: COMPLETED')")
    page.see("COMPLETED*", "main h1")
    page.see("the results are there", "#evidence")
    assert page.value("document.querySelector('.actions [data-act=accept]')") is None
    page.is_quiet()


def test_hostile_texts_stay_text(live: LiveHome, page: Page) -> None:
    """Names, output and file names with markup, escapes, turned directions and NUL are shown; none of them acts."""
    name = "</script><img src=x onerror=alert(1)>\u202egnp.exe"
    folder = live.folder / "<b>bold"
    folder.mkdir()
    text = (
        r"printf '<script>alert(1)</script>\n\033[31mred\033[0m\033]0;title\007 \000 '; "
        r"printf '\342\200\256turned\n\033[2Jend\n'; exit 5"
    )
    run = live.submit(shell_job(name, text), shell_job("ok", "true"), name="<h1>nasty")
    live.settle([run])
    page.open(f"runs/{run}", "nasty: FAILED")
    page.see("</script><img src=x onerror=alert(1)>", "#table")
    assert r"\u202e" in page.text("#table")
    page.open(f"jobs/{run + 1}", "FAILED")
    page.see("<script>alert(1)</script>", ".log-box")
    page.see(r"\x00 \u202eturned", ".log-box")
    assert page.value("document.querySelector('.log-box .a-31').innerText") == "red"
    assert "title" not in page.text(".log-box")
    assert page.value("document.querySelectorAll('img, main script').length") == 0
    assert page.value("document.querySelectorAll('script').length") == 1
    page.is_quiet()


def test_the_keyboard_is_enough(live: LiveHome, page: Page) -> None:
    """r, j, k and enter lead to a run; / goes to the filter; ? lists the keys, Escape closes them."""
    run = mixed_flow(live)
    page.key("r")
    page.wait("document.title.includes('Runs')")
    page.wait("document.querySelector('tr[data-row]') !== null")
    page.key("j")
    assert page.value("document.activeElement.innerText") == str(run)
    page.browser.key("Enter")
    page.wait("document.title.includes('mixed: FAILED')")
    page.key("/")
    assert page.value("document.activeElement.name") == "text"
    page.value("document.activeElement.blur()")
    page.key("?")
    page.wait("document.querySelector('#dialog').open")
    page.key("Escape")
    page.wait("!document.querySelector('#dialog').open")


def test_everything_has_a_name(live: LiveHome, page: Page) -> None:
    """For those who listen to it: links, buttons and fields have words, tables have heads, there is one h1."""
    run = mixed_flow(live)
    nameless = (
        "[...document.querySelectorAll('a[href], button, input, select')].filter((one) => !one.hidden && "
        "!(one.innerText || one.getAttribute('aria-label') || one.title || one.labels?.length || "
        "one.textContent.trim())).map((one) => one.outerHTML)"
    )
    for route, title in (("now", "running"), ("runs", "Runs"), (f"runs/{run}", "mixed"), (f"jobs/{run + 1}", "prep"),
                         ("compare", "Compare"), ("submit", "Submit")):  # fmt: skip
        page.open(route, title)
        assert page.value(nameless) == [], route
        assert page.value("document.querySelectorAll('h1').length") == 1
        assert page.value("[...document.querySelectorAll('table.rows')].every((one) => one.tHead.rows.length)") is True
    assert page.value("document.documentElement.lang") == "en"


@pytest.fixture
def phone(page: Page) -> Iterator[Page]:
    page.browser.resize(390, 844, is_phone=True)
    yield page
    page.browser.resize(1280, 900)


def test_a_phone_shows_it_without_scrolling_sideways(live: LiveHome, phone: Page) -> None:
    run = mixed_flow(live)
    for route, title in (("now", "running"), ("runs", "Runs"), (f"runs/{run}", "mixed"), (f"jobs/{run + 1}", "prep")):
        phone.open(route, title)
        phone.wait("document.querySelector('main h1') !== null")
        assert phone.value("document.documentElement.scrollWidth") == 390, route


def test_names_break_between_words_on_a_phone(live: LiveHome, phone: Page) -> None:
    """A word stays whole, a member's values go to the next line, and a name without end still fits."""
    tops = "new Set([...a.getClientRects()].map(one => one.top)).size"
    heights = f"Object.fromEntries([...document.querySelectorAll('td.name a')].map(a => [a.innerText, {tops}]))"
    endless = "x" * 60
    runs = [live.submit(shell_job(name, "true"), name=name) for name in ("nightly", "preprocessing", endless)]
    matrix = Matrix((("seed", ("1", "2")),))
    many = live.submit(shell_job("preprocessing", "true", matrix=matrix), name="many", is_single=False)
    live.settle([*runs, many])
    phone.open("runs", "Runs")
    phone.see("preprocessing")
    lines = phone.value(heights)
    assert (lines["nightly"], lines["preprocessing"]) == (1, 1)
    assert 1 < lines[endless] < 6
    phone.open(f"runs/{many}", "many: COMPLETED")
    phone.wait("document.querySelectorAll('td.name a').length === 2")
    assert phone.value(heights) == {"preprocessing[seed=1]": 2, "preprocessing[seed=2]": 2}
    assert phone.value("document.querySelector('td.name wbr').previousSibling.data") == "preprocessing"


def test_dark_and_print(live: LiveHome, page: Page, tmp_path: Path) -> None:
    """Colours follow the preference; on paper there are no buttons, and details are open."""
    run = mixed_flow(live)
    page.open(f"jobs/{run + 3}", "FAILED")
    page.see("aver retry", ".commands")
    page.browser.prefer("dark")
    assert page.value("getComputedStyle(document.body).backgroundColor") == "rgb(13, 17, 23)"
    page.browser.pdf(tmp_path / "job.pdf")
    assert (tmp_path / "job.pdf").read_bytes().startswith(b"%PDF")
    assert page.value("[...document.querySelectorAll('details')].every((one) => one.open)") is True
    page.browser.call("Emulation.setEmulatedMedia", media="print")
    assert page.value("[...document.querySelectorAll('button')].filter((one) => one.offsetHeight).length") == 0
    page.browser.call("Emulation.setEmulatedMedia", media="")


def test_two_runs_are_compared(live: LiveHome, page: Page, tmp_path: Path) -> None:
    """Verdicts that differ come first."""
    flag = tmp_path / "flag"
    jobs = (shell_job("same", "true"), shell_job("other", f"test -e {flag}"))
    first = live.submit(*jobs)
    live.settle([first])
    flag.touch()
    second = live.submit(*jobs)
    live.settle([second])
    page.open(f"compare?first={first}&second={second}", f"runs {first} and {second}")
    page.see("FAILED → COMPLETED")
    page.wait("document.querySelector('table.rows tbody td')?.innerText === 'other'")
    page.is_quiet()
