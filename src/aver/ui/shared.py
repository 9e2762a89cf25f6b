"""The same question of several pages is answered once: they hear of a change at the same moment, and all ask.

Events to pages are counted: a page says by which one it was told to ask, and may get any answer that was begun after
that event was sent. Who asks without such a number, as after a click, gets an answer that is begun after the question.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

MOST_KEPT = 100

Made = TypeVar("Made")


class _Entry(Generic[Made]):
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.begun = 0  # how many answers were begun
        self.made: Made | None = None


class _Kept(NamedTuple, Generic[Made]):
    told: int  # events that had been sent when it was begun
    made: Made


class Shared(Generic[Made]):
    """Answers of one route. `told` says how many events have been sent to pages."""

    def __init__(self, told: Callable[[], int] = lambda: 0) -> None:
        self._told = told
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry[Made]] = {}
        self._kept: dict[str, _Kept[Made]] = {}  # of the newest event alone

    def get(self, question: str, make: Callable[[], Made], event: int | None = None) -> Made:
        """The answer; `event` is the number of the event that the question follows."""
        with self._lock:
            if (kept := self._after(question, event)) is not None:
                return kept.made
            entry = self._entries.setdefault(question, _Entry())
            entry.users += 1
            before = entry.begun
        try:
            with entry.lock:
                with self._lock:
                    if (kept := self._after(question, event)) is not None:
                        return kept.made
                if entry.begun == before or entry.made is None:
                    with self._lock:
                        entry.begun += 1
                    told = self._told()
                    entry.made = None
                    entry.made = make()
                    if event is not None:
                        self._keep(question, _Kept(told, entry.made))
                return entry.made
        finally:
            with self._lock:
                entry.users -= 1
                if not entry.users:
                    del self._entries[question]

    def _after(self, question: str, event: int | None) -> _Kept[Made] | None:
        kept = self._kept.get(question)
        return kept if kept is not None and event is not None and kept.told >= event else None

    def _keep(self, question: str, made: _Kept[Made]) -> None:
        with self._lock:
            kept = {name: one for name, one in self._kept.items() if one.told >= made.told}
            self._kept = {**kept, question: made} if len(kept) < MOST_KEPT else {question: made}
