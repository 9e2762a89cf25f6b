"""Runs of short jobs, whose next orders lie in the witnesses: cancelled, killed and mixed with long ones.

Each job runs once or never, as its verdict says.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections import Counter

import pytest
from campaign import crash_at

from aver.errors import UnreachableError
from aver.model.job import Matrix, Request
from aver.model.states import State
from live_home import LiveHome, shell_job, wait_for

MARK = 'echo "$AVER_KEY" >> "$RAN"'
ONE_AT_A_TIME = f'mkdir "$RAN.d" || exit 9; {MARK}; rmdir "$RAN.d"'


def many(live: LiveHome, text: str, count: int, **fields: object) -> int:
    matrix = Matrix((("i", tuple(str(at) for at in range(count))),), **fields)  # type: ignore[arg-type]
    return live.submit(shell_job("short", text, matrix=matrix))


def states(live: LiveHome, run: int) -> Counter[State]:
    with live.reader() as reader:
        return Counter(job.state for job in reader.jobs(run=run))


def assert_as_they_say(live: LiveHome, run: int) -> None:
    """A job that completed ran once, one without an attempt never; none ran twice."""
    ran = Counter(int(key.split(".")[1]) for key in live.keys_run().elements())
    assert set(ran.values()) <= {1}
    with live.reader() as reader:
        for job in reader.jobs(run=run):
            if job.state is State.COMPLETED:
                assert ran[job.id] == 1, job
            if not job.attempt:
                assert ran[job.id] == 0, job
    live.assert_store_is_whole()


def have_some_run(live: LiveHome) -> bool:
    """Enough of them for orders to lie ahead."""
    return len(live.keys_run()) >= 40


def test_each_runs_once(live: LiveHome) -> None:
    run = many(live, MARK, 300)
    live.settle([run])
    assert states(live, run) == {State.COMPLETED: 300}
    assert_as_they_say(live, run)
    live.assert_nothing_left()


def test_no_more_at_once_than_allowed(live: LiveHome) -> None:
    """The next one takes the room of the one before it, and no other."""
    run = many(live, ONE_AT_A_TIME, 150, max_parallel=1)
    live.settle([run])
    assert states(live, run) == {State.COMPLETED: 150}


def test_a_long_one_holds_up_nobody(live: LiveHome) -> None:
    """Those that waited behind it in its witness run elsewhere meanwhile."""
    text = f'{MARK}; if [ {{i}} = 60 ]; then while [ "$(sort -u "$RAN" | wc -l)" -lt 200 ]; do sleep 0.05; done; fi'
    run = many(live, text, 200)
    live.settle([run])
    assert states(live, run) == {State.COMPLETED: 200}
    assert_as_they_say(live, run)


def test_a_cancelled_run_begins_nothing_more(live: LiveHome) -> None:
    run = many(live, MARK, 3000)
    wait_for(lambda: have_some_run(live), "some have run")
    with live.client() as client:
        client.call("cancel", ids=[run], by="tester", now=True)
    live.settle([run])
    ran = live.keys_run()
    found = states(live, run)
    assert found[State.COMPLETED] + found[State.CANCELLED] == 3000
    assert found[State.CANCELLED] > 0
    assert_as_they_say(live, run)
    time.sleep(0.3)
    assert live.keys_run() == ran


def test_a_cancelled_run_begins_nothing_more_after_a_death(live: LiveHome) -> None:
    """The coordinator is killed right after it has acknowledged, with orders in the witnesses and most jobs pending."""
    run = many(live, MARK, 100_000)
    wait_for(lambda: have_some_run(live), "some have run")
    with live.client() as client:
        client.call("cancel", ids=[run], by="tester", now=True)
        live.kill_coordinator(signal.SIGKILL)
    time.sleep(0.3)
    ran = live.keys_run()
    live.connect_again()
    live.settle([run])
    found = states(live, run)
    assert found[State.COMPLETED] + found[State.CANCELLED] == 100_000
    assert_as_they_say(live, run)
    assert live.keys_run() == ran


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("point", ["before-commit", "committed", "acted", "told"])
def test_a_death_at_a_named_point_of_a_cancellation(live: LiveHome, point: str, count: int) -> None:
    """Whatever of it is durable: an acknowledged one is done by the next coordinator, and no job begins after it."""
    run = many(live, f"{MARK}; sleep 600", 60_000)
    wait_for(lambda: len(live.keys_run()) >= 2, "some run")
    live.kill_coordinator(signal.SIGTERM)
    wait_for(lambda: live.coordinator() is None, "the coordinator has left")
    with crash_at(f"{point}:{count}"):
        live.connect_again()
        pid, is_acknowledged = live.coordinator(), False
        with contextlib.suppress(UnreachableError), live.client() as client:
            client.call("cancel", ids=[run], by="tester", now=True)
            is_acknowledged = True
        wait_for(lambda: live.coordinator() != pid, f"the death at {point}")
    ran = live.keys_run()
    live.connect_again()
    if not is_acknowledged:
        with live.client() as client:
            client.call("cancel", ids=[run], by="tester", now=True)
    live.settle([run])
    assert states(live, run) == {State.CANCELLED: 60_000}
    assert live.keys_run() == ran
    assert_as_they_say(live, run)


def test_single_jobs_cancelled_among_many(live: LiveHome) -> None:
    """Each is CANCELLED, and did not run unless it had begun; the others complete."""
    run = many(live, MARK, 1500)
    wait_for(lambda: have_some_run(live), "some have run")
    cancelled = []
    with live.client() as client:
        for _ in range(60):
            done = len(live.keys_run())
            job = min(run + 1500, run + done + random.randint(1, 12))
            client.call("cancel", ids=[job], by="tester")
            cancelled.append(job)
    live.settle([run])
    found = states(live, run)
    assert found[State.COMPLETED] + found[State.CANCELLED] == 1500
    assert_as_they_say(live, run)
    with live.reader() as reader:
        assert {job.id for job in reader.jobs(run=run) if job.state is State.CANCELLED} <= set(cancelled)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_coordinators_that_die(live: LiveHome, number: int) -> None:
    """What has begun goes on, what had not runs once."""
    run = many(live, MARK, 1200)
    for _ in range(5):
        before = len(live.keys_run())
        wait_for(lambda before=before: len(live.keys_run()) >= min(before + 60, 1200), "more have run")
        live.kill_coordinator(number)
        live.connect_again()
    live.settle([run])
    assert states(live, run) == {State.COMPLETED: 1200}
    assert_as_they_say(live, run)


def test_witnesses_that_are_killed(live: LiveHome) -> None:
    """The one that ran is UNVERIFIED, those behind it run elsewhere, once."""
    run = many(live, MARK, 800)
    killed = 0
    for _ in range(6):
        before = len(live.keys_run())
        wait_for(lambda before=before: len(live.keys_run()) >= min(before + 40, 790), "more have run")
        for witness in live.witnesses()[:1]:
            os.kill(witness, signal.SIGKILL)
            killed += 1
    live.settle([run])
    found = states(live, run)
    assert found[State.COMPLETED] + found[State.UNVERIFIED] == 800
    assert found[State.UNVERIFIED] <= killed
    assert_as_they_say(live, run)


def test_held_jobs_do_not_run(live: LiveHome) -> None:
    """Who is told that a job is held can count on that."""
    run = many(live, MARK, 1500)
    wait_for(lambda: have_some_run(live), "some have run")
    held = []
    with live.client() as client:
        for job in range(run + 900, run + 960):
            reply = client.call("hold", ids=[job], by="tester")
            held += [job] * (reply["results"][0]["code"] == "done")
        wait_for(lambda: len(live.keys_run()) >= 1500 - 60, "the others have run")
        time.sleep(0.2)
        ran = {int(key.split(".")[1]) for key in live.keys_run()}
        assert held
        assert ran.isdisjoint(held)
        client.call("release", ids=held, by="tester")
    live.settle([run])
    assert states(live, run) == {State.COMPLETED: 1500}


def test_other_runs_have_their_turn(live: LiveHome) -> None:
    """A job that comes later, and a large one, are not kept out by a long row of short ones."""
    run = many(live, MARK, 2500)
    wait_for(lambda: have_some_run(live), "some have run")
    other = live.run_text("true")
    wide = live.submit(shell_job("wide", "true", request=Request(cpus=2)))
    live.settle([other, wide])
    assert len(live.keys_run()) < 2500
    live.settle([run])
    assert states(live, run) == {State.COMPLETED: 2500}
