"""`include:` of a flow: further files with jobs, and what these have in common.

A path is relative to the file that names it. All files make one flow: each name of a job, param or axis is there once,
and jobs may need those of other files. `defaults` of a file are for its own jobs and for the files that it includes,
which may say otherwise.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from aver.spec.document import Entry, Mapping, Scalar, raised, read_document
from aver.spec.document import Sequence as Items
from aver.spec.files import Files, whole_path
from aver.spec.flow.keys import FLOW_KEYS
from aver.spec.mistakes import Mistakes, shown
from aver.spec.values import Reader, kind

INCLUDED = frozenset({"jobs", "defaults", "axes", "params", "include"})  # keys that an included file may have
MOST_FILES = 1000


class Part(NamedTuple):
    """What one file says. `above` is the number of the part that includes it; None: the flow's own file."""

    path: str
    entries: dict[str, Entry]
    above: int | None


class Inclusion:
    """Reads the files that a flow includes, each once."""

    def __init__(self, mistakes: Mistakes, files: Files | None) -> None:
        self.parts: list[Part] = []
        self.is_whole = True  # all files could be read
        self._mistakes = mistakes
        self._files = files
        self._open: list[str] = []  # files that are being read, from outside
        self._shown: dict[str, str] = {}  # names of files that were read, by their paths

    def read(self, file: str, entries: dict[str, Entry], above: int | None = None, path: str = "") -> None:
        """Add the file, and after it those that it includes."""
        number = len(self.parts)
        self.parts.append(Part(path, entries, above))
        if "include" not in entries:
            return
        path = path or ("" if self._files is None else whole_path(file))
        self._shown.setdefault(path, file)
        self._open.append(path)
        for name in self._names(entries["include"]):
            self._read_named(file, name, number)
        self._open.pop()

    def _names(self, entry: Entry) -> list[Scalar]:
        value = entry.value
        names = value.items if isinstance(value, Items) else (value,)
        found = [name for name in names if isinstance(name, Scalar) and isinstance(name.value, str) and name.value]
        for name in names:
            if name not in found:
                self._mistakes.add(name, f'"include" must be the path of a file, or a list, not {kind(name)}')
        return found

    def _read_named(self, file: str, name: Scalar, above: int) -> None:
        if self._files is None or len(self.parts) >= MOST_FILES:
            why = "no file can be included here" if self._files is None else f"more than {MOST_FILES} files"
            self._mistakes.add(name, f"can't include {shown(name.text)}: {why}")
            return
        near = os.path.normpath(os.path.join(os.path.dirname(file), name.text))
        path = whole_path(near)
        if path in self._open:
            way = " -> ".join([*(self._shown[one] for one in self._open[self._open.index(path) :]), near])
            self._mistakes.add(name, f"{shown(name.text)} includes itself: {way}")
            return
        if path in self._shown:
            self._mistakes.add(name, f"{shown(name.text)} is included twice", "include it once; jobs may need any job")
            return
        self._shown[path] = near
        try:
            text = self._files.text(path)
        except (OSError, ValueError) as error:
            why = (error.strerror if isinstance(error, OSError) else None) or str(error)
            self._mistakes.add(name, f"can't include {shown(name.text)}: {why}")
            self.is_whole = False
            return
        own = Mistakes(near)
        root = read_document(text, own, is_json=near.endswith(".json"))
        lines = self._mistakes.include(own)
        if root is None:
            self.is_whole = False
            return
        root = raised(root, lines)
        if not isinstance(root, Mapping):
            self._mistakes.add(root, f"an included file must be a map, not {kind(root)}", "give it jobs: {NAME: ...}")
            return
        for key, entry in root.entries.items():
            if key in FLOW_KEYS and key not in INCLUDED:
                hint = f"write it in {self._shown[self._open[0]]}"
                self._mistakes.add(entry.key, f"{shown(key)} can't be in an included file", hint)
            elif key not in FLOW_KEYS and not key.startswith("x-"):
                Reader(self._mistakes, "an included file", 0.0).unknown_key(entry.key, INCLUDED, {})
        self.read(near, root.entries, above, path)


def together(parts: list[Part], key: str, what: str, mistakes: Mistakes) -> Entry | None:
    """The maps under this key of all files as one; a name that two files have is a mistake."""
    found: Entry | None = None
    names: dict[str, Entry] = {}
    for part in parts:
        entry = part.entries.get(key)
        if entry is None:
            continue
        if not isinstance(entry.value, Mapping):
            return entry  # which is told where it is read
        found = found or entry
        for name, one in entry.value.entries.items():
            if name in names:
                hint = f"it is first at {mistakes.place_text(names[name].key.line)}"
                mistakes.add(one.key, f"duplicate {what} {shown(name)}", hint)
            names.setdefault(name, one)
    if found is None:
        return None
    return Entry(found.key, Mapping(found.value.line, found.value.column, names))
