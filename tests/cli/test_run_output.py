"""`aver run flow.yaml --logs`, and a flow that can't start."""

from __future__ import annotations

import os

from product import DEADLINE_S, Product, wait_for_file
from talkative_flow import ALL, FLOW


def test_a_flow_with_logs_shows_every_line_with_its_jobs_name(aver: Product) -> None:
    """Of every attempt, also of jobs that end at once, and of lines without an end."""
    (aver.folder / "flow.yaml").write_text(FLOW)
    answer = aver("run", "flow.yaml", "--logs")
    assert sorted(answer.out.splitlines()) == ALL
    assert answer.status != 0
    assert "aver: again: attempt 2 begins\n" in answer.err
    assert "FAILED" in answer.err


def test_a_flow_that_can_not_start_says_why(aver: Product) -> None:
    """With --logs, in a pipe, and to somebody who follows the run: which job waits, and for what."""
    (aver.folder / "flow.yaml").write_text("jobs: {after: {needs: [a], run: 'true'}, a: {run: 'true', cpus: 1}}\n")
    everything = str(len(os.sched_getaffinity(0)))
    first = aver.submit("-q", "-c", everything, "--", "sleep", "600")
    waiting = []
    for at, words in enumerate((("run", "flow.yaml", "--logs"), ("run", "flow.yaml"), ("log", "-f", str(first + 1)))):
        told = aver.folder / f"told{at}"
        with told.open("wb") as err:
            waiting.append(aver.start_to(err, *words))
        wait_for_file(told, f"(a) is waiting for 1 CPU: job {first} has")
    aver("cancel", "--force", str(first))
    for process in waiting:
        assert process.wait(DEADLINE_S) == 0
        assert process.stdout is not None
        process.stdout.close()
