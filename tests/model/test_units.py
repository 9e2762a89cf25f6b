"""Times, sizes and counts as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.model.units import LARGEST_BYTES, LONGEST_S, parse_count, parse_size, parse_time, size_text, time_text

GIB = 1024**3


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10", 600),
        ("1:30", 90),
        ("01:30:00", 5400),
        ("00:90:00", 5400),
        ("1-0", 86400),
        ("1-12", 129600),
        ("1-12:30", 131400),
        ("1-12:00:00", 129600),
        ("90s", 90),
        ("10m", 600),
        ("2h", 7200),
        ("1d", 86400),
        ("1h30m", 5400),
        ("1d2h3m4s", 93784),
        ("1.5h", 5400),
        ("2H", 7200),
        (" 10 ", 600),
        ("3650d", LONGEST_S),
    ],
)
def test_times(text: str, seconds: int) -> None:
    """Slurm's forms and suffixes give seconds."""
    assert parse_time(text) == seconds


@pytest.mark.parametrize("text", ["UNLIMITED", "infinite", "0", "0s", "0:00", "00:00:00", "0-0"])
def test_no_limit(text: str) -> None:
    """0 is no limit, as in Slurm."""
    assert parse_time(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "-1",
        "-5m",
        "1:2:3:4",
        "1-",
        "-1-0",
        "1-2:3:4:5",
        "ten",
        "1.5",
        "1m1h",
        "10 m",
        "٣",
        "１０",
        "1e3",
        "nan",
        "0.1s",
        "5x",
        "h",
        ":",
        "1:",
        "+5",
        "9999999999",
    ],
)
def test_what_is_no_time(text: str) -> None:
    """Anything else is refused with a sentence that shows examples."""
    with pytest.raises(ValueError, match=r"is not a time: give 10 \(minutes\), 90s"):
        parse_time(text)


@pytest.mark.parametrize("text", ["3651d", "999999999", "999999999-0"])
def test_absurd_times(text: str) -> None:
    """More than ten years is refused."""
    with pytest.raises(ValueError, match="more than ten years"):
        parse_time(text)


@given(st.none() | st.integers(1, LONGEST_S))
def test_time_round_trip(seconds: int | None) -> None:
    """What is written as a time is read back as it was."""
    assert parse_time(time_text(seconds)) == seconds


@given(st.text(max_size=12))
def test_any_text_is_a_time_or_a_clear_error(text: str) -> None:
    """No text makes the parser do anything but answer or raise ValueError."""
    for parse in (parse_time, parse_size):
        try:
            answer = parse(text)
        except ValueError:
            continue
        assert answer is None or answer > 0


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512", 512 * 1024**2),
        ("1K", 1024),
        ("1KB", 1024),
        ("1KiB", 1024),
        ("800M", 800 * 1024**2),
        ("2G", 2 * GIB),
        ("2gb", 2 * GIB),
        ("1.5G", GIB * 3 // 2),
        ("1T", 1024 * GIB),
        ("1E", LARGEST_BYTES),
        ("100B", 100),
    ],
)
def test_sizes(text: str, size: int) -> None:
    """A bare number is MiB; suffixes are powers of 1024."""
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-1",
        "-2G",
        "G",
        "2X",
        "2 G",
        "1.5",
        "1.5B",
        "1,5G",
        "٣G",
        "nan",
        "inf",
        "1e3M",
        "2GG",
        ".5G",
        "2iB",
        "9" * 30,
    ],
)
def test_what_is_no_size(text: str) -> None:
    """Anything else is refused with a sentence that shows examples."""
    with pytest.raises(ValueError, match=r"is not a size: give 512 \(MiB\)"):
        parse_size(text)


def test_no_memory_and_too_much() -> None:
    """0 and more than 1 EiB are refused."""
    for text in ("0", "0G", "0.0000001K"):
        with pytest.raises(ValueError, match="is not an amount of memory"):
            parse_size(text)
    for text in ("2E", "1.1E", "99999999999999999999"):
        with pytest.raises(ValueError, match="more than 1 EiB"):
            parse_size(text)


@given(st.integers(1, LARGEST_BYTES) | st.integers(1, 1024).map(lambda n: n * GIB))
def test_size_round_trip(size: int) -> None:
    """What is written as a size is read back to the byte."""
    assert parse_size(size_text(size)) == size


def test_sizes_are_written_short() -> None:
    """The largest unit that is exact is used."""
    assert [size_text(n) for n in (0, 1001, 2 * GIB, GIB * 3 // 2, LARGEST_BYTES)] == [
        "0B",
        "1001B",
        "2G",
        "1536M",
        "1E",
    ]


def test_negative_values_are_never_written() -> None:
    """A negative time or size is a bug of the caller, and raises."""
    with pytest.raises(ValueError):
        time_text(-1)
    with pytest.raises(ValueError):
        size_text(-1)


@pytest.mark.parametrize("text", ["", "0", "-1", "1.0", "٣", "many", "1001", "9" * 12])
def test_counts_out_of_range(text: str) -> None:
    """A count has bounds, and the sentence says which."""
    with pytest.raises(ValueError, match="is not a number of cpus: give a whole number from 1 to 1000"):
        parse_count(text, "cpus", 1, 1000)


def test_counts() -> None:
    """A plain whole number is a count."""
    assert parse_count(" 4 ", "cpus", 1, 1000) == 4
