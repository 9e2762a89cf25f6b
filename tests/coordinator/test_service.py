"""A coordinator that systemd or cron starts: it waits for its turn, and stays."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from aver.client import service
from aver.client.service import SERVICE_WORD, unit_text
from aver.errors import UnreachableError
from aver.home import Home
from aver.protocol.client import Client
from aver.protocol.messages import Done, Ping, Pong, Stop


def test_it_takes_over_from_a_commands_coordinator_and_stays(
    aver_home: Path, tmp_path: Path, monkeypatch, eventually: Callable[..., object]
) -> None:  # type: ignore[no-untyped-def]
    """While another one is there it waits, instead of ending and being started again; idle, it does not leave."""
    (tmp_path / "config.toml").write_text("idle_exit = 0.1\n")
    home = Home(aver_home)
    first = Client.connect(home)
    before = first.ask(Ping(), Pong).pid
    monkeypatch.setenv("AVER_CONFIG", str(tmp_path / "config.toml"))
    service = subprocess.Popen(
        [sys.executable, "-P", "-m", "aver.coordinator", str(aver_home), SERVICE_WORD], stdout=subprocess.PIPE
    )
    try:
        assert first.ask(Ping(), Pong).pid == before
        first.ask(Stop(), Done)
        first.close()
        assert service.stdout is not None
        assert service.stdout.readline() == b"ready\n"
        deadline = time.monotonic() + 1.0  # ten times idle_exit, with nobody connected
        while time.monotonic() < deadline:
            assert service.poll() is None
            time.sleep(0.05)
        with_service = Client.connect(home, start=False)
        assert with_service.ask(Ping(), Pong).pid == service.pid
        with_service.ask(Stop(), Done)
        with_service.close()
        assert service.wait(30) == 0
    finally:
        if service.poll() is None:
            service.kill()
        service.wait()


def test_the_unit_survives_strange_names(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """What means something to systemd in a path is written so that it means itself."""
    monkeypatch.setenv("AVER_CONFIG", '/tmp/50%/"a"')
    text = unit_text(Home(Path("/home/a $HOME/100%")))
    assert f'ExecStart="{sys.executable}" "-P" "-m" "aver.coordinator" "/home/a $$HOME/100%%" "--service"' in text
    assert 'Environment="AVER_CONFIG=/tmp/50%%/\\"a\\""' in text
    assert "Restart=always" in text


@pytest.mark.parametrize(
    ("said", "is_kept"), [("no crontab for tester", False), ("can't open your crontab: Permission denied", True)]
)
def test_a_crontab_that_cant_be_read_is_left_alone(
    said: str, is_kept: bool, aver_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a crontab that is known to be absent is written without its lines."""
    (tmp_path / "crontab").write_text(f'#!/bin/sh\n[ "$1" = -l ] && {{ echo "{said}" >&2; exit 1; }}\ncat > written\n')
    (tmp_path / "crontab").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(service, "_has_systemd", lambda: False)
    monkeypatch.setattr(service, "CRON_PIDS", (tmp_path,))
    if is_kept:
        with pytest.raises(UnreachableError, match="can't be read: can't open your crontab"):
            service.enable(Home(aver_home))
    else:
        service.enable(Home(aver_home))
    assert (tmp_path / "written").exists() is not is_kept


def test_without_systemd_and_cron_the_named_command_starts_it(
    aver_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing can start it at boot, the sentence ends with a command that does, when a shell runs it."""
    monkeypatch.setattr(service, "_has_systemd", lambda: False)
    monkeypatch.setattr(service, "CRON_PIDS", (tmp_path / "no-cron",))
    with pytest.raises(UnreachableError, match="run this at boot, as your user: ") as refused:
        service.enable(Home(aver_home))
    command = str(refused.value).split("as your user: ", 1)[1]
    started = subprocess.Popen(["sh", "-c", f"exec env {command}"], stdout=subprocess.PIPE)
    try:
        assert started.stdout is not None
        assert started.stdout.readline() == b"ready\n"
        client = Client.connect(Home(aver_home), start=False)
        assert client.ask(Ping(), Pong).pid == started.pid
        client.ask(Stop(), Done)
        client.close()
        assert started.wait(30) == 0
    finally:
        if started.poll() is None:
            started.kill()
        started.wait()
