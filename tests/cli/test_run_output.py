"""What many jobs write: `aver log RUN`, `aver log -f RUN`, `aver run flow.yaml --logs`."""

from __future__ import annotations

import os

from product import DEADLINE_S, Product, end, wait_for_file

FLOW = """
jobs:
  prep: {run: "echo one; echo two"}
  train:
    needs: [prep]
    matrix: {seed: [1, 2]}
    run: "echo seed {seed}; printf 'no end'"
  again:
    retry: 1
    run: 'echo "try $AVER_ATTEMPT"; exit 3'
  quiet: {run: "true"}
"""
ALL = [
    "again | try 1", "again | try 2", "prep | one", "prep | two",
    "train[seed=1] | no end", "train[seed=1] | seed 1", "train[seed=2] | no end", "train[seed=2] | seed 2",
]  # fmt: skip


def test_a_flow_with_logs_shows_every_line_with_its_jobs_name(aver: Product) -> None:
    """Of every attempt, also of jobs that end at once, and of lines without an end."""
    (aver.folder / "flow.yaml").write_text(FLOW)
    answer = aver("run", "flow.yaml", "--logs")
    assert sorted(answer.out.splitlines()) == ALL
    assert answer.status != 0
    assert "aver: again: attempt 2 begins\n" in answer.err
    assert "FAILED" in answer.err


def test_the_log_of_a_run_is_that_of_its_jobs(aver: Product) -> None:
    """In their order; a pattern chooses among them."""
    (aver.folder / "flow.yaml").write_text(FLOW)
    aver("run", "-q", "flow.yaml")
    newest = [line for line in ALL if line != "again | try 1"]
    assert sorted(aver("log", "1").out.splitlines()) == newest
    assert sorted(aver("log", "1", "-f").out.splitlines()) == newest
    assert aver("log", "1/train*", "-n", "1").out == "train[seed=1] | no end\ntrain[seed=2] | no end\n"
    assert aver("log", "1", "--json").status == 2


def test_a_run_is_followed_until_it_is_settled(aver: Product) -> None:
    """What runs is shown from its beginning, what starts later as well; what was settled before is not."""
    (aver.folder / "flow.yaml").write_text(
        "jobs:\n"
        "  early: {run: echo early}\n"
        "  now: {needs: [early], run: 'echo before; touch begun; until test -e go; do sleep 0.02; done; echo after'}\n"
        "  later: {needs: [now], run: echo later}\n"
    )
    run = aver.submit("flow.yaml")
    wait_for_file(aver.folder / "begun")
    follower = aver.start("log", "-f", str(run))
    assert follower.stdout is not None
    assert follower.stdout.readline() == b"now | before\n"
    (aver.folder / "go").touch()
    answer = end(follower)
    assert (answer.status, answer.out) == (0, "now | after\nlater | later\n")


def test_secrets_are_masked_in_what_many_jobs_write(aver: Product) -> None:
    """Also where a value is written in two parts."""
    (aver.folder / "flow.yaml").write_text("jobs: {a: {run: 'printf hun; sleep 0.3; echo ter2'}}\n")
    answer = aver("run", "--env", "TOKEN=hunter2", "--secret", "TOKEN", "flow.yaml", "--logs")
    assert answer.out == "a | ***\n"


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
