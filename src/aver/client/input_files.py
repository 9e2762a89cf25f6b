"""A job's input files: expand their patterns and fingerprint their contents."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterable, Sequence

from aver.fast_start import openssl_sha256
from aver.model.events import FileMark

CHUNK_BYTES = 1 << 20


def find_files(folder: str, patterns: Sequence[str]) -> list[str]:
    """Expand the patterns to absolute paths, sorted; a folder stands for all files below it."""
    found: dict[str, None] = {}
    for pattern in patterns:
        path = os.path.join(folder, pattern)
        names = [path] if os.path.lexists(path) else glob.glob(path, recursive=True)
        for name in sorted(names):
            if os.path.isdir(name):
                for base, folders, files in os.walk(name):
                    folders.sort()
                    found.update((os.path.join(base, file), None) for file in sorted(files))
            else:
                found[os.path.normpath(name)] = None
    return list(found)


def mark_files(
    paths: Iterable[str], changed_before: float, known: dict[tuple[str, int, int], str] | None = None
) -> list[FileMark]:
    """Fingerprint each regular file that has not changed since; unreadable files are left out."""
    marks = []
    for path in paths:
        info = stat_file(path)
        if info is None or info.st_mtime > changed_before:
            continue
        key = (path, info.st_size, info.st_mtime_ns)
        digest = known.get(key) if known is not None else None
        if digest is None:
            digest = hash_file(path)
            again = stat_file(path)
            if digest is None or again is None or (again.st_size, again.st_mtime_ns) != key[1:]:
                continue
            if known is not None:
                known[key] = digest
        marks.append(FileMark(path, info.st_size, info.st_mtime_ns, digest))
    return marks


def note_files(paths: Iterable[str]) -> list[FileMark]:
    """Size and time of change of each regular file, without reading it."""
    seen = ((path, stat_file(path)) for path in paths)
    return [FileMark(path, info.st_size, info.st_mtime_ns, "") for path, info in seen if info is not None]


def stat_file(path: str) -> os.stat_result | None:
    """Stat a regular file; None if it is missing or not regular."""
    try:
        info = os.stat(path)
    except (OSError, ValueError):
        return None
    return info if stat.S_ISREG(info.st_mode) else None


def hash_file(path: str) -> str | None:
    """SHA-256 in hex, or None if it can't be read."""
    digest = openssl_sha256()
    try:
        with open(path, "rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                digest.update(chunk)
    except OSError:
        return None
    return digest.hexdigest()
