"""Replies to suspend and resume: they say what has become of each job, not what was asked."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from aver.coordinator.server import Peer
from aver.coordinator.watchers import NOT_YET, Held
from aver.model.states import State
from aver.protocol.messages import Result, ResultCode, Results


@pytest.fixture
def peer() -> Iterator[Peer]:
    one, other = socket.socketpair()
    with one, other:
        yield Peer(one)


def results(*ids: int) -> Results:
    return Results(tuple(Result(one, "suspended", ResultCode.DONE) for one in ids))


def said(held: Held) -> list[tuple[str, ResultCode]]:
    return [(one.did, one.code) for one in held.reply().results]


def test_a_job_that_ended_first_is_not_said_to_be_suspended(peer: Peer) -> None:
    held = Held(peer, results(7, 8), State.SUSPENDED, {7: 7, 8: 8})
    held.take(7, State.COMPLETED)
    held.take(8, State.SUSPENDED)
    assert not held.jobs
    assert said(held) == [("ended before that", ResultCode.SETTLED), ("suspended", ResultCode.DONE)]


def test_jobs_of_a_run(peer: Peer) -> None:
    """Of a run it is said how many."""
    held = Held(peer, results(2), State.SUSPENDED, {3: 2, 4: 2})
    held.take(3, State.COMPLETING)
    held.take(9, State.COMPLETED)
    held.take(4, State.RUNNING)
    assert said(held) == [(NOT_YET[State.SUSPENDED], ResultCode.ASKED)]
    held.take(4, State.SUSPENDED)
    assert said(held) == [("suspended; 1 of them ended before that", ResultCode.DONE)]
