"""A coordinator that died while runs wait: it is said, and the next command that needs one goes on."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

from aver.model.job import Request
from aver.model.states import State
from live_home import LiveHome, shell_job

Typed = Callable[..., subprocess.CompletedProcess[bytes]]
WAIT = "while [ ! -e go ]; do sleep 0.05; done"


def test_status_says_that_nobody_drives_them(live: LiveHome, typed: Typed) -> None:
    """Exit status 1, and 0 again when somebody does or nothing waits."""
    assert typed("status").returncode == 0
    whole = Request(cpus=4)
    runs = [live.submit(shell_job("a", WAIT, request=whole)), live.submit(shell_job("b", "true", request=whole))]
    live.wait_running(runs[0])
    assert typed("status").returncode == 0
    live.kill_coordinator()
    said = typed("status")
    assert said.returncode == 1
    assert b"2 runs are unfinished, and no coordinator runs" in said.stdout
    document = json.loads(typed("status", "--json").stdout)
    assert (document["is_running"], document["running"], document["pending"]) == (False, 1, 1)
    (live.folder / "go").touch()
    live.settle(runs)
    assert [live.job(run).state for run in runs] == [State.COMPLETED] * 2
    live.kill_coordinator()
    said = typed("status")
    assert said.returncode == 0
    assert b"unfinished" not in said.stdout
