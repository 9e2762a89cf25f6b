"""One row of a statement is stored as many are: as parameters, or taken out of JSON."""

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
    for rows in ([row], [row, row]):
        statement = sql.with_rows(lambda names: sql._into("INSERT", "t", names), rows)
        connection.execute(statement.sql, statement.parameters)
    found = connection.execute("SELECT typeof(value), value FROM t").fetchall()
    connection.close()
    assert found[0] == found[1] == found[2]
