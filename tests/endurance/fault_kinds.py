"""The faults of a campaign: what is done to the processes, the disk and the clock of one home while jobs run."""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import signal
import struct
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ledger_check import Excuses

SOURCE = Path(__file__).with_name("faults.c")
CONTROL = "iiiiq"  # as in faults.c
NONE = (0, 0, 0, 0, 0)


def compile_shim(folder: Path) -> Path:
    shim = folder / "faults.so"
    words = ["cc", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", str(SOURCE), "-o", str(shim), "-ldl"]
    subprocess.run(words, check=True)
    return shim


class Target:
    """The processes of one home."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.clients: list[subprocess.Popen[str]] = []

    def coordinator(self) -> int | None:
        try:
            pid = int(json.loads((self.home / "lock").read_bytes())["pid"])
            command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return pid if os.fsencode(self.home) in command else None

    def witnesses(self) -> list[int]:
        own = os.fsencode(self.home / "witness") + b"/"
        found = []
        for name in os.listdir("/proc"):
            with contextlib.suppress(OSError):
                is_ours = name.isdigit() and os.readlink(f"/proc/{name}/fd/4".encode()).startswith(own)
                if is_ours and b"aver-witness" in Path(f"/proc/{name}/cmdline").read_bytes():
                    found.append(int(name))
        return [pid for pid in found if _parent(pid) not in found]  # a job has its witness's name until its exec

    def everybody(self) -> list[int]:
        """Coordinator, witnesses and jobs, for the end of a round."""
        needle = b"AVER_HOME=" + os.fsencode(self.home) + b"\0"
        found = self.witnesses()
        for name in os.listdir("/proc"):
            with contextlib.suppress(OSError):
                if name.isdigit() and needle in Path(f"/proc/{name}/environ").read_bytes() and int(name) != os.getpid():
                    found.append(int(name))
        return found


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def send(pid: int | None, number: int) -> bool:
    if pid is None:
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
        return True
    return False


def kill_some(pids: Sequence[int], chance: random.Random) -> int:
    """Kill one of them, or about half of them at once; how many were killed."""
    chosen = [pid for pid in pids if chance.random() < 0.5] or [chance.choice(pids)] if pids else []
    if chosen and chance.random() < 0.5:
        chosen = chosen[:1]
    return sum(send(pid, signal.SIGKILL) for pid in chosen)


class Kind:
    """One kind of fault. `strike` does it once, and returns how often something was really done."""

    name = ""
    excuses = Excuses()
    needs_shim = False
    pause_s = 0.6  # at most, between two strikes
    types = True  # whether commands are typed while it lasts
    kills = False  # whether a strike is one or more SIGKILLs, counted one by one
    clients = 3  # at a time
    jobs_of_flow = (2, 8)  # at least and at most

    def __init__(self, target: Target, chance: random.Random, control: Path) -> None:
        self.target = target
        self.chance = chance
        self._control = control

    def set(self, values: Sequence[int]) -> None:
        with self._control.open("r+b") as file:
            file.write(struct.pack(CONTROL, *values))

    def prepare(self) -> None:
        """Before the first command."""

    def limit(self) -> Callable[[], None] | None:
        """What each client does to itself before it begins."""
        return None

    def strike(self) -> int:
        raise NotImplementedError

    def heal(self) -> None:
        """Nothing is wrong from here on."""
        self.set(NONE)

    def end(self) -> None:
        """After the round, however it went."""


class KillCoordinator(Kind):
    name = "coordinator killed"
    kills = True
    pause_s = 0.4

    def strike(self) -> int:
        return send(self.target.coordinator(), signal.SIGKILL)


class KillClient(Kind):
    name = "client killed"
    kills = True
    pause_s = 0.4
    clients = 6

    def strike(self) -> int:
        return kill_some([client.pid for client in self.target.clients if client.poll() is None], self.chance)


class KillWitness(Kind):
    name = "witness killed"
    excuses = Excuses(loses_witnesses=True, refuses_launches=True)
    kills = True
    pause_s = 0.2
    jobs_of_flow = (20, 100)

    def strike(self) -> int:
        return kill_some(self.target.witnesses(), self.chance)


class KillAny(Kind):
    name = "coordinator, client and witness killed"
    excuses = Excuses(loses_witnesses=True, refuses_launches=True)
    kills = True
    pause_s = 0.4
    jobs_of_flow = (10, 40)
    clients = 6

    def strike(self) -> int:
        """Two of the three, or all three at once."""
        count = 0
        for kind in self.chance.sample((KillCoordinator, KillClient, KillWitness), self.chance.choice((2, 2, 3))):
            count += kind(self.target, self.chance, self._control).strike()
        return count


class KillUnattended(Kind):
    """Nobody types a command meanwhile: a witness starts the next coordinator."""

    name = "coordinator killed, nobody types"
    kills = True
    types = False
    pause_s = 3.0
    most = 3

    def __init__(self, target: Target, chance: random.Random, control: Path) -> None:
        super().__init__(target, chance, control)
        self._strikes = 0

    def strike(self) -> int:
        if self._strikes >= self.most or not send(self.target.coordinator(), signal.SIGKILL):
            return 0
        self._strikes += 1
        return 1


class Stop(Kind):
    name = "SIGSTOP, then SIGCONT"

    def strike(self) -> int:
        running = [client.pid for client in self.target.clients if client.poll() is None]
        chosen = self.chance.choice([[self.target.coordinator()], self.target.witnesses(), running])
        pid = self.chance.choice(chosen) if chosen else None
        if not send(pid, signal.SIGSTOP):
            return 0
        time.sleep(self.chance.random() * 1.5)
        send(pid, signal.SIGCONT)
        return 1


class Clock(Kind):
    name = "clock set"
    needs_shim = True

    def strike(self) -> int:
        self.set((0, 0, 0, 0, self.chance.choice((0, 1, -1)) * self.chance.choice((5, 3600, 86400, 400 * 86400))))
        return 1


class Eio(Kind):
    name = "EIO"
    needs_shim = True
    excuses = Excuses(refuses_launches=True)

    def strike(self) -> int:
        self.set((self.chance.choice((0, 20, 100, 500)), 0, 0, 0, 0))
        return 1


class FullDisk(Kind):
    """A real small disk where we may mount one, else ENOSPC from the shim."""

    name = "disk full"
    needs_shim = True
    excuses = Excuses(refuses_launches=True)

    def prepare(self) -> None:
        self._is_mounted = False
        if os.geteuid() == 0:
            words = ["mount", "-t", "tmpfs", "-o", "size=24m,mode=0700", "tmpfs", str(self.target.home)]
            self._is_mounted = subprocess.run(words, check=False, capture_output=True).returncode == 0

    def strike(self) -> int:
        if not self._is_mounted:
            self.set((0, self.chance.choice((0, 100, 500)), 0, 0, 0))
            return 1
        self._make_room()
        with contextlib.suppress(OSError), (self.target.home / "filler").open("wb") as file:
            while True:
                file.write(b"x" * 65536)
                file.flush()
        time.sleep(self.chance.random())
        if self.chance.random() < 0.5:
            self._make_room()
        return 1

    def _make_room(self) -> None:
        (self.target.home / "filler").unlink(missing_ok=True)

    def heal(self) -> None:
        super().heal()
        self._make_room()

    def end(self) -> None:
        if self._is_mounted:
            subprocess.run(["umount", "-l", str(self.target.home)], check=False, capture_output=True)


class Slow(Kind):
    name = "slow disk"
    needs_shim = True

    def strike(self) -> int:
        self.set((0, 0, 0, self.chance.choice((0, 5_000, 50_000, 300_000)), 0))
        return 1


class Spawns(Kind):
    name = "no more processes"
    needs_shim = True
    excuses = Excuses(refuses_launches=True)

    def strike(self) -> int:
        self.set((0, 0, self.chance.choice((0, 100, 500)), 0, 0))
        return 1


class Descriptors(Kind):
    name = "few descriptors"
    excuses = Excuses(refuses_launches=True)

    def limit(self) -> Callable[[], None]:
        return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))

    def strike(self) -> int:
        return send(self.target.coordinator(), signal.SIGKILL) if self.chance.random() < 0.3 else 0


KINDS: tuple[type[Kind], ...] = (
    KillCoordinator, KillClient, KillWitness, KillAny, KillUnattended, Stop, Clock, Eio, FullDisk, Slow, Spawns,
    Descriptors,
)  # fmt: skip
