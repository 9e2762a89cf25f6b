"""A store that was put back as it was some time ago: what it does not know is not mistaken for what it does."""

from __future__ import annotations

import shutil
import signal

from aver.model.states import State
from live_home import LiveHome, wait_for

WAIT_FOR = 'echo $AVER_KEY >> "$RAN"; while [ ! -e {name} ]; do sleep 0.05; done; exit {code}'


def put_back(live: LiveHome, names: list[str]) -> None:
    for path in live.home.path.glob("aver.db*"):
        path.unlink()
    for name in names:
        shutil.copy(live.folder / name, live.home.path / name)


def test_job_that_runs_on_is_not_the_new_one(live: LiveHome) -> None:
    """A job that the older copy does not know goes on; its number is not given again, and its end is its own."""
    live.settle([live.run_text("true")])
    live.kill_coordinator(signal.SIGTERM)
    live.wait_until_gone()
    shutil.copy(live.home.database, live.folder / "aver.db")
    old = live.run_text(WAIT_FOR.format(name="go-old", code=3))
    live.wait_running(old)
    live.kill_coordinator()
    put_back(live, ["aver.db"])
    new = live.run_text(WAIT_FOR.format(name="go-new", code=0))
    assert new == old + 1
    live.wait_running(new)
    assert len(live.processes()) >= 2
    (live.folder / "go-old").touch()
    wait_for(lambda: len(live.witnesses()) == 1 or live.job(new).state is not State.RUNNING, "the old job's end")
    live.settle([live.run_text("true")])  # whatever was heard is judged
    assert live.job(new).state is State.RUNNING
    (live.folder / "go-new").touch()
    live.settle([new])
    assert live.job(new).state is State.COMPLETED
    assert sorted(live.keys_run().values()) == [1, 1]
