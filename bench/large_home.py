"""Make a home with very many settled jobs, through the store's own writer: `large_home.py FOLDER [JOBS]`.

Nothing runs: the events are those of jobs that ran. Half of the jobs are alone in their runs, half are members of one
flow; one in a thousand failed. For looking at commands on it: AVER_HOME=FOLDER aver jobs --sort mem.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from figures import FOLDER, Row

from aver.home import Home
from aver.model.events import AttemptPlanned, Event, Observed, RunMoved, RunSubmitted, Usage
from aver.model.evidence import Verdict
from aver.model.exit import ExitStatus
from aver.model.job import Argv, FlowSpec, JobSpec, Matrix, Origin, Request, Submission
from aver.model.states import State
from aver.store.write.writer import Writer

JOBS = 1_000_000
GLANCE_S = 0.3
PER_COMMIT = 2000
START = 1_790_000_000.0
ORIGIN = Origin("ann", 1000, "host", "/tmp", 0o22)
TRUE = Argv(("true",))


def job_events(run: int, job: int, at: float) -> Iterator[Event]:
    """What a job leaves that ran for a while."""
    elapsed_s, peak_bytes = (job * 7919 % 100_003) / 100, (1 + job * 104_729 % 9973) << 16
    is_good = job % 1000 != 0
    state = State.COMPLETED if is_good else State.FAILED
    reason = "None" if is_good else "NonZeroExitCode"
    verdict = Verdict(state, ExitStatus(0 if is_good else 1), reason, True, "witness")
    yield AttemptPlanned(at, run, job, 1, f"bench.{job}.1.boot", "local", Request(1, 0, 1 << 30, 3600))
    yield Observed(at, run, job, 1, "witness", "start", State.RUNNING, "None", usage=Usage(at, node="host"))
    usage = Usage(at, elapsed_s, 1.0, 0.5, peak_bytes, "host")
    yield Observed(at + elapsed_s, run, job, 1, "witness", "end", state, reason, verdict, usage)


def events(jobs: int, members: int) -> Iterator[list[Event]]:
    """The commits of such a home; so many of its jobs are one flow."""
    batch: list[Event] = []
    for number in range(1, jobs - members + 1):
        at = START + number
        flow = FlowSpec(f"single{number % 50}", (JobSpec(f"single{number % 50}", TRUE),), is_single=True)
        batch += [RunSubmitted(at, number, number, Submission(flow, ORIGIN)), *job_events(number, number, at)]
        batch.append(RunMoved(at + 1, number, State.COMPLETED))
        if len(batch) >= PER_COMMIT:
            yield batch
            batch = []
    run = jobs - members + 1
    matrix = Matrix((("n", tuple(map(str, range(members)))),))
    batch.append(
        RunSubmitted(START, run, run + 1, Submission(FlowSpec("many", (JobSpec("many", TRUE, matrix=matrix),)), ORIGIN))
    )
    for job in range(run + 1, run + 1 + members):
        batch += job_events(run, job, START + job)
        if len(batch) >= PER_COMMIT:
            yield batch
            batch = []
    yield [*batch, RunMoved(START + jobs, run, State.FAILED)]


def fill(folder: Path, jobs: int, members: int | None = None) -> None:
    """`members` None: half of the jobs."""
    home = Home(folder)
    home.prepare()
    writer = Writer.open(home.database)
    for batch in events(jobs, jobs - jobs // 2 if members is None else members):
        writer.commit(batch)
    writer.close()


def glance(quick: bool) -> list[Row]:
    """What is typed all day, start-up included, in a home with a long past; the best of several."""
    count = JOBS // 10 if quick else JOBS
    folder = Path(tempfile.mkdtemp(prefix="aver-bench-", dir=FOLDER))
    environment = {**os.environ, "AVER_HOME": str(folder / "home"), "AVER_CONFIG": os.devnull}
    aver = [sys.executable, "-m", "aver"]

    def took_s(*words: str) -> float:
        began = time.perf_counter()
        subprocess.run([*aver, *words], cwd=folder, env=environment, capture_output=True, check=True)
        return time.perf_counter() - began

    try:
        fill(folder / "home", count)
        rows = []
        for words in (("jobs",), ("show", str(count // 2)), ("why", str(count)), ("submit", "--", "true")):
            best = min(took_s(*words) for _ in range(6))
            name = f"aver {' '.join(words)}, home of {count:,} jobs"
            rows.append(Row(name, "s", best, {}, "≤ 0.3 s", best <= GLANCE_S))
        took_s("stop")
        return rows
    finally:
        shutil.rmtree(folder)


ROWS: dict[str, Callable[[bool], list[Row]]] = {"glance": glance}


def main() -> None:
    fill(Path(sys.argv[1]).absolute(), int(sys.argv[2]) if len(sys.argv) > 2 else JOBS)


if __name__ == "__main__":
    main()
