"""`aver failures`: causes, hints and ends of logs within a budget of bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from past_runs import SECRET, Call


def test_a_digest_has_causes_hints_logs_and_next_commands(past: Path, call: Call) -> None:
    """Worst cause first; with room for everything nothing is called truncated."""
    status, out, err = call("failures", "1", "--max-bytes", "100000")
    assert (status, err) == (0, "")
    head, *parts = out.split("\n\n")
    assert head.startswith("run 1 train OUT_OF_MEMORY: 3 COMPLETED, 1 FAILED, 1 OUT_OF_MEMORY")
    assert parts[0].startswith("OUT_OF_MEMORY: job 5 (train[seed=3]) ran out of memory at 64 MiB")
    assert "  | Killed" in parts[0]
    assert "  next: aver recover 1 --dry-run" in parts[0]
    assert "hint (missing module): `ModuleNotFoundError: " in parts[1]
    assert "truncated" not in out
    assert SECRET not in out
    assert "\x1b" not in out


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_no_answer_is_longer_than_its_budget(past: Path, call: Call, form: tuple[str, ...]) -> None:
    """Whatever the budget; the more there is, the more is said, and what is left out is said too."""
    log = past.parent / "work" / "aver-1" / "lint.out"
    log.write_text("".join(f'{number} "quoted" \\ \u00e9 \x01\n' for number in range(2000)))
    sizes = []
    for budget in (1000, 1200, 1500, 2000, 3000, 4000, 6000, 20000):
        out = call("failures", "1", "--max-bytes", str(budget), *form)[1]
        assert len(out.encode()) <= budget
        is_truncated = json.loads(out)["is_truncated"] if form else "\ntruncated: " in out
        assert is_truncated == (f"aver failures 1 --max-bytes {4 * budget}" in out)
        assert is_truncated or budget > 2000
        sizes.append(len(out))
    assert sizes[0] < sizes[2] < sizes[-1]


def test_causes_that_do_not_fit_are_counted(past: Path, call: Call) -> None:
    """The worst are kept."""
    whole = json.loads(call("failures", "1", "--json", "--max-bytes", "100000")[1])
    cut = json.loads(call("failures", "1", "--json", "--max-bytes", "1000")[1])
    assert 0 < len(cut["causes"]) < len(whole["causes"])
    assert cut["causes_left_out"] == len(whole["causes"]) - len(cut["causes"])
    assert [one["sentence"] for one in cut["causes"]] == [one["sentence"] for one in whole["causes"]][
        : len(cut["causes"])
    ]


def test_the_end_of_a_log_is_kept(past: Path, call: Call) -> None:
    """Whole lines, and that the beginning is missing is said."""
    log = past.parent / "work" / "aver-1" / "lint.out"
    log.write_text("".join(f"line {number}\n" for number in range(10000)))
    causes = json.loads(call("failures", "1", "--json", "--max-bytes", "2500")[1])["causes"]
    tail = next(one["log"] for one in causes if one["jobs"] == [7])
    assert tail["is_cut"]
    lines = tail["text"].split("\n")
    assert lines == [f"line {number}" for number in range(10000 - len(lines), 10000)]


@pytest.mark.parametrize("padding", range(180, 201, 4))
def test_a_secret_is_masked_before_a_line_is_cut(past: Path, call: Call, padding: int) -> None:
    """Half a secret at the end of a quotation would be one that nothing masks."""
    log = past.parent / "work" / "aver-1" / "lint.out"
    text = "ModuleNotFoundError: ".ljust(padding, "x")
    log.write_text(f"{text}{SECRET}{'y' * 100}\n")
    for command in ("failures", "why"):
        for form in ((), ("--json",)):
            assert SECRET[:4] not in call(command, "1", *form)[1], command
    assert SECRET[:4] not in call("why", "7")[2]


def test_jobs_of_a_run_can_be_chosen(past: Path, call: Call) -> None:
    """Only their failures are told."""
    causes = json.loads(call("failures", "1/lint", "--json")[1])["causes"]
    assert [one["jobs"] for one in causes] == [[7]]


def test_a_run_without_failures(past: Path, call: Call) -> None:
    """Says so."""
    assert call("failures", "1/prep")[1].endswith("\nNo job failed.\n")
