"""A database that is open for reading: the part that all readers share.

Slurm's commands read through it, so it imports neither `pathlib` nor `typing`.
"""

from __future__ import annotations

import os
import sqlite3

from aver.errors import AverError
from aver.fast_start import TYPE_CHECKING
from aver.store.open import check_absent, check_emptied, connect, read_version, reading_failed, show_path
from aver.store.schema import DERIVED_TABLES, MIGRATIONS, VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import Any, Self, TypeVar

    Found = TypeVar("Found")


class Database:
    """A database that is open for reading, with or without a coordinator, and never in its way.

    It is opened `mode=ro`, never checkpoints and holds no lock between two calls. What is read was committed, and each
    call sees one consistent state.
    """

    def __init__(self, path: Path | str, connection: sqlite3.Connection, version: int = VERSION) -> None:
        self.path = path
        self.version = version
        self._connection = connection

    @classmethod
    def open(cls, path: Path | str) -> Self | None:
        """Return None when there is no database yet; raise UsageError for a newer one, AverError for a damaged one."""
        connection = None
        try:
            if os.stat(path).st_size == 0:
                check_emptied(path)
                return None
            connection = connect(path, "ro")
            try:
                version = read_version(connection, path)
            except sqlite3.OperationalError as error:
                _finish_rollback(path, error)
                version = read_version(connection, path)
            if version == 0:
                connection.close()
                return None
            if version < VERSION:
                _complete(connection, version)
            return cls(path, connection, version)
        except FileNotFoundError:
            check_absent(path)
            return None
        except OSError as error:
            raise AverError(f"can't open {show_path(path)}: {error.strerror}") from None
        except (sqlite3.Error, AverError) as error:
            if connection is not None:
                connection.close()
            raise (reading_failed(path, error) if isinstance(error, sqlite3.Error) else error) from None

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def asked_index(self) -> str:
        """How a SELECT names the index of what people asked for, where there is one."""
        return "INDEXED BY events_asked" if self.version >= 3 else ""

    @property
    def said_column(self) -> str:
        """What sources said, where that is a column of events."""
        return "said" if self.version >= 11 else "NULL"

    @property
    def ranges_index(self) -> str:
        """The same for the index of jobs that ended together."""
        return "INDEXED BY events_ranges" if self.version >= 12 else ""

    def fetch(self, text: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """All rows of a query; raise AverError when it can't be read."""
        try:
            try:
                return self._connection.execute(text, parameters).fetchall()
            except sqlite3.OperationalError as error:
                _finish_rollback(self.path, error)
                return self._connection.execute(text, parameters).fetchall()
        except sqlite3.Error as error:
            raise reading_failed(self.path, error) from None

    def at_one_time(self, read: Callable[[], Found]) -> Found:
        """What `read` returns; all that it fetches is of one state of the store."""
        self.fetch("BEGIN")
        try:
            return read()
        finally:
            self._connection.rollback()

    def last_seq(self) -> int:
        """The number of the newest event."""
        return int(self.fetch("SELECT coalesce(max(seq), 0) FROM events")[0][0])


_UNKNOWN_OF_3 = {  # up to version 3 a DerivedExitCode that nobody knew was stored as 0
    "jobs": "iif(id IN (SELECT job FROM main.steps WHERE ended_at IS NOT NULL AND exit IS NULL), NULL, derived)",
    "steps": "iif(ended_at IS NOT NULL AND exit IS NULL AND state <> 'CANCELLED', NULL, derived)",
}


def _complete(connection: sqlite3.Connection, version: int) -> None:
    """Give the tables of an earlier version what they lack, all NULL, as views that only this connection has."""
    newest = sqlite3.connect(":memory:")
    newest.create_function("task_cause", 1, lambda said: None)
    for statement in [one for part in MIGRATIONS for one in part]:
        newest.execute(statement)
    for table in DERIVED_TABLES:
        there = _columns(connection, table)
        chosen = {name: name if name in there else "NULL" for name in _columns(newest, table)}
        if version < 4 and "derived" in there:
            chosen["derived"] = _UNKNOWN_OF_3[table]
        if any(name != source for name, source in chosen.items()):
            columns = ", ".join(f"{source} AS {name}" for name, source in chosen.items())
            source = f"FROM main.{table}" if there else "WHERE 0"
            connection.execute(f"CREATE TEMP VIEW {table} AS SELECT {columns} {source}")
    newest.close()


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f"PRAGMA main.table_info({table})")]


def _finish_rollback(path: Path | str, error: sqlite3.OperationalError) -> None:
    """Undo the half commit of a writer that was killed, which needs a writable connection; raise any other error."""
    if getattr(error, "sqlite_errorname", "") != "SQLITE_READONLY_ROLLBACK":
        raise error
    connection = connect(path, "rw")
    try:
        connection.execute("PRAGMA user_version").fetchone()
    finally:
        connection.close()
