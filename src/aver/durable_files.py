"""Every write of a file that must not be half there, or must survive a crash. No other module calls fsync or rename.

| function | seen by readers | survives kill -9 of the writer | survives power loss once it has returned |
| --- | --- | --- | --- |
| `write_file` | whole or as before | as before or whole | yes |
| `replace_file` | whole or as before | as before or whole | not promised |
| `create_file` | while it is written | maybe in part | yes |
| `sync_file`, then `rename_file` | under its new name whole | under one of its names | yes |

OSError if a file can't be written. `write_file` and `replace_file` then leave what was there, and no scratch file; they
give exactly the mode that was asked for, whatever the umask. Imports little: Slurm's commands pay for it.
"""

from __future__ import annotations

import contextlib
import os
import stat

from aver.errors import CantWriteError
from aver.fast_start import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from io import BufferedWriter

    StrPath = str | os.PathLike[str]

SCRATCH = ".tmp"  # how the name of a file ends that is not in its place yet
_LONGEST_STEM_BYTES = 200  # of a name of at most 255


def write_file(path: StrPath, data: bytes, mode: int = 0o600, times_ns: tuple[int, int] | None = None) -> None:
    """Put a file in its place, whole: file and folder are synced. A link at `path` is replaced, not followed."""
    write_chunks(path, (data,), mode, times_ns=times_ns)


def write_chunks(
    path: StrPath, chunks: Iterable[bytes], mode: int, like: os.stat_result | None = None,
    times_ns: tuple[int, int] | None = None,
) -> int:  # fmt: skip
    """As `write_file`, chunk by chunk; return the bytes written. `like`: mode, and owner if allowed, are from there."""
    with _scratch(path, mode) as (file, scratch):
        size = sum(file.write(chunk) for chunk in chunks)
        if like is not None:
            with contextlib.suppress(OSError):
                os.fchown(file.fileno(), like.st_uid, like.st_gid)
            os.fchmod(file.fileno(), stat.S_IMODE(like.st_mode))
        file.flush()
        if times_ns is not None:
            os.utime(file.fileno(), ns=times_ns)
        sync_file(file)
        os.replace(scratch, path)
    sync_folder(os.path.dirname(os.fspath(path)))
    return size


def replace_file(path: StrPath, data: bytes, mode: int) -> None:
    """Put a file in its place, whole, without waiting for the disk: for what can be made again.

    Nobody has it open for writing any more: a program may be started at once.
    """
    with _scratch(path, mode) as (file, scratch):
        file.write(data)
        file.close()
        os.replace(scratch, path)


def create_file(path: StrPath, data: bytes, mode: int = 0o600) -> None:
    """Write a file that nobody reads before this returns; its content is written in place."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_TRUNC, mode)
    with open(fd, "wb") as file:
        file.write(data)
        sync_file(file)
    sync_folder(os.path.dirname(os.fspath(path)))


def sync_file(file: BufferedWriter) -> None:
    """Make what was written to an open file durable; its name is not yet."""
    file.flush()
    os.fsync(file.fileno())


def rename_file(path: StrPath, target: StrPath) -> None:
    """Give a file that is synced another name in its folder."""
    os.rename(path, target)
    sync_folder(os.path.dirname(os.fspath(target)))


def sync_folder(folder: StrPath) -> None:
    """Make the names in a folder durable."""
    fd = os.open(os.fspath(folder) or os.curdir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextlib.contextmanager
def naming_failures(path: StrPath) -> Iterator[None]:
    """Turn an OSError into a CantWriteError that names the file."""
    try:
        yield
    except OSError as error:
        raise CantWriteError(f"can't write {os.fspath(path)}: {error.strerror or error}") from None


@contextlib.contextmanager
def _scratch(path: StrPath, mode: int) -> Iterator[tuple[BufferedWriter, str]]:
    """A new file beside `path` under a name that nobody can have put there; removed if the block fails."""
    folder, name = os.path.split(os.fspath(path))
    stem = os.fsdecode(os.fsencode(name)[:_LONGEST_STEM_BYTES])
    scratch = os.path.join(folder, f"{stem}.{os.urandom(4).hex()}{SCRATCH}")
    fd = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "wb") as file:
            os.fchmod(fd, mode)
            yield file, scratch
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(scratch)
        raise
