"""Who is said to have ended a job, by the answers of systemd and logind.

There is no systemd on every machine that runs the tests; `tests/vm` asks a real one.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from aver.engines.local import shutdown
from aver.engines.local.shutdown import find_stop, stop_of
from aver.model.evidence import Stop

SESSION = "0::/user.slice/user-1000.slice/session-7.scope\n"
SCOPE = "0::/user.slice/user-1000.slice/user@1000.service/aver.slice/aver-0.scope/coordinator\n"


@pytest.mark.parametrize(
    ("system", "manager", "session", "cgroup", "kills", "stop"),
    [
        ("running", "running", "active", SESSION, True, None),
        ("stopping", "stopping", "closing", SCOPE, False, Stop.SHUTDOWN),
        ("running", "stopping", "closing", SCOPE, False, Stop.LOGOUT),
        ("running", "running", "closing", SESSION, True, Stop.LOGOUT),
        ("running", "running", "closing", SESSION, False, None),  # logged out days ago: what runs is left alone
        ("", "", "", SESSION, True, None),  # nobody says
    ],
)
def test_what_is_being_stopped(
    system: str, manager: str, session: str, cgroup: str, kills: bool, stop: Stop | None
) -> None:
    said = {"systemctl is-system-running": system, "systemctl --user is-system-running": manager}

    def say(*command: str) -> str:
        return said.get(" ".join(command), session)

    assert stop_of(say, cgroup, lambda: kills) is stop


def test_who_is_asked_is_not_ended_by_the_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """systemd sends TERM to what is started in the scope while it stops it: the question that is asked then, too."""
    program = tmp_path / "systemctl"
    program.write_text("#!/bin/sh\nkill -TERM $$; kill -HUP $$\necho stopping\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(shutdown, "SYSTEMD", str(tmp_path))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert find_stop() is Stop.SHUTDOWN
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
