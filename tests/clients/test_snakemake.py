"""Snakemake with its slurm executor, as PyPI has them: what Snakemake reports of a workflow's jobs."""

from __future__ import annotations

import os
import re
import signal

from clients_desk import Desk, Said

from aver.model.states import State

SNAKEMAKE = (
    "snakemake", "--executor", "slurm", "--jobs", "4", "--seconds-between-status-checks", "1",
    "--slurm-init-seconds-before-status-checks", "7", "--slurm-logdir", "slurm-logs", "--slurm-keep-successful-logs",
    "--latency-wait", "10", "--max-status-checks-per-second", "10",
)  # fmt: skip

OUTCOMES = """
rule all:
    input: "report.txt", "broken.txt", "doomed.txt", "late.txt"

rule good:
    output: "good.txt"
    resources: mem_mb=500, runtime=5
    shell: "echo job $SLURM_JOB_ID in step $SLURM_STEP_ID > {output}"

rule report:
    input: "good.txt"
    output: "report.txt"
    resources: mem_mb=500, runtime=5
    run:
        with open(output[0], "w") as file:
            file.write(open(input[0]).read().upper())

rule broken:
    output: "broken.txt"
    resources: mem_mb=500, runtime=5
    shell: "echo it breaks now >&2; touch {output}; exit 3"

rule doomed:
    output: "doomed.txt"
    resources: mem_mb=20, runtime=5
    shell: "touch {output}"

rule late:
    output: "late.txt"
    resources: mem_mb=500
    shell: "sleep 60; touch {output}"
"""

HUNGRY = """
rule all:
    input: "big.txt"

rule hungry:
    output: "big.txt"
    resources:
        mem_mb=lambda wildcards, attempt: {1: 20, 2: 300, 3: 900}[attempt],
        runtime=5
    shell: "python3 -c 'import time; block = bytearray(400 << 20); time.sleep(1); print(len(block))' > {output}"
"""

ARRAY = """
rule all:
    input: "a.txt", "b.txt", "c.txt"

rule one:
    output: "{n}.txt"
    resources: mem_mb=500, runtime=5
    shell: "[ {wildcards.n} != a ] || sleep 8; echo $SLURM_ARRAY_TASK_ID > {output}; [ {wildcards.n} != FAILS ]"
"""

SLOW = """
rule all:
    input: "slow.txt", "slower.txt"

rule slow:
    output: "slow.txt"
    resources: mem_mb=500, runtime=5
    shell: "echo $SLURM_JOB_ID > started; sleep 300; touch {output}"

rule slower:
    input: "slow.txt"
    output: "slower.txt"
    resources: mem_mb=500, runtime=5
    shell: "touch {output}"
"""


def failures(said: Said) -> dict[str, str]:
    """The Slurm states that Snakemake named, by rule."""
    found = {}
    for part in said.text.split("Error in rule ")[1:]:
        rule = part.partition(":")[0]
        match = re.search(r"SLURM-job '(\d+)' failed, SLURM status is: '(\w+)'", part)
        found[rule] = match[2] if match else part
    return found


def test_a_workflow_with_rules_that_fail(desk: Desk) -> None:
    """What depends on nothing broken is made; each rule that failed is named with the state that its job had.

    `late` asks for no time of its own: SBATCH_TIMELIMIT gives it one.
    """
    desk.write("Snakefile", OUTCOMES)
    said = desk.run(*SNAKEMAKE, "--keep-going", env={"SBATCH_TIMELIMIT": "0:08"})
    assert said.status == 1, said.text
    assert failures(said) == {"broken": "FAILED", "doomed": "OUT_OF_MEMORY", "late": "TIMEOUT"}
    assert re.search(r"Finished jobid: \d+ \(Rule: good\)", said.text)
    assert re.search(r"Finished jobid: \d+ \(Rule: report\)", said.text)
    assert "2 of 6 steps (33%) done" in said.text
    assert re.fullmatch(r"JOB \d+ IN STEP 0\n", desk.read("report.txt"))
    for name in ("broken.txt", "doomed.txt", "late.txt"):
        assert not (desk.folder / name).exists(), "Snakemake removes what a failed job left"
    logs = "".join(path.read_text() for path in (desk.folder / "slurm-logs" / "rule_broken").iterdir())
    assert "it breaks now\n" in logs
    states = sorted(str(job.state) for job in desk.jobs())
    assert states == ["COMPLETED", "COMPLETED", "FAILED", "OUT_OF_MEMORY", "TIMEOUT"]


def test_a_retry_with_more_memory(desk: Desk) -> None:
    """The script is killed for memory, then its step is, then there is enough. There is a report on efficiency.

    Script and step share the limit: where the kernel is slow to free what the step had, it kills in the script too.
    """
    desk.write("Snakefile", HUNGRY)
    said = desk.run(*SNAKEMAKE, "--retries", "2", "--slurm-efficiency-report", "--slurm-efficiency-report-path", "use")
    assert said.status == 0, said.text
    found = re.findall(r"SLURM-job '\d+' failed, SLURM status is: '(\w+)'", said.text)
    assert found in (["OUT_OF_MEMORY", "FAILED"], ["OUT_OF_MEMORY", "OUT_OF_MEMORY"])
    assert said.text.count("Trying to restart job") == 2
    assert "2 of 2 steps (100%) done" in said.text
    assert desk.read("big.txt") == f"{400 << 20}\n"
    steps = [path.read_text() for path in sorted((desk.folder / "slurm-logs" / "rule_hungry").iterdir())]
    assert "Out Of Memory" in steps[1] or found[1] == "OUT_OF_MEMORY"
    assert [str(job.state) for job in desk.jobs()] == [*found, "COMPLETED"]
    reports = [path.read_text() for path in (desk.folder / "use").rglob("*") if path.is_file()]
    assert any("rule_hungry" in text for text in reports), reports


def test_an_array_whose_tasks_end_one_after_the_other(desk: Desk) -> None:
    """Through sacct, its default: Snakemake asks for the array's number, and goes on when all tasks have ended."""
    desk.write("Snakefile", ARRAY)
    said = desk.run(*SNAKEMAKE, "--slurm-array-jobs", "all", "--slurm-status-command", "sacct")
    assert said.status == 0, said.text
    assert "4 of 4 steps (100%) done" in said.text
    assert sorted(desk.read(f"{name}.txt") for name in "abc") == ["1\n", "2\n", "3\n"]


def test_an_array_with_a_task_that_fails(desk: Desk) -> None:
    """Snakemake takes one task's state for that of all: it is never COMPLETED."""
    desk.write("Snakefile", ARRAY.replace("FAILS", "b"))
    said = desk.run(*SNAKEMAKE, "--keep-going", "--slurm-array-jobs", "all", "--slurm-status-command", "sacct")
    assert said.status == 1, said.text
    assert said.text.count("SLURM status is: 'FAILED'") == 3
    states = [job.state for job in desk.jobs()]
    assert len(states) == 3
    assert State.FAILED in states


def test_a_run_that_is_interrupted(desk: Desk) -> None:
    """Ctrl-C cancels what runs; nothing is called finished, and nothing more is submitted."""
    desk.write("Snakefile", SLOW)
    client = desk.start(*SNAKEMAKE)
    desk.until_file("started", client)
    os.killpg(client.pid, signal.SIGINT)
    said = desk.finish(client)
    assert said.status == 1, said.text
    assert "Terminating processes on user request" in said.text
    assert "Finished jobid" not in said.text
    (job,) = desk.until_settled()
    assert (f"{job.id}\n", job.state) == (desk.read("started"), State.CANCELLED)
    assert not (desk.folder / "slow.txt").exists()
