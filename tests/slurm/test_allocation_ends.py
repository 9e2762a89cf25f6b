"""An allocation that is over: cancelled, out of time, its executor killed, a node dead: nothing lost, nothing twice."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from allocation_desk import SMALL, allocation_ids, folder_of, kill_executor, reasons_of, submit_in, wait_begun
from fault_desk import OK, ClusterHome, job

from aver.errors import UsageError
from aver.model.codec import encode
from aver.model.exit import ExitStatus
from aver.model.job import Allocation, JobSpec
from aver.model.record import replace
from aver.model.states import State
from live_home import wait_for

FIRST_WAITS = '[ "$AVER_ATTEMPT" -gt 1 ] || exec sleep 300'
QUICK = tuple(f"quick{number}" for number in range(4))


def two_long_and_quick(text: str = "exec sleep 300") -> list[JobSpec]:
    return [job("long0", text), job("long1", text), *(job(name, "true") for name in QUICK)]


def all_completed(names: tuple[str, ...]) -> dict[str, tuple[State, ExitStatus | None]]:
    return dict.fromkeys(names, (State.COMPLETED, OK))


def begin(home: ClusterHome, jobs: list[JobSpec], count: int = 2) -> tuple[int, int]:
    """Submit, and wait until the two long jobs fill the first allocation; run and its allocation's id."""
    run = submit_in(home, jobs, SMALL, count)
    number = wait_begun(home, run)
    for name in ("long0", "long1"):
        home.wait_state(run, name, State.RUNNING)
    wait_for(lambda: len(home.keys_run()) == 2, "their programs run")
    return run, number


def test_scancel_of_the_allocation(whole_cluster: ClusterHome) -> None:
    """What ran is CANCELLED by whoever cancelled it; what waited goes on in the next allocation."""
    run, number = begin(whole_cluster, two_long_and_quick())
    whole_cluster.lab.call("scancel", str(number))
    whole_cluster.settle([run], 120)
    gone = (State.CANCELLED, ExitStatus(0, 15))
    whole_cluster.check(run, {**all_completed(QUICK), "long0": gone, "long1": gone})
    assert f"its allocation {number} ended: CANCELLED by" in whole_cluster.verdict_text(run, "long0")


def test_the_allocation_s_own_time_limit(whole_cluster: ClusterHome) -> None:
    """What ran is TIMEOUT, though its step's own limit was later; what waited goes on in the next allocation."""
    run, number = begin(whole_cluster, two_long_and_quick())
    whole_cluster.lab.call("scontrol", "update", f"jobid={number}", "EndTime=now+3")
    whole_cluster.settle([run], 150)
    gone = (State.TIMEOUT, ExitStatus(0, 15))
    whole_cluster.check(run, {**all_completed(QUICK), "long0": gone, "long1": gone})


def test_a_killed_executor(whole_cluster: ClusterHome) -> None:
    """Its steps end with it, which is not a failure of theirs: they are tried again in the next allocation."""
    run, number = begin(whole_cluster, two_long_and_quick(FIRST_WAITS))
    kill_executor(whole_cluster, number)
    whole_cluster.settle([run], 120)
    again = {"long0": 2, "long1": 2}
    whole_cluster.check(run, all_completed((*QUICK, "long0", "long1")), attempts=again)
    with whole_cluster.reader() as reader:
        firsts = [row.state for row in reader.attempts_of_run(run) if row.attempt == 1 and row.job <= run + 2]
    assert firsts == [State.NODE_FAIL, State.NODE_FAIL]


def test_a_dead_node(cluster: ClusterHome) -> None:
    """What ran there is NODE_FAIL and tried again; what waited goes on in the next allocation."""
    run = submit_in(cluster, two_long_and_quick(FIRST_WAITS), ("-pfragile", *SMALL), 2)
    wait_begun(cluster, run)
    for name in ("long0", "long1"):
        cluster.wait_state(run, name, State.RUNNING)
    node = f"{cluster.lab.node}6"
    cluster.lab.stop(f"slurmd-{node}", signal.SIGKILL)
    cluster.lab.call("scontrol", "update", f"nodename={node}", "state=down", "reason=test")
    cluster.wait_state(run, "long0", State.PENDING, deadline_s=120)
    cluster.lab.heal()
    cluster.lab.can_ask("scontrol", "update", f"nodename={node}", "state=resume")  # unless it is back by itself
    cluster.settle([run], 180)
    with cluster.reader() as reader:
        rows = reader.attempts_of_run(run)
    again = dict.fromkeys(("long0", "long1"), 2)
    seen = {row.job: row.attempt for row in rows}  # here the dead node's executor lives, and may take one more
    again |= {name: seen[run + 3 + place] for place, name in enumerate(QUICK)}
    cluster.check(run, all_completed((*QUICK, "long0", "long1")), attempts=again)
    firsts = [row.state for row in rows if row.attempt < seen[row.job]]
    assert set(firsts) == {State.NODE_FAIL}


def test_no_allocation_is_left(whole_cluster: ClusterHome) -> None:
    """Jobs that nobody took wait with the reason, over a restart too, until somebody takes another allocation."""
    run, number = begin(whole_cluster, two_long_and_quick(), count=1)
    whole_cluster.lab.call("scancel", str(number))
    whole_cluster.wait_state(run, "long0", State.CANCELLED)
    whole_cluster.wait_state(run, "quick3", State.PENDING)
    whole_cluster.kill_coordinator()
    whole_cluster.connect_again()
    assert set(reasons_of(whole_cluster, run).values()) == {"None", "NoAllocation"}
    with whole_cluster.client() as client:
        client.call("allocate", run=run, allocation=encode(Allocation(SMALL)), by="tester")
    whole_cluster.settle([run], 120)
    gone = (State.CANCELLED, ExitStatus(0, 15))
    whole_cluster.check(run, {**all_completed(QUICK), "long0": gone, "long1": gone})


def test_a_refused_allocation_fails_at_once(whole_cluster: ClusterHome) -> None:
    """A wrong partition will never come: the jobs are FAILED with Slurm's sentence."""
    run = submit_in(whole_cluster, [job("one", "true"), job("two", "true")], ("-N1", "--partition=nosuch"))
    whole_cluster.settle([run])
    whole_cluster.check(run, {"one": (State.FAILED, None), "two": (State.FAILED, None)})
    assert "partition" in whole_cluster.verdict_text(run, "one")


def test_what_is_for_the_whole_allocation(whole_cluster: ClusterHome) -> None:
    """A job may name the partition that its allocation has; another one of it is refused, and so is a feature."""
    named = replace(job("one", "sleep 2"), slurm_options=("--partition=main",))
    run = submit_in(whole_cluster, [named], ("--partition", "main", *SMALL))
    with whole_cluster.client() as client, pytest.raises(UsageError, match="--partition=main is for the whole"):
        client.call("allocate", run=run, allocation=encode(Allocation(SMALL)), by="tester")
    with pytest.raises(UsageError, match="--constraint=gpu is for the whole allocation"):
        submit_in(whole_cluster, [replace(job("two", "true"), slurm_options=("-Cgpu",))], SMALL)
    whole_cluster.settle([run])
    whole_cluster.check(run, all_completed(("one",)))


def test_a_retry_takes_new_allocations(whole_cluster: ClusterHome, tmp_path: Path) -> None:
    """The run was settled and its allocation has left; what failed runs again in another one."""
    run = submit_in(whole_cluster, [job("flaky", f"test -e {tmp_path}/mended"), job("good", "true")], SMALL)
    whole_cluster.settle([run])
    (tmp_path / "mended").touch()
    wait_for((folder_of(whole_cluster, run) / "close").exists, "its allocations are let go")
    with whole_cluster.client() as client:
        client.call("retry", ids=[run], by="tester")
    whole_cluster.settle([run], 90)
    whole_cluster.check(run, all_completed(("flaky", "good")), attempts={"flaky": 2})
    assert len(allocation_ids(whole_cluster, run)) == 2


def test_a_deadline_holds_in_an_allocation(whole_cluster: ClusterHome, tmp_path: Path) -> None:
    """It ends a job that runs, as its time limit does; a job that waits for room is DEADLINE and never runs."""
    fill = f"while [ ! -e {tmp_path}/go ]; do sleep 0.1; done"
    soon = time.time() + 60
    jobs = [job("fills", fill), job("runs", "exec sleep 300", deadline_at=soon), job("waits", "true", deadline_at=soon)]
    run = submit_in(whole_cluster, jobs, SMALL)
    whole_cluster.wait_state(run, "runs", State.RUNNING)
    whole_cluster.wait_state(run, "waits", State.DEADLINE, deadline_s=120)
    whole_cluster.wait_state(run, "runs", State.TIMEOUT, deadline_s=120)
    (tmp_path / "go").touch()
    whole_cluster.settle([run])
    whole_cluster.check(
        run,
        {"fills": (State.COMPLETED, OK), "runs": (State.TIMEOUT, ExitStatus(0, 15)), "waits": (State.DEADLINE, None)},
    )
