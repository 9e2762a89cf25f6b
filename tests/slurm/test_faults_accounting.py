"""Accounting away: slurmdbd or its database stopped before, during and after a job's end; no accounting at all."""

from __future__ import annotations

import pytest
from fault_desk import BLOCK, OK, ONE, SEVEN, ClusterHome, job, until

from aver.model.exit import ExitStatus
from aver.model.job import Matrix, Need, Needs
from aver.model.states import State
from live_home import wait_for


def test_a_job_that_ends_while_accounting_is_away_waits_for_it(cluster: ClusterHome) -> None:
    """What its witness saw settles at once; what nobody saw is SETTLING until slurmdbd is back, never COMPLETED."""
    go = cluster.folder / "go"
    run = cluster.submit(
        job("during", until(go) + BLOCK + "exit 0"),
        job("during-bad", until(go) + BLOCK + "exit 7"),
        job("after", "exit 0", needs=Needs((Need("during"),))),
    )
    cluster.wait_state(run, "during", State.RUNNING)
    cluster.wait_state(run, "during-bad", State.RUNNING)
    cluster.lab.stop("slurmdbd")
    later = cluster.submit(
        job("seen", "exit 0"),
        job("seen-bad", "exit 137"),
        job("before", BLOCK + "exit 0"),
        job("many", BLOCK + "[ {n} != 1 ]", matrix=Matrix((("n", ("0", "1")),))),
    )
    go.touch()
    cluster.wait_state(later, "seen", State.COMPLETED)
    cluster.wait_state(later, "seen-bad", State.FAILED)
    cluster.wait_state(run, "during-bad", State.FAILED)
    for number, name in ((run, "during"), (later, "before"), (later, "many[n=0]")):
        cluster.wait_state(number, name, State.SETTLING)
    silent = cluster.count_calls("sacct")
    wait_for(lambda: cluster.count_calls("sacct") >= silent + 3, "accounting is asked in vain")
    assert cluster.states(run) == {"during": "SETTLING", "during-bad": "FAILED", "after": "PENDING"}
    cluster.lab.heal()
    cluster.settle([run, later], 90)
    cluster.check(
        run,
        {"during": (State.COMPLETED, OK), "during-bad": (State.FAILED, SEVEN), "after": (State.COMPLETED, OK)},
    )
    cluster.check(
        later,
        {
            "seen": (State.COMPLETED, OK),
            "seen-bad": (State.FAILED, ExitStatus(137)),
            "before": (State.COMPLETED, OK),
            "many[n=0]": (State.COMPLETED, OK),
            "many[n=1]": (State.FAILED, ONE),
        },
    )
    assert cluster.verdict_text(run, "during").startswith("accounting")
    assert cluster.verdict_text(run, "during-bad").startswith("queue")


@pytest.mark.parametrize("daemon", ["mariadbd", pytest.param("slurmdbd", marks=pytest.mark.long)])
def test_accounting_that_goes_away_after_a_jobs_end(cluster: ClusterHome, daemon: str) -> None:
    """Aver comes back when the job has ended and accounting has left: it waits, and then says what accounting has."""
    go = cluster.folder / "go"
    run = cluster.submit(job("good", until(go) + BLOCK + "exit 0"), job("bad", until(go) + BLOCK + "exit 7"))
    cluster.wait_state(run, "good", State.RUNNING)
    cluster.wait_state(run, "bad", State.RUNNING)
    cluster.kill_coordinator()
    go.touch()
    cluster.wait_ended(run)
    cluster.lab.stop(daemon)
    cluster.connect_again()
    cluster.wait_state(run, "good", State.SETTLING)
    asked = cluster.count_calls("sacct")
    wait_for(lambda: cluster.count_calls("sacct") >= asked + 3, "accounting is asked in vain")
    assert cluster.states(run)["good"] == "SETTLING"
    cluster.lab.heal()
    cluster.settle([run], 90)
    cluster.check(run, {"good": (State.COMPLETED, OK), "bad": (State.FAILED, SEVEN)})


def test_a_site_without_accounting(cluster: ClusterHome) -> None:
    """The witness alone decides, said so where it is not clean; with neither, UNVERIFIED, and nothing needs it."""
    disabled = cluster.wrapper("sacct", 'echo "Slurm accounting storage is disabled" >&2; exit 1')
    cluster.configure({"sacct": disabled}, long=3)
    run = cluster.submit(
        job("seen", "exit 0"),
        job("bad", "exit 7"),
        job("unseen", BLOCK + "exit 0"),
        job("unseen-bad", BLOCK + "exit 7"),
        job("after", "exit 0", needs=Needs((Need("unseen"),))),
    )
    cluster.settle([run], 60)
    cluster.check(
        run,
        {
            "seen": (State.COMPLETED, OK),
            "bad": (State.FAILED, SEVEN),
            "unseen": (State.UNVERIFIED, None),
            "unseen-bad": (State.FAILED, SEVEN),
            "after": (State.SKIPPED, None),
        },
    )
    assert "neither its witness nor accounting said how it ended" in cluster.verdict_text(run, "unseen")
