"""How a database file is opened, and how SQLite's errors become sentences.

WAL does not work on network file systems, so there a rollback journal is used. The connection that writes is
the only one that may ever checkpoint; readers open `mode=ro`. Slurm's commands read through this module, so it
imports neither `pathlib` nor `typing`.
"""

from __future__ import annotations

import os
import sqlite3

from aver.errors import AverError, CantWriteError, UsageError
from aver.fast_start import TYPE_CHECKING
from aver.store.schema import VERSION

if TYPE_CHECKING:
    from pathlib import Path

BUSY_TIMEOUT_S = 30.0
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-~")  # in a URI

_NETWORK_MAGIC = frozenset(
    {
        0x6969,  # NFS
        0x517B,  # SMB
        0xFF534D42,  # CIFS
        0xFE534D42,  # SMB2
        0x0BD00BD0,  # Lustre
        0x47504653,  # GPFS
        0x65735546,  # FUSE: sshfs and others; what is behind it can't be known
        0x5346414F,  # AFS
        0x6B414653,  # kAFS
        0x00C36400,  # Ceph
        0x19830326,  # BeeGFS
        0x01021997,  # 9P
        0x73757245,  # Coda
        0x7461636F,  # OCFS2
        0x01161970,  # GFS2
        0x20030528,  # OrangeFS
        0xAAD7AAEA,  # Panasas
    }
)


def is_network_magic(f_type: int) -> bool:
    return f_type & 0xFFFFFFFF in _NETWORK_MAGIC


def is_on_network(folder: Path) -> bool:
    """Whether the folder is on a file system where WAL is not safe. Not knowing counts as yes."""
    import ctypes  # here, since only the writer asks and readers must start fast

    try:
        statfs = ctypes.CDLL(None, use_errno=True).statfs
    except (OSError, AttributeError):
        return True
    buffer = ctypes.create_string_buffer(512)
    if statfs(os.fsencode(folder), buffer) != 0:
        return True
    return is_network_magic(ctypes.c_long.from_buffer(buffer).value)  # f_type is the first word of struct statfs


def connect(path: Path | str, mode: str) -> sqlite3.Connection:
    """Open with `mode` ro or rw, in autocommit: transactions are begun and ended by hand."""
    whole = os.fsencode(os.path.abspath(path))
    uri = "file:" + "".join([chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in whole]) + f"?mode={mode}"
    if mode == "ro" and _is_frozen(os.fspath(path)):
        uri += "&immutable=1"
    return sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)


def _is_frozen(path: str) -> bool:
    """Whether nobody has the database open and we can't make the log's index that SQLite reads by.

    A database of the WAL kind in a folder that we can't write to can be read only as a file that stays as it is.
    While a writer has it open there is a log.
    """
    if os.access(os.path.dirname(path) or ".", os.W_OK):
        return False
    try:
        if os.stat(path + "-wal").st_size > 0:
            return False
    except FileNotFoundError:
        pass
    with open(path, "rb") as file:
        return file.read(20)[18:19] == b"\x02"  # the file format's read version: 2 is WAL


def check_absent(path: Path | str) -> None:
    """Raise CantWriteError if a database that is not there was there: a coordinator has it open."""
    from pathlib import Path  # most readers never ask

    from aver.home import Home

    if Home(Path(path).parent).has_coordinator() and not os.path.exists(path):
        raise CantWriteError(removed_text(path))


def check_emptied(path: Path | str) -> None:
    """Raise CantWriteError if a coordinator has an empty database open to which it has written: it has a log."""
    from pathlib import Path  # most readers never ask

    from aver.home import Home

    log = os.fspath(path) + "-wal"
    if os.path.exists(log) and os.stat(log).st_size > 0 and Home(Path(path).parent).has_coordinator():
        raise CantWriteError(removed_text(path))


def removed_text(path: Path | str) -> str:
    return (
        f"the store {show_path(path)} was removed or replaced while the coordinator had it open: put it back, or "
        "`aver stop` to go on with what is there; nothing new is taken"
    )


def read_version(connection: sqlite3.Connection, path: Path | str) -> int:
    """Return the schema's version, 0 for an empty database; raise UsageError for a newer one."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > VERSION:
        raise UsageError(
            f"{show_path(path)} was written by a newer Aver (schema {version}, this one knows {VERSION}): upgrade Aver"
        )
    return version


def show_path(path: Path | str) -> str:
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def reading_failed(path: Path | str, error: sqlite3.Error) -> AverError:
    """The sentence for a read that failed."""
    match _code(error):
        case "SQLITE_NOTADB" | "SQLITE_CORRUPT":
            return AverError(damaged_text(path, error))
        case "SQLITE_CANTOPEN" | "SQLITE_PERM" | "SQLITE_READONLY":
            return AverError(f"can't open {show_path(path)} ({error}): check its owner and permissions")
        case "SQLITE_BUSY" | "SQLITE_LOCKED":
            return AverError(f"{show_path(path)} is locked by another process for more than {BUSY_TIMEOUT_S:.0f} s")
        case _:
            return AverError(f"can't read {show_path(path)}: {error}")


def damaged_text(path: Path | str, error: sqlite3.Error) -> str:
    """What to do about it; readers and the coordinator say the same."""
    import shlex  # hardly ever

    where = shlex.quote(show_path(path))
    return (
        f"the store {show_path(path)} is damaged, or is not a database of Aver ({error}): put a backup in its place, "
        f"or try `sqlite3 {where} .recover | sqlite3 recovered.db` (not every build of sqlite3 can); "
        "with the file moved away Aver begins an empty one"
    )


def writing_failed(path: Path | str, error: sqlite3.Error) -> str:
    """The sentence for a write that failed."""
    match _code(error):
        case "SQLITE_FULL":
            hint = "the disk is full: free some space"
        case "SQLITE_READONLY" | "SQLITE_PERM" | "SQLITE_CANTOPEN":
            hint = f"{error}: check the owner and permissions of the file and of its folder"
        case "SQLITE_NOTADB" | "SQLITE_CORRUPT":
            return damaged_text(path, error)
        case _:
            hint = str(error)
    return f"can't write {show_path(path)}: {hint}"


def _code(error: sqlite3.Error) -> str:
    """The primary code: `SQLITE_READONLY` also for SQLITE_READONLY_ROLLBACK."""
    name = getattr(error, "sqlite_errorname", None) or ""
    return "_".join(name.split("_")[:2])


def sqlite_version() -> str:
    return sqlite3.sqlite_version
