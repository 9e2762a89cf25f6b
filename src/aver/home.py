"""The folder in which Aver keeps everything: where it is, what lies in it, and that nobody else reads it.

Nothing here is created by a reader; only `prepare` makes the folder. Everybody checks whose it is (`ownership`).
"""

from __future__ import annotations

import os
from pathlib import Path

from aver.errors import CantWriteError
from aver.ownership import check_home, make_folder, make_home


class Home:
    """The paths below one AVER_HOME."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def find(cls) -> Home:
        """Return the home that the environment names; it need not exist."""
        named = os.environ.get("AVER_HOME")
        if named:
            return cls(Path(os.path.abspath(named)))
        state = os.environ.get("XDG_STATE_HOME")
        base = Path(state) if state and os.path.isabs(state) else Path(os.path.expanduser("~")) / ".local" / "state"
        return cls(base / "aver")

    @property
    def database(self) -> Path:
        return self.path / "aver.db"

    @property
    def bin(self) -> Path:
        """Slurm's commands."""
        return self.path / "bin"

    @property
    def lock(self) -> Path:
        return self.path / "lock"

    @property
    def log(self) -> Path:
        return self.path / "coordinator.log"

    @property
    def stop_note(self) -> Path:
        """What the last coordinator saw of a shutdown or logout."""
        return self.path / "stopping"

    @property
    def witnesses(self) -> Path:
        return self.path / "witness"

    def env(self, run: int) -> Path:
        return self.path / "env" / f"{run}.env"

    def scripts(self, run: int) -> Path:
        return self.path / "scripts" / str(run)

    def use(self, run: int) -> Path:
        """Memory and CPUs of the run's attempts over time."""
        return self.path / "use" / str(run)

    @property
    def logs(self) -> Path:
        """The output of commands that have no name for it."""
        return self.path / "logs"

    @property
    def stdin(self) -> Path:
        return self.path / "stdin"

    @property
    def terminals(self) -> Path:
        """Sockets of jobs that have a terminal."""
        return self.path / "terminals"

    @property
    def schedules(self) -> Path:
        return self.path / "schedules"

    @property
    def ui_socket(self) -> Path:
        """Where `aver ui --socket` listens."""
        return self.path / "ui.sock"

    @property
    def ui_link(self) -> Path:
        """What `aver ui --open` gives to the browser."""
        return self.path / "ui.html"

    @property
    def flows(self) -> Path:
        """Flows that were submitted by dropping their file on the page."""
        return self.path / "flows"

    def has_schedules(self) -> bool:
        try:
            return any(name.endswith(".json") for name in os.listdir(self.schedules))
        except OSError:
            return False

    def check(self) -> None:
        """Refuse a home that another user could have put there or written in: UsageError. A missing one is fine."""
        check_home(os.fspath(self.path))

    def prepare(self) -> None:
        """Make the folder, mode 0700, or raise an error that says what to do."""
        try:
            make_home(os.fspath(self.path))
            for name in ("env", "logs", "scripts", "witness", "stdin", "use"):
                make_folder(os.fspath(self.path / name))
        except OSError as error:
            raise CantWriteError(
                f"can't make the home folder {self.path}: {error.strerror}; "
                "set AVER_HOME to a folder that you can write"
            ) from None

    def exists(self) -> bool:
        return self.database.exists()

    def holder(self) -> dict[str, object]:
        """The holder that the lock's text names; empty if nobody holds it or the text can't be read."""
        try:
            return parse_holder(self.lock.read_bytes()[:4096])
        except OSError:
            return {}

    def has_coordinator(self, ending_s: float = 0.0) -> bool:
        """Whether the process that the lock names lives, as far as can be told from this host.

        One that is about to end has so much time for it. Afterwards none of its threads writes any more, also where
        nobody has waited for it yet.
        """
        holder = self.holder()
        pid = holder.get("pid")
        if holder.get("boot") != read_boot_id() or not isinstance(pid, int) or pid <= 0:
            return False
        try:
            process = os.pidfd_open(pid)
        except (ProcessLookupError, OverflowError):
            return False
        except OSError:  # a sandbox or an old kernel may refuse it
            return _takes_signals(pid)
        try:
            import select  # most commands never ask

            ended = select.poll()
            ended.register(process, select.POLLIN)
            return not ended.poll(ending_s * 1000)
        finally:
            os.close(process)


def _takes_signals(pid: int) -> bool:
    """Whether there is such a process; one that has ended and nobody has waited for counts."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # of another user
    return True


def parse_holder(text: bytes) -> dict[str, object]:
    """The lock's text: host, boot, pid, since. Empty if it names no host: then nobody wrote it."""
    import json  # most readers never ask

    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) and isinstance(value.get("host"), str) else {}


def read_boot_id() -> str:
    """The kernel's boot id; another one means that the machine was restarted."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")
    except OSError:
        return "0" * 32
