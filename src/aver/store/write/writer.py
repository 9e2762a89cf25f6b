"""The one connection that writes.

`commit` is one transaction: events and the rows derived from them are all there or none is, and they survive
power loss when it returns (`synchronous=EXTRA`). After a failure nothing is half done and the same events can
be committed again. There must be one Writer per database: the coordinator's lock sees to that. It may be used from
any thread, by one at a time.

Others may remove, replace or overwrite the files while they are open. Before each commit it is seen that they are those
that a reader finds: without its database nothing is written, and a log that was removed is brought home at once.
Files that are removed while nobody has them open are not seen to go: `HighWater` then says that commits are missing.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Sequence
from itertools import accumulate, chain
from pathlib import Path
from typing import NamedTuple

from aver.durable_files import sync_folder
from aver.errors import CantWriteError, InternalError
from aver.model.events import Event, JobsEnded
from aver.store.encoding import event_columns, task_cause_text
from aver.store.open import connect, is_on_network, read_version, removed_text, show_path, writing_failed
from aver.store.schema import APPLICATION_ID, MIGRATIONS, VERSION
from aver.store.write import statements as sql
from aver.store.write.derive import statements
from aver.store.write.high_water import HighWater, Loss

LOOK_MS = 1000  # that a look at the file waits for whoever has it locked


class _Look(NamedTuple):
    """A file as it is found by its name."""

    identity: tuple[int, int] | None  # which file it is; None: there is none, or none that can be seen
    mark: tuple[int, int]  # its size and time: another one after a write by anybody


_UNSEEN = _Look(None, (0, 0))


class Writer:
    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._file = str(path)  # a text: its folder is not put together anew for each look
        self._log_file = f"{path}-wal"
        look = _look(self._file)
        self._identity = look.identity
        self._log_identity = _look(self._log_file).identity  # None: it was not made yet
        self._mark = look.mark  # as it is after our last write
        self._stored_seq = _read_last_seq(connection)
        self.home_id = _read_home_id(connection)
        self._high_water = HighWater(path, self.home_id, self._stored_seq, self._read_next_id())

    @classmethod
    def open(cls, path: Path) -> Writer:
        """Open the database, made or migrated if need be.

        Raise CantWriteError when that can't be done, and UsageError for a database of a newer version.
        """
        connection = None
        try:
            is_new = _create_file(path)
            connection = _connect(path)
            migrate(connection, path)
            if is_new:
                sync_folder(path.parent)
            return cls(path, connection)
        except OSError as error:
            _close(connection)
            raise CantWriteError(f"can't write {show_path(path)}: {error.strerror or error}") from None
        except sqlite3.Error as error:
            _close(connection)
            raise CantWriteError(writing_failed(path, error)) from None
        except BaseException:
            _close(connection)
            raise

    def commit(self, events: Sequence[Event]) -> int:
        """Store the events and what follows from them; return the last one's number. Durable on return.

        Raise CantWriteError when the database can't be written, and InternalError for events that can't be stored;
        in both cases nothing of them is stored.
        """
        if not events:
            return self.last_seq
        self.check_file()
        next_id = 0
        try:
            numbers = list(accumulate(map(_numbers_of, events), initial=self.last_seq))[1:]
            rows = [event_columns(seq, event) for seq, event in zip(numbers, events, strict=True)]
            self._connection.execute("BEGIN IMMEDIATE")
            for statement in chain(sql.with_values(sql.INSERT_EVENTS, rows), statements(events)):
                self._connection.execute(statement.sql, statement.parameters)
                if statement.sql is sql.RAISE_NEXT_ID:
                    next_id = max(next_id, int(str(statement.parameters[0])))
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            if isinstance(error, sqlite3.IntegrityError) or "malformed JSON" in str(error):
                raise InternalError(f"events that don't fit {show_path(self.path)}: {error}") from error
            raise CantWriteError(writing_failed(self.path, error)) from None
        except ValueError as error:
            self._roll_back()
            raise InternalError(f"events that can't be stored in {show_path(self.path)}: {error}") from error
        except BaseException:
            self._roll_back()
            raise
        self._stored_seq = numbers[-1]
        self._high_water.rise(self._stored_seq, next_id)
        self._mark = _look(self._file).mark
        if self._log_identity is None:
            self._log_identity = _look(self._log_file).identity
        with contextlib.suppress(CantWriteError):  # it was removed meanwhile; the next look tries again
            self._bring_log_home()
        return self._stored_seq

    def check_name(self) -> None:
        """Raise CantWriteError if the database was removed or replaced since it was opened. From any thread."""
        self._seen()

    def _seen(self) -> _Look:
        look = _look(self._file)
        if look.identity != self._identity:
            raise CantWriteError(removed_text(self.path))
        return look

    def check_file(self) -> None:
        """As `check_name`, and raise also if what we have committed is not in the file, nor can be put there."""
        mark = self._seen().mark
        if mark != self._mark and self._is_whole(mark):
            self._mark = mark
        self._bring_log_home()

    def _is_whole(self, mark: tuple[int, int]) -> bool:
        """Look, as a reader does, at a file that somebody else has written; False: it can't be seen at the moment."""
        reader = None
        try:
            reader = connect(self.path, "ro")
            reader.execute(f"PRAGMA busy_timeout = {LOOK_MS}")
            is_ours = _read_home_id(reader) == self.home_id and _read_last_seq(reader) >= self._stored_seq
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorname", "") == "SQLITE_BUSY":
                return False
            is_ours = False
        finally:
            _close(reader)
        if not is_ours or mark[0] < self._mark[0]:
            raise CantWriteError(removed_text(self.path))
        return True

    def _bring_log_home(self) -> None:
        """Without its log's file, what is committed since the last checkpoint is seen by nobody else: it goes into the
        database, and a new log is begun."""
        if self._log_identity is None or _look(self._log_file).identity == self._log_identity:
            return
        try:
            self._connection.execute(f"PRAGMA busy_timeout = {LOOK_MS}")
            is_busy, *_ = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if is_busy:  # a reader has the old log: a new one can't be begun yet
                raise CantWriteError(f"can't write {show_path(self.path)}: its log was removed, and somebody reads it")
            self._connection.close()
            self._connection = _connect(self.path)
        except sqlite3.Error as error:
            raise CantWriteError(writing_failed(self.path, error)) from None
        self._log_identity = _look(self._log_file).identity
        self._mark = _look(self._file).mark

    def next_id(self) -> int:
        """The number after all that runs and jobs of this home ever had, also where the store has lost some of them."""
        return max(self._read_next_id(), self._high_water.next_id)

    def _read_next_id(self) -> int:
        return int(self._connection.execute(sql.SELECT_NEXT_ID).fetchone()[0])

    @property
    def last_seq(self) -> int:
        """The number of the newest event that was ever committed: after a loss it is above all that are stored."""
        return max(self._stored_seq, self._high_water.seq)

    @property
    def loss(self) -> Loss | None:
        """What was committed before and was missing when this was opened."""
        return self._high_water.loss

    def close(self) -> None:
        """Bring the write-ahead log home, also while somebody has the database open to read, and close."""
        with contextlib.suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        _close(self._connection)
        self._high_water.close()

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            try:
                self._connection.execute("ROLLBACK")
            except sqlite3.Error:
                pass  # SQLite has then rolled back by itself


def _numbers_of(event: Event) -> int:
    """How many numbers an event has; it is stored under the last."""
    return event.count if isinstance(event, JobsEnded) else 1


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the database to this version, in one transaction."""
    if read_version(connection, path) == VERSION:
        return
    connection.create_function("task_cause", 1, task_cause_text, deterministic=True)
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in MIGRATIONS[read_version(connection, path) :]:
            for statement in step:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except sqlite3.Error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _connect(path: Path) -> sqlite3.Connection:
    connection = connect(path, "rw")
    try:
        read_version(connection, path)
        journal = "DELETE" if is_on_network(path.parent) else "WAL"
        connection.execute(f"PRAGMA journal_mode = {journal}").fetchone()
        connection.execute("PRAGMA synchronous = EXTRA")  # the end of a rollback journal is durable too
        connection.execute("PRAGMA temp_store = MEMORY")
    except BaseException:
        _close(connection)
        raise
    return connection


def _read_last_seq(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()[0])


def _read_home_id(connection: sqlite3.Connection) -> str:
    return str(connection.execute("SELECT value FROM meta WHERE key = 'home'").fetchone()[0])


def _look(path: str) -> _Look:
    try:
        info = os.stat(path)
    except OSError:
        return _UNSEEN
    return _Look((info.st_dev, info.st_ino), (info.st_size, info.st_mtime_ns))


def _create_file(path: Path) -> bool:
    """Make the file, readable by its owner alone; return whether it is new. The journals get the same mode."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return path.stat().st_size == 0  # made by the lock
    return True


def _close(connection: sqlite3.Connection | None) -> None:
    if connection is None:
        return
    try:
        connection.close()
    except sqlite3.Error:
        pass  # all that was committed is durable already
