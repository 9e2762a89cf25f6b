"""Make the derived tables again from the events, and compare.

The rows of a store must be what its events say; this is how that is verified.
"""

from __future__ import annotations

import sqlite3
from itertools import islice
from pathlib import Path

from aver.store.open import connect, reading_failed
from aver.store.read.reader import Reader
from aver.store.schema import DERIVED_TABLES
from aver.store.write.derive import statements
from aver.store.write.writer import migrate

EVENTS_PER_STEP = 1000


def replay(path: Path) -> list[str]:
    """Return one sentence for each derived table that differs from what the events say; none when all is well."""
    checked = Reader.open(path)
    if checked is None:
        return []
    checked.close()
    rebuilt = sqlite3.connect(":memory:", isolation_level=None)
    stored = connect(path, "ro")
    try:
        migrate(rebuilt, path)
        stored.execute("BEGIN")  # one state for all that follows, whatever is committed meanwhile
        events = Reader(path, stored).events()
        while step := [one.event for one in islice(events, EVENTS_PER_STEP)]:
            for statement in statements(step):
                rebuilt.execute(statement.sql, statement.parameters)
        return [problem for table in DERIVED_TABLES if (problem := _difference(table, stored, rebuilt))]
    except sqlite3.Error as error:
        raise reading_failed(path, error) from None
    finally:
        stored.close()
        rebuilt.close()


def _difference(table: str, stored: sqlite3.Connection, rebuilt: sqlite3.Connection) -> str | None:
    query = f"SELECT * FROM {table} ORDER BY 1, 2"
    here, there = stored.execute(query), rebuilt.execute(query)
    while True:
        ours, theirs = here.fetchone(), there.fetchone()
        if ours != theirs:
            return f"{table}: stored {ours}, by its events {theirs}"
        if ours is None:
            return None
