"""Lines of a witness, out of whatever is in its journal."""

from __future__ import annotations

import zlib

from aver.engines.local.slot import split_lines, without_tail


def _line(body: bytes) -> bytes:
    return b"%08x %08x %s\n" % (len(body), zlib.crc32(body), body)


def test_whole_lines_and_the_rest() -> None:
    """Whole lines come out; what has no end yet stays."""
    one, two = _line(b'{"ev":"begin"}'), _line(b'{"ev":"end"}')
    assert split_lines(one + two + two[:-1]) == ([b'{"ev":"begin"}', b'{"ev":"end"}'], two[:-1], len(one + two))


def test_broken_lines_are_passed_over() -> None:
    """A wrong length, a wrong sum, no header, nothing at all: no line."""
    good = _line(b'{"ev":"end"}')
    broken = [b"\n", b"x\n", good.replace(b"end", b"eND"), good[:9] + good[10:], b'{"ev":"end"}\n', b"zzzzzzzz z {}\n"]
    for bad in broken:
        assert split_lines(bad + good) == ([b'{"ev":"end"}'], b"", len(bad + good)), bad


def test_whole_line_after_half_of_something() -> None:
    """Bytes without a line's end before a whole line do not cost that line."""
    good = _line(b'{"ev":"end"}')
    assert split_lines(b'half \x00\xff {"ev": ' + good)[0] == [b'{"ev":"end"}']
    assert split_lines(good[:20] + good)[0] == [b'{"ev":"end"}']


def test_evidence_keeps_all_but_the_tail() -> None:
    """The end by a clock of this boot, and the place in the journal. Another line stays whole: no evidence is cut."""
    assert without_tail('{"ev":"end","raw":0,"size":       42}') == '{"ev":"end","raw":0}'
    assert without_tail('{"ev":"end","raw":0,"over":12.345678,"size":       42}') == '{"ev":"end","raw":0}'
    for text in ('{"ev": "end", "raw": 0, "size": 42}', '{"ev":"end","size":42,"raw":0}', '{"ev":"end","raw":0}'):
        assert without_tail(text) == text
