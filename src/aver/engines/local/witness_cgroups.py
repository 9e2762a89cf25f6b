"""The cgroups of the home's witnesses, each known by its slot, and those that are to be removed."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from aver.engines.local.capabilities import CgroupBase
from aver.engines.local.job_cgroup import folders_of, occupied, place_of, remove, witness_name


class WitnessCgroups:
    """Without a base there are none."""

    def __init__(self, base: CgroupBase | None, home: Path) -> None:
        self._base = base
        self._place = place_of(home)
        self.left: list[str] = []  # of witnesses that have been told to leave

    def name(self, key: str, number: int) -> str:
        """Of the witness in this slot."""
        return witness_name(key, number, self._place)

    def of(self, key: str, number: int, outer: str | None) -> list[str]:
        """Where processes of the attempt may be, whose witness has this slot; `outer` as in `folders_of`."""
        return [] if self._base is None else folders_of(self._base.folder, key, self.name(key, number), outer)

    def find_left(self, slots: Collection[int]) -> list[int]:
        """The slots that have a cgroup; those of none of these slots are to be removed."""
        used = {} if self._base is None else occupied(self._base.folder, self._place)
        self.left += [folder for number in used.keys() - {*slots} for folder in used[number]]
        return list(used)

    def leave(self, name: str | None, outer: str) -> None:
        """The witness with this cgroup has been told to leave, whose last job with a limit was in the outer one."""
        if self._base is not None and name is not None:
            folder = os.path.join(self._base.folder, name)
            self.left += (folder, f"{folder}-warm")  # the other is that of its server of warm calls
            if outer.startswith(f"{name}-j"):
                self.left.append(os.path.join(self._base.folder, outer))

    def remove_left(self, wait_s: float) -> None:
        """They can do it themselves where a cgroup may have members and children."""
        if self.left:
            self.remove(self.left, wait_s)
            self.left = [folder for folder in self.left if os.path.isdir(folder)]

    def remove(self, folders: list[str], wait_s: float) -> None:
        if self._base is not None:
            remove(self._base.folder, folders, wait_s)
