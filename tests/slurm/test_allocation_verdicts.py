"""Jobs as steps of an allocation on a real Slurm: each has the verdict that it has everywhere."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from allocation_desk import SMALL, WIDE, allocation_ids, reasons_of, submit_in, wait_begun
from fault_desk import OK, RECORD, SEVEN, ClusterHome, job

from aver.judge.run import return_code
from aver.model.exit import ExitStatus
from aver.model.job import Argv, CheckpointRule, JobSpec, Need, Needs, Request, Scope, Shell, WarningSignal
from aver.model.states import State
from live_home import wait_for

MIB = 1 << 20
LITTLE = Request(mem_bytes=60 * MIB)
HUNGRY = "exec python3 -c 'x = bytearray(300 << 20)'"
KINDS: tuple[tuple[str, str, Request, State, ExitStatus | None], ...] = (
    ("good", "true", LITTLE, State.COMPLETED, OK),
    ("seven", "exit 7", LITTLE, State.FAILED, SEVEN),
    ("high", "exit 200", LITTLE, State.FAILED, ExitStatus(200)),
    ("own137", "exit 137", LITTLE, State.FAILED, ExitStatus(137)),
    ("term", "kill -TERM $$", LITTLE, State.FAILED, ExitStatus(0, 15)),
    ("killed", "kill -KILL $$", LITTLE, State.FAILED, ExitStatus(0, 9)),
    ("hungry", HUNGRY, LITTLE, State.OUT_OF_MEMORY, ExitStatus(0, 9)),
    ("slow", "exec sleep 60", Request(mem_bytes=60 * MIB, time_s=1), State.TIMEOUT, ExitStatus(0, 15)),
    ("free", "true", Request(), State.COMPLETED, OK),
    ("wide", "true", Request(cpus=3, mem_bytes=60 * MIB), State.COMPLETED, OK),
)


def mixed(count: int) -> tuple[list[JobSpec], dict[str, tuple[State, ExitStatus | None]]]:
    jobs, expected = [], {}
    for number in range(count):
        name, text, request, state, exit_status = KINDS[number % len(KINDS)]
        jobs.append(job(f"{name}{number}", text, request=request))
        expected[f"{name}{number}"] = (state, exit_status)
    return jobs, expected


@pytest.mark.parametrize("count", [40, pytest.param(500, marks=pytest.mark.long)])
def test_jobs_of_mixed_outcomes_have_the_right_verdicts(whole_cluster: ClusterHome, count: int) -> None:
    """Exit codes above 127, signals, memory and time limits: each as on one machine, each run once."""
    jobs, expected = mixed(count)
    run = submit_in(whole_cluster, jobs, WIDE)
    whole_cluster.settle([run], 60 + count)
    whole_cluster.check(run, expected)
    with whole_cluster.reader() as reader:
        codes = {row.name: row.verdict and return_code(row.state, row.exit) for row in reader.jobs(run=run)}
    assert {codes[name] for name in codes if name.startswith("hungry")} == {137}
    assert {codes[name] for name in codes if name.startswith("slow")} == {152}
    assert len(allocation_ids(whole_cluster, run)) == 1
    steps = accounts(run)
    assert {(row["job"], row["attempt"]) for row in steps if row["job"] is not None} == {
        (run + 1 + place, 1) for place in range(count)
    }
    states = {row["job"]: row["state"] for row in steps}
    assert {states[run + 1 + place] for place in range(count) if jobs[place].name.startswith("hungry")} == {
        "OUT_OF_MEMORY"
    }


def accounts(run: int) -> list[dict[str, Any]]:
    """The rows of `aver slurm sacct`."""
    words = [sys.executable, "-m", "aver", "slurm", "sacct", str(run), "--json"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return rows


def test_a_dependent_runs_in_the_same_allocation(whole_cluster: ClusterHome) -> None:
    """Needs are Aver's own; a program that is not there is a launch failure; the executor leaves with the run."""
    missing = JobSpec("missing", Argv(("/no/such/program",)))
    second = job("second", "true", needs=Needs((Need("first"),)))
    run = submit_in(whole_cluster, [job("first", "true"), second, missing], SMALL)
    whole_cluster.settle([run])
    whole_cluster.check(
        run,
        {"first": (State.COMPLETED, OK), "second": (State.COMPLETED, OK), "missing": (State.FAILED, None)},
    )
    assert "No such file" in whole_cluster.verdict_text(run, "missing")
    (number,) = allocation_ids(whole_cluster, run)
    words = ("squeue", "-h", "-a", "-t", "all", "-j", str(number), "-o", "%T")
    wait_for(lambda: whole_cluster.lab.call(*words).strip() == "COMPLETED", "the executor leaves")


def test_what_never_fits_waits_with_the_reason(whole_cluster: ClusterHome) -> None:
    """A job that no node of the allocation can hold is PENDING and says so; others pass it; it can be cancelled."""
    jobs = [job("large", "true", request=Request(cpus=64)), job("small", "true")]
    run = submit_in(whole_cluster, jobs, SMALL)
    whole_cluster.wait_state(run, "small", State.COMPLETED)
    wait_for(lambda: reasons_of(whole_cluster, run)["large"] == "AllocationTooSmall", "the reason")
    with whole_cluster.client() as client:
        client.call("cancel", ids=[run], by="tester", signal=None, now=False)
    whole_cluster.settle([run])
    whole_cluster.check(run, {"large": (State.CANCELLED, None), "small": (State.COMPLETED, OK)})


def test_a_cancelled_step_gets_term_first(whole_cluster: ClusterHome, tmp_path: Path) -> None:
    """A running job is CANCELLED with its own wait status, others go on, and one that traps TERM may clean up."""
    trapping = f"trap 'touch {tmp_path}/cleaned; exit 0' TERM; touch {tmp_path}/there; while :; do sleep 0.1; done"
    run = submit_in(whole_cluster, [job("traps", trapping), job("other", "sleep 5")], SMALL)
    wait_for((tmp_path / "there").exists, "the job runs")
    with whole_cluster.client() as client:
        client.call("cancel", ids=[run + 1], by="tester", signal=None, now=False)
    whole_cluster.settle([run])
    whole_cluster.check(run, {"traps": (State.CANCELLED, OK), "other": (State.COMPLETED, OK)})
    assert (tmp_path / "cleaned").exists()


def test_a_graceful_stop_is_continued(whole_cluster: ClusterHome, tmp_path: Path) -> None:
    """The warning comes before the step's limit; ending well after it is CHECKPOINTED, and the next attempt ends it."""
    text = f"test -e {tmp_path}/half && exit 0; trap 'touch {tmp_path}/half; exit 0' USR1; while :; do sleep 0.1; done"
    warned = JobSpec(
        "long", Shell(RECORD + text, ("/bin/sh",)), step_warning=WarningSignal(10, 55, Scope.SCRIPT),
        checkpoint=CheckpointRule(),
    )  # fmt: skip
    run = submit_in(whole_cluster, [warned], ("-N1", "-n1", "-t4"), headroom_s=180 - 50)
    wait_begun(whole_cluster, run)
    whole_cluster.settle([run], 150)
    whole_cluster.check(run, {"long": (State.COMPLETED, OK)}, attempts={"long": 2})
    with whole_cluster.reader() as reader:
        assert [row.state for row in reader.attempts_of_run(run)] == [State.CHECKPOINTED, State.COMPLETED]
