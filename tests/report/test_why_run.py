"""`aver why RUN`: failures grouped by cause; hints are quoted, named as hints, and change nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path

from aver.model.states import State
from aver.report.causes import LOGS_OF_A_CAUSE, diagnose
from aver.store.read.reader import Reader
from past_runs import SECRET, Call


def test_causes_with_hints_and_next_commands(past: Path, call: Call) -> None:
    """Worst first, each with its number, its hint and what to type."""
    status, out, err = call("why", "1")
    assert (status, err) == (0, "")
    head, *parts = out.split("\n\n")
    assert head.startswith("run 1 train OUT_OF_MEMORY: 3 COMPLETED, 1 FAILED, 1 OUT_OF_MEMORY")
    assert parts[0].startswith("job 5 (train[seed=3]) ran out of memory at 64 MiB; peak 64.0 MiB: `Killed`\n")
    assert "  next: aver recover 1 --dry-run" in parts[0]
    assert parts[1].startswith("job 7 (lint) failed with exit 3: `ModuleNotFoundError: ")
    assert "hint (missing module): job 7" in parts[1]
    assert "  next: aver log 7" in parts[1]
    assert "\x1b" not in out
    assert SECRET not in out
    assert parts[-1] == "job 6 (eval) never ran: train[seed=3], which it needs, is OUT_OF_MEMORY\n"


def test_a_failed_job_alone_has_its_hint_too(past: Path, call: Call) -> None:
    """Beside the answer, named as a hint, with secrets masked; a job that was killed for memory has its reason."""
    (past.parent / "work" / "aver-1" / "lint.out").write_text(f"ModuleNotFoundError: No module named '{SECRET}'\n")
    status, out, err = call("why", "7")
    assert status == 0
    assert "hint" not in out
    assert err.startswith("aver: hint (missing module): `ModuleNotFoundError: No module named '***'`; is the right")
    assert call("why", "5")[2] == call("why", "7", "--json")[2] == ""


def test_a_hint_changes_no_verdict(past: Path, call: Call) -> None:
    """A log that says "CUDA out of memory" leaves the job FAILED with its exit."""
    (past.parent / "work" / "aver-1" / "lint.out").write_text("CUDA out of memory\n")
    causes = json.loads(call("why", "1", "--json")[1])["causes"]
    failed = next(one for one in causes if one["jobs"] == [7])
    assert failed["state"] == "FAILED"
    assert failed["sentence"] == "job 7 (lint) failed with exit 3"
    assert [hint["name"] for hint in failed["hints"]] == ["CUDA out of memory"]


def test_logs_that_can_not_be_read(past: Path, call: Call) -> None:
    """A fifo, a folder, a huge file and none at all: no hang, no traceback, and only the end is read."""
    logs = past.parent / "work" / "aver-1"
    (logs / "lint.out").unlink()
    os.mkfifo(logs / "lint.out")
    (logs / "slow.out").mkdir()
    with (logs / "train[seed=3].2.out").open("wb") as file:
        file.write(b"Killed\n")
        file.truncate(1 << 40)
        file.seek(1 << 40)
        file.write(b"\nDisk quota exceeded\n")
    causes = json.loads(call("why", "1", "--json")[1])["causes"]
    assert [[hint["line"] for hint in cause["hints"]] for cause in causes] == [["Disk quota exceeded"], [], [], [], []]


def test_a_bound_on_the_logs_that_are_read(past: Path) -> None:
    """Of many failures only some logs are looked at, and how many is said."""
    with Reader.open(past / "aver.db") as reader:  # type: ignore[union-attr]
        rows = reader.outcomes(1)
        failed = next(row for row in rows if row.job == 7)
        many = [failed.changed(job=number) for number in range(100, 1100)]
        asked: list[int] = []

        def paths(job: int, attempt: int) -> tuple[str, ...]:
            asked.append(job)
            return ()

        found = diagnose(1, many, reader.request, paths)
    assert [(seen.cause.state, seen.cause.count, seen.logs_read) for seen in found.causes] == [
        (State.FAILED, 1000, LOGS_OF_A_CAUSE)
    ]
    assert len(asked) == LOGS_OF_A_CAUSE


def test_a_run_that_went_well(past: Path, call: Call) -> None:
    """Nothing to explain."""
    with Reader.open(past / "aver.db") as reader:  # type: ignore[union-attr]
        fine = [row for row in reader.outcomes(1) if row.job_state == "COMPLETED"]
        assert diagnose(1, fine, reader.request, None).causes == ()
