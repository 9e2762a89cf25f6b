"""A row is stored the same way however many there are: as parameters of a statement, or taken out of JSON."""

from __future__ import annotations

import sqlite3

from hypothesis import example, given
from hypothesis import strategies as st

from aver.store.encoding import column_text
from aver.store.write import statements as sql

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 70), 1 << 70),
    st.floats(),
    st.text().map(column_text),
    st.lists(st.text(max_size=5), max_size=3).map(tuple),
)


@given(VALUES)
@example(-(1 << 63))
@example((1 << 63) - 1)
@example(1 << 63)
@example(float("inf"))
def test_a_value_is_the_same_either_way(value: object) -> None:
    """Kind and content; numbers that JSON does not have are NULL, and those beyond 64 bits are REAL."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (id, value)")
    row = {"id": 1, "value": value}
    for count in (1, 3, sql.MOST_AS_PARAMETERS + 1):
        for statement in sql.with_rows(lambda names: sql._into("INSERT", "t", names), [row] * count):
            connection.execute(statement.sql, statement.parameters)
    found = connection.execute("SELECT typeof(value), value, count(*) FROM t GROUP BY 1, 2").fetchall()
    connection.close()
    assert [count for *_, count in found] == [4 + sql.MOST_AS_PARAMETERS + 1]


@given(st.integers(1, 2 * sql.MOST_AS_PARAMETERS), st.integers(1, 40))
def test_each_row_is_there_once(count: int, width: int) -> None:
    """Whatever statements they are divided into, and none has more parameters than SQLite takes."""
    names = [f"c{number}" for number in range(width)]
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE TABLE t ({', '.join(names)})")
    rows = [{name: number * width + place for place, name in enumerate(names)} for number in range(count)]
    for statement in sql.with_rows(lambda names: sql._into("INSERT", "t", names), rows):
        assert len(statement.parameters) <= sql.MOST_PARAMETERS
        connection.execute(statement.sql, statement.parameters)
    found = connection.execute("SELECT * FROM t ORDER BY c0").fetchall()
    connection.close()
    assert found == [tuple(row.values()) for row in rows]
