"""The design pages are true: where the code has a list, the page has the same one."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from aver.engines.api import Capabilities
from aver.home import Home
from aver.model import events, reasons
from aver.model.states import SchedulerState, State
from aver.store.write.writer import Writer

DESIGN = Path(__file__).resolve().parent.parent / "docs" / "design"


def rows(page: str, first: str) -> dict[str, list[str]]:
    """The cells of every row of a page's tables whose header begins with `first`, by the first cell's names."""
    found: dict[str, list[str]] = {}
    is_table = False
    for line in (DESIGN / page).read_text().splitlines():
        if not line.startswith("|"):
            is_table = False
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] == first:
            is_table = True
        elif is_table and set(cells[0]) != {"-", " "} and set(cells[0]) != {"-"}:
            found |= dict.fromkeys(names(cells[0]) or [cells[0]], cells[1:])
    return found


def names(cell: str) -> list[str]:
    """The names in a cell, without what its brackets say of them."""
    return re.findall(r"`([^`]+)`", re.sub(r"\([^)]*\)|:.*", "", cell))


def test_pages_have_every_column_of_the_store(tmp_path: Path) -> None:
    """store.md and steps.md list the tables with their columns, none left out and none made up."""
    Writer.open(tmp_path / "aver.db").close()
    database = sqlite3.connect(tmp_path / "aver.db")
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    columns = {table: [row[1] for row in database.execute(f"PRAGMA table_info({table})")] for table in tables}
    database.close()
    listed = rows("store.md", "table") | rows("steps.md", "table")
    assert {table: sorted(names(cells[0])) for table, cells in listed.items()} == {
        table: sorted(columns[table]) for table in tables
    }


def test_pages_have_every_event() -> None:
    """store.md and steps.md list every event; steps.md those of steps with their fields."""
    kinds = {kind.__name__: kind for kind in events.Event.__args__}
    of_steps = rows("steps.md", "event")
    assert set(rows("store.md", "event")) | set(of_steps) == set(kinds)
    for name, cells in of_steps.items():
        assert names(cells[0]) == [field for field in kinds[name].__annotations__ if field != "at"], name


def test_pages_have_every_reason() -> None:
    """states.md lists the reasons of PENDING; verdicts.md has every other word of `model/reasons.py`."""
    words = {value for name, value in vars(reasons).items() if name.isupper() and isinstance(value, str)}
    pending = set(reasons.PENDING_WORDS)
    assert set(re.findall(r"`(\w+)`", rows("states.md", "state")[State.PENDING][1])) == pending
    page = (DESIGN / "verdicts.md").read_text()
    settled = {*(words - pending), *reasons.NeedKind, "RaisedSignal"} - {reasons._RAISED_SIGNAL}
    assert not {word for word in settled if not re.search(rf"`{word}\b", page)}


@pytest.mark.parametrize("page", sorted(DESIGN.rglob("*.md")), ids=lambda page: page.name)
def test_pages_name_modules_that_are_there(page: Path) -> None:
    """A module that a page names is in src/aver under that name."""
    source = DESIGN.parent.parent / "src" / "aver"
    known = {path.relative_to(source).as_posix() for path in source.rglob("*.py")}
    named = re.findall(r"`(?:src/aver/)?((?!tests/)[a-z_]+(?:/[a-z_]+)*\.py)`", page.read_text())
    assert not [name for name in named if not any(one == name or one.endswith(f"/{name}") for one in known)]


def test_the_coordinator_page_has_every_file_of_a_home() -> None:
    """What `Home` names lies where coordinator.md says."""
    home = Home(Path("/home"))
    paths = [home.database, home.bin, home.lock, home.log, home.witnesses, home.env(1), home.scripts(1), home.stdin]
    listed = {name.split("/")[0] for name in rows("coordinator.md", "file")}
    assert {path.relative_to(home.path).parts[0] for path in paths} <= listed


def test_pages_have_every_capability_and_state_of_a_scheduler() -> None:
    """engines.md lists what an engine can do and what a scheduler may say, none left out and none made up."""
    assert list(rows("engines.md", "capability")) == list(Capabilities.__annotations__)
    assert list(rows("engines.md", "scheduler state")) == [state.value for state in SchedulerState]
