"""A growing file is followed to its end."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from aver.cli.attach.follow import Follower
from aver.cli.attach.stream import OutputStream
from aver.cli.output import ReaderLeft
from aver.render.masking import Masking

DEADLINE_S = 20.0


def read_until(follower: Follower, wanted: bytes) -> None:
    seen = b""
    deadline = time.monotonic() + DEADLINE_S
    while seen != wanted:
        assert time.monotonic() < deadline, f"saw {seen!r}, wanted {wanted!r}"
        data = follower.read()
        seen += data
        if not data:
            follower.wait()


def test_a_file_that_comes_later_is_followed(tmp_path: Path) -> None:
    """The file need not exist when following begins."""
    path = tmp_path / "out"
    with Follower(str(path)) as follower:
        assert follower.read() == b""
        path.write_bytes(b"one\n")
        read_until(follower, b"one\n")
        with path.open("ab") as file:
            file.write(b"two\n")
        read_until(follower, b"two\n")


def test_a_truncated_file_is_read_from_its_beginning(tmp_path: Path) -> None:
    """A new attempt that truncates the file is shown whole."""
    path = tmp_path / "out"
    path.write_bytes(b"a long first attempt\n")
    with Follower(str(path)) as follower:
        read_until(follower, b"a long first attempt\n")
        path.write_bytes(b"second\n")
        read_until(follower, b"second\n")


def test_a_replaced_file_is_read_from_its_beginning(tmp_path: Path) -> None:
    """Another file under the same name is followed, after the rest of the old one."""
    path = tmp_path / "out"
    path.write_bytes(b"first\n")
    with Follower(str(path)) as follower:
        read_until(follower, b"first\n")
        (tmp_path / "new").write_bytes(b"other\n")
        os.replace(tmp_path / "new", path)
        read_until(follower, b"other\n")


def test_following_can_begin_in_the_middle(tmp_path: Path) -> None:
    """`log -f -n` begins where the shown part ended."""
    path = tmp_path / "out"
    path.write_bytes(b"0123456789")
    with Follower(str(path), offset=7) as follower:
        read_until(follower, b"789")


def test_the_end_is_never_lost(tmp_path: Path) -> None:
    """Everything written before `finish` is passed on, whatever its size, with secrets masked."""
    path = tmp_path / "out"
    seen: list[bytes] = []
    stream = OutputStream(Masking([b"hunter2"]))
    stream.begin(str(path), 0, seen.append)
    text = b"".join(b"line %d hunter2\n" % number for number in range(100_000))

    def write() -> None:
        with path.open("wb", buffering=0) as file:
            for begin in range(0, len(text), 777):
                file.write(text[begin : begin + 777])

    writer = threading.Thread(target=write)
    writer.start()
    writer.join()
    stream.finish()
    assert b"".join(seen) == text.replace(b"hunter2", b"***")


def test_stdout_and_stderr_are_kept_apart(tmp_path: Path) -> None:
    """Two files go to two places."""
    (tmp_path / "o").write_bytes(b"out")
    (tmp_path / "e").write_bytes(b"err")
    out: list[bytes] = []
    err: list[bytes] = []
    stream = OutputStream(Masking())
    stream.begin(str(tmp_path / "o"), 0, out.append)
    stream.begin(str(tmp_path / "e"), 0, err.append)
    stream.finish()
    assert (b"".join(out), b"".join(err)) == (b"out", b"err")


def test_a_reader_that_left_does_not_stop_the_wait(tmp_path: Path) -> None:
    """A closed pipe ends the copying, and `finish` still returns."""
    (tmp_path / "o").write_bytes(b"out")

    def closed(data: bytes) -> None:
        raise ReaderLeft

    stream = OutputStream(Masking())
    stream.begin(str(tmp_path / "o"), 0, closed)
    stream.finish()
