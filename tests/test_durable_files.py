"""Files that are whole or as before, and durable when the write has returned."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aver.durable_files import create_file, naming_failures, rename_file, replace_file, write_chunks, write_file
from aver.errors import CantWriteError


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0, 0o777])
def test_a_file_has_the_mode_that_was_given(tmp_path: Path, umask: int) -> None:
    """Whatever the umask, and also where a file of another mode was."""
    before = os.umask(umask)
    try:
        write_file(tmp_path / "a", b"secret")
        replace_file(tmp_path / "b", b"#!/bin/sh\n", 0o755)
        write_file(tmp_path / "b", b"secret")
    finally:
        os.umask(before)
    assert (mode_of(tmp_path / "a"), mode_of(tmp_path / "b")) == (0o600, 0o600)
    assert (tmp_path / "b").read_bytes() == b"secret"


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    """And no scratch file."""

    def chunks() -> Iterator[bytes]:
        yield b"half"
        raise OSError(28, "No space left on device")

    (tmp_path / "a").write_bytes(b"before")
    said = r"can't write .*/a: No space left on device"
    with pytest.raises(CantWriteError, match=said), naming_failures(tmp_path / "a"):
        write_chunks(tmp_path / "a", chunks(), 0o600)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"before"


def test_a_writer_that_is_killed_leaves_what_was_there(tmp_path: Path) -> None:
    """`kill -9` in the middle of a write: the file in its place is the one from before."""
    (tmp_path / "a").write_bytes(b"before")
    program = (
        "import os, sys; from aver.durable_files import write_chunks\n"
        "write_chunks(sys.argv[1], (b'x' * 100_000 if n < 9 else os.kill(os.getpid(), 9) for n in range(10)), 0o600)"
    )
    done = subprocess.run([sys.executable, "-c", program, tmp_path / "a"], check=False)
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / "a").read_bytes() == b"before"


def test_the_disk_has_the_file_before_its_name_and_the_name_before_the_return(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Synced in this order: the file, the rename, the folder. One written in place: the file, then the folder."""
    done: list[str] = []
    fsync, replace = os.fsync, os.replace

    def seen_fsync(fd: int) -> None:
        done.append("sync folder" if stat.S_ISDIR(os.fstat(fd).st_mode) else f"sync {os.fstat(fd).st_size}")
        fsync(fd)

    def seen_replace(source: str, target: str) -> None:
        done.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", seen_fsync)
    monkeypatch.setattr(os, "replace", seen_replace)
    write_file(tmp_path / "a", b"123")
    assert done == ["sync 3", "rename", "sync folder"]
    done.clear()
    create_file(tmp_path / "b", b"12")
    rename_file(tmp_path / "b", tmp_path / "c")
    assert done == ["sync 2", "sync folder", "sync folder"]
    assert (tmp_path / "c").read_bytes() == b"12"


def test_a_name_may_be_as_long_as_the_file_system_allows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """255 bytes, and relative to the current folder."""
    monkeypatch.chdir(tmp_path)
    write_file("é" * 127, b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["é" * 127]


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    """A link in the file's place is replaced; the file that it named stays as it was."""
    (tmp_path / "other").write_bytes(b"other")
    (tmp_path / "a").symlink_to("other")
    write_file(tmp_path / "a", b"ours")
    assert (tmp_path / "other").read_bytes() == b"other"
    assert not (tmp_path / "a").is_symlink()


def test_a_program_can_be_started_as_soon_as_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who starts it in the moment of the rename does not hear "Text file busy"."""
    replace = os.replace
    statuses: list[int] = []

    def look(scratch: str, path: Path) -> None:
        replace(scratch, path)
        statuses.append(subprocess.run([path], check=False).returncode)

    monkeypatch.setattr(os, "replace", look)
    replace_file(tmp_path / "srun", b"#!/bin/sh\nexit 3\n", 0o700)
    assert statuses == [3]
