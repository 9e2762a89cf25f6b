"""One command on another host: what it printed and how it ended, or that it was not asked, or that nobody knows."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from aver.engines.slurm.commands.call import Call, Commands, Reply, Trouble
from aver.engines.slurm.remote.ssh import UNREACHABLE, Ssh
from sshd import WHY_NOT, Sshd

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


@pytest.fixture
def sshd() -> Iterator[Sshd]:
    """A daemon of this test's own, in a folder with a short name."""
    folder = Path(tempfile.mkdtemp(prefix="aver-sshd-"))
    try:
        with Sshd(folder, {"SQUEUE_FORMAT": "%i", "SLURM_CONF": "/there/slurm.conf"}).running() as daemon:
            yield daemon
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(sshd: Sshd, *words: str, timeout_s: float = 20, **more: object) -> Reply | Trouble:
    return Commands(transport=sshd.ssh(), is_elsewhere=True).call(words, timeout_s=timeout_s, **more)  # type: ignore[arg-type]


def test_a_command_is_what_it_is_there(sshd: Sshd) -> None:
    """Words, input, output and exit status go through as they are, whatever is in them."""
    odd = ["it's", 'a "b"', "$HOME `id`", "two\nlines", "", "*", "ü\udcff"]
    text = 'printf "%s|" "$@"; cat; echo oops >&2; exit 7'
    reply = run(sshd, "bash", "-c", text, "x", *odd, stdin=b"in\0put\n")
    assert isinstance(reply, Reply)
    assert (reply.status, reply.err) == (7, "oops\n")
    assert reply.out == "|".join(odd) + "|in\0put\n"


@pytest.mark.parametrize("status", [0, 1, 127, 254, 255])
def test_its_own_status_is_not_that_of_ssh(sshd: Sshd, status: int) -> None:
    """ssh's own word for trouble is 255, and a command may end so, too."""
    reply = run(sshd, "bash", "-c", f"exit {status}")
    assert isinstance(reply, Reply)
    assert reply.status == status


def test_the_host_s_environment_is_a_login_shell_s(sshd: Sshd) -> None:
    """What the profile sets counts, but for what changes what Slurm's commands print; what it prints is no answer."""
    (sshd.home / ".bash_profile").write_text("echo noise; echo noise >&2; export SITE=here SACCT_FORMAT=x; printf tail")
    reply = run(sshd, "env", env={"OWN": "mine"})
    assert isinstance(reply, Reply)
    variables = dict(line.partition("=")[::2] for line in reply.out.splitlines())
    assert (variables["SITE"], variables["OWN"], variables["LC_ALL"]) == ("here", "mine", "C")
    assert variables["SLURM_CONF"] == "/there/slurm.conf"
    assert not {"SACCT_FORMAT", "SQUEUE_FORMAT", "SSH_AUTH_SOCK"} & set(variables)
    assert "noise" not in reply.out + reply.err


def test_what_is_not_there_was_not_begun(sshd: Sshd) -> None:
    """A command that the host does not have, and a host that can't be reached, did nothing for certain."""
    missing = run(sshd, "no-such-sbatch")
    assert isinstance(missing, Trouble)
    assert (missing.began, missing.reason) == (False, "CommandNotFound")
    sshd.leave()
    sshd.stop()
    away = run(sshd, "true")
    assert isinstance(away, Trouble)
    assert (away.began, away.reason) == (False, UNREACHABLE)
    assert "refused" in away.text


def test_a_key_that_is_not_known_is_said(sshd: Sshd) -> None:
    """The host's key is checked as the user's configuration says, and nobody is asked."""
    (sshd.folder / "known_hosts").write_text("")
    reply = run(sshd, "true")
    assert isinstance(reply, Trouble)
    assert not reply.began
    assert "Host key verification failed" in reply.text


@pytest.mark.parametrize("name", ["-oProxyCommand=touch x", "", "a b", "x\ny", "'; id"])
def test_a_name_that_is_no_host_is_never_given_to_ssh(name: str) -> None:
    """An option in place of a host would run commands here."""
    reply = Ssh(name).run(Call(("true",), {}, 5))
    assert isinstance(reply, Trouble)
    assert "not the name of a host" in reply.text


def test_a_cut_is_not_an_answer_and_the_next_call_connects_again(sshd: Sshd) -> None:
    """The connection goes while the command runs: it may have done its work, and nobody knows its status."""
    mark = sshd.folder / "mark"
    assert isinstance(run(sshd, "true"), Reply)
    pids = " ".join(map(str, sshd.sessions()))
    reply = run(sshd, "bash", "-c", f"touch {mark}; kill -9 {pids}; exec sleep 5")
    assert isinstance(reply, Trouble)
    assert (reply.began, reply.reason) == (True, UNREACHABLE)
    assert mark.exists()
    assert run(sshd, "echo", "again").out == "again\n"


def test_a_call_ends_at_its_time_limit_on_both_sides(sshd: Sshd) -> None:
    """The host ends it, too: nothing of a call that was given up goes on for ever."""
    pid_file = sshd.folder / "pid"
    reply = run(sshd, "bash", "-c", f"echo $$ > {pid_file}; exec sleep 1000", timeout_s=2)
    assert isinstance(reply, Trouble)
    assert (reply.began, "no answer within 2 s" in reply.text) == (True, True)
    pid = int(pid_file.read_text())
    end = time.monotonic() + sshd.ssh().longest_s(2)
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < end:
        time.sleep(0.1)
    assert not os.path.exists(f"/proc/{pid}")


def test_one_connection_serves_all_calls(sshd: Sshd) -> None:
    """Ten calls, one login; the socket is in a folder that is ours alone."""
    for _ in range(10):
        assert isinstance(run(sshd, "true"), Reply)
    log = (sshd.folder / "log").read_text()
    assert log.count("Accepted publickey") == 1
    path = next(word for word in sshd.ssh().command() if word.startswith("ControlPath=")).partition("=")[2]
    assert os.stat(os.path.dirname(path)).st_mode & 0o077 == 0
    assert len(path) < 90


def test_the_user_s_own_shared_connection_is_used(sshd: Sshd) -> None:
    """A ControlPath in the user's configuration is the user's, and theirs is the connection."""
    own = sshd.folder / "own-%C"
    with sshd.configuration.open("a") as file:
        file.write(f" ControlPath {own}\n")
    assert isinstance(run(sshd, "true"), Reply)
    assert list(sshd.folder.glob("own-*"))
    assert not [word for word in sshd.ssh().command() if word.startswith("ControlPath=")]


def test_ssh_that_is_not_installed_is_one_line() -> None:
    """Not a traceback: the words of the settings may name anything."""
    reply = Ssh("login", ("/no/such/ssh",)).run(Call(("true",), {}, 5))
    assert isinstance(reply, Trouble)
    assert not reply.began
    assert "not found" in reply.text
