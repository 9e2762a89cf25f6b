"""Signals to steps of allocations. A cancellation is TERM first and KILL after the kill wait, again until srun has
ended: what is sent before Slurm has made the step reaches nobody.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence

from aver.engines.slurm.allocation.evidence import StepTrack
from aver.engines.slurm.allocation.steps import ask_steps
from aver.engines.slurm.commands.call import Commands

AT_ONCE = 500  # ids on one command line
Tracks = Mapping[str, StepTrack]


class Cancels:
    """Those that were asked for and have not come to an end."""

    def __init__(self, commands: Commands, calls: Counter[str], kill_wait_s: float, timeout_s: float) -> None:
        self._commands = commands
        self._calls = calls
        self._kill_wait_s = kill_wait_s
        self._timeout_s = timeout_s
        self._asked: dict[str, tuple[float | None, int]] = {}  # by key: when TERM was sent, and what was asked for

    def __bool__(self) -> bool:
        return bool(self._asked)

    def asked(self) -> list[str]:
        return list(self._asked)

    def add(self, key: str, number: int) -> None:
        """9 is sent at once. Asked for a second time it may only become harder."""
        sent_at, before = self._asked.get(key, (None, number))
        self._asked[key] = (sent_at, 9 if 9 in (number, before) else before)

    def drop(self, key: str) -> bool:
        """Whether it was there."""
        return self._asked.pop(key, None) is not None

    def send(self, tracks: Tracks) -> None:
        """What is due."""
        now = time.monotonic()
        due: dict[bool, list[str]] = {False: [], True: []}
        for key, (sent_at, number) in self._asked.items():
            track = tracks.get(key)
            if track is None or track.is_over or track.claim is None:
                continue
            kills = number == 9 or (sent_at is not None and now - sent_at >= self._kill_wait_s)
            if kills or sent_at is None:
                due[kills].append(key)
        found = self._step_ids(tracks, [*due[False], *due[True]])
        for kills, keys in due.items():
            there = [key for key in keys if key in found]
            self.scancel([] if kills else ["--signal=TERM"], [found[key] for key in there])
            for key in there:
                tracks[key].is_cancelled = True
                self._asked[key] = (self._asked[key][0] or now, self._asked[key][1])

    def signal(self, tracks: Tracks, keys: Sequence[str], number: int) -> None:
        """Once, to those that run."""
        running = [key for key in keys if key in tracks and not tracks[key].is_over]
        self.scancel([f"--signal={number}"], list(self._step_ids(tracks, running).values()))

    def scancel(self, words: Sequence[str], ids: Sequence[str]) -> None:
        for first in range(0, len(ids), AT_ONCE):
            self._calls["scancel"] += 1
            self._commands.call(["scancel", *words, *ids[first : first + AT_ONCE]], timeout_s=self._timeout_s)

    def _step_ids(self, tracks: Tracks, keys: Sequence[str]) -> dict[str, str]:
        """By key, the ids of the steps that squeue lists."""
        claims = {key: (track.claim.job, track.which) for key in keys if (track := tracks[key]).claim is not None}
        if not claims:
            return {}
        self._calls["squeue"] += 1
        found = ask_steps(self._commands, {job for job, _ in claims.values()}, self._timeout_s)
        return {key: found[claim] for key, claim in claims.items() if claim in found}
