"""Call a function in its job, and keep what became of the call."""

from __future__ import annotations

import os
import pickle
import sys

from aver.calls.files import (
    PROTOCOL,
    RAISED,
    RETURNED,
    UNPICKLABLE,
    Outcome,
    dump,
    load,
    newest_result,
    read_call,
    write_outcome,
)


def call(path: str, name: str, attempt: int) -> int:
    """Return the exit status: 0 when the result is durable in its file, 1 when the function raised or there is none.

    SystemExit is raised again, so that its exit code is the job's. What the caller could import is importable here.
    """
    head, data = read_call(path, name)
    sys.path[:], sys.argv[:] = head.path, head.argv
    outcome, left = _outcome(data)
    try:
        write_outcome(os.path.dirname(path), name, attempt, outcome)
    except OSError as error:
        print(f"aver: can't write the result: {error.strerror or error}", file=sys.stderr)
        return 1
    if left is not None:
        raise left
    return 0 if outcome.kind == RETURNED else 1


def _outcome(data: bytes) -> tuple[Outcome, SystemExit | None]:
    try:
        function, args, kwargs = load(data, newest_result)
        value = function(*args, **kwargs)
    except BaseException as error:  # whatever it is, it is the caller's
        return _raised(error), error if isinstance(error, SystemExit) else None
    return _returned(value), None


def _returned(value: object) -> Outcome:
    try:
        try:
            return Outcome(RETURNED, "", pickle.dumps(value, PROTOCOL))
        except (pickle.PicklingError, AttributeError, TypeError):  # maybe of `__main__`: by value
            return Outcome(RETURNED, "", dump(value, lambda _: None))
    except BaseException as error:  # the code of its classes may raise anything
        text = f"a result of type {type(value).__name__} can't be pickled: {error}"
        print(f"aver: {text}", file=sys.stderr)
        return Outcome(UNPICKLABLE, text, b"")


def _raised(error: BaseException) -> Outcome:
    """The exception, if it comes through pickling whole; the traceback's text in any case."""
    import traceback  # most calls return

    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    print(text, end="", file=sys.stderr)
    try:
        data = dump(error, lambda _: None)
        pickle.loads(data)
    except BaseException:  # as above
        data = b""
    return Outcome(RAISED, text, data)
