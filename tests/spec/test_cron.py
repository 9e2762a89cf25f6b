"""Times as cron writes them."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from aver.spec.cron import last_time, next_time, parse_cron


@pytest.fixture(autouse=True)
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A zone with daylight saving time."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def at(text: str) -> float:
    return time.mktime(time.strptime(text, "%Y-%m-%d %H:%M"))


def words(moment: float | None) -> str:
    return "never" if moment is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))


@pytest.mark.parametrize(
    ("cron", "after", "then"),
    [
        ("0 3 * * *", "2026-11-16 02:59", "2026-11-16 03:00"),
        ("0 3 * * *", "2026-11-16 03:00", "2026-11-17 03:00"),
        ("*/15 8-18 * * mon-fri", "2026-11-13 18:45", "2026-11-16 08:00"),
        ("5,35 * * * *", "2026-12-31 23:40", "2027-01-01 00:05"),
        ("10/20 * * * *", "2026-11-16 00:11", "2026-11-16 00:30"),
        ("0 0 31 * *", "2026-11-01 00:00", "2026-12-31 00:00"),
        ("0 0 29 feb *", "2026-11-16 00:00", "2028-02-29 00:00"),
        ("0 0 13 * fri", "2026-11-16 00:00", "2026-11-20 00:00"),
        ("0 12 * * 7", "2026-11-16 00:00", "2026-11-22 12:00"),
        ("@monthly", "2026-11-16 00:00", "2026-12-01 00:00"),
        ("30 2 * * *", "2026-03-28 12:00", "2026-03-30 02:30"),
        ("30 2 * * *", "2026-10-25 02:30", "2026-10-26 02:30"),
    ],
)
def test_the_next_time(cron: str, after: str, then: str) -> None:
    """Of ranges, lists, steps and names; the day of the month or of the week; a clock that is moved."""
    assert words(next_time(parse_cron(cron), at(after))) == then


@pytest.mark.parametrize(
    ("cron", "after", "until", "then"),
    [
        ("* * * * *", "2025-11-16 00:00", "2026-11-16 10:30", "2026-11-16 10:30"),
        ("0 3 * * *", "2026-11-13 00:00", "2026-11-16 02:00", "2026-11-15 03:00"),
        ("0 3 * * *", "2026-11-16 03:00", "2026-11-17 02:59", "never"),
    ],
)
def test_the_last_time_that_was_missed(cron: str, after: str, until: str, then: str) -> None:
    """However many there were."""
    assert words(last_time(parse_cron(cron), at(after), at(until))) == then


@pytest.mark.parametrize(
    "text",
    ["", "0 3 * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "*/0 * * * *", "5-1 * * * *", "x * * * *", "0 0 30 2 *"],
)
def test_what_is_no_schedule(text: str) -> None:
    """One sentence says so."""
    with pytest.raises(ValueError, match=r"schedule|never comes"):
        parse_cron(text)
