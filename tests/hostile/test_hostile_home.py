"""Homes that are wrong: a file, somebody else's, readable by others, long, read-only, full, held elsewhere."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import socket
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aver.errors import AverError, CantWriteError
from aver.model.exit import ExitStatus
from aver.model.states import State
from aver.store.secrets import KEY_BYTES, home_key
from live_home import DEADLINE_S, LiveHome, wait_for

Typed = Callable[..., subprocess.CompletedProcess[bytes]]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def _sentence(done: subprocess.CompletedProcess[bytes], status: int, *words: str) -> None:
    """The command ended with this status and one line on stderr, no traceback."""
    text = done.stderr.decode("utf-8", "replace")
    assert done.returncode == status, (done.returncode, text, done.stdout)
    assert len(text.splitlines()) == 1, text
    assert "Traceback" not in text
    for word in words:
        assert word in text, text


def test_home_is_a_file(typed: Typed, tmp_path: Path) -> None:
    """A wrong AVER_HOME is wrong usage: status 2 and a sentence that names the file, which is left alone."""
    path = tmp_path / "file"
    path.write_text("mine")
    _sentence(typed("run", "--", "true", env={"AVER_HOME": str(path)}), 2, str(path))
    assert path.read_text() == "mine"


@needs_root
def test_home_of_somebody_else(typed: Typed, tmp_path: Path) -> None:
    """Refused, also for root, and left as it was."""
    path = tmp_path / "theirs"
    path.mkdir()
    os.chown(path, 12345, 12345)
    _sentence(typed("run", "--", "true", env={"AVER_HOME": str(path)}), 2, str(path), "12345")
    assert list(path.iterdir()) == []


def test_open_home_with_other_files_is_refused(typed: Typed, tmp_path: Path) -> None:
    """A folder that others read and that has other things in it is not turned into a home."""
    path = tmp_path / "open"
    path.mkdir()
    path.chmod(0o755)  # whatever the umask
    (path / "thing").write_text("x")
    _sentence(typed("run", "--", "true", env={"AVER_HOME": str(path)}), 2, str(path), "chmod")
    assert stat.S_IMODE(path.stat().st_mode) == 0o755


def test_nothing_in_the_home_is_readable_by_others(live: LiveHome, typed: Typed) -> None:
    """An empty folder that others can read is tightened; all in it is 0600 or 0700, whatever the umask. Outputs of
    jobs, whose modes follow the umask, are in a folder of 0700."""
    os.chmod(live.home.path, 0o755)
    script = live.folder / "script.sh"
    script.write_text("#!/bin/sh\nsleep 5\n")
    done = typed("submit", "script.sh", env={"SECRET_THING": "x"}, preexec_fn=lambda: os.umask(0))
    assert done.returncode == 0, done.stderr
    done = typed("submit", "--stdin", "-", "--", "cat", stdin=b"secret input", preexec_fn=lambda: os.umask(0))
    assert done.returncode == 0, done.stderr
    live.wait_running(1)
    seen = [path for path in (live.home.path, *live.home.path.rglob("*")) if path.parent.name != "logs"]
    assert live.home.path / "logs" in seen
    assert len(seen) > 10
    assert [str(path) for path in seen if path.stat().st_mode & 0o077] == []


def test_long_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, live: LiveHome) -> None:
    """A home whose sockets' paths have more than 107 bytes works."""
    path = tmp_path.joinpath(*["a-rather-long-name-of-a-folder"] * 6)
    far = LiveHome(path, live.folder)
    assert len(str(path)) > 150
    number = far.run_text("exit 3")
    far.settle([number])
    assert far.job(number).exit == ExitStatus(3)
    far.kill_coordinator()
    far.connect_again()
    far.assert_nothing_left()
    far.end_everything()


def test_home_with_odd_bytes(live: LiveHome, typed: Typed, tmp_path: Path) -> None:
    """Newlines, quotes, percent signs and bytes that are not UTF-8 in the home's path."""
    path = os.fsencode(tmp_path) + b"/o dd\n'\"%j {n}?#\xff"
    done = typed("run", "--", "sh", "-c", "echo $((40 + 2)); exit 3", env={"AVER_HOME": os.fsdecode(path)})
    assert (done.returncode, done.stdout) == (1, b"42\n"), done.stderr
    far = LiveHome(Path(os.fsdecode(path)), live.folder)
    far.assert_nothing_left()


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of 2 MB, mounted."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    path = Path(tempfile.mkdtemp(prefix="aver-disk-", dir="/tmp"))
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs", path], capture_output=True
    ).returncode:
        path.rmdir()
        pytest.skip("can't mount")
    yield path
    LiveHome(path / "home", path).end_everything()
    subprocess.run(["umount", "-l", path], check=True)
    path.rmdir()


def _fill(disk: Path) -> None:
    """Take all the room that there is."""
    fd = os.open(disk / "ballast", os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        while True:
            os.write(fd, b"x" * 4096)
    except OSError:
        os.close(fd)


def test_full_disk(small_disk: Path, live: LiveHome, typed: Typed) -> None:
    """What runs keeps its verdict until there is room; what is new is refused in words; then all is well again."""
    home = LiveHome(small_disk / "home", live.folder)
    env = {"AVER_HOME": str(home.home.path)}
    running = home.run_text(f"while [ ! -e {live.folder}/go ]; do sleep 0.05; done; exit 7")
    home.wait_running(running)
    _fill(small_disk)
    done = typed("run", "--", "true", env=env)
    _sentence(done, 73)
    (live.folder / "go").touch()
    wait_for(lambda: not home.processes(), "the job's end")
    assert typed("run", "--", "true", env=env).returncode == 73
    (small_disk / "ballast").unlink()
    home.settle([running])
    assert home.job(running).exit == ExitStatus(7)
    wait_for(lambda: typed("run", "--", "true", env=env).returncode == 0, "work after the full disk")
    home.assert_store_is_whole()
    home.assert_nothing_left()


def test_full_disk_and_killed(small_disk: Path, live: LiveHome) -> None:
    """A job ends and its coordinator dies while the disk is full: its verdict comes when there is room."""
    home = LiveHome(small_disk / "home", live.folder)
    running = home.run_text(f"while [ ! -e {live.folder}/go ]; do sleep 0.05; done; exit 7")
    home.wait_running(running)
    _fill(small_disk)
    home.kill_coordinator()
    (live.folder / "go").touch()
    wait_for(lambda: not home.processes(), "the job's end")
    with contextlib.suppress(AverError), home.client() as client:
        client.call("ping")
    (small_disk / "ballast").unlink()
    home.settle([running])
    assert home.job(running).exit == ExitStatus(7), home.job(running)
    home.assert_nothing_left()


def test_full_disk_before_the_coordinator_starts(small_disk: Path, live: LiveHome, typed: Typed) -> None:
    """A coordinator that finds no room for its first file says so: file, cause, and status 73."""
    home = LiveHome(small_disk / "home", live.folder)
    env = {"AVER_HOME": str(home.home.path)}
    home.home.prepare()
    _fill(small_disk)
    _sentence(typed("run", "--", "true", env=env), 73, "can't write", str(home.home.path), "No space left on device")
    (small_disk / "ballast").unlink()
    assert typed("run", "--", "true", env=env).returncode == 0


def test_files_can_not_grow(live: LiveHome, typed: Typed) -> None:
    """A coordinator whose files may not grow refuses in words and does not die of SIGXFSZ."""
    pid = _stays(live)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    _sentence(typed("run", "--", "true"), 73)
    assert live.coordinator() == pid
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    wait_for(lambda: typed("run", "--", "true").returncode == 0, "work after the limit")


def _stays(live: LiveHome) -> int:
    """The pid of a coordinator that has something to do: an idle one leaves, however slow the next command is."""
    live.wait_running(live.run_text("sleep 600"))
    pid = live.coordinator()
    assert pid is not None
    return pid


@needs_root
def test_read_only_home(live: LiveHome, typed: Typed, small_disk: Path) -> None:
    """Reading works; writing says what can't be written, with status 73."""
    home = LiveHome(small_disk / "home", live.folder)
    env = {"AVER_HOME": str(home.home.path)}
    number = home.run_text("exit 3")
    home.settle([number])
    home.wait_until_gone()
    read_only = ["mount", "-o", "remount,ro", small_disk]
    wait_for(lambda: subprocess.run(read_only, capture_output=True).returncode == 0, "nothing is open for writing")
    _sentence(typed("run", "--", "true", env=env), 73, str(small_disk))
    shown = typed("show", "--json", str(number), env=env)
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout)["job"]["state"] == "FAILED"
    subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)


def test_a_log_that_can_not_be_written(live: LiveHome, typed: Typed) -> None:
    """On a full disk the coordinator goes on without its log."""
    live.home.path.mkdir(mode=0o700, exist_ok=True)
    live.home.log.symlink_to("/dev/full")
    try:
        for _ in range(2):
            done = typed("run", "--", "true")
            assert done.returncode == 0, done.stderr
    finally:
        live.home.log.unlink()  # whoever reads it never comes to its end


def test_lock_of_another_host(live: LiveHome, typed: Typed) -> None:
    """Nobody steals: writing says which host holds the home, with status 69; reading works."""
    number = live.run_text("exit 3")
    live.settle([number])
    live.wait_until_gone()
    live.home.lock.write_text(json.dumps({"host": "far-away", "boot": "0" * 32, "pid": 4711, "since": 0}))
    _sentence(typed("run", "--", "true"), 69, "far-away", "4711")
    assert typed("show", str(number)).returncode == 0
    live.home.lock.write_text("")


def test_starting_waits_for_one_that_leaves(live: LiveHome, typed: Typed) -> None:
    """While another coordinator holds the lock and does not listen (yet, or any more), a client waits for it."""
    live.settle([live.run_text("exit 0")])
    live.wait_until_gone()
    holder = subprocess.Popen(
        [sys.executable, "-c", "import fcntl, sys, time; f = open(sys.argv[1], 'r+'); fcntl.flock(f, fcntl.LOCK_EX);"
         "print('held', flush=True); time.sleep(3)", str(live.home.lock)], stdout=subprocess.PIPE,
    )  # fmt: skip
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    done = typed("run", "--", "true")
    holder.wait()
    assert done.returncode == 0, done.stderr


def test_coordinator_that_can_not_start(live: LiveHome, typed: Typed) -> None:
    """The reason in one line, at once, with its status."""
    done = typed("run", "--", "true", env={"AVER_CRASH_AT": "recovered"})
    _sentence(done, 69, "could not start")
    (live.home.path / "sock").unlink(missing_ok=True)
    (live.home.path / "sock" / "in-the-way").mkdir(parents=True)
    _sentence(typed("run", "--", "true"), 73, "can't make the socket", "Is a directory")
    (live.home.path / "config.toml").write_text("cpus = 'many'\n")
    _sentence(typed("run", "--", "true", env={"AVER_CONFIG": str(live.home.path / "config.toml")}), 2, "cpus")


def test_death_while_somebody_waits(live: LiveHome) -> None:
    """`aver run` and `aver watch` say at once that the coordinator died: 69, with the log's last line."""
    number = live.run_text("sleep 600")
    live.wait_running(number)
    command = [sys.executable, "-m", "aver"]
    clients = [
        subprocess.Popen([*command, *args], cwd=live.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for args in (["watch", str(number)], ["run", "--", "sleep", "600"])
    ]
    live.wait_running(2)
    wait_for(lambda: _have_stayed(live), "both clients wait")
    live.kill_coordinator()
    for client in clients:
        _, err = client.communicate(timeout=DEADLINE_S)
        assert client.returncode == 69, err
        assert b"ready, pid" in err
        assert b"Traceback" not in err
    assert live.job(number).state is State.RUNNING
    with live.client() as again:
        again.call("cancel", ids=[number, 2], by="tester", signal=None, now=True)
    live.settle([number, 2])


def _have_stayed(live: LiveHome) -> bool:
    """Whether two connections are there for a while: a command's first one only sees to it that somebody answers."""
    before = _connections(live)
    time.sleep(0.3)
    return len(before) == 2 and before == _connections(live)


def _connections(live: LiveHome) -> set[str]:
    """Those of this coordinator's sockets that somebody has connected to: its listener's name is on each."""
    pid = live.coordinator()
    own = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            own.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
    lines = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:] if line.endswith("/sock")]
    return {words[6] for words in lines if words[5] == "03" and f"socket:[{words[6]}]" in own}


@needs_root
def test_only_the_owner_gets_in(live: LiveHome) -> None:
    """Another uid can't connect, and is dropped if it could."""
    _stays(live)
    os.chmod(live.home.path, 0o777)
    os.chmod(live.home.path / "sock", 0o777)
    code = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX); s.settimeout(5); s.connect(sys.argv[1]);"
        "s.sendall(b'{\"op\": \"ping\"}\\n'); sys.exit(0 if s.recv(100) == b'' else 1)"
    )
    done = subprocess.run(
        ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", "/usr/bin/env", "python3", "-c", code,
         str(live.home.path / "sock")], capture_output=True,
    )  # fmt: skip
    assert done.returncode == 0 or b"Reset" in done.stderr or b"Broken" in done.stderr, done
    with live.client() as client:
        assert client.call("ping")["ok"] is True


def test_damaged_database(live: LiveHome, typed: Typed) -> None:
    """A sentence that says so; the file is left alone. 73: can't write, 69: can't tell a job's end, 1: can't list."""
    live.settle([live.run_text("exit 0")])
    live.wait_until_gone()
    live.home.database.write_bytes(b"this is no database" * 1000)
    for status, command in (
        (73, ["run", "--", "true"]),
        (69, ["watch", "--exit-status", "1"]),
        (1, ["jobs"]),
        (1, ["show", "1"]),
    ):
        _sentence(typed(*command), status, "aver.db")
    assert live.home.database.read_bytes().startswith(b"this is no")


def test_database_of_a_newer_version(live: LiveHome, typed: Typed) -> None:
    """Refused with a sentence, and left alone."""
    live.settle([live.run_text("exit 0")])
    live.wait_until_gone()
    with contextlib.closing(sqlite3.connect(live.home.database)) as connection:
        connection.execute("PRAGMA user_version = 999")
        connection.commit()
    for command in (["run", "--", "true"], ["jobs"], ["show", "1"]):
        _sentence(typed(*command), 2, "newer")


def test_garbage_among_the_witnesses(live: LiveHome) -> None:
    """Journals full of nonsense, sockets of nobody and strange names neither stop it nor make up an outcome."""
    number = live.run_text('echo "$AVER_KEY" >> "$RAN"; sleep 1; exit 3')
    live.wait_running(number)
    live.kill_coordinator()
    folder, journal_path = live.home.witnesses, live.of_witness("log")
    (folder / "77.log").write_bytes(os.urandom(5000) + b"\n" + b"00000002 00000000 {}\n" + b'{"ev":"end"}\n')
    (folder / "78.log").write_bytes(b"")
    (folder / "x.log").write_bytes(b"x")
    (folder / "79.log").mkdir()
    with socket.socket(socket.AF_UNIX) as lonely:
        lonely.bind(str(folder / "80.sock"))
    with journal_path.open("ab") as journal:
        journal.write(b"half a line without an end and with \x00\xff")
    live.settle([number])
    assert live.job(number).exit == ExitStatus(3)
    after = live.run_text("exit 5")
    live.settle([after])
    assert live.job(after).exit == ExitStatus(5)
    assert list(live.keys_run().values()) == [1]
    live.wait_until_gone()
    assert {path.name for path in folder.iterdir()} <= {"x.log", "79.log", "80.sock"}


def test_a_key_that_has_no_room_leaves_nothing_behind(small_disk: Path) -> None:
    """The home's key for digests is there whole or not at all, and so is the file that it is made from."""
    home = small_disk / "home"
    (home / "env").mkdir(parents=True)
    _fill(small_disk)
    with pytest.raises(CantWriteError, match="No space left"):
        home_key(str(home))
    assert list((home / "env").iterdir()) == []
    (small_disk / "ballast").unlink()
    assert len(home_key(str(home))) == KEY_BYTES
