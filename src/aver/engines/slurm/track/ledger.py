"""What Slurm has of ours or may have, by attempt and by batch: shared by all that hand over, cancel, ask and hear.

Every batch here is on the shelf, and stays there until the last of its attempts is forgotten; what is told of one
comes from here, so that whoever paces the questions knows when something happened.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from aver.engines.api import Heard
from aver.engines.slurm.batches import Batch, Shelf
from aver.engines.slurm.track.evidence import Track
from aver.engines.slurm.track.exit_records import RecordsFolder
from aver.model.evidence import Evidence, Taken

SBATCH = "sbatch"


class Ledger:
    def __init__(
        self, shelf: Shelf, records: RecordsFolder, put: Callable[[Sequence[Heard]], None], log: Callable[[str], None],
        reached: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.shelf = shelf
        self.records = records
        self.put = put
        self.tracks: dict[str, Track] = {}  # by key
        self.batches: dict[str, Batch] = {}  # by name
        self.changed_at = 0.0
        self._log = log
        self._reached = reached

    def add(self, batch: Batch) -> tuple[str, ...]:
        """From here on it is asked for; returns the keys of its attempts."""
        keys = (*batch.keys, *(key for _, key in batch.starts))
        batch.left = set(keys)
        batch.tracked_at = time.monotonic()
        self.batches[batch.name] = batch
        for key in keys:
            self.tracks[key] = Track(key, batch, batch.index_of(key), batch.restarts_of(key))
        return keys

    def tell(self, track: Track, source: str, said: str, evidence: Iterable[Evidence]) -> None:
        found = [Heard(track.key, source, said, one) for one in evidence]
        if found:
            self.changed_at = time.monotonic()
            self.put(found)

    def tell_taken(self, batch: Batch, keys: Iterable[str], source: str = SBATCH, how: str = "") -> None:
        """Slurm has it, under this id."""
        now = time.time()
        where = f" on cluster {batch.cluster}" if batch.cluster else ""
        for key in keys:
            number = batch.id_of(batch.index_of(key))
            text = f"{how}Submitted batch job {number}{where}"
            if key in self.tracks:
                self.tell(self.tracks[key], source, text, [Taken(now, number)])

    def keep(self, batch: Batch) -> None:
        """Without its id on disk it is found by its name after a restart."""
        try:
            self.shelf.put(batch)
        except OSError as error:
            self._log(f"can't keep the id of {batch.name}: {error.strerror}")

    def adopt(self, before: str, key: str) -> bool:
        """What was `before` was started again by Slurm, and goes on as the attempt `key`."""
        track = self.tracks.get(before)
        if track is None or key in self.tracks:
            return False
        batch = track.batch
        batch.starts = (*batch.starts, (batch.script_key(before), key))
        batch.left.add(key)
        self.keep(batch)
        again = self.tracks[key] = Track(key, batch, track.index, batch.restarts_of(key))
        again.was_listed = True  # by its row the one before was known to be over
        self.tell(again, SBATCH, "started again by Slurm", [Taken(time.time(), batch.id_of(track.index))])
        return True

    def drop(self, batch: Batch) -> None:
        """Slurm never had it."""
        self.shelf.remove(batch)
        self.batches.pop(batch.name, None)
        for key in batch.keys:
            self.tracks.pop(key, None)

    def forget(self, keys: Iterable[str]) -> None:
        """Their verdicts are durable; a batch goes with the last of its attempts, and its records before it."""
        gone: list[str] = []
        over: list[Batch] = []
        for key in keys:
            track = self.tracks.pop(key, None)
            if track is None:
                continue
            track.batch.left.discard(key)
            if not track.batch.starts:
                gone.append(key)
            elif not track.batch.left:
                gone += track.batch.keys
            if not track.batch.left:
                over.append(track.batch)
        if gone:
            self.records.remove(gone)
        for batch in over:  # last: after a crash before this, all of it is done again
            self._reached("slurm-before-forget")
            self.batches.pop(batch.name, None)
            self.shelf.remove(batch)
