"""A witness's lines, read strictly: a record as it was written, or an error."""

from __future__ import annotations

import json
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.judge.witness_record import decode, parse_line, parse_record, parse_start, unframe
from aver.model.evidence import Act, ActKind, LaunchFailure, MemoryWatch, WitnessRecord, WitnessStart
from aver.model.exit import ExitStatus

END: dict[str, object] = {
    "ev": "end",
    "key": "k1",
    "witness": 1,
    "pid": 2,
    "boot": "b",
    "raw": 256,
    "start": 1700000000.123456,
    "elapsed": 1.234567,
    "suspended": 0.0,
    "user": 0.1,
    "sys": 0,
    "maxrss": 12345678,
    "peak": None,
    "mem": "cgroup1",
    "limit": 2147483648,
    "oom": 0,
    "hostoom": 0,
    "acts": [{"act": "warn", "at": 0.5, "sig": 15}, {"act": "time", "at": 1.0, "sig": 15}],
    "got": [15],
    "left": 0,
    "launch": None,
    "size": 400,
}
START: dict[str, object] = {"ev": "start", "key": "k1", "pid": 2, "witness": 1, "at": 1700000000.5, "mem": "none"}
NOT_FOUND = {"op": "exec", "errno": 2, "path": "/no/such"}


def frame(body: bytes) -> bytes:
    return b"%08x %08x %s\n" % (len(body), crc32(body), body)


def line(said: object) -> bytes:
    return frame(json.dumps(said).encode())


def test_an_end_line() -> None:
    """Every field of the page's example arrives in the record."""
    assert parse_line(line(END)) == WitnessRecord(
        key="k1",
        pid=2,
        exit=ExitStatus(code=1),
        started_at=1700000000.123456,
        elapsed_s=1.234567,
        user_s=0.1,
        maxrss_bytes=12345678,
        watch=MemoryWatch.CGROUP1,
        limit_bytes=2147483648,
        acts=(Act(ActKind.WARN, 0.5, 15), Act(ActKind.TIME, 1.0, 15)),
        got=(15,),
        boot="b",
    )


def test_a_start_line() -> None:
    """A start line is read, with or without its newline."""
    expected = WitnessStart("k1", 2, 1, 1700000000.5)
    assert parse_line(line(START)) == parse_line(line(START).rstrip(b"\n")) == expected


def test_a_launch_failure() -> None:
    """A launch failure has no exit; its path is read as UTF-8, and what is not UTF-8 is shown as such."""
    record = parse_record(END | {"raw": None, "pid": 0, "launch": NOT_FOUND | {"path": "/\u00c3\u00a4/\u00ff"}})
    assert record.exit is None
    assert record.launch == LaunchFailure("exec", 2, "/ä/\\xff")


def test_fields_of_a_newer_witness_are_ignored() -> None:
    """A field that we don't know changes nothing."""
    assert parse_record(END | {"new": {"x": 1}}) == parse_record(END)


@pytest.mark.parametrize("name", sorted(END.keys() - {"size"}))
def test_a_missing_field_is_refused(name: str) -> None:
    """No field of a record may be missing, not even one that may be null."""
    with pytest.raises(ValueError, match="witness"):
        parse_record({key: value for key, value in END.items() if key != name})


def test_a_kept_record_has_no_place_in_a_journal() -> None:
    """The store keeps the line without its size, and it says the same."""
    assert parse_record({key: value for key, value in END.items() if key != "size"}) == parse_record(END)


@pytest.mark.parametrize("name", sorted(START))
def test_a_missing_field_of_a_start_is_refused(name: str) -> None:
    """No field of a start line may be missing."""
    with pytest.raises(ValueError, match="witness"):
        parse_start({key: value for key, value in START.items() if key != name})


def each(names: str, *values: object) -> list[tuple[str, object]]:
    return [(name, value) for name in names.split() for value in values]


WARN = {"act": "warn", "at": 1.0, "sig": 15}
WRONG: list[tuple[str, object]] = [
    *each("raw", None, True, "0", 1.0, -1, 0x7F, 0x137F, 0x80, 0xFFFF, 0x10000, 65, 1 << 80, []),
    *each("start elapsed user sys suspended", float("nan"), float("inf"), -1, "1", None, True, 1e12),
    *each("oom left size hostoom witness", -1, 1.0, "1", None, True, 1 << 70),
    *each("peak maxrss limit", -1, 1.5, "1", False, 1 << 70),
    *each("pid", 0, -1, None, "2", 1 << 40),
    *each("key", "", None, 1, "k" * 300),
    *each("mem", "cgroup3", None, 1, ["none"]),
    *each("got", None, {}, [0], [65], ["TERM"], [True], [15] * 129),
    *each("acts", None, {}, ["warn"], [{}], [{"act": "warn"}], [WARN] * 129),
    ("acts", [{"act": "pause", "at": 1.0, "sig": 1}]),
    ("acts", [{"act": ["warn"], "at": 1.0, "sig": 1}]),
    ("acts", [{"act": "warn", "at": 1.0, "sig": 65}]),
    ("acts", [{"act": "warn", "at": float("nan"), "sig": 1}]),
    ("acts", [{"act": "signal", "at": 1.0, "sig": 1, "times": 2}]),
    ("acts", [{"act": "signal", "at": 1.0, "sig": 1, "times": 1, "last": 2.0}]),
    ("launch", NOT_FOUND),
    ("launch", []),
    ("launch", 0),
    ("ev", "begin"),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_wrong_field_is_refused(name: str, value: object) -> None:
    """Wrong types, impossible wait statuses, NaN and absurd numbers raise; nothing is guessed."""
    with pytest.raises(ValueError):
        parse_record(END | {name: value})


@pytest.mark.parametrize(
    "launch",
    [
        {},
        NOT_FOUND | {"op": "dance"},
        NOT_FOUND | {"op": 1},
        NOT_FOUND | {"errno": 0},
        NOT_FOUND | {"errno": "2"},
        NOT_FOUND | {"path": None},
        NOT_FOUND | {"path": "\u20ac"},
    ],
)
def test_a_wrong_launch_failure_is_refused(launch: object) -> None:
    """A launch failure needs an operation, an errno and a path of bytes."""
    with pytest.raises(ValueError):
        parse_record(END | {"raw": None, "launch": launch})


@pytest.mark.parametrize(
    "said",
    [
        b"[]",
        b"1",
        b"null",
        b'"x"',
        b"",
        b"{",
        b'{"ev":"end","elapsed":NaN}',
        b'{"a":-Infinity}',
        b"\xff",
        b"[" * 200_000,
        b"9" * 5000,
    ],
)
def test_bodies_that_are_no_object(said: bytes) -> None:
    """Anything but one JSON object with real numbers is refused, also under a right checksum."""
    with pytest.raises(ValueError):
        decode(said)
    with pytest.raises(ValueError):
        unframe(frame(said))


@pytest.mark.parametrize(
    "torn",
    [
        b"",
        b"\n",
        b"00000002",
        b"00000002 00000000 {}\n",
        b"00000003 a3a6bf43 {}\n",
        b"+0000002 a3a6bf43 {}\n",
        b"0x000002 a3a6bf43 {}\n",
        b"00000002_a3a6bf43 {}\n",
        b"00000002 A3A6BF43 {}\n",
        b"00000002 a3a6bf43 {}\n\n",
    ],
)
def test_torn_lines_are_no_lines(torn: bytes) -> None:
    """A line whose length or checksum does not fit is no line."""
    with pytest.raises(ValueError, match="witness's line"):
        unframe(torn)


def test_a_right_frame() -> None:
    """The counterpart of the torn ones."""
    assert unframe(b"00000002 a3a6bf43 {}\n") == {}


def test_a_huge_line_is_refused() -> None:
    """A line of more than 1 MiB is not read."""
    with pytest.raises(ValueError, match="too long"):
        unframe(line({"x": "y" * (1 << 20)}))


@pytest.mark.parametrize("event", ["hello", "begin", "error", None, 1])
def test_other_lines_are_neither_start_nor_end(event: object) -> None:
    """Only start and end lines are evidence."""
    with pytest.raises(ValueError, match="neither start nor end"):
        parse_line(line({"ev": event}))


@given(st.integers(0, len(line(END)) - 2))
def test_no_prefix_of_a_line_is_a_line(length: int) -> None:
    """However a line is torn, nothing comes out of it."""
    with pytest.raises(ValueError):
        parse_line(line(END)[:length])


@given(st.integers(0, len(line(END)) - 2), st.integers(1, 255))
def test_no_changed_byte_goes_unnoticed(at: int, change: int) -> None:
    """One byte changed anywhere makes the line no line."""
    changed = bytearray(line(END))
    changed[at] ^= change
    with pytest.raises(ValueError):
        parse_line(bytes(changed))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(sorted(END)), JSON)
def test_any_value_in_any_field_is_read_or_refused(name: str, value: object) -> None:
    """Whatever stands in a field, there is a record or a ValueError, never another error."""
    try:
        record = parse_record(END | {name: value})
    except ValueError:
        return
    assert record.exit is not None


@given(st.integers(0, 255) | st.none(), st.integers(1, 64), st.booleans())
def test_the_wait_status_arrives_whole(code: int | None, signal: int, core: bool) -> None:
    """Code, signal and core flag are those that the witness saw."""
    raw = signal | (0x80 if core else 0) if code is None else code << 8
    record = parse_record(END | {"raw": raw})
    assert record.exit is not None
    assert record.exit.wait_status == raw
