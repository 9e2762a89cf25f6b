"""Addresses name jobs and runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from stored_past import Aver

from aver.cli.address import Named, Number, parse_address, runs_back, typed_address
from aver.errors import UsageError


def test_a_number_is_a_run_or_a_job() -> None:
    """A plain number is kept as it is."""
    assert parse_address("7") == Number(7)


def test_a_name_after_the_run() -> None:
    """The part after the slash is the job's name, brackets and all."""
    assert parse_address("3/train[seed=2]") == Named(3, "train[seed=2]")


@pytest.mark.parametrize("text", ["", "x", "-1", "0", "3/", "/train", "1e3", "٣", "9" * 20])
def test_anything_else_is_refused_with_the_forms(text: str) -> None:
    """A wrong address is a usage error that shows how to write one."""
    with pytest.raises(UsageError, match="3/train"):
        parse_address(text)


@pytest.mark.parametrize(
    ("pattern", "name", "is_match"),
    [
        ("train", "train", True),
        ("train", "train[seed=2]", True),
        ("train", "trainer", False),
        ("train[seed=2]", "train[seed=2]", True),
        ("train[seed=2]", "train[seed=21]", False),
        ("train[seed=*]", "train[seed=21]", True),
        ("tr*", "train[seed=2]", True),
        ("tr?in", "train", True),
        ("tr?in", "trin", False),
        ("*", "with\nnewline", True),
        ("train[lr=1]", "train[seed=2,lr=1]", True),
        ("train[lr=2]", "train[seed=2,lr=1]", False),
        ("a.c", "abc", False),
    ],
)
def test_names_globs_and_matrix_members(pattern: str, name: str, is_match: bool) -> None:
    """`*` and `?` are globs, brackets hold the values of members, and a matrix's name means all its members."""
    assert Named(3, pattern).matches(name) is is_match


def test_last_is_the_newest_run(past: Path, call: Aver) -> None:
    """`last`, `last/eval` and `-1` for every command that takes an address; `-2` is the run before."""
    assert call("show", "last", "--json").document["run"]["id"] == 3
    assert call("show", "last/eval", "--json").document["job"]["id"] == 6
    assert call("show", "-1/eval", "--json").document["job"]["id"] == 6
    assert call("why", "-2", "--json").document["job"]["id"] == 2
    assert call("log", "-3").out == "hello\n"
    assert call("results", "-1", "--json").document["run"] == 3
    assert "only 3 runs" in call("show", "-9").err
    assert call("jobs", "-n", "1", "--json").status == 0


def test_words_that_are_no_addresses_stay_as_they_are() -> None:
    """Only a dash and a number mean a run."""
    words = ("-1", "-2/a", "-n", "--all", "-0", "-1x", "7")
    assert [typed_address(word) for word in words] == ["last", "last~1/a", "-n", "--all", "-0", "-1x", "7"]
    assert runs_back("last~2/x") == (2, "/x")
    assert runs_back("last.0") == (0, ".0")
    assert runs_back("lastly") is None
