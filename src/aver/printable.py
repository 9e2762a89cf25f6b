"""Text without control characters: a name, a path or a quoted line can't draw on a terminal, or break a row."""

from __future__ import annotations


def printable(text: str, keep: str = "") -> str:
    r"""The text with control characters and bytes that are not UTF-8 spelled out (`\x1b`), those in `keep` aside."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in keep else _spelled(char) for char in text)


def one_line(text: str) -> str:
    """As `printable`, but bytes that are not UTF-8 stay: for a file or a pipe, which gets names as they are."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or "\udc80" <= char <= "\udcff" else _spelled(char) for char in text)


def _spelled(char: str) -> str:
    number = ord(char)
    if 0xDC80 <= number <= 0xDCFF:  # a byte that was not UTF-8
        return f"\\x{number - 0xDC00:02x}"
    return char.encode("unicode_escape").decode("ascii")
