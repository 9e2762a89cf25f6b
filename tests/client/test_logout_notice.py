"""What `aver submit` says once of jobs that a logout would end: the command must be one that helps this user.

What systemd and logind answer is played here; `tests/vm` has real ones.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aver.client import logout
from aver.engines.local import login
from aver.home import Home


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
    monkeypatch.setattr(login, "ends_at_logout", lambda _: "ann does not linger")
    said = logout.logout_notice(home, "local")
    assert said == f"jobs end when you log out: ann does not linger; {remedy} lets them go on"
    assert logout.logout_notice(home, "local") is None
