"""Folders of a flow on their way to a cluster's host and back, by rsync over the connection that the commands use.

A thread of its own does one transfer after the other, so that nobody waits for it but those who need the files. What
always holds: nothing is deleted on either side; a file that is newer where it would be written is left alone; a
transfer that fails is tried again, from where it stopped, until it succeeds; what arrives was compared by its checksum.
"""

from __future__ import annotations

import os
import shlex
import threading
import time
from collections.abc import Callable, Sequence

from aver.engines.api import Sync
from aver.engines.slurm.commands.call import Call, Here, Reply, Trouble
from aver.engines.slurm.remote.host import Host, Layout
from aver.model.host_name import split_address
from aver.model.record import Mutable, Record, field

LONGEST_S = 7 * 86400.0
STALLED_S = 60
LEAST_PAUSE_S = 1.0
MOST_PAUSE_S = 120.0
_SOME_FILES_WENT = 24  # while rsync looked at them: another job's, which are fetched with that job


class Transfer(Mutable):
    """One way of one set of folders, for these attempts."""

    sync: Sync
    is_back: bool
    keys: set[str]
    due: float = 0.0
    pause_s: float = LEAST_PAUSE_S


class Outcome(Record):
    """What became of a transfer. `trouble` says why it is tried again; empty: the files are there."""

    sync: Sync
    is_back: bool
    keys: frozenset[str]
    trouble: str = ""


class Transfers(Mutable):
    """`told` is called by the thread when there are outcomes."""

    host: Host
    timeout_s: float
    told: Callable[[], None]
    rsync: Sequence[str] = ("rsync",)
    _lock: threading.Condition = field(default_factory=threading.Condition)
    _wanted: list[Transfer] = field(default_factory=list)
    _outcomes: list[Outcome] = field(default_factory=list)
    _is_closing: bool = False
    _thread: threading.Thread | None = None

    def want(self, sync: Sync, is_back: bool, keys: set[str]) -> None:
        """Bring these folders; a transfer that has not begun yet is for these attempts, too."""
        with self._lock:
            for one in self._wanted:
                if (one.sync, one.is_back) == (sync, is_back):
                    one.keys |= keys
                    return
            self._wanted.append(Transfer(sync, is_back, set(keys)))
            self._lock.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="transfers", daemon=True)
                self._thread.start()

    def outcomes(self) -> list[Outcome]:
        with self._lock:
            found, self._outcomes = self._outcomes, []
        return found

    def close(self) -> None:
        with self._lock:
            self._is_closing = True
            self._lock.notify()

    def _run(self) -> None:
        while True:
            with self._lock:
                while not self._is_closing and not (due := self._due()):
                    self._lock.wait(self._idle_s())
                if self._is_closing:
                    return
                transfer = due[0]
                self._wanted.remove(transfer)
            trouble = self._bring(transfer)
            with self._lock:
                if trouble:
                    transfer.due = time.monotonic() + transfer.pause_s
                    transfer.pause_s = min(2 * transfer.pause_s, MOST_PAUSE_S)
                    self._wanted.append(transfer)
                outcome = Outcome(transfer.sync, transfer.is_back, frozenset(transfer.keys), trouble)
                self._outcomes.append(outcome)
            self.told()

    def _due(self) -> list[Transfer]:
        now = time.monotonic()
        return [one for one in self._wanted if one.due <= now]

    def _idle_s(self) -> float | None:
        return max(0.01, min(one.due for one in self._wanted) - time.monotonic()) if self._wanted else None

    def _bring(self, transfer: Transfer) -> str:
        """Why it failed; empty: it did not."""
        layout = self.host.layout()
        if isinstance(layout, Trouble):
            return layout.text
        folders = transfer.sync.folders
        if not transfer.is_back:
            missing = [folder for folder in folders if not os.path.isdir(folder)]
            if missing:
                return f"there is no folder {missing[0]}"
        places = shlex.join(layout.there(folder, folders) for folder in folders)
        made = self.host.ssh.run_text(f"umask 077; mkdir -p -- {places}", self.timeout_s)
        if isinstance(made, Trouble):
            return made.text
        if made.status != 0:
            return f"{self.host.ssh.host}: {_last(made.err) or 'mkdir failed'}"
        for folder in folders:
            trouble = self._rsync(folder, layout, transfer)
            if trouble:
                return trouble
        return ""

    def _rsync(self, folder: str, layout: Layout, transfer: Transfer) -> str:
        ssh = self.host.ssh
        here = folder.rstrip("/") + "/"
        name, port = split_address(ssh.host)
        shell = shlex.join([*ssh.command(), *(("-p", port) if port else ())])
        there = f"{name}:{layout.there(folder, transfer.sync.folders)}/"
        words = [
            *self.rsync, "--archive", "--no-owner", "--no-group", "--update", "--protect-args",
            "--partial-dir=.aver-partial", f"--timeout={STALLED_S}", "--rsh", shell,
            *(f"--exclude={pattern}" for pattern in transfer.sync.excludes),
            *(("--", there, here) if transfer.is_back else ("--checksum", "--", here, there)),
        ]  # fmt: skip
        reply = Here().run(Call(tuple(words), ssh.environment(), LONGEST_S))
        if isinstance(reply, Trouble):
            return reply.text
        if reply.status in (0, _SOME_FILES_WENT):
            return ""
        way = "back from" if transfer.is_back else "to"
        return f"{folder} could not be brought {way} {ssh.host}: {_reason(reply)}"


def _reason(reply: Reply) -> str:
    """rsync's first complaint says what happened, its last only with which number it ended."""
    lines = [line.strip() for line in reply.err.splitlines() if line.strip()]
    return (lines[0] if lines else f"rsync: exit status {reply.status}")[:300]


def _last(text: str) -> str:
    return text.strip().rpartition("\n")[2]
