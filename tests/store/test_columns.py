"""The one declaration of columns, compared with the tables of the schema."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from aver.model.events import Usage
from aver.model.states import UNSETTLED as UNSETTLED_STATES
from aver.store import columns
from aver.store.columns import MEASURED, TIMES, VERDICT, LightStep, Row
from aver.store.read.light import UNSETTLED
from aver.store.read.rows import AttemptRow, JobRow, RunRow, StepRow, TaskRow
from aver.store.write.writer import Writer


def in_table(folder: Path, table: str) -> set[str]:
    Writer.open(folder / "aver.db").close()
    database = sqlite3.connect(folder / "aver.db")
    try:
        return {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
    finally:
        database.close()


@pytest.mark.parametrize(
    ("table", "row"),
    [("runs", RunRow), ("jobs", JobRow), ("attempts", AttemptRow), ("steps", StepRow), ("tasks", TaskRow)],
)
def test_a_row_has_every_column_of_its_table(tmp_path: Path, table: str, row: type[Row]) -> None:
    """No column of the schema is left unread, and none is asked for that the schema lacks."""
    assert set(row.columns) == in_table(tmp_path, table)


def test_what_was_measured_has_the_names_of_usage() -> None:
    """The writer takes each value by its name."""
    assert set(MEASURED) == set(Usage.__struct_fields__)
    assert set(TIMES) < set(MEASURED)
    assert set(MEASURED) | {"ended_at"} == set(columns.Measured.columns)
    assert set(VERDICT) < set(AttemptRow.columns)


def test_a_row_reads_by_name() -> None:
    """Values are found by their column, a changed row keeps the others, and a column that is not there is refused."""
    row = LightStep(range(len(LightStep.columns)))
    assert [getattr(row, name) for name in LightStep.columns] == list(range(len(LightStep.columns)))
    assert row.changed(name="x") == tuple("x" if name == "name" else getattr(row, name) for name in row.columns)
    with pytest.raises(TypeError, match="LightStep has no color"):
        row.changed(color="red")
    with pytest.raises(AttributeError):
        row.name = "x"


def test_the_light_reader_knows_the_states() -> None:
    """Its words, which it does not import, are those of the model."""
    assert set(UNSETTLED) == {state.value for state in UNSETTLED_STATES}
