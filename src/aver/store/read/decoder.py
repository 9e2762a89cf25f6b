"""From a row as SQLite gives it to what it says: how each decoded column is read.

A word or value that this version does not know is an error that names the row; an exit that is no wait status is
unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from aver.errors import AverError
from aver.model.codec import loads
from aver.model.evidence import TaskCause
from aver.model.exit import ExitStatus
from aver.model.job import Request, StepSpec
from aver.model.states import State
from aver.store.columns import Row
from aver.store.encoding import decode_event
from aver.store.open import show_path
from aver.store.read.rows import AttemptRow, GroupRow, JobRow, RunRow, StepRow, StoredEvent, TaskRow

Value = TypeVar("Value")
Made = TypeVar("Made", bound=Row)

_STATES = {state.value: state for state in State}
_VERIFIED = {None: None, 0: False, 1: True}
_NAMES: dict[type[Row], str] = {
    RunRow: "run {id}",
    JobRow: "job {id}",
    AttemptRow: "attempt {attempt} of job {job}",
    StepRow: "step {job}.{step}",
    TaskRow: "task {task} of step {job}.{step}",
}


class _Unreadable(Exception):
    """Why the value of a column can't be read."""


class Decoder:
    """Of one database; the same exit or request is read once."""

    def __init__(self, path: Path | str) -> None:
        self._path = path
        self._exits: dict[int | None, ExitStatus | None] = {None: None}
        self._requests: dict[str, Request] = {}

    def rows(self, made: type[Made], rows: list[Any]) -> list[Made]:
        """The rows of a table, as `select(made.columns)` gave them."""
        columns = made.columns
        decoders = [
            (place, decode) for place, name in enumerate(columns) if (decode := self._decoder(made, name)) is not None
        ]
        found = []
        for row in rows:
            values = list(row)
            for place, decode in decoders:
                try:
                    values[place] = decode(row[place])
                except _Unreadable as error:
                    which = _NAMES[made].format_map(dict(zip(columns, row, strict=True)))
                    raise self._unreadable(which, error) from None
            found.append(made(values))
        return found

    def _decoder(self, made: type[Row], name: str) -> Callable[[Any], Any] | None:
        """How a column is read; None: as it is."""
        match name:
            case "state":
                return self._state
            case "exit":
                return self._exit
            case "verified":
                return _VERIFIED.get
            case "detail":
                return _text
            case "is_single" | "background" | "because" | "is_cpu_least":
                return bool
            case "request":
                return self._request
            case "warnings" | "unselected" | "engines":
                return lambda text: () if text is None else self._document(tuple[str, ...], text, name)
            case "cause":
                return lambda text: TaskCause() if text is None else self._document(TaskCause, text, name)
            case "spec" if made is StepRow:
                return lambda text: self._document(StepSpec, text, name)
        return None

    def state(self, word: object, what: str) -> State:
        try:
            return self._state(word)
        except _Unreadable as error:
            raise self._unreadable(what, error) from None

    def _unreadable(self, what: str, error: _Unreadable) -> AverError:
        return AverError(f"{show_path(self._path)}: {what} {error}")

    def _state(self, word: object) -> State:
        state = _STATES.get(word) if isinstance(word, str) else None
        if state is None:
            raise _Unreadable(f"has state {word!r}, which this version of Aver does not know")
        return state

    def _exit(self, raw: Any) -> ExitStatus | None:
        """None for what is not a wait status: not known, never guessed."""
        if raw in self._exits:
            return self._exits[raw]
        try:
            found = ExitStatus.from_wait(raw)
        except (ValueError, TypeError):
            return None
        self._exits[raw] = found
        return found

    def _document(self, kind: type[Value], text: str, name: str) -> Value:
        try:
            return loads(kind, text)
        except ValueError as error:
            raise _Unreadable(f"has {name} that can't be read: {error}") from None

    def _request(self, text: str) -> Request:
        found = self._requests.get(text)
        if found is None:
            found = self._requests[text] = self._document(Request, text, "request")
        return found

    def group(self, row: Any) -> GroupRow:
        first_job, spec, state, jobs, first, name, reason, ended, *times = row
        known = self.state(state, f"job {first}")
        return GroupRow(first_job, spec, known, jobs, first, name, reason, self._exit(ended), *times)

    def request(self, text: str) -> Request:
        """The request of an attempt."""
        try:
            return self._request(text)
        except _Unreadable as error:
            raise self._unreadable("an attempt", error) from None

    def event(self, row: Any) -> StoredEvent:
        seq, *rest = row
        try:
            return StoredEvent(seq, decode_event(*rest))
        except ValueError as error:
            raise AverError(f"{show_path(self._path)}: event {seq} can't be read: {error}") from None


def _text(text: str | None) -> str:
    return text or ""
