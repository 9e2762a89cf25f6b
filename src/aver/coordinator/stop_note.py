"""What was seen of a shutdown or logout, kept for the coordinator that comes after it.

systemd ends the coordinator and the jobs in the same moment. Whichever the coordinator hears first, it asks what is
being stopped and writes that down; ends that are found in the journals afterwards are judged with it. systemd may take
long to answer: the ends that are in question wait for it, and nothing else does.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from aver.coordinator.background import Background, Failed
from aver.coordinator.state.live import boot_of
from aver.durable_files import write_file
from aver.engines.api import Heard
from aver.engines.local.shutdown import SYSTEMD, find_stop
from aver.judge.local import MACHINE, was_ended_by_stop
from aver.log import log
from aver.model.evidence import Stop, Stopping, WitnessRecord, WitnessVanished

BEFORE_S = 30.0  # an end so long before the note is of the same stop: all are sent the signal at once
LONGEST_STOP_S = 600.0
HOLD_S = 120.0  # systemd kills what has not ended within 90 s
LANE = "what is being stopped"


class StopNote:
    """The last stop that a coordinator of this home saw."""

    def __init__(self, path: Path, boot: str, find: Callable[[], Stop | None] = find_stop) -> None:
        self._path = path
        self._boot = boot
        self.find = find
        self._boot_then, self._stopping = _read(path)
        self._seen_at: float | None = None  # the monotonic time of the last answer that something is being stopped

    @property
    def is_any(self) -> bool:
        return self._stopping is not None

    @property
    def is_under_way(self) -> bool:
        """Whether this coordinator saw a stop just now: a job that began now would be ended too."""
        return self._seen_at is not None and time.monotonic() - self._seen_at < HOLD_S

    def look_again(self) -> None:
        """Ask, if an earlier coordinator saw a stop just now, which may be under way still."""
        known = self._stopping
        if known is not None and self._boot_then == self._boot and time.time() - known.at < HOLD_S:
            self.look()

    def look(self) -> None:
        """Ask what is being stopped, and write it down."""
        asked_at = time.time()
        self.take(asked_at, self.find())

    def take(self, asked_at: float, stop: Stop | None) -> None:
        """Write down what was answered. The stop is dated by when it was asked about: an answer may take long."""
        if stop is not None:
            self._seen_at = time.monotonic()
        known = self._stopping
        is_known = known is not None and self._boot_then == self._boot and asked_at - known.at < LONGEST_STOP_S
        if stop is None or is_known:
            return
        self._boot_then, self._stopping = self._boot, Stopping(asked_at, stop)
        log(f"what runs here is being ended: {stop}")
        try:
            write_file(self._path, json.dumps({"boot": self._boot, "at": asked_at, "stop": stop}).encode())
        except OSError as error:
            log(f"can't write {self._path}: {error.strerror}")

    def is_in_question(self, one: Heard) -> bool:
        """Whether a stop may have ended this attempt, so that it is to be asked about before the end is judged."""
        said = one.evidence
        is_end = was_ended_by_stop(said) if isinstance(said, WitnessRecord) else isinstance(said, WitnessVanished)
        return is_end and boot_of(one.key) == self._boot[:8]

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
        stopping = self._stopping
        if stopping is None or started_at is None or self._boot_then[:8] != boot or started_at > stopping.at:
            return None
        if ended_at is not None and not -BEFORE_S <= ended_at - stopping.at <= LONGEST_STOP_S:
            return None
        return Heard(one.key, MACHINE, f"stopping: {stopping.stop}", stopping)


class Questions:
    """Ends that wait for the answer to what is being stopped, which is asked for in the background."""

    def __init__(self, note: StopNote, background: Background) -> None:
        self._note = note
        self._background = background
        self._waiting: list[Heard] = []
        self._answered: list[Heard] = []
        self._is_asking = False

    def keep(self, one: Heard) -> bool:
        """Keep the end, which a stop may have made; it comes back by `answered`. Who comes back after a crash hears it
        again: its witness's journal has it until its verdict is durable."""
        if not os.path.isdir(SYSTEMD):
            return False
        self._waiting.append(one)
        if not self._is_asking:
            self._ask()
        return True

    def answered(self) -> list[Heard]:
        """Those that can be judged."""
        answered, self._answered = self._answered, []
        return answered

    def _ask(self) -> None:
        """On behalf of all that wait; who comes later waits for an answer of its own, for which is asked later."""
        asked, self._waiting = self._waiting, []
        asked_at = time.time()
        self._is_asking = True

        def then(stop: Stop | Failed | None) -> None:
            self._note.take(asked_at, None if isinstance(stop, Failed) else stop)
            self._answered += asked
            self._is_asking = False
            if self._waiting:
                self._ask()

        self._background.run(LANE, self._note.find, then)


def _read(path: Path) -> tuple[str, Stopping | None]:
    try:
        said = json.loads(path.read_bytes())
        return str(said["boot"]), Stopping(float(said["at"]), Stop(said["stop"]))
    except (OSError, ValueError, KeyError, TypeError):
        return "", None
