"""Steps of allocations of which nobody says how they ended: UNVERIFIED, until somebody does."""

from __future__ import annotations

from allocation_desk import SMALL, submit_in
from fault_desk import BLOCK, OK, SEVEN, ClusterHome, job

from aver.model.job import Need, Needs
from aver.model.states import State
from live_home import wait_for


def test_accounting_whose_rows_come_after_the_verdict(whole_cluster: ClusterHome) -> None:
    """Neither a record nor a row is there: not FAILED, not COMPLETED. When the rows come, and a coordinator, they
    settle it, though its run is over and its allocation has left; what needed it runs."""
    late = whole_cluster.folder / "late"
    silent = whole_cluster.wrapper("sacct", f'[ -e {late} ] || exit 0; exec $real "$@"')
    whole_cluster.configure({"sacct": silent}, long=3)
    jobs = [
        job("good", BLOCK + "exit 0"),
        job("bad", BLOCK + "exit 7"),
        job("after", "true", needs=Needs((Need("good"),))),
        job("seen", "true"),
    ]
    run = submit_in(whole_cluster, jobs, SMALL)
    whole_cluster.settle([run], 90)
    assert whole_cluster.states(run) == {
        "good": "UNVERIFIED", "bad": "UNVERIFIED", "after": "SKIPPED", "seen": "COMPLETED",
    }  # fmt: skip
    whole_cluster.kill_coordinator()
    late.touch()

    def is_heard() -> bool:
        whole_cluster.connect_again()  # it leaves when nothing is to be done
        states = whole_cluster.states(run)
        return (states["bad"], states["after"]) == ("FAILED", "COMPLETED")

    wait_for(is_heard, "the late rows are heard", 150)
    whole_cluster.settle([run], 90)
    with whole_cluster.reader() as reader:
        ends = {one.name: (one.state, one.exit) for one in reader.jobs(run=run)}
    assert ends["good"] == (State.COMPLETED, OK)
    assert ends["bad"] == (State.FAILED, SEVEN)
    assert all(count == 1 for count in whole_cluster.keys_run().values())
