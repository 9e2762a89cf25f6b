"""Files whose names or lines are values of a matrix, looked up when a flow is submitted."""

from __future__ import annotations

import glob
import os
import stat
from typing import Protocol

LARGEST_BYTES = 32 * 1024 * 1024


def whole_path(file: str) -> str:
    """The path of a flow's file, from the root, whichever of its names is given."""
    return os.path.realpath(file)


class Files(Protocol):
    """Where a flow's files are looked up."""

    folder: str

    def matching(self, pattern: str) -> list[str]:
        """The files and folders that match, as the pattern writes them, in the order of their names."""

    def text(self, path: str) -> str:
        """What is in a file; raise OSError, or ValueError with what is wrong."""


class FolderFiles:
    """Files by their paths from one folder: the one that the run's jobs start in."""

    def __init__(self, folder: str | None = None) -> None:
        self.folder = os.getcwd() if folder is None else folder

    def matching(self, pattern: str) -> list[str]:
        return sorted(glob.glob(pattern, root_dir=self.folder, recursive=True))

    def text(self, path: str) -> str:
        fd = os.open(os.path.join(self.folder, path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise ValueError("it is not a regular file")
            data = file.read(LARGEST_BYTES + 1)
        if len(data) > LARGEST_BYTES:
            raise ValueError(f"it has more than {LARGEST_BYTES >> 20} MiB")
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ValueError("it is not UTF-8") from None
