"""Put a tree on a real disk, and read one from there."""

from __future__ import annotations

import os
import random
import socket
from pathlib import Path

from power_loss.disk import VOLATILE, Node, Tree

SHM_BYTES = 32768


def put(tree: Tree, root: Path) -> None:
    """Make the tree in an empty folder."""
    for path, node in tree.items():
        target = os.path.join(root, path)
        if node.kind == "folder":
            os.mkdir(target, 0o700)
        elif node.kind == "file":
            fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, node.mode)
            with open(fd, "wb", buffering=0) as file:
                file.write(node.data)
                os.fchmod(fd, node.mode)
        else:
            _put_socket(target)


def put_stale_index(database: Path, chance: random.Random) -> None:
    """What may be left of the write-ahead log's index, which is never synced: nothing, zeros, or anything."""
    match chance.choice(("none", "zeros", "anything")):
        case "zeros":
            database.with_name(database.name + VOLATILE).write_bytes(bytes(SHM_BYTES))
        case "anything":
            database.with_name(database.name + VOLATILE).write_bytes(chance.randbytes(SHM_BYTES))


def read(root: Path) -> Tree:
    """What is there, but for what is not on a disk."""
    tree: Tree = {}
    for folder, folders, files in os.walk(root):
        folders.sort()
        relative = os.path.relpath(folder, root)
        if relative != ".":
            tree[relative] = Node("folder")
        for name in files:
            path = os.path.join(folder, name)
            if not name.endswith(VOLATILE):
                is_file = os.path.isfile(path)
                node = (
                    Node("file", os.stat(path).st_mode & 0o7777, Path(path).read_bytes()) if is_file else Node("socket")
                )
                tree[os.path.relpath(path, root)] = node
    return tree


def _put_socket(path: str) -> None:
    """A socket on which nobody listens."""
    folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"/proc/self/fd/{folder}/{os.path.basename(path)}")
    finally:
        os.close(folder)
