"""A model of a disk: at each position of a trace, what is durable and what a power cut may still take. Pure.

The model promises what POSIX promises and no more. Only an fsync makes durable: of a file its bytes and its size, of a
folder its names. A file that was synced is lost with its name if its folder was not, and with a folder that has no
durable name. What is not synced may survive in any combination, in pieces of 512 or 4,096 bytes. One rename is all or
nothing. Left out: modes (a file has the last one that it was given) and SQLite's `-shm`, which is not on the disk.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from power_loss.trace import Kind, Op

VOLATILE = "-shm"


@dataclass(frozen=True, slots=True)
class Write:
    """A change of a file's content that is not durable."""

    at: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Resize:
    """The same of its size."""

    size: int


@dataclass(eq=False, slots=True)
class Inode:
    kind: Literal["file", "folder", "socket"]
    mode: int = 0o600
    data: bytes = b""  # durable
    size: int = 0  # as programs see it
    pending: list[tuple[int, Write | Resize]] = field(default_factory=list)  # by position
    names: dict[str, Inode] = field(default_factory=dict)  # durable
    seen: dict[str, Inode] = field(default_factory=dict)  # as programs see them


@dataclass(frozen=True, slots=True)
class Entry:
    """A change of names that is not durable: all of it survives, or nothing. None: no such name any more."""

    position: int
    changes: tuple[tuple[Inode, str, Inode | None], ...]

    def touches(self, folder: Inode) -> bool:
        return any(one is folder for one, _, _ in self.changes)


@dataclass(frozen=True, slots=True)
class Node:
    """What a tree has at a path."""

    kind: Literal["file", "folder", "socket"]
    mode: int = 0o700
    data: bytes = b""


Tree = dict[str, Node]  # by path relative to the root; folders before what is in them
KeepsEntry = Callable[[Entry], bool]
Content = Callable[[Inode], bytes]


class Disk:
    """All that the root has after the first `position` records of a trace."""

    def __init__(self) -> None:
        self.position = 0
        self.entries: list[Entry] = []  # not durable, in order
        self._root = Inode("folder")
        self._inodes: dict[int, Inode] = {}
        self._dirty: dict[int, Inode] = {}  # with changes that are not durable, by id()

    def apply(self, op: Op) -> None:
        """Take the next record of the trace."""
        self.position += 1
        if op.path.endswith(VOLATILE):
            self._inodes.pop(op.inode, None)  # of a file that is gone: the number is given again
            return
        match op.kind:
            case Kind.CREATE:
                self._inodes[op.inode] = Inode("file", op.number)
                self._enter(op.path, self._inodes[op.inode])
            case Kind.MKDIR:
                self._inodes[op.inode] = Inode("folder", 0o700)
                self._enter(op.path, self._inodes[op.inode])
            case Kind.SOCKET:
                self._inodes.pop(op.inode, None)
                self._enter(op.path, Inode("socket"))
            case Kind.WRITE | Kind.TRUNCATE:
                self._change(op)
            case Kind.SYNC:
                self._sync(self._find(op.path) if op.path else self._inodes.get(op.inode))
            case Kind.MODE:
                if op.inode in self._inodes:
                    self._inodes[op.inode].mode = op.number
            case Kind.RENAME | Kind.LINK | Kind.UNLINK:
                self._rename(op)
            case Kind.MARK:
                pass

    def pending_positions(self) -> list[int]:
        """Where in the trace everything came that may be lost, in order."""
        found = [position for inode in self._dirty.values() for position, _ in inode.pending]
        return sorted([*found, *(entry.position for entry in self.entries)])

    def tree(self, keeps: KeepsEntry, content: Content) -> Tree:
        """The tree of which these names and this content have survived."""
        names: dict[int, dict[str, Inode]] = {}
        for entry in self.entries:
            if keeps(entry):
                for folder, name, inode in entry.changes:
                    _set(names.setdefault(id(folder), dict(folder.names)), name, inode)
        tree: Tree = {}

        def walk(folder: Inode, path: str) -> None:
            for name, inode in names.get(id(folder), folder.names).items():
                below = os.path.join(path, name)
                data = content(inode) if inode.kind == "file" else b""
                tree[below] = Node(inode.kind, inode.mode, data)
                if inode.kind == "folder":
                    walk(inode, below)

        walk(self._root, "")
        return tree

    def as_seen(self) -> Tree:
        """What programs see: nothing is lost."""
        return self.tree(lambda _: True, lambda inode: survived(inode, lambda _, __: True, 4096, is_full_size=True))

    def _find(self, path: str) -> Inode | None:
        inode: Inode | None = self._root
        for name in path.split("/") if path not in ("", ".") else ():
            inode = inode.seen.get(name) if inode is not None else None
        return inode

    def _enter(self, path: str, inode: Inode) -> None:
        parent, name = os.path.split(path)
        self._note([(parent, name, inode)])

    def _note(self, changes: list[tuple[str, str, Inode | None]]) -> None:
        found = []
        for parent, name, inode in changes:
            folder = self._find(parent)
            if folder is None:
                raise ValueError(f"{self.position}: the trace has no folder {parent!r}")
            _set(folder.seen, name, inode)
            found.append((folder, name, inode))
        self.entries.append(Entry(self.position, tuple(found)))

    def _rename(self, op: Op) -> None:
        if op.other.endswith(VOLATILE):
            return
        inode = self._find(op.path)
        if inode is None:
            raise ValueError(f"{self.position}: the trace has no {op.path!r}")
        gone: list[tuple[str, str, Inode | None]] = [(*os.path.split(op.path), None)]
        come: list[tuple[str, str, Inode | None]] = [(*os.path.split(op.other), inode)]
        self._note({Kind.RENAME: gone + come, Kind.LINK: come}.get(op.kind, gone))

    def _change(self, op: Op) -> None:
        inode = self._inodes.get(op.inode)
        if inode is None:
            return  # volatile
        is_write = op.kind is Kind.WRITE
        inode.size = max(inode.size, op.number + len(op.data)) if is_write else op.number
        inode.pending.append((self.position, Write(op.number, op.data) if is_write else Resize(op.number)))
        self._dirty[id(inode)] = inode

    def _sync(self, inode: Inode | None) -> None:
        if inode is None:
            return
        if inode.kind == "file":
            inode.data = survived(inode, lambda _, __: True, 4096, is_full_size=True)
            inode.pending.clear()
            self._dirty.pop(id(inode), None)
            return
        for entry in self.entries:
            if entry.touches(inode):
                for folder, name, one in entry.changes:
                    _set(folder.names, name, one)
        self.entries = [entry for entry in self.entries if not entry.touches(inode)]


def survived(inode: Inode, keeps: Callable[[int, int], bool], grain: int, is_full_size: bool) -> bytes:
    """The bytes of a file of which some changes have survived.

    `keeps(position, piece)` says so of each piece of a write and of each change of size. With `is_full_size` the size
    has survived in any case: what is missing reads as zeros.
    """
    if not inode.pending:
        return inode.data
    data = bytearray(inode.data)
    for position, change in inode.pending:
        if isinstance(change, Resize):
            if keeps(position, 0):
                _resize(data, change.size)
            continue
        for piece, (begin, end) in enumerate(_pieces(change.at, len(change.data), grain)):
            if keeps(position, piece):
                _resize(data, max(len(data), end))
                data[begin:end] = change.data[begin - change.at : end - change.at]
    if is_full_size:
        _resize(data, inode.size)
    return bytes(data)


def _pieces(at: int, size: int, grain: int) -> Iterator[tuple[int, int]]:
    begin = at
    while begin < at + size:
        end = min(at + size, (begin // grain + 1) * grain)
        yield begin, end
        begin = end


def _resize(data: bytearray, size: int) -> None:
    if size < len(data):
        del data[size:]
    else:
        data.extend(bytes(size - len(data)))


def _set(names: dict[str, Inode], name: str, inode: Inode | None) -> None:
    if inode is None:
        names.pop(name, None)
    else:
        names[name] = inode
