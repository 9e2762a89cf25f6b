"""The same question of several pages is answered once: they hear of a change at the same moment, and all ask."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Made = TypeVar("Made")


class _Entry(Generic[Made]):
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.begun = 0  # how many answers were begun
        self.made: Made | None = None


class Shared(Generic[Made]):
    """An answer is given to all who asked before it was begun, so that nobody gets one of before the question."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry[Made]] = {}

    def get(self, question: str, make: Callable[[], Made]) -> Made:
        with self._lock:
            entry = self._entries.setdefault(question, _Entry())
            entry.users += 1
            before = entry.begun
        try:
            with entry.lock:
                if entry.begun == before or entry.made is None:
                    with self._lock:
                        entry.begun += 1
                    entry.made = None
                    entry.made = make()
                return entry.made
        finally:
            with self._lock:
                entry.users -= 1
                if not entry.users:
                    del self._entries[question]
