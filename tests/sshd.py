"""An sshd on loopback with a key of its own.

Nothing of the machine's own ssh is used or touched: host key, user key, known hosts, configuration and port are the
test's. The sshd runs as whoever runs the tests and lets only that user in. Its HOME is a folder of the test, so that
a profile can be written there.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from aver.engines.slurm.remote.ssh import Ssh
from live_home import is_alive, wait_for

HOST = "lab"
SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
MISSING = [name for name, found in (("sshd", SSHD), ("ssh", shutil.which("ssh")), ("rsync", shutil.which("rsync")))
           if found is None]  # fmt: skip


def _why_not() -> str:
    """Why nobody can log in here through ssh; empty: one can."""
    if MISSING:
        return f"not installed: {', '.join(MISSING)} (apt-get install openssh-server openssh-client rsync)"
    try:
        shell = pwd.getpwuid(os.geteuid()).pw_shell or "/bin/sh"
    except KeyError:
        return f"uid {os.geteuid()} has no entry in passwd: sshd lets nobody in"
    return f"the login shell is {shell}" if os.path.basename(shell) in ("nologin", "false") else ""


WHY_NOT = _why_not()


class Sshd:
    """The daemon. `folder` has all of it."""

    def __init__(self, folder: Path, environment: dict[str, str], host: str = HOST) -> None:
        self.folder = folder
        self.host = host
        self.home = folder / "home"
        self.bin = folder / "bin"
        for one in (folder, self.home, self.bin):
            one.mkdir(exist_ok=True)
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
        self.user = pwd.getpwuid(os.geteuid()).pw_name
        self._variables = {"HOME": str(self.home), "PATH": f"{self.bin}:/usr/local/bin:/usr/bin:/bin", **environment}
        self.prepend_path(os.path.dirname(shutil.which("squeue") or ""))  # the Slurm that the tests use
        self.configuration = folder / "ssh_config"
        self.port = 0
        self._take_port()
        self._process: subprocess.Popen[bytes] | None = None

    def prepend_path(self, *folders: str | Path) -> None:
        """As sites do it: the machine's own profile sets PATH anew."""
        with (self.home / ".profile").open("a") as file:
            file.writelines(f"PATH={folder}:$PATH\n" for folder in folders if os.fspath(folder))

    def _take_port(self) -> None:
        """Choose a port that is free now; somebody else may be quicker."""
        folder = self.folder
        self.port = _free_port()
        (folder / "sshd_config").write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile {self.pid_file}\n"
            f"AuthorizedKeysFile {folder}/user.pub\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n"
            f"PermitRootLogin prohibit-password\nAllowUsers {self.user}\n"
            f"SetEnv {' '.join(f'{name}={value}' for name, value in self._variables.items())}\n"
        )
        kind, key = (folder / "host.pub").read_text().split()[:2]
        (folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {kind} {key}\n")
        self.configuration.write_text(
            f"Host {self.host}\n HostName 127.0.0.1\n Port {self.port}\n User {self.user}\n"
            f" IdentityFile {folder}/user\n IdentitiesOnly yes\n"
            f" UserKnownHostsFile {folder}/known_hosts\n StrictHostKeyChecking yes\n"
        )

    @property
    def pid_file(self) -> Path:
        return self.folder / "sshd.pid"

    @property
    def words(self) -> tuple[str, ...]:
        return ("ssh", "-F", str(self.configuration))

    def ssh(self) -> Ssh:
        return Ssh(self.host, self.words)

    def start(self) -> None:
        assert SSHD is not None
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        words = [SSHD, "-D", "-f", self.folder / "sshd_config", "-E", self.folder / "log"]
        for _ in range(5):
            process = self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL)
            wait_for(lambda one=process: self._listens() or one.poll() is not None, "sshd listens")  # type: ignore[misc]
            if process.poll() is None:
                return
            self._take_port()
        raise AssertionError((self.folder / "log").read_text())

    def stop(self) -> None:
        """The daemon and all its connections."""
        if self._process is not None:
            found = self.sessions()  # who is without the daemon is nobody's child
            self._process.terminate()
            self._process.wait()
            for pid in found:
                _kill(pid)
            wait_for(lambda: not any(is_alive(pid) for pid in found), "the connections are cut")
            self._process = None

    def sessions(self) -> list[int]:
        """The connections, by the process that serves each."""
        assert self._process is not None
        return [pid for pid in _pids() if _parent(pid) == self._process.pid or _is_of(pid, self._process.pid)]

    def cut(self) -> None:
        """End all connections; the daemon takes new ones."""
        found = self.sessions()
        for pid in found:
            _kill(pid)
        wait_for(lambda: not any(is_alive(pid) for pid in found), "the connections are cut")

    @contextlib.contextmanager
    def stalled(self) -> Iterator[None]:
        """The network takes everything and brings nothing, until this is left; no connection ends."""
        assert self._process is not None
        found = [self._process.pid, *self.sessions()]
        for pid in found:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def leave(self) -> None:
        """End the shared connection from our side."""
        ssh = self.ssh()
        words = [*ssh.command(), "-O", "exit", "--", self.host]
        subprocess.run(words, env=ssh.environment(), capture_output=True, check=False)

    def _listens(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
            return self.pid_file.exists()
        return False

    @contextlib.contextmanager
    def running(self) -> Iterator[Sshd]:
        self.start()
        try:
            yield self
        finally:
            self.leave()
            self.stop()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0


def _is_of(pid: int, daemon: int) -> bool:
    return _parent(_parent(pid)) == daemon and _name(pid) == "sshd"


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
