"""The cases, without running them: complete, readable and the same as in the documents."""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from aver.conformance.model import Case, Row, Version, cells_of, choices_of
from aver.conformance.parser import FOLDER, all_cases, differences
from aver.conformance.report import Cell, renew_page

ROOT = Path(__file__).resolve().parents[2]
CASES = all_cases()
BY_NAME = {case.name: case for case in CASES}


def rows_of(name: str, version: Version) -> dict[str, Row]:
    return {row.name: row for row in BY_NAME[name].at(version).rows}


def test_names_are_unique() -> None:
    """A name picks one case."""
    assert [name for name, count in Counter(case.name for case in CASES).items() if count > 1] == []


@pytest.mark.parametrize("one", CASES, ids=lambda one: one.name)
def test_each_case_expects_something(one: Case) -> None:
    """No row of a case is left open."""
    assert one.rows
    assert not [row.name for row in one.rows if row.slurm == "?"]


def test_each_difference_shows_somewhere() -> None:
    """No difference is named that no case shows."""
    assert {row.difference for case in CASES for row in case.rows if row.difference} == set(differences())


def test_the_page_is_in_step() -> None:
    """docs/en/reference/conformance.md lists exactly the intended differences that the cases have."""
    page = (ROOT / "docs" / "en" / "reference" / "conformance.md").read_text()
    assert page == renew_page(page), "renew it: python -m aver.conformance --page"


@pytest.mark.parametrize(
    ("name", "row", "slurm", "aver"),
    [
        ("exit/1", "scontrol", "FAILED 1:0 0:0 NonZeroExitCode", "FAILED 1:0 0:0 NonZeroExitCode"),
        ("exit/137", "scontrol", "FAILED 137:0 0:0 NonZeroExitCode", "FAILED 137:0 0:0 NonZeroExitCode"),
        ("exit/137", "sacct", "FAILED 9:0", "FAILED 137:0"),
        ("exit/200", "sacct", "FAILED 72:0", "FAILED 200:0"),
        ("signals/term", "scontrol", "FAILED 0:15 0:0 JobLaunchFailure", "FAILED 0:15 0:0 RaisedSignal:15(Terminated)"),
        ("signals/hup", "sacct", "FAILED 1:0", "FAILED 0:1"),
        ("steps/7-3-2", "scontrol", "FAILED 2:0 7:0 NonZeroExitCode", "FAILED 2:0 7:0 NonZeroExitCode"),
        ("tasks/3-0-0-0", "step0", "COMPLETED 0:0", "FAILED 3:0"),
        ("tasks/5-0-9-1", "step0", "FAILED 1:0", "FAILED 9:0"),
        ("tasks/kill-on-bad-exit", "step0", "CANCELLED 0:15", "FAILED 3:0"),
        ("tasks/kill-on-bad-exit", "said", "srun=143", "srun=143"),
        ("limits/plain", "scontrol", "TIMEOUT 0:15 0:0 TimeLimit", "TIMEOUT 0:15 0:0 TimeLimit"),
        ("limits/plain", "sacct", "TIMEOUT 0:0", "TIMEOUT 0:15"),
        ("limits/ignored", "batch", "CANCELLED 0:9", "CANCELLED 0:9"),
        ("memory/step-then-0", "scontrol", "COMPLETED 0:0 0:125 None", "COMPLETED 0:0 0:125 None"),
        ("cancels/step", "step0", "CANCELLED-by-user 0:9", "CANCELLED-by-user 0:9"),
        (
            "dependencies/forgotten-1",
            "b:scontrol",
            "COMPLETED 0:0 0:0 None",
            "CANCELLED 0:0 0:0 DependencyNeverSatisfied",
        ),
    ],
)
def test_rows_of_the_specification(name: str, row: str, slurm: str, aver: str) -> None:
    """What OUTCOMES.md says of the plainest rows is what the table says: Slurm's word, and Aver's where it differs."""
    found = rows_of(name, (22, 5))[row]
    assert (found.slurm, found.aver) == (slurm, aver)


@pytest.mark.parametrize(
    ("name", "row", "slurm", "aver"),
    [
        ("exit/137", "sacct", "FAILED 137:0", "FAILED 137:0"),
        ("signals/term", "scontrol", "FAILED 0:15 0:0 RaisedSignal:15(Terminated)", None),
        ("signals/hup", "sacct", "FAILED 1:0", "FAILED 0:1"),
        ("tasks/3-0-0-0", "step0", "FAILED 3:0", "FAILED 3:0"),
        ("tasks/5-0-9-1", "step0", "FAILED 5:0", "FAILED 9:0"),
        ("tasks/wait", "scontrol", "COMPLETED 0:0 0:9 None", None),
        ("launch/output", "scontrol", "FAILED 0:53 0:0 RaisedSignal:53(Real-time_signal_19)",
         "FAILED 0:53 0:0 JobLaunchFailure"),
        ("queue/deadline-held", "scontrol", "DEADLINE 0:1 0:0 DeadLine", None),
        ("queue/requeue-settled", "attempts", "FAILED 5:0 / COMPLETED 0:0", None),
        ("nodes/node-fail", "sacct", "NODE_FAIL 1:0", "NODE_FAIL ?"),
        ("dependencies/forgotten-1", "b:scontrol", "none", "CANCELLED 0:0 0:0 DependencyNeverSatisfied"),
    ],
)  # fmt: skip
def test_rows_of_25_11(name: str, row: str, slurm: str, aver: str | None) -> None:
    """What Slurm 25.11.6 was measured to say otherwise, and Aver's word where that differs (None: it is the same)."""
    found = rows_of(name, (25, 11))[row]
    assert (found.slurm, found.aver) == (slurm, aver or slurm)


def test_a_cell_may_have_two_words_for_slurm_and_never_for_aver() -> None:
    """`A;B` is one or the other; words are as they are; what Aver prints is certain."""
    assert choices_of("b:scontrol.reason", "Dependency;Resources") == ("Dependency", "Resources")
    assert choices_of("answer", "exit 0: one; two") == ("exit 0: one; two",)
    assert choices_of("answer", "exit 0 ;; exit 1: no") == ("exit 0", "exit 1: no")
    one = Cell("x", "b:scontrol.reason", "Dependency;Resources", "Dependency", "Dependency;Resources", "Resources", "")
    assert one.holds
    assert not replace(one, got="Priority").holds
    assert not replace(one, expected=one.aver).holds
    unsure = [
        (one.name, cell)
        for one in CASES
        for row in one.rows
        for cell, value in cells_of(row.name, row.aver).items()
        if len(choices_of(cell, value)) > 1
    ]
    assert unsure == []


def test_the_package_has_the_case_files() -> None:
    """Every file of the cases is data of the package, so that an installed Aver has it."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = settings["tool"]["setuptools"]["package-data"]["aver"]
    packed = {path for pattern in patterns for path in (ROOT / "src" / "aver").glob(pattern)}
    assert {path.name for path in FOLDER.iterdir()} >= {"differences.txt", "exit.cases"}
    assert set(FOLDER.iterdir()) <= packed
