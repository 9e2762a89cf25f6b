"""Descriptors that come with a run order instead of file names."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from witness_driver import Slot, frame, sh

SAY = "cat; echo out; echo err >&2"


class Streams:
    """A file to read from and two to write to, opened here."""

    def __init__(self, folder: Path) -> None:
        self.out, self.err = folder / "stream.out", folder / "stream.err"
        (folder / "stream.in").write_text("in\n")
        self.fds = [os.open(folder / "stream.in", os.O_RDONLY)]
        self.fds += [os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600) for path in (self.out, self.err)]


@pytest.fixture
def streams(tmp_path: Path) -> Iterator[Streams]:
    streams = Streams(tmp_path)
    yield streams
    for fd in streams.fds:
        os.close(fd)


def test_the_job_has_the_descriptors(slot: Slot, streams: Streams) -> None:
    """`F`: stdin, stdout and stderr are those that were sent; afterwards the witness has none of them."""
    before = slot.descriptors()
    slot.send_fds(streams.fds, "R", "kf", "F", *sh(SAY + "; [ -e /proc/$$/fd/3 ] && echo leaked"))
    slot.expect("start")
    assert slot.descriptors() == before
    slot.expect("end")
    assert streams.out.read_text() == "in\nout\n"
    assert streams.err.read_text() == "err\n"


def test_named_files_come_before_descriptors(slot: Slot, streams: Streams, tmp_path: Path) -> None:
    """A stream that names a file has the file; the others have what was sent, stderr too."""
    slot.send_fds(streams.fds, "R", "kf", "F", f"o{tmp_path}/named", *sh(SAY))
    slot.expect("start")
    slot.expect("end")
    assert (tmp_path / "named").read_text() == "in\nout\n"
    assert (streams.out.read_text(), streams.err.read_text()) == ("", "err\n")


def test_one_file_for_both_streams(slot: Slot, streams: Streams, tmp_path: Path) -> None:
    """A stderr that names stdout's file is the same open file, with descriptors too."""
    slot.send_fds(streams.fds, "R", "kf", "F", f"d{tmp_path}", "oboth", "rboth", *sh(SAY))
    slot.expect("start")
    slot.expect("end")
    assert (tmp_path / "both").read_text() == "in\nout\nerr\n"


@pytest.mark.parametrize("count", [0, 1, 2])
def test_too_few_descriptors(slot: Slot, streams: Streams, count: int) -> None:
    """Fewer than three are a launch failure; the next order is not touched by it."""
    before = slot.descriptors()
    slot.send_fds(streams.fds[:count], "R", "kfew", "F", "atrue")
    assert slot.expect("end")["launch"] == {"op": "stdin", "errno": errno.EBADF, "path": ""}
    assert slot.descriptors() == before
    assert slot.sh("next", "exit 3")["raw"] == 3 << 8


def test_descriptors_that_nobody_uses_are_closed(slot: Slot, streams: Streams) -> None:
    """More than three, without `F`, twice, with a wrong order, or before a hang-up: none stays open."""
    before = slot.descriptors()
    slot.send_fds(streams.fds * 2, "R", "kmore", "F", *sh(SAY))
    slot.expect("start")
    slot.expect("end")
    slot.send_fds(streams.fds, "R", "kplain", *sh(SAY))
    slot.expect("start")
    slot.expect("end")
    slot.send_fds(streams.fds, "R", "kwrong", "F", "Zx")
    slot.expect("error")
    assert slot.descriptors() == before
    slot.send_fds(streams.fds, "C", "knobody")
    slot.expect("error")
    slot.send_fds(streams.fds, "R", "ktwice", "F", "asleep", "a60")
    slot.expect("start")
    assert slot.descriptors() == before
    slot.send_fds(streams.fds, "C", "knobody")
    slot.expect("error")
    slot.connect()
    assert slot.descriptors() == before
    slot.send("C", "ktwice")
    slot.expect("end")


def test_a_frame_in_pieces_keeps_its_descriptors(slot: Slot, streams: Streams) -> None:
    """Descriptors come with the first byte, and the frame may need many reads."""
    data = frame("C", "kother") + frame("R", "klong", "F", *sh(SAY), *(["a" + "x" * 1000] * 100))
    cut = len(frame("C", "kother"))
    slot.send_raw(data[:cut])
    slot.send_fds_raw(streams.fds, data[cut : cut + 1])
    slot.send_raw(data[cut + 1 :])
    slot.expect("error")
    slot.expect("start")
    assert slot.expect("end")["raw"] == 0
    assert streams.out.read_text() == "in\nout\n"
