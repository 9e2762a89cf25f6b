"""A part of the campaign, and in each run of the tests a check of its checker: what it can't find proves nothing."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from fault_kinds import Eio, KillAny, KillUnattended, Kind
from known_jobs import Expected, Submission
from ledger_check import Excuses, Findings, check

from endurance import Round


@pytest.mark.long  # kills come at random moments: the seed has the plan, not the timing
@pytest.mark.parametrize("kind", [KillAny, KillUnattended, Eio], ids=lambda kind: kind.name)
def test_nothing_is_lost_doubled_or_invented(kind: type[Kind]) -> None:
    """Jobs of every end through flows, sbatch, srun and Python; each has the verdict that it must have."""
    result = Round(kind, "1", 6, 1.0).run()
    assert result.findings == Findings()
    assert result.jobs > 6
    assert result.strikes > 0


class Surfaces:
    """What the commands would print of two jobs, A that completed and B that failed with 7."""

    def __init__(self) -> None:
        self.jobs = [_job(1, "A", "COMPLETED", "0:0"), _job(2, "B", "FAILED", "7:0")]
        self.ledger = "A 1 1\nB 1 2\n"
        self.sacct = "1|A|COMPLETED|0:0\n2|B|FAILED|7:0\n"
        self.python: list[list[object]] = [[1, "A", "COMPLETED", "0:0"], [2, "B", "FAILED", "7:0"]]
        self.made = [
            Submission("A", "sbatch", [], {"A": Expected("COMPLETED", "0:0")}, numbers=[1]),
            Submission("B", "python", [], {"B": Expected("FAILED", "7:0")}, numbers=[2]),
        ]

    def findings(self, excuses: Excuses = Excuses()) -> Findings:
        def run(words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
            said = {"aver": json.dumps({"jobs": self.jobs}), "bin/sacct": self.sacct}
            return subprocess.CompletedProcess(words, 0, said.get(words[0], json.dumps(self.python)), "")

        return check(run, "aver", "bin", self.ledger, self.made, excuses)


def _job(number: int, name: str, state: str, exit_: str | None) -> dict[str, Any]:
    return {
        "id": number, "run": number, "name": name, "state": state, "is_settled": True, "reason": None, "detail": "",
        "exit": exit_ and {"text": exit_}, "attempt": 1, "verified": True,
    }  # fmt: skip


def test_the_truth_has_no_findings() -> None:
    assert Surfaces().findings() == Findings()


def test_what_ran_and_is_not_known_is_lost() -> None:
    surfaces = Surfaces()
    surfaces.ledger += "C 1 3\n"
    assert surfaces.findings().lost == ["C ran, and there is no such job"]


def test_an_accepted_job_that_is_gone_is_lost() -> None:
    surfaces = Surfaces()
    del surfaces.jobs[1], surfaces.python[1]
    assert len(surfaces.findings().lost) >= 2  # it was accepted, and it ran


def test_a_submission_that_is_refused_for_good_is_lost() -> None:
    surfaces = Surfaces()
    surfaces.made.append(Submission("C", "flow", [], {"C": Expected("COMPLETED", "0:0")}))
    assert len(surfaces.findings().lost) == 1


def test_a_job_without_a_verdict_is_lost() -> None:
    surfaces = Surfaces()
    surfaces.jobs[0]["is_settled"] = False
    assert len(surfaces.findings().lost) == 1


def test_an_attempt_that_ran_twice_is_doubled() -> None:
    surfaces = Surfaces()
    surfaces.ledger += "A 1 1\n"
    assert surfaces.findings().doubled == ["A attempt 1 ran 2 times"]


def test_a_job_that_is_there_twice_is_doubled() -> None:
    surfaces = Surfaces()
    surfaces.jobs.append(_job(3, "A", "COMPLETED", "0:0"))
    assert len(surfaces.findings().doubled) == 2  # by its name, and by the number that was given


@pytest.mark.parametrize(("state", "exit_"), [("COMPLETED", "0:0"), ("FAILED", "1:0"), ("UNVERIFIED", None)])
def test_a_verdict_that_is_not_what_happened_is_invented(state: str, exit_: str | None) -> None:
    surfaces = Surfaces()
    surfaces.jobs[1] = _job(2, "B", state, exit_)
    assert any("not FAILED 7:0" in text for text in surfaces.findings().invented)


def test_a_success_of_what_never_ran_is_invented() -> None:
    surfaces = Surfaces()
    surfaces.ledger = "B 1 2\n"
    assert len(surfaces.findings(Excuses(loses_witnesses=True, refuses_launches=True)).invented) == 1


def test_surfaces_that_differ_are_invented() -> None:
    surfaces = Surfaces()
    surfaces.sacct = surfaces.sacct.replace("FAILED", "COMPLETED")
    surfaces.python[0][2] = "FAILED"
    assert len(surfaces.findings().invented) == 2
