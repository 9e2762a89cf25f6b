"""Retry by rule, and checkpoints: attempts, growth, backoff, budget, rounds."""

from __future__ import annotations

import pytest
from flow_lab import Lab, states

FAIL_FIRST = "echo x >> tries; test $(wc -l < tries) -ge 2 || "


@pytest.mark.parametrize(
    ("rule", "first_end"),
    [
        ("on: [FAILED]", "exit 3"),
        ('on: ["exit:75"]', "exit 75"),
        ('on: ["signal:BUS"]', "kill -BUS $$"),
        ("on: [NonZeroExitCode]", "exit 9"),
    ],
)
def test_by_state_code_signal_and_reason(lab: Lab, rule: str, first_end: str) -> None:
    """Another attempt by each kind of rule; both are kept, each with its own verdict, and nobody is skipped."""
    run = lab.run(
        f"""
jobs:
  a: {{run: "{FAIL_FIRST} {first_end}", retry: {{max: 2, {rule}}}}}
  b: {{needs: a, run: "true"}}
"""
    )
    assert states(run) == {"a": "COMPLETED", "b": "COMPLETED"}
    assert [str(attempt.state) for attempt in run["a"].attempts] == ["FAILED", "COMPLETED"]


def test_what_the_rule_does_not_name_is_not_retried(lab: Lab) -> None:
    """`exit:75` says nothing about exit 3."""
    run = lab.run('jobs:\n  a: {run: exit 3, retry: {max: 2, on: ["exit:75"]}}\n')
    assert len(run["a"].attempts) == 1


def test_growth_of_time_up_to_a_ceiling_and_the_last_verdict(lab: Lab) -> None:
    """TIMEOUT grows time, 1 s to 2 s, then the ceiling; the rule used up, the last attempt's verdict is the job's."""
    run = lab.run(
        "jobs:\n  a: {run: sleep 100, time: 1s, kill_wait: 0,"
        " retry: {max: 2, on: [TIMEOUT], grow: {time: 2x}, ceiling: {time: 2s}}}\n"
    )
    assert [attempt.request.time_s for attempt in run["a"].attempts] == [1, 2, 2]
    assert states(run) == {"a": "TIMEOUT"}
    assert run.state == "TIMEOUT"


def test_backoff_keeps_the_job_pending_and_skips_nobody(lab: Lab) -> None:
    """While a retry is due the job is PENDING (Retry), and its dependents wait; a cancel then ends it unstarted."""
    run = lab.submit("jobs:\n  a: {run: exit 1, retry: {max: 1, backoff: 1h}}\n  b: {needs: a, run: 'true'}\n")
    lab.until(lambda: run["a"].reason == "Retry", "no retry is due")
    assert states(run) == {"a": "PENDING", "b": "PENDING"}
    assert run["a"].verdict is None
    run["a"].cancel()
    run.wait(60)
    assert states(run) == {"a": "CANCELLED", "b": "SKIPPED"}
    assert len(run["a"].attempts) == 1


def test_the_budget_of_the_run(lab: Lab) -> None:
    """Two retries for the whole run, whatever each job may use."""
    run = lab.run("retry_budget: 2\njobs:\n  a: {matrix: {n: 1..3}, run: 'exit 1; : {n}', retry: 5}\n")
    assert sum(len(job.attempts) for job in run) == 3 + 2
    assert run.state == "FAILED"


TRAINER = """
trap 'warned=1' TERM
epoch=$(cat epoch 2>/dev/null || echo 0)
touch started
if [ "$epoch" -ge 2 ]; then echo trained; exit 0; fi
while [ -z "$warned" ]; do sleep 0.02; done
echo $((epoch + 1)) >epoch
exit "${1:-0}"
"""


@pytest.mark.parametrize("form", ["sh train.sh", "exec sh train.sh", "true && sh train.sh; echo after"])
def test_checkpointed_is_continued_until_it_ends_unwarned(lab: Lab, form: str) -> None:
    """A program that traps TERM and exits 0 when warned is CHECKPOINTED, not COMPLETED, and continued; the shell
    outlives the warning."""
    lab.write(TRAINER, "train.sh")
    run = lab.run(
        f"""
jobs:
  train: {{run: "{form}", time: 60s, signal: TERM@58s, checkpoint: true}}
  eval: {{needs: train, run: "true"}}
"""
    )
    assert states(run) == {"train": "COMPLETED", "eval": "COMPLETED"}
    assert [str(attempt.state) for attempt in run["train"].attempts] == ["CHECKPOINTED", "CHECKPOINTED", "COMPLETED"]
    assert "trained" in run["train"].log()


def test_rounds_that_are_used_up(lab: Lab) -> None:
    """After its rounds the job stays CHECKPOINTED, which is no success: dependents skip, and `aver run` exits 8."""
    lab.write(TRAINER, "train.sh")
    lab.write(
        """
jobs:
  train: {run: sh train.sh 85, time: 60s, signal: TERM@58s, checkpoint: {codes: [85], rounds: 1}}
  eval: {needs: train, run: "true"}
"""
    )
    answer = lab("run", "--json", "flow.yaml")
    assert answer.status == 8, answer
    jobs = {job["name"]: job for job in lab("jobs", "1", "--json").document["jobs"]}
    assert jobs["train"]["state"] == "CHECKPOINTED"
    assert jobs["train"]["attempt"] == 2
    assert jobs["eval"]["reason"] == "NeedFailed:train(CHECKPOINTED)"


@pytest.mark.parametrize(
    ("script", "task", "expected"),
    [
        ("trap '' USR1", "trap '' USR1; sleep 2", ["COMPLETED"]),
        ("true", "trap '' USR1; sleep 2", ["COMPLETED"]),
        ("trap '' USR1", "trap 'exit 0' USR1; touch began; while :; do sleep 0.1; done", ["CHECKPOINTED"] * 2),
        ("trap : USR1", "trap '' USR1; sleep 2", ["CHECKPOINTED"] * 2),
    ],
    ids=["both ignore it", "the step ignores it", "the task takes it", "the script takes it"],
)
def test_a_warning_counts_where_the_users_own_processes_took_it(
    lab: Lab, script: str, task: str, expected: list[str]
) -> None:
    """Our srun is none of them: finished work that never reacted is COMPLETED, and not run again."""
    lab.write(task, "task.sh")
    run = lab.run(
        f"""
jobs:
  work:
    time: 30s
    signal: USR1@29s
    checkpoint: {{rounds: 1}}
    run: |
      {script}
      srun bash task.sh
      exit 0
"""
    )
    assert [str(attempt.state) for attempt in run["work"].attempts] == expected


def test_a_task_with_an_epilog_takes_the_warning_itself(lab: Lab) -> None:
    """The process that srun puts around its program hands signals on: that it has a handler says nothing."""
    lab.write("#!/bin/sh\n", "epilog")
    (lab.folder / "epilog").chmod(0o755)
    run = lab.run(
        """
defaults: {time: 30s, signal: USR1@29s, checkpoint: {rounds: 1}}
jobs:
  deaf: {run: "srun --task-epilog=$PWD/epilog bash -c \\"trap '' USR1; sleep 2\\"; exit 0"}
  takes: {run: "srun --task-epilog=$PWD/epilog bash -c \\"trap 'exit 0' USR1; while :; do sleep 0.1; done\\"; exit 0"}
"""
    )
    assert {name: str(run[name].attempts[0].state) for name in ("deaf", "takes")} == {
        "deaf": "COMPLETED",
        "takes": "CHECKPOINTED",
    }
