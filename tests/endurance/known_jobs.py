"""Submissions whose outcome is known beforehand, through every way in: flows, sbatch, srun, Python.

Each job has a name of its own in the whole campaign, and appends `NAME ATTEMPT NUMBER` to the ledger when it runs.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

WAYS = ("flow", "flow", "sbatch", "sbatch", "srun", "python")
ENDS = ("exit 0", "exit 0", "exit 1", "exit 7", "exit 255", "kill -KILL $$")


@dataclass(frozen=True)
class Expected:
    state: str
    exit: str | None  # code:signal; None: there is none
    attempts: int = 1
    needs: tuple[str, ...] = ()


@dataclass
class Submission:
    token: str
    way: str
    words: list[str]
    jobs: dict[str, Expected]
    process: subprocess.Popen[str] | None = None
    was_killed: bool = False
    status: int | None = None
    out: str = ""
    err: str = ""
    tries: int = 0
    numbers: list[int] = field(default_factory=list)

    @property
    def is_accepted(self) -> bool:
        return bool(self.numbers)


class Maker:
    """Makes submissions, by seed."""

    def __init__(
        self, folder: Path, home: Path, aver: str, chance: random.Random, jobs_of_flow: tuple[int, int]
    ) -> None:
        self.ledger = folder / "ledger"
        self._folder = folder
        self._home = home
        self._aver = aver
        self._chance = chance
        self._jobs_of_flow = jobs_of_flow
        self._count = 0

    def make(self, way: str | None = None) -> Submission:
        self._count += 1
        token = f"T{self._count}"
        way = way or self._chance.choice(WAYS)
        if way == "flow":
            return self._flow(token)
        text, expected = self._end(token)
        if way == "python":
            program = f"import aver; f = aver.Flow({token!r}); f.job({token!r}, run={text!r}); print(f.submit().number)"
            return Submission(token, way, [sys.executable, "-c", program], {token: expected})
        if way == "sbatch":
            script = self._folder / f"{token}.sh"
            script.write_text(f"#!/bin/sh\n#SBATCH -J {token}\n#SBATCH -o /dev/null\n{text}\n")
            return Submission(token, way, [f"{self._home}/bin/sbatch", "--parsable", str(script)], {token: expected})
        words = [f"{self._home}/bin/srun", "-Q", "-J", token, "sh", "-c", text]
        return Submission(token, way, words, {token: expected})

    def chain(self, length: int, pause_s: float) -> Submission:
        """Jobs that need one another: most are pending at any time."""
        token = f"C{self._count}"
        self._count += 1
        jobs, expected = [], {}
        for number in range(length):
            name = f"{token}-{number}"
            needs = [f"{token}-{number - 1}"] if number else []
            jobs.append({"name": name, "run": f"{self._note(name)}; sleep {pause_s}", "needs": needs})
            expected[name] = Expected("COMPLETED", "0:0", 1, tuple(needs))
        return self._of_flow(token, jobs, expected)

    def _note(self, name: str) -> str:
        return f'echo "{name} ${{AVER_ATTEMPT:-1}} ${{AVER_JOB:-0}}" >> {self.ledger}'

    def _end(self, name: str) -> tuple[str, Expected]:
        end = self._chance.choice(ENDS)
        pause = self._chance.choice(("", "", f"sleep 0.{self._chance.randint(1, 9)}; "))
        if end.startswith("kill"):
            return f"{self._note(name)}; {pause}{end}", Expected("FAILED", "0:9")
        code = int(end.split()[1])
        return f"{self._note(name)}; {pause}{end}", Expected("FAILED" if code else "COMPLETED", f"{code}:0")

    def _flow(self, token: str) -> Submission:
        """Short jobs of every end, a retry, a limit, and jobs that need others."""
        jobs: list[Mapping[str, object]] = []
        expected = {}
        for number in range(self._chance.randint(*self._jobs_of_flow)):
            name = f"{token}-{number}"
            text, expected[name] = self._end(name)
            jobs.append({"name": name, "run": text})
        again, behind, late = f"{token}-again", f"{token}-behind", f"{token}-late"
        text = f'{self._note(again)}; [ "$AVER_ATTEMPT" -ge 3 ] || exit 9'
        jobs.append({"name": again, "run": text, "retry": {"max": 3, "on": ["exit:9"], "backoff": "1s"}})
        expected[again] = Expected("COMPLETED", "0:0", 3)
        jobs.append({"name": behind, "run": self._note(behind), "needs": [f"{token}-0"]})
        is_good = expected[f"{token}-0"].state == "COMPLETED"
        expected[behind] = Expected("COMPLETED", "0:0") if is_good else Expected("SKIPPED", None, 0)
        expected[behind] = Expected(
            expected[behind].state, expected[behind].exit, expected[behind].attempts, (f"{token}-0",)
        )
        if self._chance.random() < 0.3:
            jobs.append({"name": late, "run": f"{self._note(late)}; exec sleep 600", "time": "1s"})
            expected[late] = Expected("TIMEOUT", "0:15")
        return self._of_flow(token, jobs, expected)

    def _of_flow(self, token: str, jobs: list[Mapping[str, object]], expected: dict[str, Expected]) -> Submission:
        path = self._folder / f"{token}.json"
        document = {"name": token, "jobs": [{**job, "output": "/dev/null"} for job in jobs]}
        path.write_text(json.dumps(document))
        return Submission(token, "flow", [self._aver, "submit", "--key", token, str(path)], expected)
