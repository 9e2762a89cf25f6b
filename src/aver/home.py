"""The folder in which Aver keeps everything: where it is, what lies in it, and that nobody else reads it.

Nothing here is created by a reader; only `prepare` makes and tightens the folder.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from aver.errors import CantWriteError, UsageError


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
    def lock(self) -> Path:
        return self.path / "lock"

    @property
    def log(self) -> Path:
        return self.path / "coordinator.log"

    @property
    def witnesses(self) -> Path:
        return self.path / "witness"

    def env(self, run: int) -> Path:
        return self.path / "env" / f"{run}.env"

    def scripts(self, run: int) -> Path:
        return self.path / "scripts" / str(run)

    @property
    def stdin(self) -> Path:
        return self.path / "stdin"

    def prepare(self) -> None:
        """Make the folder, mode 0700, or raise an error that says what to do."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._tighten()
            for name in ("env", "scripts", "witness", "stdin"):
                (self.path / name).mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise CantWriteError(
                f"can't make the home folder {self.path}: {error.strerror}; "
                "set AVER_HOME to a folder that you can write"
            ) from None

    def _tighten(self) -> None:
        info = os.stat(self.path)
        if not stat.S_ISDIR(info.st_mode):
            raise UsageError(f"AVER_HOME {self.path} is not a folder")
        if info.st_uid != os.geteuid():
            raise UsageError(f"AVER_HOME {self.path} belongs to uid {info.st_uid}, not to you; choose another folder")
        if info.st_mode & 0o077:
            if not self.database.exists() and any(self.path.iterdir()):
                raise UsageError(
                    f"AVER_HOME {self.path} has other files in it and others can read it; "
                    "choose an empty folder, or chmod 700 it first"
                )
            os.chmod(self.path, 0o700)

    def exists(self) -> bool:
        return self.database.exists()


def read_boot_id() -> str:
    """The kernel's boot id; another one means that the machine was restarted."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")
    except OSError:
        return "0" * 32
