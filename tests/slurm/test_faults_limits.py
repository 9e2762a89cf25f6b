"""What Slurm does not take: for now, by a limit; or ever, by a mistake."""

from __future__ import annotations

import time

from fault_desk import OK, ClusterHome, job

from aver.model.exit import ExitStatus
from aver.model.job import Matrix, Request
from aver.model.states import State
from live_home import wait_for


def test_limits_hold_back_and_mistakes_fail_at_once(cluster: ClusterHome) -> None:
    """Over MaxSubmitJobs: PENDING with Slurm's reason, and later done, arrays too. A wrong account: its sentence."""
    cluster.lab.call("sacctmgr", "-iQ", "modify", "user", "root", "set", "MaxSubmitJobs=2")
    run = cluster.submit(
        *(job(f"job{n}", "sleep 0.5; exit 0") for n in range(3)),
        job("many", "exit {n}", matrix=Matrix((("n", ("0", "1", "2")),))),
        job("account", "exit 0", slurm_options=("--account=nobody",)),
        job("partition", "exit 0", slurm_options=("--partition=nowhere",)),
    )
    cluster.wait_state(run, "account", State.FAILED)
    cluster.wait_state(run, "partition", State.FAILED)
    reasons = set()

    def held_back() -> bool:
        with cluster.reader() as reader:
            reasons.update(one.reason for one in reader.jobs(run=run) if one.state is State.PENDING)
        return any("MaxSubmitJob" in reason for reason in reasons)

    wait_for(held_back, "a job waits with Slurm's reason")
    cluster.settle([run], 90)
    cluster.check(
        run,
        {f"job{n}": (State.COMPLETED, OK) for n in range(3)}
        | {f"many[n={n}]": (State.FAILED if n else State.COMPLETED, ExitStatus(n)) for n in range(3)}
        | {"account": (State.FAILED, None), "partition": (State.FAILED, None)},
    )
    assert "Invalid account or account/partition combination specified" in cluster.verdict_text(run, "account")
    assert "nvalid partition" in cluster.verdict_text(run, "partition")


def test_a_deadline_is_kept_by_slurm(cluster: ClusterHome) -> None:
    """A job that could not end in time is DEADLINE and never runs; one that can runs."""
    minute = Request(time_s=60)
    now = time.time()
    run = cluster.submit(
        job("late", "exit 0", request=minute, deadline_at=now + 30),
        job("in-time", "exit 0", request=minute, deadline_at=now + 600),
    )
    cluster.settle([run], 60)
    cluster.check(run, {"late": (State.DEADLINE, None), "in-time": (State.COMPLETED, OK)})
    assert cluster.keys_run() == {f"{run + 2}.1": 1}
