"""A part of a log within a budget of bytes, secrets masked before anything is cut."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
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
) -> tuple[str, bool, int | None]:
    """Lines from number `first` on, whether one of them is cut, and the number with which to go on; None at the end."""
    kept: list[bytes] = []
    left = max_bytes
    is_cut = False
    for number, line in enumerate(_lines(file, masking), 1):
        if number < first or (grep is not None and grep not in line):
            continue
        part = _fitting(line, grep, max_bytes)
        if len(part) > left:
            return _text(kept), is_cut, number
        is_cut = is_cut or len(part) < len(line.encode())
        kept.append(part)
        left -= len(part)
    return _text(kept), is_cut, None


def grep_end(file: BinaryIO, grep: str, max_bytes: int, masking: Masking) -> tuple[str, bool]:
    """The last lines that have the text, and whether others before them, or parts of them, are left out."""
    kept: deque[tuple[bytes, bool]] = deque()
    size = 0
    is_left_out = False
    for line in _lines(file, masking):
        if grep in line:
            part = _fitting(line, grep, max_bytes)
            kept.append((part, len(part) < len(line.encode())))
            size += len(part)
            while size > max_bytes:
                size -= len(kept.popleft()[0])
                is_left_out = True
    return _text([part for part, _ in kept]), is_left_out or any(is_cut for _, is_cut in kept)


def _fitting(line: str, grep: str | None, max_bytes: int) -> bytes:
    """The line, or as much of it as fits: the part around the text that was looked for, else its beginning."""
    data = line.encode()
    if len(data) <= max_bytes:
        return data
    end = b"\n" if data.endswith(b"\n") else b""
    room = max_bytes - len(end)
    wanted = (grep or "").encode()
    before = max(0, room - len(wanted)) // 2
    begin = min(max(0, data.find(wanted) - before), len(data) - len(end) - room)
    return data[begin : begin + room] + end


def _text(parts: Iterable[bytes]) -> str:
    """Without the parts of a character at a cut."""
    return "".join(part.decode("utf-8", "ignore") for part in parts)


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
