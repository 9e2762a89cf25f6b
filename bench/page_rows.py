"""Rows about the live page: large homes, what ten open pages cost, and how soon a verdict is on it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import large_home
from figures import FOLDER, Row
from product import Product, many_jobs, one_job

from aver.store.read.reader import Reader

PAGES = 10
PACE_S = 0.25  # at which the page's script asks again, at most


class Served:
    """A running `aver ui` of a home, and requests as its page makes them."""

    def __init__(self, link: str) -> None:
        found = re.fullmatch(r"http://([^/]+)/([\w-]+)/\?token=([\w-]+)", link)
        assert found, link
        self.link = link
        self.host, self.place, token = found.groups()
        self._headers = {"Authorization": f"Bearer {token}"}

    def connection(self, path: str) -> http.client.HTTPConnection:
        made = http.client.HTTPConnection(self.host, timeout=60)
        made.request("GET", f"/{self.place}/api/{path}", headers=self._headers)
        return made

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
        yield Served(process.stdout.readline().strip())
    finally:
        process.terminate()
        process.communicate()


@contextlib.contextmanager
def open_pages(server: Served, count: int) -> Iterator[None]:
    """So many pages, of browsers that are on other machines: their own work gives way to the jobs."""
    words = ["nice", "-n", "19", sys.executable, __file__, server.link, str(count)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE) if count else None
    if process is not None:
        assert process.stdout is not None
        process.stdout.readline()  # all of them follow
    yield
    if process is not None:
        process.kill()
        process.communicate()


def follow(server: Served, count: int) -> None:
    """As the page's script works: follow the events, and ask for the view again when there is one."""
    begun = threading.Barrier(count + 1)

    def one() -> None:
        response = server.connection("events").getresponse()
        response.readline()
        begun.wait()
        while True:
            if response.readline().startswith(b"event: change"):
                _, took = server.get("now")
                time.sleep(max(PACE_S - took, 2 * took))

    for _ in range(count):
        threading.Thread(target=one, daemon=True).start()
    begun.wait()
    print("follow", flush=True)
    signal.pause()


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
    """Jobs a second with ten open pages and without any, in turn; the medians. All are on the same machine."""
    count, rounds = (1_000, 1) if quick else (10_000, 3)
    rates: dict[int, list[float]] = {0: [], PAGES: []}
    with Product(slots=2) as product, served(product.home.path) as server:
        for _ in range(rounds):
            for pages, found in rates.items():
                with open_pages(server, pages):
                    began = time.perf_counter()
                    product.settle([product.submit(many_jobs("true", count, "/bin/true"))])
                    found.append(count / (time.perf_counter() - began))
    share = statistics.median(rates[PAGES]) / statistics.median(rates[0])
    return [
        Row(
            f"{count:,} × true with {PAGES} open pages, jobs/s of those without",
            "×",
            share,
            {},
            "≥ 0.98",
            share >= 0.98,
        )
    ]


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
            chromium.value(f"location.hash = '#/jobs/{job}'")
            _wait(chromium, f"document.querySelector('h1 small')?.innerText === 'job {job}'")
            _wait(chromium, "document.title.includes('RUNNING')")
            chromium.value(
                "window.seen = null; new MutationObserver(() => { if (document.title.includes('COMPLETED')) "
                "window.seen ??= Date.now(); }).observe(document.querySelector('title'), { childList: true })"
            )
            gate.touch()
            durable_at = _durable_at(product.home.database, job)
            _wait(chromium, "window.seen !== null")
            took_ms.append(max(0.0, chromium.value("window.seen") - durable_at * 1000))
    worst, middle = max(took_ms), statistics.median(took_ms)
    return [
        Row("durable verdict to the page, p50", "ms", middle),
        Row("durable verdict to the page, worst", "ms", worst, {}, "≤ 300 ms", worst <= 300),
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


ROWS: dict[str, Callable[[bool], list[Row]]] = {"page": shown, "pages": ten_pages, "large-page": large}


if __name__ == "__main__":
    follow(Served(sys.argv[1]), int(sys.argv[2]))
