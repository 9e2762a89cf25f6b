"""A part of a log within a budget of bytes, secrets masked before anything is cut."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import BinaryIO

from aver.render.masking import Masking
from aver.report.tails import masked_tail

CHUNK = 1 << 18


def read_end(path: str, max_bytes: int, masking: Masking) -> tuple[str, bool]:
    """The last whole lines, and whether something before them is left out."""
    data, is_whole = masked_tail(path, max_bytes, masking)
    if not is_whole and b"\n" in data[:-1]:
        data = data.partition(b"\n")[2]
    return data.decode("utf-8", "replace"), not is_whole


def read_lines(
    file: BinaryIO, first: int, grep: str | None, max_bytes: int, masking: Masking
) -> tuple[str, int | None]:
    """Lines from number `first` on, and the number with which to go on; None at the end of the file."""
    kept: list[str] = []
    left = max_bytes
    for number, line in enumerate(_lines(file, masking), 1):
        if number < first or (grep is not None and grep not in line):
            continue
        cut = line.encode()[:max_bytes].decode("utf-8", "ignore")
        if len(cut.encode()) > left:
            return "".join(kept), number
        kept.append(cut)
        left -= len(cut.encode())
    return "".join(kept), None


def grep_end(file: BinaryIO, grep: str, max_bytes: int, masking: Masking) -> tuple[str, bool]:
    """The last lines that have the text, and whether others before them are left out."""
    kept: deque[str] = deque()
    size = 0
    is_cut = False
    for line in _lines(file, masking):
        if grep in line:
            cut = line.encode()[:max_bytes].decode("utf-8", "ignore")
            kept.append(cut)
            size += len(cut.encode())
            while size > max_bytes:
                size -= len(kept.popleft().encode())
                is_cut = True
    return "".join(kept), is_cut


def _lines(file: BinaryIO, masking: Masking) -> Iterator[str]:
    masked = masking.stream()
    held = b""
    while chunk := file.read(CHUNK):
        *lines, held = (held + masked.feed(chunk)).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "replace") + "\n"
    *lines, held = (held + masked.finish()).split(b"\n")
    for line in lines:
        yield line.decode("utf-8", "replace") + "\n"
    if held:
        yield held.decode("utf-8", "replace")
