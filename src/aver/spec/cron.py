"""Times of a schedule as cron writes them: `0 3 * * *`, `*/15 8-18 * * mon-fri`, `@daily`. By the local clock.

As in cron, where both the day of the month and the day of the week are restricted, either is enough. A time that the
change to daylight saving time leaves out does not come on that day; one that comes twice is taken once.
"""

from __future__ import annotations

import datetime
import time

from aver.model.record import Record

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
SHORT = {
    "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
}  # fmt: skip
FIELDS = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day", 1, 31, ()),
    ("month", 1, 12, MONTHS),
    ("weekday", 0, 7, DAYS),
)
FARTHEST_DAYS = 366 * 8  # the 29th of February may be eight years away


class Cron(Record):
    """The values of each field; weekdays are 0 (Sunday) to 6."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    is_either_day: bool  # the day of the month or that of the week is enough

    def is_on(self, date: datetime.date) -> bool:
        if date.month not in self.months:
            return False
        is_day, is_weekday = date.day in self.days, (date.weekday() + 1) % 7 in self.weekdays
        return is_day or is_weekday if self.is_either_day else is_day and is_weekday


def parse_cron(text: str) -> Cron:
    """Read the five fields; ValueError says which one is wrong, or that the time never comes."""
    words = SHORT.get(text.strip().lower(), text).split()
    if len(words) != len(FIELDS):
        raise ValueError(f"{text!r} is not a schedule: write minute hour day month weekday, such as '0 3 * * *'")
    found = [_parse_field(word, *field) for word, field in zip(words, FIELDS, strict=True)]
    weekdays = frozenset(value % 7 for value in found[4])
    cron = Cron(found[0], found[1], found[2], found[3], weekdays, not any(words[at].startswith("*") for at in (2, 4)))
    if next_time(cron, time.time()) is None:
        raise ValueError(f"{text!r} never comes")
    return cron


def next_time(cron: Cron, after: float) -> float | None:
    """The first time after this one; None if there is none for years."""
    first = datetime.datetime.fromtimestamp(after).date()
    for offset in range(FARTHEST_DAYS):
        for moment in _times_on(cron, first + datetime.timedelta(days=offset)):
            if moment > after:
                return moment
    return None


def last_time(cron: Cron, after: float, until: float) -> float | None:
    """The last time after the one and not after the other; None if there is none between them."""
    last, first = (datetime.datetime.fromtimestamp(moment).date() for moment in (until, after))
    for offset in range((last - first).days + 1):
        for moment in reversed(_times_on(cron, last - datetime.timedelta(days=offset))):
            if after < moment <= until:
                return moment
    return None


def _times_on(cron: Cron, date: datetime.date) -> list[float]:
    """All times of a day, in order."""
    if not cron.is_on(date):
        return []
    clocks = [(hour, minute) for hour in sorted(cron.hours) for minute in sorted(cron.minutes)]
    moments = [(time.mktime((date.year, date.month, date.day, *clock, 0, 0, 0, -1)), clock) for clock in clocks]
    return [moment for moment, clock in moments if time.localtime(moment)[3:5] == clock]


def _parse_field(word: str, name: str, low: int, high: int, names: tuple[str, ...]) -> frozenset[int]:
    values: set[int] = set()
    for part in word.lower().split(","):
        whole, _, step_text = part.partition("/")
        first_text, dash, last_text = whole.partition("-")
        try:
            step = int(step_text) if step_text else 1
            first = low if whole == "*" else _value(first_text, names, low)
            is_open = whole == "*" or (bool(step_text) and not dash)
            last = high if is_open else _value(last_text if dash else first_text, names, low)
        except ValueError:
            raise ValueError(f"{word!r} is not a {name} of a schedule") from None
        if not (low <= first <= last <= high) or step < 1:
            raise ValueError(f"{word!r} is not a {name} of a schedule: from {low} to {high}")
        values.update(range(first, last + 1, step))
    return frozenset(values)


def _value(text: str, names: tuple[str, ...], low: int) -> int:
    return names.index(text) + low if text in names else int(text)
