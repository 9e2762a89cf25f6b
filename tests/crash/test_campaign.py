"""Kill the coordinator, clients and both, anywhere, again and again: the truth stays whole."""

from __future__ import annotations

import random

import pytest
from campaign import Campaign, crash_at, end_client, fork_client, pause

from aver.crashpoint import POINTS
from aver.errors import AverError
from aver.model.exit import ExitStatus
from aver.model.states import State
from live_home import LiveHome


def _kill_anywhere(campaign: Campaign, chance: random.Random, kills: int) -> None:
    """Kill at random instants; every fifth coordinator dies at a named point instead."""
    live = campaign.live
    clients: list[int] = []
    first_run = next(iter(campaign.runs))
    try:
        while campaign.kills < kills:
            if len(clients) < 2:
                clients.append(fork_client(live, chance.choice(["submit", str(first_run)])))
            pause(chance, 0.3)
            whom = chance.choice(["coordinator", "coordinator", "client", "both", "point"])
            if whom in ("client", "both"):
                end_client(clients.pop(chance.randrange(len(clients))))
                campaign.kills += 1
            if whom in ("coordinator", "both"):
                campaign.kills += live.kill_coordinator()
            if whom == "point":
                live.kill_coordinator()
                _die_at_a_point(campaign, chance)
            live.connect_again()
            if campaign.kills > kills // 2 and campaign.to_cancel:
                campaign.cancel_some()
    finally:
        for pid in clients:
            end_client(pid)


def _die_at_a_point(campaign: Campaign, chance: random.Random) -> None:
    """Start a coordinator that dies when it gets there; if it does not within a moment, it is killed."""
    point = f"{chance.choice(POINTS)}:{chance.randint(1, 4)}"
    with crash_at(point):
        try:
            with campaign.live.client() as client:
                client.call("ping")
        except (AverError, TimeoutError):
            pass
    pause(chance, 0.5)
    campaign.live.kill_coordinator()
    campaign.kills += 1


def _finish(campaign: Campaign) -> None:
    live = campaign.live
    live.connect_again()
    if campaign.to_cancel:
        campaign.cancel_some()
    with live.reader() as reader:
        runs = reader.runs()
    live.settle([run.id for run in runs], 120.0)
    with live.reader() as reader:
        for run in reader.runs():
            if run.id not in campaign.runs:  # of a client that was killed: known by its name
                code = int(run.name.rpartition("-")[2])
                job = reader.job(run.id)
                assert job is not None
                assert job.exit == ExitStatus(code), f"{job.state} {job.reason} {job.detail}: {job}"
                assert job.state is (State.FAILED if code else State.COMPLETED)
                assert [attempt.attempt for attempt in reader.attempts(run.id)] == [1]
                assert live.keys_run()[reader.attempts(run.id)[0].key] == 1
                campaign.runs[run.id] = {}
    for run in [run for run, jobs in campaign.runs.items() if not jobs]:
        del campaign.runs[run]


@pytest.mark.parametrize("seed", [1])
def test_forty_kills_lose_invent_and_repeat_nothing(live: LiveHome, seed: int) -> None:
    """Coordinator, client or both are killed forty times while jobs of every kind run; each job has its one verdict."""
    campaign = Campaign(live)
    campaign.submit_mixture(240)
    _kill_anywhere(campaign, random.Random(seed), 40)
    _finish(campaign)
    campaign.verify()


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [11, 12, 13])
def test_hundred_kills_each_lose_invent_and_repeat_nothing(live: LiveHome, seed: int) -> None:
    """The same with a hundred kills for each seed, and more jobs after every fifty."""
    campaign = Campaign(live)
    chance = random.Random(seed)
    for kills in (50, 100):
        campaign.submit_mixture(300)
        _kill_anywhere(campaign, chance, kills)
    _finish(campaign)
    campaign.verify()
