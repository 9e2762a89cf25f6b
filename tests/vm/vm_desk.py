"""The machine of `scripts/vm-lab`, as tests use it: over ssh, as its ordinary user alice or as root."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("AVER_VM_LAB") or os.path.join(tempfile.gettempdir(), "aver-vm-lab"))
SUITE = os.environ.get("AVER_VM_LAB_SUITE") or "trixie"
TREES = (f"root-{SUITE}.packages", "qemu-root.packages")
ANSWER_S = 1200  # the processor is emulated, and shared with whatever else the host does
WATCH_S = 900
LEFT = """find /sys/fs/cgroup/user.slice -type d -path '*/aver.slice/*'
ps -u alice -o pid=,args= | grep -v grep | grep aver
runuser -u alice -- env XDG_RUNTIME_DIR=/run/user/1000 \\
    systemctl --user list-units --all --no-legend --plain 'aver*' | grep -v '^aver.slice '
true
"""


def lab(*words: str) -> None:
    """`scripts/vm-lab WORDS`; AssertionError with what it said if it fails."""
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "vm-lab", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def is_built() -> bool:
    """Whether the Debian trees are there, so that starting takes a minute and not ten."""
    return all((FOLDER / name).exists() for name in TREES)


class Vm:
    def ask(self, text: str, user: str = "alice", status: int | None = 0) -> str:
        """What the shell command prints, in a login session of its own; it must exit so, None: any way."""
        done = subprocess.run(
            [sys.executable, ROOT / "scripts" / "vm-lab", "ssh", user, text],
            capture_output=True, text=True, timeout=ANSWER_S, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if status is not None:
            assert done.returncode == status, f"{text}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def put(self, name: str, text: str) -> None:
        """A file in alice's folder."""
        subprocess.run(
            [sys.executable, ROOT / "scripts" / "vm-lab", "ssh", "alice", f"cat >{name}"],
            input=text, text=True, timeout=ANSWER_S, check=True,
        )  # fmt: skip

    def document(self, command: str) -> Any:
        return json.loads(self.ask(f"{command} --json", status=None))

    def states(self, run: int) -> dict[str, str]:
        """State by name of the run's jobs."""
        return {job["name"]: job["state"] for job in self.document(f"aver jobs {run} --all")["jobs"]}

    def settle(self, run: int, deadline_s: float) -> None:
        """Wait for the run's end by one command: each question over ssh takes a second of the processor's time."""
        end = time.monotonic() + deadline_s
        while not next(one for one in self.document("aver runs")["runs"] if one["id"] == run)["is_settled"]:
            assert time.monotonic() < end, f"run {run} has not ended within {deadline_s:g} s: {self.counts(run)}"
            self.ask(f"timeout {WATCH_S} aver watch --quiet {run} >/dev/null 2>&1", status=None)

    def counts(self, run: int) -> dict[str, int]:
        """How many of the run's jobs are in each state."""
        return dict(Counter(self.states(run).values()))

    def left_behind(self) -> str:
        """Cgroups, processes and units of alice's Aver, a line each.

        The empty slice is not among them: systemd keeps it, as `app.slice`, until the user's service manager ends.
        """
        return self.ask(LEFT, user="root")

    @contextmanager
    def session(self) -> Iterator[None]:
        """Alice stays logged in meanwhile, with a command that does nothing."""
        command = [sys.executable, ROOT / "scripts" / "vm-lab", "ssh", "alice", "echo here; exec sleep 7000"]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as login:
            try:
                assert login.stdout is not None
                assert login.stdout.readline() == "here\n"
                yield
            finally:
                login.kill()

    def set_linger(self, on: bool) -> None:
        self.ask(f"loginctl {'enable' if on else 'disable'}-linger alice", user="root")

    def reboot(self) -> None:
        """As `systemctl reboot` does it; returns when the machine that came up is another boot."""
        before = self.ask("cat /proc/sys/kernel/random/boot_id", user="root")
        self.ask("systemctl reboot", user="root", status=None)
        while True:
            lab("wait")
            now = self.ask("cat /proc/sys/kernel/random/boot_id", user="root", status=None)
            if now and now != before:
                return
