"""What was seen of a shutdown or logout, kept for the coordinator that comes after it.

systemd ends the coordinator and the jobs in the same moment. Whichever the coordinator hears first, it asks what is
being stopped and writes that down; ends that are found in the journals afterwards are judged with it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from aver.coordinator.state.live import boot_of
from aver.durable_files import write_file
from aver.engines.api import Heard
from aver.engines.local.shutdown import find_stop
from aver.judge.local import MACHINE, was_ended_by_stop
from aver.log import log
from aver.model.evidence import Stop, Stopping, WitnessRecord, WitnessVanished

BEFORE_S = 30.0  # an end so long before the note is of the same stop: all are sent the signal at once
LONGEST_STOP_S = 600.0
ASK_AGAIN_S = 1.0


class StopNote:
    """The last stop that a coordinator of this home saw."""

    def __init__(self, path: Path, boot: str, find: Callable[[], Stop | None] = find_stop) -> None:
        self._path = path
        self._boot = boot
        self._find = find
        self._asked_at: float | None = None
        self._boot_then, self._stopping = _read(path)

    def look(self) -> None:
        """Ask what is being stopped, and write it down."""
        if self._asked_at is not None and time.monotonic() - self._asked_at < ASK_AGAIN_S:
            return
        self._asked_at = time.monotonic()
        now, known = time.time(), self._stopping
        stop = self._find()
        if stop is None or (known is not None and self._boot_then == self._boot and now - known.at < LONGEST_STOP_S):
            return
        self._boot_then, self._stopping = self._boot, Stopping(now, stop)
        log(f"what runs here is being ended: {stop}")
        try:
            write_file(self._path, json.dumps({"boot": self._boot, "at": now, "stop": stop}).encode())
        except OSError as error:
            log(f"can't write {self._path}: {error.strerror}")

    def evidence_for(self, one: Heard, started_at: float | None) -> Heard | None:
        """What is known of a stop that ended this attempt, which was seen to start then; to be heard before its end."""
        boot, ended_at = boot_of(one.key), None
        if isinstance(one.evidence, WitnessRecord):
            if not was_ended_by_stop(one.evidence):
                return None
            started_at = one.evidence.started_at
            ended_at = started_at + one.evidence.elapsed_s
        elif not isinstance(one.evidence, WitnessVanished) or started_at is None:
            return None
        if boot == self._boot[:8]:
            self.look()
        stopping = self._stopping
        if stopping is None or started_at is None or self._boot_then[:8] != boot or started_at > stopping.at:
            return None
        if ended_at is not None and not -BEFORE_S <= ended_at - stopping.at <= LONGEST_STOP_S:
            return None
        return Heard(one.key, MACHINE, f"stopping: {stopping.stop}", stopping)


def _read(path: Path) -> tuple[str, Stopping | None]:
    try:
        said = json.loads(path.read_bytes())
        return str(said["boot"]), Stopping(float(said["at"]), Stop(said["stop"]))
    except (OSError, ValueError, KeyError, TypeError):
        return "", None
