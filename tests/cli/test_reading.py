"""Commands that read: they work with no coordinator, show one verdict everywhere, and hide secrets."""

from __future__ import annotations

from pathlib import Path

import pytest
from product import Product
from stored_past import SECRET, Aver

from aver.cli.output.table import Table, plain


@pytest.mark.parametrize(
    "args", [("show", "2"), ("show", "2", "--json"), ("why", "2"), ("why", "2", "--json"), ("log", "2")]
)
def test_secrets_are_masked_everywhere(past: Path, call: Aver, args: tuple[str, ...]) -> None:
    """The value of a name that was marked secret is never shown."""
    answer = call(*args)
    assert answer.status == 0
    assert SECRET not in answer.out + answer.err


@pytest.mark.parametrize(
    ("args", "status"),
    [
        (("jobs",), 1),
        (("results", "3"), 1),
        (("export", "3", "--junit"), 1),
        (("watch", "3", "--exit-status"), 69),
        (("recover", "3", "--dry-run"), 69),
    ],
)
def test_a_store_that_cannot_be_read_is_one_line_and_no_verdict(
    past: Path, call: Aver, args: tuple[str, ...], status: int
) -> None:
    """Nothing is answered. Where an exit of 1 would say that a job FAILED, it is 69."""
    (past / "aver.db").write_bytes(b"no database at all, and long enough to be looked at\n" * 100)
    answer = call(*args)
    assert (answer.status, answer.out, answer.err.count("\n")) == (status, "", 1)
    assert "aver.db is damaged" in answer.err


@pytest.mark.parametrize("command", ["show", "why", "log", "watch", "cancel", "jobs"])
def test_an_unknown_number_is_a_sentence(past: Path, call: Aver, command: str) -> None:
    """Exit 2, and where to look."""
    answer = call(command, "99")
    assert (answer.status, answer.err) == (2, "aver: no job or run 99; `aver jobs` lists them\n")


@pytest.mark.parametrize("command", ["show", "why"])
def test_several_jobs_where_one_is_needed(past: Path, call: Aver, command: str) -> None:
    """The sentence says how many there are."""
    answer = call(command, "3/train")
    assert answer.status == 2
    assert "2 jobs" in answer.err


def test_wide_characters_align() -> None:
    """A name in Japanese takes two columns for each letter."""
    table = Table(
        ("NAME", "STATE"), (("日本", "FAILED"), ("abcd", "FAILED"), ("e\u0301e\u0301e\u0301e\u0301", "FAILED"))
    )
    assert plain(table) == ["NAME  STATE", "日本  FAILED", "abcd  FAILED", "e\u0301e\u0301e\u0301e\u0301  FAILED"]


def test_reading_works_when_no_coordinator_can_start(aver: Product) -> None:
    """An unsettled job and wrong settings: the answer comes all the same, and says so."""
    number = aver.submit("--hold", "--", "true")
    aver("stop")
    answer = aver("show", str(number), env={"AVER_CONFIG": "/no/such/settings"})
    assert answer.status == 0
    assert "PENDING" in answer.out
    assert "AVER_CONFIG" in answer.err
