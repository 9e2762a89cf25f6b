"""Single fields of Slurm's commands."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.engines.slurm.commands.fields import (
    SEPARATOR,
    exit_from_raw,
    exit_text,
    parse_bytes,
    parse_count,
    parse_moment,
    parse_span,
)
from aver.engines.slurm.commands.lines import last_line, split_records, trouble_in
from aver.engines.slurm.states import first_word


@given(st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1)))
def test_moments_are_utc(moment: datetime) -> None:
    """A moment is read as UTC, whatever the zone of this machine is."""
    whole = moment.replace(microsecond=0)
    assert parse_moment(whole.isoformat()) == whole.replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    "text",
    ["", "Unknown", "None", "N/A", "2026-13-01T00:00:00", "2026-02-30T00:00:00", "1970-01-01T00:00:00", "10:00:00",
     "2026-01-01T00:00", "2026-01-01T00:00:00Z", "1794794109", "2026-01-01 00:00:00", "0000-00-00T00:00:00"],
)  # fmt: skip
def test_no_moment(text: str) -> None:
    """Placeholders, the epoch and other forms are no moment."""
    assert parse_moment(text) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1-02:03:04", 93784), ("02:03:04", 7384), ("02:03", 123), ("00:00.012", 0.012), ("61:01", 3661),
     ("00:00:00", 0), ("100-00:00:00", 8640000), ("01:02:03.5", 3723.5)],
)  # fmt: skip
def test_spans(text: str, seconds: float) -> None:
    """Every form of a span of time that sacct prints is read."""
    assert parse_span(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "5", "00:61", "01:60:00", "1-02:03", "-1:00", "INVALID", "UNLIMITED", "1:2:3:4"])
def test_no_span(text: str) -> None:
    """What is none of them is None."""
    assert parse_span(text) is None


@pytest.mark.parametrize(
    ("text", "size"), [("1126400", 1126400), ("1100K", 1126400), ("4.50M", 4718592), ("2G", 2 << 30), ("0", 0)]
)
def test_sizes(text: str, size: int) -> None:
    """Sizes have a suffix or are bytes."""
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "K", "1.5", "-1", "1KB", "1 K", "?", "1e3", "١"])
def test_no_size(text: str) -> None:
    """What is no size is None."""
    assert parse_bytes(text) is None


@pytest.mark.parametrize(
    ("raw", "text"),
    [("0", "0:0"), ("256", "1:0"), ("35072", "137:0"), ("15", "0:15"), ("139", "0:11"), ("253", "0:125"),
     ("53", "0:53"), ("3:0", "3:0"), ("0:125", "0:125"), ("65535", "0:127")],
)  # fmt: skip
def test_raw_exit_statuses(raw: str, text: str) -> None:
    """A raw wait status is whole; the mark of a core dump is not part of the signal."""
    assert exit_from_raw(raw) == text


@pytest.mark.parametrize("raw", ["", "-2", "4294967294", "65536", "N/A", "1:", ":1", "256:0", "1:2:3", "1 :0", "0x1"])
def test_no_exit_status(raw: str) -> None:
    """Numbers that no process ends with are no exit status."""
    assert exit_from_raw(raw) == ""
    assert exit_text(raw) == ""


def test_words() -> None:
    """The state's own word stands before who did it, and before the sign that it was cut."""
    assert first_word("CANCELLED by 1001") == "CANCELLED"
    assert first_word("CANCELLED+") == "CANCELLED"
    assert first_word("") == ""


def test_a_last_field_with_newlines_and_an_end_mark() -> None:
    """A line with too few fields belongs to the open record before it, and to none when that has ended."""
    text = "hello\n1|x|a\nb|\n2|y|c|\nstray\n".replace("|", SEPARATOR)
    assert split_records(text, 3, end=SEPARATOR) == ([["1", "x", "a\nb"], ["2", "y", "c"]], ["hello", "stray"])


def test_a_cut_answer_has_no_last_record() -> None:
    """A record without its end mark was cut: it is no record."""
    for rest in ("2|c", "2|"):
        text = f"1|a|\n{rest}".replace("|", SEPARATOR)
        assert split_records(text, 2, end=SEPARATOR) == ([["1", "a"]], [rest.replace("|", SEPARATOR)])


@given(st.text(), st.integers(2, 5), st.sampled_from(["", SEPARATOR]))
def test_splitting_any_text(text: str, width: int, end: str) -> None:
    """Every record has all its fields, whatever was printed."""
    records, _ = split_records(text, width, end)
    assert all(len(record) == width for record in records)


@given(st.text())
def test_any_field(text: str) -> None:
    """No text raises."""
    for read in (parse_moment, parse_span, parse_bytes, parse_count, exit_text, exit_from_raw, first_word, last_line,
                 trouble_in):  # fmt: skip
        read(text)
