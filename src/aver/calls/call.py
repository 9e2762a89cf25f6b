"""Call a function in its job, and keep what became of the call."""

from __future__ import annotations

import os
import pickle
import sys

from aver.calls.files import (
    PROTOCOL,
    RAISED,
    RETURNED,
    SAME_FILE,
    UNPICKLABLE,
    Outcome,
    Reference,
    call_name,
    dump,
    load,
    newest_result,
    read_call,
    write_outcome,
)
from aver.calls.user_code import attempt


def call(path: str, name: str, number: int) -> int:
    """Return the exit status: 0 when the result is durable in its file, 1 when the function raised or there is none.

    `number` is the attempt's. SystemExit is raised again, so that its exit code is the job's. What the caller could
    import is importable here.
    """
    head, data = read_call(path, name)
    sys.path[:], sys.argv[:] = head.path, head.argv
    outcome, left = _outcome(path, data)
    try:
        write_outcome(os.path.dirname(path), name, number, outcome)
    except OSError as error:
        print(f"aver: can't write the result: {error.strerror or error}", file=sys.stderr)
        return 1
    if left is not None:
        raise left
    return 0 if outcome.kind == RETURNED else 1


def _outcome(path: str, data: bytes) -> tuple[Outcome, SystemExit | None]:
    def find(reference: Reference) -> object:
        folder, name = reference
        if folder == SAME_FILE:
            folder, name = os.path.dirname(path), call_name(path, int(name))
        return newest_result((folder, name))

    def function() -> object:
        called, args, kwargs = load(data, find)
        return called(*args, **kwargs)

    came = attempt(function)
    if came.error is None:
        return _returned(came.value), None
    return _raised(came.error), came.error if isinstance(came.error, SystemExit) else None


def _returned(value: object) -> Outcome:
    """The value pickled; of what is of `__main__`, by value."""
    came = attempt(lambda: pickle.dumps(value, PROTOCOL))
    if came.error is not None:
        came = attempt(lambda: dump(value, lambda _: None))
    if came.error is None:
        return Outcome(RETURNED, "", came.value)
    text = f"a result of type {type(value).__name__} can't be pickled: {came.error}"
    print(f"aver: {text}", file=sys.stderr)
    return Outcome(UNPICKLABLE, text, b"")


def _raised(error: BaseException) -> Outcome:
    """The exception, if it comes through pickling whole; the traceback's text in any case."""
    import traceback  # most calls return

    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    print(text, end="", file=sys.stderr)

    def pickled() -> bytes:
        data = dump(error, lambda _: None)
        pickle.loads(data)
        return data

    return Outcome(RAISED, text, attempt(pickled).value or b"")
