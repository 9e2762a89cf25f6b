"""Other users of the machine: what they put in a home's way is refused before a byte is sent or believed."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aver.errors import CantWriteError, UsageError
from aver.home import Home
from aver.ownership import check_home
from live_home import DEADLINE_S, LiveHome
from second_user import OTHER, as_other, needs_root, other_does


@contextlib.contextmanager
def fake_coordinator(sock: Path, heard: Path) -> Iterator[None]:
    """A process of the second user that listens there, keeps what it hears and answers what a client would believe."""
    heard.touch()
    os.chown(heard, OTHER, OTHER)
    ready, tell = os.pipe()

    def listen() -> None:
        with socket.socket(socket.AF_UNIX) as listener, heard.open("ab", buffering=0) as file:
            listener.bind(os.fspath(sock))
            os.chmod(sock, 0o777)
            listener.listen()
            os.write(tell, b"r")
            while True:
                connection, _ = listener.accept()
                with connection:
                    if data := connection.recv(1 << 16):
                        file.write(data)
                        connection.sendall(b'{"ok": true, "run": 7, "first_job": 7, "jobs": 1, "results": []}\n')

    pid = as_other(listen)
    try:
        os.close(tell)
        assert os.read(ready, 1) == b"r"
        yield
    finally:
        os.close(ready)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def refuses(home: Path, *words: str) -> None:
    """Each kind of client says one line with these words, and is not 0."""
    env = {name: value for name, value in os.environ.items() if name not in ("AVER_HOME", "AVER_KEY")}
    package = Path(__file__).resolve().parents[2] / "src"
    fast = f"import sys; sys.path.insert(0, {str(package)!r}); from aver.slurm_cli.%s import main; sys.exit(main(%r))"
    commands = (
        [sys.executable, "-m", "aver", "submit", "--", "true"],
        [sys.executable, "-m", "aver", "cancel", "7"],
        [sys.executable, "-m", "aver", "jobs"],
        [sys.executable, "-IS", "-c", fast % ("sbatch", ["--wrap=true"])],
        [sys.executable, "-IS", "-c", fast % ("scancel", ["7"])],
        [sys.executable, "-IS", "-c", fast % ("squeue", [])],
        [sys.executable, "-IS", "-c", fast % ("srun", ["true"])],
    )
    for command in commands:
        extra = {"AVER_HOME": str(home), "AVER_STOLEN": "my secret"}
        inside = {"AVER_KEY": "k.1.1.x"} if "slurm_cli.srun" in command[-1] else {}
        done = subprocess.run(
            command, cwd="/", env={**env, **extra, **inside}, capture_output=True, text=True, timeout=DEADLINE_S,
            check=False,
        )  # fmt: skip
        assert done.returncode != 0, (command, done)
        assert "Traceback" not in done.stderr, done.stderr
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
        for word in words:
            assert word in done.stderr, (command, done.stderr)


# ---- the coordinator that answers --------------------------------------------------------------------------------


@needs_root
def test_home_that_another_user_made_in_an_open_folder(place: Path) -> None:
    """A coordinator of another uid that waits where our home would be hears nothing of us."""
    place.chmod(0o777)
    home = place / "home"
    other_does(lambda: home.mkdir(mode=0o755))
    with fake_coordinator(home / "sock", place / "heard"):
        refuses(home, str(place), "AVER_HOME")
    assert (place / "heard").read_bytes() == b""


@needs_root
def test_peer_of_another_user(place: Path) -> None:
    """The listener's uid counts, not the owner of the socket's file."""
    home = place / "home"
    home.mkdir(mode=0o700)
    os.chown(home, OTHER, OTHER)
    with fake_coordinator(home / "sock", place / "heard"):
        for path in (home, home / "sock"):
            os.chown(path, 0, 0)
        with contextlib.closing(sqlite3.connect(home / "aver.db")):
            pass
        refuses_connections(home)
    assert (place / "heard").read_bytes() == b""


def refuses_connections(home: Path) -> None:
    from aver.protocol import fast_client
    from aver.protocol.client import Client

    with pytest.raises(UsageError, match=f"uid {OTHER}"):
        Client.connect(Home(home))
    with pytest.raises(UsageError, match=f"uid {OTHER}"):
        fast_client.open_wire(os.fspath(home))
    with pytest.raises(UsageError, match=f"uid {OTHER}"):
        fast_client.connect(os.fspath(home))
    said = srun(home)
    assert said.returncode == 1
    assert f"uid {OTHER}" in said.stderr


def srun(home: Path) -> subprocess.CompletedProcess[str]:
    """A plain srun as in a job of this home: its program in C, which leaves the refusal to Python."""
    from aver.client.slurm_bin import SRUN_IN_PYTHON, texts

    folder = home.parent / "bin"
    folder.mkdir()
    for name in (SRUN_IN_PYTHON, "srun"):
        (folder / name).write_text(texts()[name])
        (folder / name).chmod(0o755)
    environment = {"PATH": os.defpath, "AVER_HOME": os.fspath(home), "AVER_KEY": "1.1.1.x"}
    return subprocess.run([folder / "srun", "true"], env=environment, capture_output=True, text=True, check=False)


# ---- folders above the home --------------------------------------------------------------------------------------


@needs_root
@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757])
def test_folder_in_which_others_can_rename(place: Path, mode: int) -> None:
    """A home of ours below a folder that others can write is refused: they could put another one in its place."""
    open_folder = place / "open"
    home = open_folder / "mine" / "home"
    Home(home).prepare()
    os.chown(open_folder, -1, OTHER)
    check_home(os.fspath(home))
    open_folder.chmod(mode)
    with pytest.raises(UsageError, match=f"{open_folder}.*AVER_HOME"):
        check_home(os.fspath(home))
    with pytest.raises(UsageError, match=f"{open_folder}.*AVER_HOME"):
        Home(home).prepare()
    open_folder.chmod(0o1777)
    check_home(os.fspath(home))


@needs_root
def test_folder_of_another_user(place: Path) -> None:
    """The owner of a folder above the home can rename it whatever its mode; root is told about sudo."""
    theirs = place / "theirs"
    theirs.mkdir(mode=0o755)
    os.chown(theirs, OTHER, OTHER)
    with pytest.raises(UsageError, match=rf"{theirs} belongs to .*uid {OTHER}.*not to root.*sudo"):
        Home(theirs / "home").prepare()
    assert list(theirs.iterdir()) == []


@needs_root
def test_link_of_another_user(place: Path) -> None:
    """In a folder with the sticky bit, a link that another user made is not followed; our own is."""
    sticky, real = place / "sticky", place / "real"
    sticky.mkdir()
    sticky.chmod(0o1777)
    Home(real).prepare()
    other_does(lambda: (sticky / "theirs").symlink_to(real))
    (sticky / "ours").symlink_to(real)
    check_home(os.fspath(sticky / "ours"))
    with pytest.raises(UsageError, match=str(sticky / "theirs")):
        check_home(os.fspath(sticky / "theirs"))


@needs_root
def test_home_below_a_link_into_an_open_folder(place: Path) -> None:
    """The folders that a link leads through count as well."""
    open_folder = place / "open"
    home = open_folder / "home"
    Home(home).prepare()
    open_folder.chmod(0o777)
    (place / "link").symlink_to("./open/../open")
    with pytest.raises(UsageError, match=str(open_folder)):
        check_home(os.fspath(place / "link" / "home"))


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o277])
def test_missing_parents_are_private(tmp_path: Path, umask: int) -> None:
    """Folders that are made on the way to a home have mode 0700, whatever the umask."""
    before = os.umask(umask)
    try:
        Home(tmp_path / "a" / "b" / "home").prepare()
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a", "a/b", "a/b/home", "a/b/home/env")]
    assert modes == [0o700] * 4


def test_links_that_lead_nowhere(tmp_path: Path) -> None:
    """A loop of links is one sentence; a link whose target is missing is made by `prepare`."""
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises((UsageError, CantWriteError), match="loop"):
        Home(tmp_path / "loop" / "home").prepare()
    (tmp_path / "link").symlink_to("target")
    Home(tmp_path / "link").prepare()
    assert stat.S_IMODE((tmp_path / "target").stat().st_mode) == 0o700


# ---- what lies in a home -----------------------------------------------------------------------------------------


@needs_root
@pytest.mark.parametrize("name", ["aver.db", "bin/sbatch", "lock", "sock"])
def test_open_home_with_a_planted_entry(place: Path, name: str) -> None:
    """What another user put into a home while it was open is never used, also after the home was closed again."""
    home = place / "home"
    home.mkdir()
    home.chmod(0o777)

    def plant() -> None:
        (home / name).parent.mkdir(exist_ok=True)
        if name == "sock":
            socket.socket(socket.AF_UNIX).bind(os.fspath(home / name))
        else:
            (home / name).write_text("#!/bin/sh\n")

    other_does(plant)
    for mode in (0o777, 0o700):
        home.chmod(mode)
        refuses(home, str(home / name.partition("/")[0]), f"uid {OTHER}")
        assert stat.S_IMODE(home.stat().st_mode) == mode
    assert {path.name for path in home.iterdir()} == {name.partition("/")[0]}


@needs_root
def test_open_home_with_an_entry_planted_deep_in_it(place: Path) -> None:
    """In a home and a folder of ours that were both open, a command of another user's is found, each time."""
    home = place / "home"
    Home(home).prepare()
    (home / "aver.db").touch(mode=0o600)
    (home / "bin").mkdir()
    (home / "bin").chmod(0o777)
    home.chmod(0o777)
    other_does(lambda: (home / "bin" / "sbatch").write_text("#!/bin/sh\n"))
    for _ in range(2):
        with pytest.raises(UsageError, match=str(home / "bin")):
            check_home(os.fspath(home))


def test_open_home_in_which_everything_is_ours(live: LiveHome) -> None:
    """It is closed and used."""
    live.settle([live.run_text("exit 3")])
    live.home.path.chmod(0o777)
    check_home(os.fspath(live.home.path))
    assert stat.S_IMODE(live.home.path.stat().st_mode) == 0o700
    live.settle([live.run_text("exit 4")])


def test_open_home_with_a_file_that_others_can_write(place: Path) -> None:
    """Nobody knows who wrote it last: refused."""
    home = place / "home"
    Home(home).prepare()
    (home / "aver.db").touch()
    (home / "aver.db").chmod(0o666)
    home.chmod(0o777)
    with pytest.raises(UsageError, match=r"aver\.db"):
        check_home(os.fspath(home))


@needs_root
def test_home_of_another_user_as_root(place: Path) -> None:
    """Root is told whose it is, and that sudo or a file system without root's rights may be the cause."""
    home = place / "home"
    home.mkdir(mode=0o700)
    os.chown(home, OTHER, OTHER)
    refuses(home, f"uid {OTHER}", "not to root", "sudo")
    env = {**os.environ, "AVER_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-m", "aver", "doctor"], env=env, capture_output=True, text=True, check=False
    )  # fmt: skip
    assert done.returncode == 1
    assert "not to root" in " ".join(done.stdout.split())
    assert list(home.iterdir()) == []
