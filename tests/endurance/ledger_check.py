"""What must be true when all is settled, by public surfaces (`--json`, sacct, Python) and the jobs' own ledger alone.

lost: accepted or run, and nobody knows of it, or it has no verdict. doubled: there twice, or run twice.
invented: a verdict that is not what happened.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from known_jobs import Expected, Submission

PYTHON = """
import aver, json, sys
print(json.dumps([[job.number, job.name, str(job.state), job.exit and f"{job.exit.code}:{job.exit.signal}"]
                  for run in json.load(sys.stdin) for job in aver.Run(run).jobs]))
"""
FIRST = "true"  # the job of each round that comes before any fault
NOT_SEEN = ("UNVERIFIED", "NODE_FAIL")
SAME_IN_SACCT = ("COMPLETED", "FAILED", "TIMEOUT")


@dataclass(frozen=True)
class Excuses:
    """What a fault may rightly do to a job."""

    loses_witnesses: bool = False  # nobody saw its end: it may not be called a success, nor a failure
    refuses_launches: bool = False  # it was not started, and says so


@dataclass
class Findings:
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    invented: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.lost) + len(self.doubled) + len(self.invented)


Run = Callable[..., subprocess.CompletedProcess[str]]


def read_jobs(run: Run, aver: str) -> list[dict[str, Any]]:
    done = run([aver, "jobs", "--all", "--json"])
    if done.returncode:
        raise RuntimeError(f"aver jobs: {done.returncode} {done.stderr}")
    jobs: list[dict[str, Any]] = json.loads(done.stdout)["jobs"]
    return jobs


def check(run: Run, aver: str, bin_: str, ledger: str, made: Sequence[Submission], excuses: Excuses) -> Findings:
    found = Findings()
    jobs = read_jobs(run, aver)
    by_name: dict[str, list[dict[str, Any]]] = {}
    for job in jobs:
        by_name.setdefault(job["name"], []).append(job)
    ran = Counter(tuple(line.split()[:2]) for line in ledger.splitlines())
    for (name, attempt), count in ran.items():
        if count > 1:
            found.doubled.append(f"{name} attempt {attempt} ran {count} times")
        if name not in by_name:
            found.lost.append(f"{name} ran, and there is no such job")
    expected = {name: one for submission in made for name, one in submission.jobs.items()}
    for name in by_name.keys() - expected.keys() - {FIRST}:
        found.invented.append(f"{name} was never submitted")
    for submission in made:
        _check_submission(submission, by_name, found)
        for name, one in submission.jobs.items():
            for job in by_name.get(name, []):
                _check_job(submission, job, one, by_name, ran, excuses, found)
    _check_surfaces(run, bin_, jobs, found)
    return found


def _check_submission(submission: Submission, by_name: dict[str, list[dict[str, Any]]], found: Findings) -> None:
    counts = {name: len(by_name.get(name, [])) for name in submission.jobs}
    for name, count in counts.items():
        if count > 1:
            found.doubled.append(f"{name} is there {count} times")
    if len(set(counts.values())) > 1:
        found.lost.append(f"{submission.token}: a part of it is there: {counts}")
    is_there = any(counts.values())
    if submission.is_accepted and not is_there:
        found.lost.append(f"{submission.token} was accepted as {submission.numbers}, and is not there")
    if not (is_there or submission.was_killed or submission.way == "srun"):
        found.lost.append(f"{submission.token} is refused though nothing is wrong: {submission.err[-300:]}")
    may_be_there = submission.was_killed or submission.tries > 1 or "may still take" in submission.err
    if is_there and not submission.is_accepted and not may_be_there and submission.way != "srun":
        found.invented.append(f"{submission.token} was refused, and is there: {submission.err[-300:]}")
    runs = {job["run"] for name in submission.jobs for job in by_name.get(name, [])}
    if submission.is_accepted and is_there and runs != set(submission.numbers):
        found.doubled.append(f"{submission.token} was accepted as {submission.numbers}, and is {sorted(runs)}")


def _check_job(
    submission: Submission, job: dict[str, Any], expected: Expected, by_name: dict[str, list[dict[str, Any]]],
    ran: Counter[tuple[str, ...]], excuses: Excuses, found: Findings,
) -> None:  # fmt: skip
    name, state, reason = job["name"], job["state"], job["reason"]
    exit_text = None if job["exit"] is None else job["exit"]["text"]
    lines = sum(count for (one, _), count in ran.items() if one == name)
    what = f"{name} is {state} {exit_text} ({reason}, {job['detail']}) after {lines} of {job['attempt']} attempts"
    if not job["is_settled"]:
        found.lost.append(f"{what}: it has no verdict")
        return
    is_step_refused = submission.way == "srun" and not lines and "srun: error: " in submission.err
    if excuses.refuses_launches and is_step_refused and (state, exit_text) == ("FAILED", "1:0"):
        return  # the job is srun itself: it said why there is no step, and exited 1
    is_step_lost = submission.way == "srun" and "UNVERIFIED" in submission.err
    if excuses.loses_witnesses and is_step_lost and (state, exit_text) == ("FAILED", "1:0"):
        return  # likewise: it said that nobody saw its step's end, and exited 1
    if (state, exit_text) == (expected.state, expected.exit):
        if lines != expected.attempts or job["attempt"] != expected.attempts:
            found.invented.append(f"{what}, of {expected.attempts}")
        return
    if excuses.loses_witnesses and state in NOT_SEEN and job["verified"] is not None:
        return
    if excuses.refuses_launches and reason == "JobLaunchFailure" and lines < job["attempt"]:
        return
    needs_bad = any(one["state"] != "COMPLETED" for need in expected.needs for one in by_name.get(need, []))
    if state == "SKIPPED" and needs_bad and not lines:
        return
    is_stream_lost = not lines and "lost the streams of its srun" in job["detail"]
    if submission.way == "srun" and state == "CANCELLED" and (submission.was_killed or is_stream_lost):
        return
    found.invented.append(f"{what}, not {expected.state} {expected.exit}")


def _check_surfaces(run: Run, bin_: str, jobs: list[dict[str, Any]], found: Findings) -> None:
    """sacct and Python say what `aver jobs` says."""
    words = ["-X", "-P", "-n", "-S", "1990-01-01", "-E", "2090-01-01", "-o", "JobIDRaw,JobName,State,ExitCode"]
    done = run([f"{bin_}/sacct", *words])
    accounted = {int(line.split("|")[0]): line.split("|") for line in done.stdout.splitlines()}
    runs = sorted({job["run"] for job in jobs})
    python = run([sys.executable, "-c", PYTHON], input=json.dumps(runs))
    if done.returncode or python.returncode:
        found.lost.append(f"sacct {done.returncode} {done.stderr}, Python {python.returncode} {python.stderr}")
        return
    seen = {number: (name, state, exit_) for number, name, state, exit_ in json.loads(python.stdout)}
    for job in jobs:
        exit_text = None if job["exit"] is None else job["exit"]["text"]
        if seen.get(job["id"]) != (job["name"], job["state"], exit_text):
            found.invented.append(f"Python says {seen.get(job['id'])} of {job['name']} {job['state']} {exit_text}")
        said = accounted.get(job["id"])
        if said is None:
            found.lost.append(f"sacct does not know {job['name']} ({job['id']})")
        elif (said[2] in SAME_IN_SACCT or job["state"] in SAME_IN_SACCT) and said[2] != job["state"]:
            found.invented.append(f"sacct says {said} of {job['name']} {job['state']} {exit_text}")
