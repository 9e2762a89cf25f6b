"""What `aver submit` says once of jobs that a logout would end: the command must be one that helps this user.

What systemd and logind answer is played here; `tests/vm` has real ones.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aver.client import logout
from aver.engines.local import login
from aver.engines.local.user_manager import Obstacle
from aver.home import Home

WHY = "ann does not linger, and jobs run below ann's service manager"


@pytest.mark.parametrize(
    ("polkit", "remedy"), [("there", "`aver service enable`"), ("missing", "`sudo loginctl enable-linger ann`")]
)
def test_the_remedy_is_one_that_this_user_can_have(
    aver_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, polkit: str, remedy: str
) -> None:
    """Without polkit only root lets a user linger, and `aver service enable` can't."""
    (tmp_path / "there").touch()
    aver_home.mkdir(exist_ok=True)
    home = Home(aver_home)
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    monkeypatch.setattr(os.path, "isdir", lambda _: True)
    monkeypatch.setattr(Home, "holder", lambda _: {"pid": 7})
    monkeypatch.setattr(login, "POLKIT", tmp_path / polkit)
    monkeypatch.setattr(login, "user_name", lambda: "ann")
    monkeypatch.setattr(login, "is_below_manager", lambda _: True)
    monkeypatch.setattr(login, "LINGER", tmp_path / "linger")
    said = logout.logout_notice(home, "local")
    assert said == f"jobs end when you log out: {WHY}; {remedy} lets them go on"
    assert logout.logout_notice(home, "local") is None


@pytest.mark.parametrize(
    ("obstacle", "remedy"),
    [(None, "`aver stop`: the next one runs below your service manager"), (Obstacle("no bus", "install"), "install")],
)
def test_lingering_does_not_keep_a_session(
    aver_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, obstacle: Obstacle | None, remedy: str
) -> None:
    """A coordinator in a session that logind kills: its user lingers, and jobs end all the same."""
    aver_home.mkdir(exist_ok=True)
    (tmp_path / "ann").touch()
    monkeypatch.setattr(os.path, "isdir", lambda _: True)
    monkeypatch.setattr(Home, "holder", lambda _: {"pid": 7})
    monkeypatch.setattr(login, "LINGER", tmp_path)
    monkeypatch.setattr(login, "user_name", lambda: "ann")
    monkeypatch.setattr(login, "is_below_manager", lambda _: False)
    monkeypatch.setattr(login, "find_obstacle", lambda: obstacle)
    monkeypatch.setattr(login, "_cgroup", lambda _: "0::/user.slice/user-1000.slice/session-4.scope")
    monkeypatch.setattr(login, "kills_user_processes", lambda: True)
    said = logout.logout_notice(Home(aver_home), "local")
    assert said == f"jobs end when you log out: logind is set to KillUserProcesses=yes; {remedy}"
