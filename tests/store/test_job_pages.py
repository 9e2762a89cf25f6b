"""Pages of runs and jobs: whatever the order, each row is on one page, and a filter is kept from page to page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from aver.model.states import State
from aver.store.read.pages import ORDERS, JobQuery, RunQuery, job_page, run_page
from aver.store.read.reader import Reader
from past_runs import fill


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """Run 1 with the jobs 2 to 9, in many states."""
    fill(tmp_path / "home", tmp_path / "work")
    found = Reader.open(tmp_path / "home" / "aver.db")
    assert found is not None
    with found:
        yield found


@pytest.mark.parametrize("is_down", [False, True])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("limit", [1, 3, 8, 50])
def test_each_job_is_on_one_page(reader: Reader, order: str, is_down: bool, limit: int) -> None:
    """The pages one after the other are the list in one piece."""
    whole = job_page(reader, JobQuery(1, order=order, is_down=is_down), 100, 0.0)
    assert sorted(whole.numbers) == list(range(2, 10))
    assert whole.next is None
    found: list[int] = []
    after = None
    while True:
        page = job_page(reader, JobQuery(1, order=order, is_down=is_down, after=after), limit, 0.0)
        assert page.total == 8
        assert 0 < len(page.numbers) <= limit
        found += page.numbers
        after = page.next
        if after is None:
            break
    assert tuple(found) == whole.numbers


def test_orders_are_what_they_say(reader: Reader) -> None:
    """By number, by name, and by state with the worst first."""

    def rows(order: str, is_down: bool = False) -> list[int]:
        return list(job_page(reader, JobQuery(1, order=order, is_down=is_down), 100, 0.0).numbers)

    assert rows("id") == list(range(2, 10))
    assert rows("id", is_down=True) == list(range(9, 1, -1))
    names = [job.name for job in reader.listed(rows("name"))]
    assert names == sorted(names)
    states = [job.state.value for job in reader.listed(rows("state"))]
    assert states == ["OUT_OF_MEMORY", "FAILED", "TIMEOUT", "UNVERIFIED", "SKIPPED", *["COMPLETED"] * 3]


@pytest.mark.parametrize(
    ("text", "jobs"),
    [("TRAIN", [3, 4, 5, 6]), ("train[seed=2]", [4]), ("seed=?", []), ("*seed=?]", [3, 4, 5]), ("7", [7]),
     ("'; --", []), ("needfailed", [6]), ("99999999999999999999", []), ("%", []), ("train_seed", []), ("\\", [])],
)  # fmt: skip
def test_a_text_is_looked_for_in_names_numbers_and_reasons(reader: Reader, text: str, jobs: list[int]) -> None:
    page = job_page(reader, JobQuery(1, text=text), 100, 0.0)
    assert list(page.numbers) == jobs
    assert page.total == len(jobs)


def test_states_and_groups_are_chosen(reader: Reader) -> None:
    page = job_page(reader, JobQuery(1, states=frozenset({State.COMPLETED}), group=(2, 1)), 100, 0.0)
    assert list(page.numbers) == [3, 4]
    assert job_page(reader, JobQuery(1, states=frozenset()), 100, 0.0).total == 0


def test_runs_are_filtered(reader: Reader, tmp_path: Path) -> None:
    """By name, folder, state and time; a cursor goes on below."""
    assert run_page(reader, RunQuery(), 10).numbers == (1,)
    assert run_page(reader, RunQuery(text="trai", folder=tmp_path.name.upper()), 10).numbers == (1,)
    for other in (RunQuery(text="eval"), RunQuery(folder="/nowhere"), RunQuery(states=frozenset({State.RUNNING})),
                  RunQuery(since=2e9), RunQuery(before=1)):  # fmt: skip
        assert run_page(reader, other, 10).numbers == ()


@pytest.mark.parametrize("order", ORDERS)
def test_a_page_reads_its_run_alone(reader: Reader, order: str) -> None:
    """However many other jobs the home has: SQLite is held to the index of runs."""
    asked: list[str] = []
    fetch = reader.fetch

    def noted(text: str, parameters: object = ()) -> list[object]:
        asked.extend(row[3] for row in fetch(f"EXPLAIN QUERY PLAN {text}", parameters))  # type: ignore[arg-type]
        return fetch(text, parameters)  # type: ignore[arg-type]

    reader.fetch = noted  # type: ignore[method-assign]
    job_page(reader, JobQuery(1, text="x", order=order), 10, 0.0)
    assert asked
    assert not [step for step in asked if step.startswith("SCAN")], asked
