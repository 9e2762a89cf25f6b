"""Coordinator and executor are killed in turn, and at each named moment: nothing is lost and nothing runs twice."""

from __future__ import annotations

import contextlib

import pytest
from allocation_desk import SMALL, allocation_ids, kill_executor, submit_in, wait_begun
from fault_desk import OK, SEVEN, ClusterHome, job

from aver.crashpoint import ALLOCATION_POINTS
from aver.model.states import State
from aver.protocol.client import AnswerLost, Client
from live_home import wait_for


def test_killed_in_turn(whole_cluster: ClusterHome) -> None:
    """Twenty jobs in three allocations; the coordinator is killed twice, and so is an executor."""
    names = [f"job{number}" for number in range(20)]
    run = submit_in(whole_cluster, [job(name, "sleep 0.5") for name in names], SMALL, 3)
    first = wait_begun(whole_cluster, run)
    wait_for(lambda: sum(whole_cluster.keys_run().values()) >= 3, "some have run")
    whole_cluster.kill_coordinator()
    before = sum(whole_cluster.keys_run().values())
    wait_for(lambda: sum(whole_cluster.keys_run().values()) >= before + 3, "the executor goes on without it")
    kill_executor(whole_cluster, first)
    wait_begun(whole_cluster, run, 1)
    whole_cluster.connect_again()
    whole_cluster.kill_coordinator()
    whole_cluster.settle([run], 150)
    with whole_cluster.reader() as reader:
        jobs = reader.jobs(run=run)
        rows = reader.attempts_of_run(run)
    others = [(row.job, row.attempt, row.state, row.detail) for row in rows if row.state is not State.COMPLETED]
    assert {one.state for one in jobs} == {State.COMPLETED}, others
    assert {row.state for row in rows} <= {State.COMPLETED, State.NODE_FAIL}
    assert all(count == 1 for count in whole_cluster.keys_run().values()), whole_cluster.keys_run()
    finished = {f"{row.job}.{row.attempt}" for row in rows if row.state is State.COMPLETED}
    assert finished <= set(whole_cluster.keys_run())
    whole_cluster.assert_store_is_whole()


def cancel(client: Client, job: int) -> None:
    client.call("cancel", ids=[job], by="tester", signal=None, now=False)


@pytest.mark.parametrize("point", ALLOCATION_POINTS)
def test_killed_at_each_moment(whole_cluster: ClusterHome, point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was half done is found by those who come after."""
    monkeypatch.setenv("AVER_CRASH_AT", point)
    run = submit_in(whole_cluster, [job("good", "true"), job("seven", "exit 7"), job("gone", "sleep 300")], SMALL)
    if point == "allocation-taken-back":
        monkeypatch.delenv("AVER_CRASH_AT")
        whole_cluster.kill_coordinator()
        monkeypatch.setenv("AVER_CRASH_AT", point)
        whole_cluster.connect_again()
    with contextlib.suppress(AnswerLost), whole_cluster.client() as client:
        cancel(client, run + 3)
    wait_for(lambda: whole_cluster.coordinator() is None, f"the kill at {point}", 90)
    assert "idle: leaving" not in whole_cluster.log(), f"{point} was never reached"
    monkeypatch.delenv("AVER_CRASH_AT")
    whole_cluster.connect_again()
    with whole_cluster.client() as client:
        cancel(client, run + 3)  # the kill may have come before the first
    whole_cluster.settle([run], 90)
    with whole_cluster.reader() as reader:
        ends = {one.name: (one.state, one.exit, one.attempt) for one in reader.jobs(run=run)}
    assert ends["good"] == (State.COMPLETED, OK, 1)
    assert ends["seven"] == (State.FAILED, SEVEN, 1)
    assert ends["gone"][0] is State.CANCELLED
    assert all(count == 1 for count in whole_cluster.keys_run().values())
    assert len(allocation_ids(whole_cluster, run)) == 1
