"""Rows about the live page: large homes, what ten open pages cost, and how soon a verdict is on it."""

from __future__ import annotations

import bisect
import contextlib
import http.client
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import large_home
from figures import FOLDER, Row
from product import Product, many_jobs, one_job

from aver.model.states import State
from aver.store.read.reader import Reader

PAGES = 10
RUN_JOBS = 15_000  # of each run of the flood; two are there at a time
SETTLE_S = 1.0  # after pages were opened or closed
PACE_S = 0.25  # at which the page's script asks again, at most


class Served:
    """A running `aver ui` of a home, and requests as its page makes them."""

    def __init__(self, link: str, pid: int = 0) -> None:
        self.pid = pid
        found = re.fullmatch(r"http://([^/]+)/([\w-]+)/\?token=([\w-]+)", link)
        assert found, link
        self.link = link
        self.host, self.place, token = found.groups()
        self._headers = {"Authorization": f"Bearer {token}"}

    def connection(self, path: str) -> http.client.HTTPConnection:
        made = http.client.HTTPConnection(self.host, timeout=60)
        made.request("GET", f"/{self.place}/api/{path}", headers=self._headers)
        return made

    def used_s(self) -> float:
        """The CPU time of the server until now."""
        fields = Path(f"/proc/{self.pid}/stat").read_bytes().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def get(self, path: str) -> tuple[bytes, float]:
        """The answer, and the seconds that it took."""
        began = time.perf_counter()
        made = self.connection(path)
        body = made.getresponse().read()
        made.close()
        return body, time.perf_counter() - began


@contextlib.contextmanager
def served(home: Path) -> Iterator[Served]:
    process = subprocess.Popen(
        [sys.executable, "-m", "aver", "ui"],
        env={**os.environ, "AVER_HOME": str(home), "AVER_CONFIG": os.environ.get("AVER_CONFIG", os.devnull)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield Served(process.stdout.readline().strip(), process.pid)
    finally:
        process.terminate()
        process.communicate()


class OpenPages:
    """Pages of browsers on other machines, in a process whose own work gives way to the jobs."""

    def __init__(self, server: Served) -> None:
        words = ["nice", "-n", "19", sys.executable, __file__, server.link]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def set(self, count: int) -> None:
        """So many are open from now on."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(count, file=self._process.stdin, flush=True)
        self._process.stdout.readline()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def follow(server: Served) -> None:
    """Each line of stdin says how many pages are open."""
    pages: list[Page] = []
    for line in sys.stdin:
        for page in pages:
            page.close()
        pages = [Page(server) for _ in range(int(line))]
        print(len(pages), flush=True)


class Page:
    """Works as the page's script: follows the events, and asks for the view again when one says so."""

    def __init__(self, server: Served) -> None:
        self._server = server
        self._connection = server.connection("events")
        self._response = self._connection.getresponse()
        self._response.readline()
        threading.Thread(target=self._follow, daemon=True).start()

    def close(self) -> None:
        if self._connection.sock is not None:
            self._connection.sock.shutdown(socket.SHUT_RDWR)

    def _follow(self) -> None:
        kind = b""
        while line := self._response.readline():
            name, _, value = line.strip().partition(b": ")
            if name == b"event":
                kind = value
            elif name == b"data" and kind in (b"change", b"tick"):
                told = json.loads(value).get("told")
                _, took = self._server.get("now" if told is None else f"now?event={told}")
                time.sleep(max(PACE_S - took, 2 * took))


@contextlib.contextmanager
def browser() -> Iterator[Any]:
    """A real Chromium, as the tests have it; None where there is none."""
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    from chromium import chromium, find_chromium

    if find_chromium() is None:
        yield None
        return
    with chromium() as found:
        yield found


def ten_pages(quick: bool) -> list[Row]:
    """Jobs a second in one long flood, in slices with ten open pages and without any, all on the same machine.

    The order of the slices is 0 10 10 0 and so on: what changes slowly about the machine is in both alike.
    """
    slices, slice_s = (4, 2.0) if quick else (24, 3.0)
    spans: list[tuple[int, float, float]] = []
    with Product(slots=2) as product, served(product.home.path) as server, OpenPages(server) as pages:
        runs = [product.submit(many_jobs("true", RUN_JOBS, "/bin/true")) for _ in range(2)]
        time.sleep(slice_s)
        used_s = 0.0
        for at in range(slices):
            count = PAGES if at % 4 in (1, 2) else 0
            pages.set(count)
            time.sleep(SETTLE_S)
            before = server.used_s()
            began = time.time()
            time.sleep(slice_s)
            spans.append((count, began, time.time()))
            used_s += (server.used_s() - before) if count else 0.0
            if is_settled(product.home.database, runs[-2]):
                runs.append(product.submit(many_jobs("true", RUN_JOBS, "/bin/true")))
        pages.set(0)
        for run in runs[-2:]:
            product.cancel(run)
        rates = _rates(product.home.database, spans)
    share = statistics.median(some / none for some, none in zip(rates[PAGES], rates[0], strict=True))
    return [
        Row(
            f"/bin/true with {PAGES} open pages, jobs/s of those without",
            "×",
            share,
            {},
            "≥ 0.98",
            share >= 0.98,
        ),
        Row(f"server of {PAGES} open pages in that flood", "% of a CPU", 100 * used_s / (slice_s * slices / 2)),
    ]


def is_settled(database: Path, run: int) -> bool:
    reader = Reader.open(database)
    assert reader is not None
    with reader:
        row = reader.run(run)
        return row is not None and row.state.is_settled


def _rates(database: Path, spans: list[tuple[int, float, float]]) -> dict[int, list[float]]:
    """Jobs a second in each span, by the number of open pages."""
    reader = Reader.open(database)
    assert reader is not None
    with reader:
        text = "SELECT ended_at FROM jobs WHERE state = ? AND ended_at IS NOT NULL ORDER BY ended_at"
        ends = [float(row[0]) for row in reader.fetch(text, (State.COMPLETED.value,))]
    rates: dict[int, list[float]] = {0: [], PAGES: []}
    for count, begin, end in spans:
        found = (bisect.bisect(ends, end) - bisect.bisect(ends, begin)) / (end - begin)
        print(f"{count:2} pages: {found:.0f} jobs/s", file=sys.stderr)
        rates[count].append(found)
    return rates


def large(quick: bool) -> list[Row]:
    """First paint, filters at the server and bytes of views, of a home with a long past; a tenth of it is one run."""
    count = large_home.JOBS // 10 if quick else large_home.JOBS
    members = count // 10
    run = count - members + 1
    folder = Path(tempfile.mkdtemp(prefix="aver-bench-", dir=FOLDER))
    filters = (
        f"runs/{run}/jobs?state=FAILED",
        f"runs/{run}/jobs?text=n=1234",
        "runs?text=single7",
        "runs?engine=slurm",
    )
    paths = ("now", "runs?limit=200", f"runs/{run}", f"runs/{run}/jobs?limit=500", f"runs/{run}/causes", *filters)
    rows = []
    try:
        large_home.fill(folder / "home", count, members)
        with served(folder / "home") as server, browser() as chromium:
            if chromium is not None:
                for name, route, wanted in (
                    ("now", "now", "Now"),
                    (f"a run of {members:,} jobs", f"runs/{run}", "many"),
                ):
                    took = _first_paint(chromium, server, route, wanted)
                    rows.append(Row(f"page, {name}, home of {count:,} jobs", "s", took, {}, "≤ 1 s", took <= 1))
            for path in filters:
                took_ms = min(server.get(path)[1] for _ in range(6)) * 1000
                words = path.replace(str(run), "RUN")
                rows.append(
                    Row(f"page, {words}, home of {count:,} jobs", "ms", took_ms, {}, "≤ 100 ms", took_ms <= 100)
                )
            most = max(len(server.get(path)[0]) for path in paths) / 1e6
            rows.append(Row(f"page, largest view, home of {count:,} jobs", "MB", most, {}, "≤ 1 MB", most <= 1))
        return rows
    finally:
        shutil.rmtree(folder)


def _first_paint(chromium: Any, server: Served, route: str, wanted: str) -> float:
    """From the call of the address until the view is there, with a cookie; the best of three."""
    best = float("inf")
    _log_in(chromium, server)
    for _ in range(3):
        chromium.go("about:blank")
        began = time.perf_counter()
        chromium.call("Page.navigate", url=f"http://{server.host}/{server.place}/#/{route}")
        _wait(chromium, f"document.querySelector('main h1')?.innerText.includes({json.dumps(wanted)})")
        best = min(best, time.perf_counter() - began)
    return best


def _log_in(chromium: Any, server: Served) -> None:
    chromium.call("Page.navigate", url=server.link)
    _wait(chromium, "document.querySelector('main h1') !== null")


def _wait(chromium: Any, expression: str) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with contextlib.suppress(AssertionError):  # the page is being left
            if chromium.value(expression):
                return
        time.sleep(0.002)
    raise RuntimeError(f"not within 60 s: {expression}")


def shown(quick: bool) -> list[Row]:
    """From the moment a reader finds the verdict in the store to the moment an open page shows it."""
    took_ms = []
    with Product(slots=2) as product, served(product.home.path) as server, browser() as chromium:
        if chromium is None:
            return []
        _log_in(chromium, server)
        for _ in range(5 if quick else 50):
            gate = product.folder / "gate"
            gate.unlink(missing_ok=True)
            job = product.submit(one_job("job", "/bin/sh", "-c", f"until [ -e {gate} ]; do sleep 0.01; done"))
            took_ms.append(_shown_ms(chromium, product.home.database, job, gate.touch))
    return _shown_rows("durable verdict to the page", took_ms)


def shown_in_flood(quick: bool) -> list[Row]:
    """The same while many other jobs end: each page shows a job of its own, which waits until it is let go."""
    took_ms = []
    count = 3 if quick else 20
    with Product(slots=count + 2) as product, served(product.home.path) as server, browser() as chromium:
        if chromium is None:
            return []
        gates = [product.folder / f"gate-{number}" for number in range(count)]
        for gate in gates:
            os.mkfifo(gate)
        jobs = [product.submit(one_job("job", "/bin/sh", "-c", f"read line < {gate}")) for gate in gates]
        _log_in(chromium, server)
        flood = product.submit(many_jobs("true", RUN_JOBS, "/bin/true"))
        _wait(chromium, "document.querySelector('#live').innerText.includes('many changes')")
        for job, gate in zip(jobs, gates, strict=True):
            took_ms.append(_shown_ms(chromium, product.home.database, job, lambda gate=gate: gate.write_text("go\n")))
        assert not is_settled(product.home.database, flood), "the flood was over before the last job"
        product.cancel(flood)
    return _shown_rows("durable verdict to the page in a flood", took_ms)


def _shown_ms(chromium: Any, database: Path, job: int, let_go: Callable[[], object]) -> float:
    """From the durable verdict of a job that is let go now to the page that shows it."""
    chromium.value(f"location.hash = '#/jobs/{job}'")
    _wait(chromium, f"document.querySelector('h1 small')?.innerText === 'job {job}'")
    _wait(chromium, "document.title.includes('RUNNING')")
    chromium.value(
        "window.seen = null; new MutationObserver(() => { if (document.title.includes('COMPLETED')) "
        "window.seen ??= Date.now(); }).observe(document.querySelector('title'), { childList: true })"
    )
    let_go()
    durable_at = _durable_at(database, job)
    _wait(chromium, "window.seen !== null")
    return max(0.0, float(chromium.value("window.seen")) - durable_at * 1000)


def _shown_rows(name: str, took_ms: list[float]) -> list[Row]:
    worst = max(took_ms)
    return [
        Row(f"{name}, p50", "ms", statistics.median(took_ms)),
        Row(f"{name}, worst", "ms", worst, {}, "≤ 300 ms", worst <= 300),
    ]


def _durable_at(database: Path, job: int) -> float:
    reader = Reader.open(database)
    assert reader is not None
    with reader:
        while True:
            row = reader.job(job)
            if row is not None and row.state.is_settled:
                return time.time()
            time.sleep(0.001)


ROWS: dict[str, Callable[[bool], list[Row]]] = {
    "page": shown,
    "page-flood": shown_in_flood,
    "pages": ten_pages,
    "large-page": large,
}


if __name__ == "__main__":
    follow(Served(sys.argv[1]))
