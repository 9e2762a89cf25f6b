"""Where executors see the folder of a run: on a shared file system it is the folder itself, elsewhere a copy of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from aver.engines.slurm.allocation.folder import RunFolder


class HostAway(Exception):
    """The host of the allocations does not answer: nothing was done, and it is tried again. `reason`: a word."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class Mirror(Protocol):
    """Used by the engine's thread alone."""

    look_s: float  # the least time between two looks

    @property
    def is_behind(self) -> bool:
        """Whether something must still be brought to executors of runs that are over."""

    def attach(self, folder: RunFolder) -> None:
        """A folder that was there when we came."""

    def sync(self, folders: Sequence[RunFolder]) -> str:
        """Bring orders to the executors, and what they wrote to the folders; why that failed, or nothing."""

    def take_back(self, folder: RunFolder, names: Sequence[str]) -> set[str]:
        """Those of the names that no allocation has taken, and none will."""

    def started_at(self, key: str) -> float | None:
        """When an order was taken, where the folder itself does not say it."""

    def forget(self, folder: RunFolder, keys: Collection[str]) -> None:
        """Verdicts of these are durable."""

    def close(self, folder: RunFolder) -> None:
        """The run is over: executors are to leave."""

    def drop(self, folder: RunFolder) -> None:
        """The run is over, and the verdicts of all its attempts are durable: nothing is read from it any more."""


class SharedFolder:
    """Executors see the very folder."""

    look_s = 0.0
    is_behind = False

    def attach(self, folder: RunFolder) -> None:
        pass

    def sync(self, folders: Sequence[RunFolder]) -> str:
        return ""

    def take_back(self, folder: RunFolder, names: Sequence[str]) -> set[str]:
        return {name for name in names if folder.take_back(name)}

    def started_at(self, key: str) -> float | None:
        return None

    def forget(self, folder: RunFolder, keys: Collection[str]) -> None:
        pass

    def close(self, folder: RunFolder) -> None:
        pass

    def drop(self, folder: RunFolder) -> None:
        pass
