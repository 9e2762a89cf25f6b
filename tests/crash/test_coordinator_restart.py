"""A coordinator that dies is started again by a witness: nobody types a command."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from aver.engines.local.job_cgroup import top_of
from aver.model.job import Need, Needs, Request
from aver.model.states import State
from live_home import LiveHome, is_alive, processes_with, shell_job, wait_for

WAIT = 'echo "$AVER_KEY" >> "$RAN"; while [ ! -e go ]; do sleep 0.05; done'
QUICK = 'echo "$AVER_KEY" >> "$RAN"'


@pytest.fixture(autouse=True)
def _restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AVER_RESTART")


def _chain(live: LiveHome) -> int:
    """Submit a job that waits for the file `go`, and two behind it; return the run when the first one runs."""
    second = shell_job("second", QUICK, needs=Needs((Need("first"),)))
    run = live.submit(shell_job("first", WAIT), second, shell_job("third", QUICK, needs=Needs((Need("second"),))))
    live.wait_running(run + 1)
    return run


def _states(live: LiveHome, run: int) -> list[State]:
    with live.reader() as reader:
        return [job.state for job in reader.jobs(run=run)]


def _ready(live: LiveHome) -> int:
    return live.home.log.read_text().count("ready, pid")


def _go(live: LiveHome) -> None:
    (live.folder / "go").touch()


def _typed(live: LiveHome, *words: str) -> subprocess.CompletedProcess[str]:
    own = {**os.environ, "AVER_HOME": str(live.home.path)}
    return subprocess.run([sys.executable, "-m", "aver", *words], env=own, capture_output=True, text=True, check=False)


def _assert_nobody_comes(live: LiveHome, witnesses: list[int]) -> None:
    """All leave: no process has the home among its words, and the log tells of no coordinator but the first."""
    wait_for(lambda: not any(is_alive(pid) for pid in witnesses), "the witness's leaving")
    wait_for(lambda: not processes_with(str(live.home.path)), "the leaving of everybody else")
    assert not live.home.log.exists() or _ready(live) == 1


def test_a_flow_ends_without_a_command(live: LiveHome) -> None:
    """Its coordinator is killed while jobs are pending; every job runs once, and the new one is nobody's child."""
    run = _chain(live)
    killed = live.coordinator()
    witness = live.witness_of(run + 1)
    live.kill_coordinator()
    _go(live)
    pid = wait_for(live.coordinator, "a coordinator that nobody started")
    assert pid != killed
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    assert int(status["PPid"]) != witness
    assert os.getsid(pid) not in (os.getsid(0), witness)
    groups = [line.rpartition(":")[2] for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()]
    assert [group for group in groups if top_of(group)] == []
    wait_for(lambda: _states(live, run) == [State.COMPLETED] * 3, "the end of the flow")
    assert sorted(live.keys_run().values()) == [1, 1, 1]
    live.assert_store_is_whole()
    live.assert_nothing_left()


def test_one_that_is_killed_again_is_started_again(live: LiveHome) -> None:
    """Each time, also when it dies before it has done anything."""
    run = _chain(live)
    live.kill_coordinator()
    _go(live)
    for _ in range(2):
        wait_for(live.coordinator, "the next coordinator")
        live.kill_coordinator()
    wait_for(lambda: _states(live, run) == [State.COMPLETED] * 3, "the end of the flow")
    assert sorted(live.keys_run().values()) == [1, 1, 1]


def test_many_witnesses_start_one(live: LiveHome) -> None:
    """Eight jobs end at once, and one coordinator comes."""
    runs = [live.submit(shell_job(f"job{number}", WAIT)) for number in range(8)]
    for run in runs:
        live.wait_running(run)
    live.kill_coordinator()
    _go(live)
    wait_for(lambda: all(live.job(run).state is State.COMPLETED for run in runs), "the verdicts")
    assert _ready(live) == 2
    assert sorted(live.keys_run().values()) == [1] * 8


def test_a_stopped_one_stays_away(live: LiveHome) -> None:
    """A person's own stop is respected: the job goes on, its witness leaves, and the next command does the rest."""
    run = _chain(live)
    witness = live.witness_of(run + 1)
    with live.client() as client:
        client.call("stop")
    live.wait_until_gone()
    _go(live)
    _assert_nobody_comes(live, [witness])
    live.settle([run])
    assert _states(live, run) == [State.COMPLETED] * 3


def test_a_dead_one_that_is_stopped_stays_away(live: LiveHome) -> None:
    """`aver stop` says that nobody is there, and sees to it that it stays so."""
    run = _chain(live)
    witness = live.witness_of(run + 1)
    live.kill_coordinator()
    assert _typed(live, "stop").returncode == 0
    _go(live)
    _assert_nobody_comes(live, [witness])


def test_nobody_is_started_in_a_home_that_was_removed(live: LiveHome) -> None:
    """Nor is the home made again."""
    run = _chain(live)
    witness = live.witness_of(run + 1)
    live.kill_coordinator()
    shutil.rmtree(live.home.path)
    _go(live)
    _assert_nobody_comes(live, [witness])
    assert not live.home.path.exists()
    live.home.path.mkdir(mode=0o700)


def test_one_that_refuses_to_start_is_not_started_again(live: LiveHome) -> None:
    """It has said why in its log; its witness leaves, and the next command says the same."""
    run = _chain(live)
    witness = live.witness_of(run + 1)
    live.kill_coordinator()
    for path in live.home.path.glob("aver.db-*"):
        path.unlink()  # whose pages would stand in for those of the store
    live.home.database.write_bytes(b"SQLite format 3\0" + b"?" * 8192)
    _go(live)
    _assert_nobody_comes(live, [witness])
    assert live.home.log.read_text().count("could not start") == 1


def test_it_may_be_switched_off(live: LiveHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """AVER_RESTART=no in the environment of who starts the coordinator."""
    monkeypatch.setenv("AVER_RESTART", "no")
    run = live.submit(shell_job("job", WAIT, request=Request(cpus=1)))
    live.wait_running(run)
    witness = live.witness_of(run)
    live.kill_coordinator()
    _go(live)
    _assert_nobody_comes(live, [witness])
