"""Fixtures of the live page's tests: a home with a coordinator, a server of it, one browser for all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from page import Page
from page_server import PageServer, served

from chromium import Browser, chromium
from live_home import LiveHome


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveHome]:
    """A home in which jobs run."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.setenv("AVER_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(folder)
    found = LiveHome(tmp_path / "home", folder)
    yield found
    found.end_everything()


@pytest.fixture
def server(live: LiveHome) -> Iterator[PageServer]:
    """A server of that home, with a cookie."""
    with served(live) as found:
        yield found


@pytest.fixture
def page(browser: Browser, server: PageServer) -> Page:
    return Page(browser, server)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A real Chromium; skipped, and said so, where there is none."""
    with chromium() as found:
        yield found
