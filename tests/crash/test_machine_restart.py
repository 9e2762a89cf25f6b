"""The machine is restarted: everything of ours is gone at once and the boot id is another one.

Played by killing all that belongs to the home and by a coordinator that reads another boot id.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path

import pytest
from campaign import RECORD, crash_at

from aver.errors import AverError
from aver.model import reasons
from aver.model.events import AttemptPlanned
from aver.model.exit import ExitStatus
from aver.model.job import Matrix, Request, RetryRule
from aver.model.states import State
from aver.protocol.client import Client
from aver.protocol.messages import Accept, Results
from aver.store.read.reader import Reader
from live_home import LiveHome, shell_job, wait_for

CPUS = 10  # as conftest.py has it
OTHER_BOOT = "import aver.home\naver.home.read_boot_id = lambda: 'f' * 32\n"


@pytest.fixture
def restart(live: LiveHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """Kill everything of the home; coordinators that are started afterwards live in another boot."""
    folder = tmp_path / "another-boot"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(OTHER_BOOT)

    def kill_all() -> None:
        live.kill_coordinator()
        for pid in [*live.witnesses(), *live.processes()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not live.witnesses() and not live.processes(), "everything killed")
        monkeypatch.setenv("PYTHONPATH", f"{folder}:{os.environ.get('PYTHONPATH', '')}")

    return kill_all


def test_what_ran_is_node_fail_and_runs_no_second_time(live: LiveHome, restart) -> None:  # type: ignore[no-untyped-def]
    """A job without a record whose machine was restarted is NODE_FAIL; one that had ended keeps its verdict."""
    running = live.run_text(RECORD + "sleep 600", mem_bytes=64 << 20)
    limited = live.run_text(RECORD + "sleep 600", time_s=900)
    ended = live.run_text(RECORD + "exit 4")
    live.wait_running(running)
    live.wait_running(limited)
    live.settle([ended])
    restart()
    live.settle([running, limited])
    for number in (running, limited):
        job = live.job(number)
        assert job.state is State.NODE_FAIL, job
        assert job.exit is None
        assert job.reason == reasons.NODE_DOWN
        assert job.source == "machine"
    assert live.job(ended).exit == ExitStatus(4)
    assert set(live.keys_run().values()) == {1}
    after = live.run_text(RECORD + "exit 5")
    live.settle([after])
    assert live.job(after).exit == ExitStatus(5)
    live.assert_store_is_whole()
    live.assert_nothing_left()


def test_records_of_the_last_boot_still_count(live: LiveHome, restart) -> None:  # type: ignore[no-untyped-def]
    """A job that ended while no coordinator was there has its record in the journal: that is its verdict."""
    number = live.run_text(RECORD + "until [ -e go ]; do sleep 0.02; done; exit 9")
    live.wait_running(number)
    live.kill_coordinator()
    (live.folder / "go").touch()
    wait_for(lambda: not live.witnesses(), "the job's end")
    restart()
    live.settle([number])
    assert live.job(number).exit == ExitStatus(9)
    live.assert_nothing_left()


def test_a_lost_maker_that_is_accepted_brings_its_jobs(live: LiveHome, restart) -> None:  # type: ignore[no-untyped-def]
    """Its machine was lost after it had written its jobs; a person vouches for it: the jobs come to be and run."""
    batch = json.dumps({"grown": {"run": "true"}})
    text = f"echo '{batch}' > more.json; : > written; sleep 600"
    run = live.submit(shell_job("maker", text, generates="more.json"), shell_job("other", "true"))
    wait_for((live.folder / "written").exists, "the maker's file")
    restart()
    live.settle([run])
    assert live.job(run + 1).state is State.NODE_FAIL
    with live.client() as client:
        client.ask(Accept((run + 1,), "ann"), Results)
    live.settle([run])
    grown = live.job(run + 3)
    assert (grown.name, grown.state, live.job(run + 1).state) == ("grown", State.COMPLETED, State.COMPLETED)
    live.assert_store_is_whole()


def test_retry_rule_brings_a_lost_job_back(live: LiveHome, restart) -> None:  # type: ignore[no-untyped-def]
    """NODE_FAIL is an outcome of the attempt; a rule that names it gives the job another one."""
    rule = RetryRule(max=1, states=(State.NODE_FAIL,))
    number = live.submit(
        shell_job("job", RECORD + '[ "$AVER_ATTEMPT" = 2 ] || sleep 600', retry=rule, request=Request(time_s=900))
    )
    live.wait_running(number)
    restart()
    live.settle([number])
    assert (live.job(number).state, live.job(number).attempt) == (State.COMPLETED, 2)
    assert sorted(live.keys_run().values()) == [1, 1]
    live.assert_store_is_whole()
    live.assert_nothing_left()


def test_what_was_only_planned_runs_after_the_restart(live: LiveHome, restart) -> None:  # type: ignore[no-untyped-def]
    """Of many jobs only those that ran are NODE_FAIL; intents that were made ahead run, each once, as attempt 1."""
    members = tuple(str(number) for number in range(100))
    run = live.submit(shell_job("one", RECORD + "sleep 0.2", matrix=Matrix((("n", members),))), is_single=False)
    wait_for(lambda: len(live.keys_run()) > 10, "some have run")
    restart()
    live.settle([run])
    with live.reader() as reader:
        jobs = reader.jobs(run=run)
    assert {job.state for job in jobs} <= {State.COMPLETED, State.NODE_FAIL}
    assert sum(job.state is State.NODE_FAIL for job in jobs) <= CPUS
    assert {job.attempt for job in jobs} == {1}
    ran = [int(key.split(".")[1]) for key in live.keys_run()]
    assert len(ran) == len(set(ran)) == len(members)
    live.assert_store_is_whole()
    live.assert_nothing_left()


def test_a_job_says_itself_whether_it_is_requeued(live: LiveHome, restart) -> None:  # type: ignore[no-untyped-def]
    """`requeue: true` runs again what ran; with `requeue: false` what ran does not, and what waited runs once."""
    once = "[ -e first ] && exit 0; : > first; sleep 600"
    again = live.submit(shell_job("again", RECORD + once, requeue=True, request=Request(cpus=CPUS)))
    live.wait_running(again)
    waiting = [live.submit(shell_job("never", RECORD + "true", requeue=False)) for _ in range(3)]
    last = live.submit(shell_job("last", RECORD + "true"))
    with live.reader() as reader:
        wait_for(lambda: _is_planned(reader, last), "the intent of the last")
        assert not any(_is_planned(reader, one) for one in waiting)
    restart()
    live.settle([again, *waiting, last])
    assert (live.job(again).state, live.job(again).attempt) == (State.COMPLETED, 2)
    assert {(live.job(one).state, live.job(one).attempt) for one in [*waiting, last]} == {(State.COMPLETED, 1)}
    assert set(live.keys_run().values()) == {1}
    live.assert_store_is_whole()
    live.assert_nothing_left()


def _is_planned(reader: Reader, job: int) -> bool:
    return any(isinstance(stored.event, AttemptPlanned) for stored in reader.events(job=job))


def test_who_looks_first_after_the_boot_sees_what_ended(live: LiveHome, restart) -> None:  # type: ignore[no-untyped-def]
    """It is durable before the coordinator says that it is ready: no job of an ended boot is shown as RUNNING."""
    job = live.run_text(RECORD + "sleep 600")
    live.wait_running(job)
    restart()
    with crash_at("recovered"), pytest.raises(AverError, match="could not start"):
        Client.connect(live.home).close()
    assert live.job(job).state is State.NODE_FAIL
