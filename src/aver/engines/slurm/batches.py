"""What was handed to sbatch, on disk: which attempts, under which name, and the id that came back.

A batch is one call of sbatch: one job, or a job array whose members are attempts. Its file is written before sbatch
is called and again when the id is known; a batch without an id may or may not have been taken, and Slurm is asked
for its name. The file is removed when the verdicts of all its members are durable in the store.
"""

from __future__ import annotations

import contextlib
import json
import os
import string
from pathlib import Path
from typing import Any

from aver.durable_files import SCRATCH, write_file
from aver.errors import UnreachableError
from aver.model.codec import parse
from aver.model.record import Mutable, field

LONGEST_NAME = 100  # of the job, before the key
NAMED = frozenset(string.ascii_letters + string.digits + "._-")  # accounting's database may have no other letters


class Batch(Mutable):
    """One call of sbatch."""

    name: str  # the job's name in Slurm; the first member's key is its end, so nobody else has it
    keys: tuple[str, ...]
    made_at: float
    id: int | None = None
    cluster: str = ""
    caller: str = ""  # of the sbatch that may still be at it: pid and start time
    is_array: bool = False
    starts: tuple[tuple[str, str], ...] = ()  # by Slurm itself: a member's key, that of the attempt it went on as
    asked_at: float | None = None  # of one whose id is not known: when the queue first answered without it
    silent_s: float = 0.0  # likewise: for how long accounting has answered without it
    tracked_at: float = 0.0  # by the engine's own clock: what was answered before says nothing of it
    left: set[str] = field(default_factory=set)  # members whose verdict is not durable yet

    def index_of(self, key: str) -> int | None:
        return self.keys.index(self.script_key(key)) if self.is_array else None

    def script_key(self, key: str) -> str:
        """The key in the script: what Slurm starts again keeps that of its first start."""
        return next((first for first, again in self.starts if again == key), key)

    def restarts_of(self, key: str) -> int:
        """How often Slurm had started it again for this attempt: 0 for the one that was handed over."""
        of_member = [again for first, again in self.starts if first == self.script_key(key)]
        return of_member.index(key) + 1 if key in of_member else 0

    def id_of(self, index: int | None) -> str:
        return f"{self.id}" if index is None else f"{self.id}_{index}"


def batch_name(job_name: str, keys: tuple[str, ...]) -> str:
    """`train.1a2b3c4d.17.1.9f8e7d6c`; of an array with how many there are."""
    clean = "".join(one if one in NAMED else "_" for one in job_name)[:LONGEST_NAME]
    return f"{clean}.{keys[0]}" + (f"+{len(keys)}" if len(keys) > 1 else "")


class Shelf:
    """The folder of the batches' files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.damaged: list[str] = []

    def load(self) -> list[Batch]:
        """All batches; a file that is damaged is left where it is and named in `damaged`. For the one who writes here:
        what another was writing when it was killed is removed.

        UnreachableError if one can't be read now: it may hold what was handed over.
        """
        found = []
        self.damaged = []
        for path in self.folder.glob(f"*{SCRATCH}"):
            with contextlib.suppress(OSError):
                path.unlink()
        for path in sorted(self.folder.glob("*.json")):
            try:
                found.append(_decode(parse(path.read_bytes())))
            except FileNotFoundError:
                continue
            except OSError as error:
                text = f"can't read what was handed to Slurm: {path}: {error.strerror}; nothing is handed over before"
                raise UnreachableError(text) from None
            except (ValueError, KeyError, TypeError):
                self.damaged.append(os.fspath(path))
        return found

    def put(self, batch: Batch) -> None:
        """Durable when this returns. OSError if it can't be written: then nothing may be handed over."""
        words = {
            "name": batch.name, "keys": batch.keys, "made_at": batch.made_at, "id": batch.id,
            "cluster": batch.cluster, "caller": batch.caller, "is_array": batch.is_array, "starts": batch.starts,
        }  # fmt: skip
        write_file(self._path(batch), json.dumps(words).encode())

    def put_script(self, batch: Batch, script: bytes) -> Path:
        path = self._path(batch).with_suffix(".sh")
        write_file(path, script)
        return path

    def remove(self, batch: Batch) -> None:
        for path in (self._path(batch), self._path(batch).with_suffix(".sh")):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)

    def _path(self, batch: Batch) -> Path:
        return self.folder / f"{batch.keys[0]}.json"


def _decode(words: dict[str, Any]) -> Batch:
    keys = tuple(str(key) for key in words["keys"])
    if not keys:
        raise ValueError("a batch without members")
    number = words["id"]
    return Batch(
        name=str(words["name"]), keys=keys, made_at=float(words["made_at"]),
        id=None if number is None else int(number), cluster=str(words["cluster"]), caller=str(words["caller"]),
        is_array=bool(words["is_array"]),
        starts=tuple((str(first), str(key)) for first, key in words.get("starts", ())),
    )  # fmt: skip
