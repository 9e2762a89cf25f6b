"""The files of calls: a function with its arguments on the way to a job, and the outcome on the way back.

All are whole or absent, and lie in one folder:

    BATCH.calls        the calls of one submission, with the caller's sys.path
    SERVER.warm        what a server of warm calls imports
    CALL.ATTEMPT       the outcome of one attempt of a call; written before the job's program exits
    CALL.log           what the job wrote

An outcome counts only together with the verdict of its attempt, which the store has.
"""

from __future__ import annotations

import io
import os
import pickle
import sys
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from aver.durable_files import write_chunks
from aver.errors import AverError
from aver.fast_start import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PROTOCOL = 5
RETURNED, RAISED, UNPICKLABLE = "returned", "raised", "unpicklable"
Reference = tuple[str, str]  # folder and call whose result stands here
SAME_FILE = ""  # in place of the folder: the call is of the same file, and its number there is given


class Outcome(NamedTuple):
    """How a call ended. `text` is the traceback, or why the result can't be pickled; `data` the value or exception."""

    kind: str
    text: str
    data: bytes


class Imports(NamedTuple):
    """What a server of warm calls imports, and where it finds that."""

    path: list[str]
    modules: list[str]


class Head(NamedTuple):
    """What all calls of a file share, and where each lies behind it."""

    path: list[str]
    argv: list[str]
    places: dict[str, tuple[int, int]]


@cache
def pickler() -> Any:
    """The class that pickles: cloudpickle's where that is installed."""
    try:
        return import_module("cloudpickle").Pickler
    except ImportError:
        return pickle.Pickler


def dump(value: object, refer: Callable[[object], Reference | None]) -> bytes:
    """Pickle for another process, functions and classes of `__main__` by value where cloudpickle is installed."""

    class Referring(pickler()):  # type: ignore[misc]
        def persistent_id(self, obj: object) -> Reference | None:
            return refer(obj)

    file = io.BytesIO()
    Referring(file, PROTOCOL).dump(value)
    return file.getvalue()


def load(data: bytes, find: Callable[[Reference], object]) -> Any:
    """The inverse of `dump`; `find` gives what a reference stands for."""

    class Finding(pickle.Unpickler):
        def persistent_load(self, pid: Any) -> object:
            return find(pid)

    return Finding(io.BytesIO(data)).load()


def write_calls(path: str, calls: Mapping[str, bytes]) -> None:
    """Durable when this returns. OSError."""
    places = {}
    begin = 0
    for call, data in calls.items():
        places[call] = (begin, len(data))
        begin += len(data)
    head = Head(absolute_path(), sys.argv, places)
    write_chunks(path, (pickle.dumps(tuple(head), PROTOCOL), *calls.values()), 0o600)


def absolute_path() -> list[str]:
    """This process's sys.path, whatever the folder of who uses it."""
    return [os.path.abspath(one) for one in sys.path]


def write_imports(path: str, modules: list[str]) -> None:
    """Durable when this returns. OSError."""
    write_chunks(path, (pickle.dumps((absolute_path(), modules), PROTOCOL),), 0o600)


def read_imports(path: str) -> Imports:
    """OSError."""
    with open(path, "rb") as file:
        return Imports(*pickle.load(file))


def read_call(path: str, call: str) -> tuple[Head, bytes]:
    """OSError; KeyError if the file has no such call."""
    with open(path, "rb") as file:
        head = Head(*pickle.load(file))
        begin, size = head.places[call]
        file.seek(begin, os.SEEK_CUR)
        return head, file.read(size)


def write_outcome(folder: str, call: str, attempt: int, outcome: Outcome) -> None:
    """Durable when this returns. OSError."""
    head = pickle.dumps((outcome.kind, outcome.text), PROTOCOL)
    write_chunks(outcome_path(folder, call, attempt), (head, outcome.data), 0o600)


def read_outcome(folder: str, call: str, attempt: int) -> Outcome | None:
    """None: the attempt left none. OSError if it can't be read."""
    try:
        with open(outcome_path(folder, call, attempt), "rb") as file:
            kind, text = pickle.load(file)
            return Outcome(kind, text, file.read())
    except FileNotFoundError:
        return None


def outcome_path(folder: str, call: str, attempt: int) -> str:
    return os.path.join(folder, f"{call}.{attempt}")


def call_name(path: str, number: int) -> str:
    """The call with this number in a file whose calls are numbered from 1."""
    return f"{os.path.basename(path).partition('.')[0]}-{number}"


def newest_result(reference: Reference) -> Any:
    """The result of a call whose job has COMPLETED: that of its last attempt. AverError if it is not there."""
    folder, call = reference
    attempts = [name.rpartition(".")[2] for name in os.listdir(folder) if name.startswith(f"{call}.")]
    newest = max((int(word) for word in attempts if word.isdigit()), default=0)
    outcome = read_outcome(folder, call, newest)
    if outcome is None or outcome.kind != RETURNED:
        raise AverError(f"the result of a call that this one needs is not in {folder}")
    return load(outcome.data, newest_result)
