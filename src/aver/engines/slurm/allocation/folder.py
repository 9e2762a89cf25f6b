"""The folder that a run shares with its allocations: orders go in, ends come out. `executor` says what each file is.

Every step is a rename or a whole file, so whoever is killed leaves nothing half done. What a file's absence means is
left to others: on a shared folder it may only be late.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from aver.durable_files import write_file
from aver.engines.api import AllocationAsk
from aver.model.codec import parse
from aver.model.record import Mutable, Record, field

SUBFOLDERS = ("in", "orders", "started", "done", "said", "allocs", "asks", "cancelled", "log", "steps")
CLOSE = "close"
LONGEST_SAID = 2000
DAMAGED = ".damaged"
_NAME = re.compile(
    r"(?P<seq>[0-9]+)_(?P<cpus>[0-9]+)(x(?P<nodes>[0-9]+))?(?P<exclude>e)?_(?P<mib>[0-9]+)_(?P<gpus>[0-9]+)_(?P<seconds>[0-9]+)"
    r"_(?P<key>[^@/]+)"
)
_STARTED = re.compile(r"(?P<name>[^@]+)@(?P<job>[0-9]{1,10})@(?P<node>[^@]+)")


class Size(Record):
    """What one step takes, on each of its nodes. `mib` 0: no limit of its own."""

    cpus: int
    mib: int
    gpus: int
    seconds: int = 0  # that must be left; 0: any
    nodes: int = 1
    has_steps: bool = False  # steps of its own have what it takes
    exclude: frozenset[str] = frozenset()  # names of nodes that it does not run on


class Node(Record):
    """What an allocation has on one node; `mib` None: nobody knows."""

    name: str
    cpus: int
    mib: int | None
    gpus: int

    def holds(self, size: Size) -> bool:
        if self.name in size.exclude:
            return False
        return self.cpus >= size.cpus and self.gpus >= size.gpus and (self.mib is None or self.mib >= size.mib)


class Bounds(Record):
    """When and where an order may be started, as far as its name does not say it."""

    deadline_at: float | None = None  # not after this
    exclude: frozenset[str] = frozenset()


class Claim(Record):
    """An order that an allocation took."""

    job: int
    node: str
    at: float


class Listing(Mutable):
    """By key, where each order is."""

    waiting: dict[str, str] = field(default_factory=dict)  # its name
    started: dict[str, Claim] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    cancelled: set[str] = field(default_factory=set)


class Allocation(Mutable):
    """One call of sbatch."""

    name: str
    made_at: float
    id: int | None = None
    word: str = ""  # the last one that the queue had for it
    reason: str = ""
    is_over: bool = False  # it has left the queue, or is leaving it
    unseen_s: float = 0.0


class Asked(Mutable):
    """What somebody asked for, and what was made of it."""

    ask: AllocationAsk
    allocations: list[Allocation] = field(default_factory=list)
    refused: str = ""
    due: float = 0.0  # not before this is sbatch called again
    held_back: str = ""

    @property
    def is_complete(self) -> bool:
        return bool(self.refused) or len(self.allocations) >= self.ask.count


class RunFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.run = int(path.name)

    def make(self) -> None:
        """Whole or not at all, whenever we are killed. OSError if that fails."""
        if self.path.is_dir():
            return
        unfinished = self.path.with_name(f".{self.path.name}")
        for name in SUBFOLDERS:
            (unfinished / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        unfinished.rename(self.path)

    @property
    def is_closed(self) -> bool:
        return (self.path / CLOSE).exists()

    @property
    def is_in_use(self) -> bool:
        """Whether the folder is open, or has steps whose end nobody knows."""
        try:
            return not self.is_closed or bool(os.listdir(self.path / "started"))
        except OSError:
            return False

    def open(self) -> None:
        (self.path / CLOSE).unlink(missing_ok=True)

    def close(self) -> None:
        """Allocations of the run leave when nothing of it runs."""
        write_file(self.path / CLOSE, b"")

    def put_order(self, seq: int, key: str, size: Size, lines: Sequence[str], script: bytes) -> str:
        """From now on an allocation may take it. OSError if it can't be written: then none will."""
        cpus = f"{size.cpus}x{size.nodes}" if size.nodes > 1 or size.has_steps else f"{size.cpus}"
        cpus += "e" if size.exclude else ""
        name = f"{seq:016d}_{cpus}_{size.mib}_{size.gpus}_{size.seconds}_{key}"
        whole = self.path / "orders" / f"{key}.in"
        write_file(whole, "".join(f"{line}\n" for line in lines).encode())
        write_file(self.path / "orders" / f"{key}.sh", script)
        whole.rename(self.path / "in" / name)
        return name

    def bounds_of(self, name: str) -> Bounds:
        """What the lines of the order that waits under this name say; without them nothing."""
        try:
            lines = (self.path / "in" / name).read_text(errors="replace").splitlines()
        except OSError:
            return Bounds()
        deadline = lines[5] if len(lines) > 5 else "0"
        names = lines[6].split() if len(lines) > 6 else ()
        return Bounds(float(deadline) if deadline.isdecimal() and deadline != "0" else None, frozenset(names))

    def handed_over(self) -> set[str]:
        """Keys of all orders that are in the folder, wherever they are just now. OSError if it can't be read."""
        names = os.listdir(self.path / "orders")
        waiting = {name.removesuffix(".in") for name in names if name.endswith(".in")}
        return {name.removesuffix(".sh") for name in names if name.endswith(".sh")} - waiting

    def read(self) -> Listing:
        """In the order in which they move, so that none is overlooked. OSError: that says nothing."""
        found = Listing()
        for name in os.listdir(self.path / "in"):
            order = _NAME.fullmatch(name)
            if order is not None:
                found.waiting[order["key"]] = name
        for name in os.listdir(self.path / "started"):
            claim = _STARTED.fullmatch(name)
            order = _NAME.fullmatch(claim["name"]) if claim is not None else None
            if claim is not None and order is not None:
                with contextlib.suppress(OSError):
                    at = os.stat(self.path / "started" / name).st_ctime
                    found.started[order["key"]] = Claim(int(claim["job"]), claim["node"], at)
        for name in os.listdir(self.path / "cancelled"):
            order = _NAME.fullmatch(name)
            if order is not None:
                found.cancelled.add(order["key"])
        found.done.update(os.listdir(self.path / "done"))
        return found

    def take_back(self, name: str) -> bool:
        """Whether we were quicker than every allocation."""
        try:
            (self.path / "in" / name).rename(self.path / "cancelled" / name)
        except OSError:
            return False
        return True

    def status_of(self, key: str) -> int | None:
        """srun's exit status; None while it is not wholly written."""
        try:
            text = (self.path / "done" / key).read_text()
        except (OSError, ValueError):
            return None
        return int(text) if re.fullmatch(r"[0-9]{1,3}\n", text) else None

    def said(self, key: str) -> str:
        """What srun printed itself."""
        try:
            with open(self.path / "said" / key, errors="replace") as file:
                return file.read(LONGEST_SAID)
        except OSError:
            return ""

    def nodes(self, job: int) -> tuple[Node, ...]:
        """What the allocation has, as its executor found it; empty: it has not begun, or can't be read."""
        try:
            lines = (self.path / "allocs" / str(job)).read_text().splitlines()
            rows = [line.split() for line in lines]
            return tuple(
                Node(row[0], int(row[1]), int(row[2]) if int(row[2]) >= 0 else None, int(row[3])) for row in rows
            )
        except (OSError, ValueError, IndexError):
            return ()

    def forget(self, key: str, listing: Listing) -> None:
        """Its verdict is durable."""
        for path in (f"done/{key}", f"said/{key}", f"orders/{key}.sh", f"orders/{key}.in"):
            with contextlib.suppress(OSError):
                (self.path / path).unlink(missing_ok=True)
        for folder in ("started", "cancelled"):
            with contextlib.suppress(OSError):
                for name in os.listdir(self.path / folder):
                    order = _NAME.fullmatch(name.partition("@")[0])
                    if order is not None and order["key"] == key:
                        (self.path / folder / name).unlink(missing_ok=True)
        listing.waiting.pop(key, None)

    # ---- what was asked for ---------------------------------------------------------------------------

    def load_asks(self, log: Callable[[str], None]) -> list[Asked]:
        """A file that is damaged is set aside, and said; nothing more is taken for it."""
        found = []
        for path in sorted((self.path / "asks").glob("*.json")):
            try:
                found.append(_decode(parse(path.read_bytes())))
            except OSError as error:
                log(f"can't read {path}: {error.strerror}")
            except (ValueError, KeyError, TypeError):
                aside = path.with_name(f"{path.name}{DAMAGED}")
                try:
                    path.rename(aside)
                    how = f"and set aside as {aside.name}"
                except OSError as error:
                    how = f"and can't be set aside ({error.strerror})"
                log(f"{path} is damaged, {how}: what was taken for it is not used any more")
        return found

    def keep(self, asked: Asked) -> None:
        """Durable when this returns; OSError if it can't be written."""
        ask = asked.ask
        words = {
            "run": ask.run, "name": ask.name, "words": ask.words, "count": ask.count, "headroom_s": ask.headroom_s,
            "env_file": ask.env_file, "folder": ask.folder, "umask": ask.umask, "refused": asked.refused,
            "allocations": [
                {"name": one.name, "made_at": one.made_at, "id": one.id, "word": one.word, "is_over": one.is_over}
                for one in asked.allocations
            ],
        }  # fmt: skip
        write_file(self.path / "asks" / f"{ask.name}.json", json.dumps(words).encode())

    def has_asked(self, name: str) -> bool:
        path = self.path / "asks" / f"{name}.json"
        return path.exists() or path.with_name(f"{path.name}{DAMAGED}").exists()


def folders_in(path: Path) -> list[RunFolder]:
    """Those of all runs."""
    return [RunFolder(one) for one in sorted(path.glob("[0-9]*")) if one.name.isdecimal()]


def size_of(name: str) -> Size | None:
    order = _NAME.fullmatch(name)
    if order is None:
        return None
    return Size(
        int(order["cpus"]), int(order["mib"]), int(order["gpus"]), int(order["seconds"]), int(order["nodes"] or 1),
        has_steps=order["nodes"] is not None,
    )  # fmt: skip


def _decode(words: dict[str, Any]) -> Asked:
    ask = AllocationAsk(
        run=int(words["run"]), name=str(words["name"]), words=tuple(str(one) for one in words["words"]),
        count=int(words["count"]), headroom_s=int(words["headroom_s"]),
        env_file=None if words["env_file"] is None else str(words["env_file"]), folder=str(words["folder"]),
        umask=int(words["umask"]),
    )  # fmt: skip
    allocations = [
        Allocation(
            str(one["name"]), float(one["made_at"]), None if one["id"] is None else int(one["id"]), str(one["word"]),
            is_over=bool(one["is_over"]),
        )
        for one in words["allocations"]
    ]  # fmt: skip
    return Asked(ask, allocations, str(words["refused"]))
