"""A part of a job's output by bytes, secrets masked, and the search for a text in it: of a log of any size.

A part ends between two lines where it has any, so that lines and the secrets in them stay whole. Where a line is longer
than the part, the cut is moved until it goes through no secret and no character.
"""

from __future__ import annotations

import os
import stat
from typing import BinaryIO

from starlette.datastructures import QueryParams

from aver.cli.facts import files_of, output_of
from aver.cli.session import Session
from aver.errors import AverError, UsageError
from aver.render.masking import Masking
from aver.store.read.rows import JobRow
from aver.ui import query
from aver.ui.documents import LogMatch, LogRange
from aver.ui.views import job_row

USUAL_BYTES = 64 << 10
MOST_BYTES = 512 << 10
AROUND = 16 << 10  # of a cut: a longer secret in one line may be cut
SEARCH_BYTES = 128 << 20  # that one request looks through
CHUNK = 1 << 20
STREAMS = ("stdout", "stderr")


def log_view(session: Session, params: QueryParams, job: int) -> LogRange:
    """`at` is where the part begins, `end` its end instead; without both it is the end of the file."""
    row, attempt, stream, path, is_shared = _chosen(session, params, job)
    most = query.number(params, "bytes", USUAL_BYTES, 1, MOST_BYTES)
    masking = session.mask([row.run])
    try:
        opened = _open(path, row)
    except AverError as error:
        return LogRange(job, attempt, stream, path, is_shared, 0, 0, 0, "", masking.whole(str(error)))
    with opened as file:
        size = os.fstat(file.fileno()).st_size
        begin, end = _place(params, size, most)
        is_line_kept = params.get("at", "") != ""
        begin = begin if is_line_kept else _next_line(file, begin, end)
        begin = _sound_cut(file, begin, masking, forwards=True)
        end = _last_line(file, begin, end, size)
        end = _sound_cut(file, end, masking, forwards=False) if end < size else size
        if end <= begin < size:  # all of it is within one secret or character
            end = _sound_cut(file, min(size, begin + most), masking, forwards=True)
        data = _read(file, begin, end)
    text = masking.whole(data).decode("utf-8", "replace")
    return LogRange(job, attempt, stream, path, is_shared, size, begin, begin + len(data), text)


def search_view(session: Session, params: QueryParams, job: int) -> LogMatch:
    """The first line with the text from `at` on, or with `turn=up` the last one before it."""
    row, _, _, path, _ = _chosen(session, params, job)
    wanted = (query.text(params, "text") or "").encode("utf-8", "replace").lower()
    if not wanted:
        raise UsageError("text: what to look for")
    is_up = query.word(params, "turn", ("up", "down"), "down") == "up"
    with _open(path, row) as file:
        size = os.fstat(file.fileno()).st_size
        at = min(size, query.number(params, "at", size if is_up else 0))
        found, looked = (_search_up if is_up else _search_down)(file, wanted, at, size)
        line = None if found is None else _line_start(file, found)
    return LogMatch(line, looked, looked <= 0 if is_up else looked >= size)


def _chosen(session: Session, params: QueryParams, job: int) -> tuple[JobRow, int, str, str, bool]:
    row = job_row(session, job)
    attempt = query.number(params, "attempt", row.attempt, 0)
    if not row.attempt:
        raise UsageError(f"job {job} is {row.state} and has not started: there is no output yet")
    if not 1 <= attempt <= row.attempt:
        raise UsageError(f"job {job} has no attempt {attempt}; its newest is {row.attempt}")
    stream = query.word(params, "stream", STREAMS, STREAMS[0])
    is_err = stream == STREAMS[1]
    if is_err and files_of(session, row, attempt).stderr is None:
        raise UsageError(f"the stderr of job {job} is in the same file as its stdout")
    path, is_shared = output_of(session, row, attempt, is_err)
    return row, attempt, stream, path, is_shared


def _open(path: str, row: JobRow) -> BinaryIO:
    """A regular file: a pipe would keep the page waiting."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise AverError(f"can't read the output of job {row.id}, {path}: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise AverError(f"the output of job {row.id}, {path}, is not a regular file")
    return os.fdopen(handle, "rb", buffering=0)


def _place(params: QueryParams, size: int, most: int) -> tuple[int, int]:
    if params.get("at", ""):
        begin = min(size, query.number(params, "at", 0))
        return begin, min(size, begin + most)
    end = min(size, query.number(params, "end", size))
    return max(0, end - most), end


def _read(file: BinaryIO, begin: int, end: int) -> bytes:
    parts = []
    while begin < end and (data := os.pread(file.fileno(), min(CHUNK, end - begin), begin)):
        parts.append(data)
        begin += len(data)
    return b"".join(parts)


def _next_line(file: BinaryIO, begin: int, end: int) -> int:
    """Where the first whole line begins; the same place if there is none."""
    if begin == 0 or _read(file, begin - 1, begin) == b"\n":
        return begin
    found = _read(file, begin, end).find(b"\n")
    return begin if found < 0 or begin + found + 1 >= end else begin + found + 1


def _last_line(file: BinaryIO, begin: int, end: int, size: int) -> int:
    """Where the last whole line ends; the same place at the end of the file, or if there is none."""
    if end >= size:
        return size
    found = _read(file, begin, end).rfind(b"\n")
    return end if found < 0 else begin + found + 1


def _line_start(file: BinaryIO, at: int) -> int:
    begin = max(0, at - MOST_BYTES)
    found = _read(file, begin, at).rfind(b"\n")
    return begin if found < 0 else begin + found + 1


def _sound_cut(file: BinaryIO, at: int, masking: Masking, *, forwards: bool) -> int:
    """The nearest place that is within no character and no secret."""
    data = _read(file, max(0, at - AROUND), at + AROUND)
    middle = at - max(0, at - AROUND)
    step = 1 if forwards else -1
    while 0 < middle < len(data) and not _is_sound(data, middle, masking):
        middle += step
    return max(0, at - AROUND) + middle


def _is_sound(data: bytes, at: int, masking: Masking) -> bool:
    if data[at] & 0xC0 == 0x80 and any(data[at - back] >= 0xC0 for back in range(1, 4) if at >= back):
        return False
    if data[at - 1] == 0x0A or not masking:
        return True
    return masking.whole(data) == masking.whole(data[:at]) + masking.whole(data[at:])


def _search_down(file: BinaryIO, wanted: bytes, at: int, size: int) -> tuple[int | None, int]:
    """Where the text stands, and up to where was looked."""
    last = min(size, at + SEARCH_BYTES)
    while at < last:
        data = _read(file, at, min(size, at + CHUNK + len(wanted) - 1)).lower()
        found = data.find(wanted)
        if found >= 0:
            return at + found, at + found
        at += CHUNK
    return None, min(at, size)


def _search_up(file: BinaryIO, wanted: bytes, at: int, size: int) -> tuple[int | None, int]:
    last = max(0, at - SEARCH_BYTES)
    while at > last:
        begin = max(0, at - CHUNK)
        data = _read(file, begin, min(size, at + len(wanted) - 1)).lower()
        found = data.rfind(wanted, 0, at - begin + len(wanted) - 1)
        if found >= 0 and begin + found < at:
            return begin + found, begin + found
        at = begin
    return None, at
