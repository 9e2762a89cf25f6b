"""Fixtures of the live page's tests: a home with a coordinator, a server of it, one browser for all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from page import Page
from page_server import PageServer, served, shared_home

from chromium import Browser, chromium
from live_home import LiveHome


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LiveHome, PageServer]]:
    """One home and one server for all tests of a module that says ONE_HOME: none leaves what concerns another."""
    with shared_home(tmp_path_factory.mktemp("shared")) as live, served(live.home.path, live.folder) as server:
        yield live, server


def is_shared(request: pytest.FixtureRequest) -> bool:
    return getattr(request.module, "ONE_HOME", False)


@pytest.fixture
def live(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveHome]:
    """A home in which jobs run."""
    if is_shared(request):
        yield request.getfixturevalue("shared_server")[0]
        return
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.setenv("AVER_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(folder)
    found = LiveHome(tmp_path / "home", folder)
    yield found
    found.end_everything()


@pytest.fixture
def server(request: pytest.FixtureRequest, live: LiveHome) -> Iterator[PageServer]:
    """A server of that home, with a cookie."""
    if is_shared(request):
        yield request.getfixturevalue("shared_server")[1]
        return
    with served(live.home.path, live.folder) as found:
        yield found


@pytest.fixture
def page(browser: Browser, server: PageServer) -> Page:
    return Page(browser, server)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A real Chromium; skipped, and said so, where there is none."""
    with chromium() as found:
        yield found
