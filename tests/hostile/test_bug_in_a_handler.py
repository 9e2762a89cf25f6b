"""A request that meets a bug half-way: nothing of it is carried out, and everything else is as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from aver.errors import InternalError
from aver.model.events import PersonAsked
from aver.model.job import Request
from aver.model.states import State
from live_home import LiveHome, shell_job, wait_for

WAIT = 'echo $AVER_KEY >> "$RAN"; while [ ! -e go ]; do sleep 0.05; done'
BUG = """
import os, sys
if "aver.coordinator" in sys.orig_argv:
    from aver.coordinator.requests import hold as operation
    really = operation.hold

    def hold(machine, run, index, *rest):
        said = really(machine, run, index, *rest)
        if index == 2 and os.path.exists(os.environ["BUG"]):
            raise RuntimeError("a bug")
        return said

    operation.hold = hold
"""


def test_events_of_one_request_are_taken_back_as_one(
    live: LiveHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first jobs of the request are not held either, also after a restart, and what runs goes on."""
    (tmp_path / "patch").mkdir()
    (tmp_path / "patch" / "sitecustomize.py").write_text(BUG)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "patch"))
    monkeypatch.setenv("BUG", str(tmp_path / "bug"))
    whole = Request(cpus=4)
    jobs = [shell_job(name, text, request=whole) for name, text in (("a", WAIT), ("b", "true"), ("c", "true"))]
    run = live.submit(*jobs)
    live.wait_running(run + 1)
    (tmp_path / "bug").touch()
    with live.client() as client, pytest.raises(InternalError, match="nothing of the request was carried out"):
        client.call("hold", ids=[run], by="tester")
    (tmp_path / "bug").unlink()
    wait_for(lambda: live.coordinator() is not None, "somebody goes on by itself", 20)
    assert live.job(run + 1).state is State.RUNNING
    (live.folder / "go").touch()
    live.settle([run], 30)
    with live.reader() as reader:
        assert [one for one in reader.events(run=run) if isinstance(one.event, PersonAsked)] == []
    assert [live.job(run + index).state for index in (1, 2, 3)] == [State.COMPLETED] * 3
    assert sorted(live.keys_run().values()) == [1]
    live.assert_store_is_whole()
