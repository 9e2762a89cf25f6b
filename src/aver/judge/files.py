"""What the files of a job say of its end: outputs that must be there, inputs that must match.

Pure. The witness has looked, on the machine where the job ran, before its start and after its end; a file counts as
written if it is not as it was before. An end that is not a completion stays what it is, and names what it left.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

from aver.model import reasons
from aver.model.evidence import FilesSeen, LaunchFailure, Rules, Verdict
from aver.model.record import replace
from aver.model.states import State

WITNESS = "witness"
PERSON = "person"
NOT_LOOKED_AT = "it exited with 0, and nobody looked whether its outputs are there: its witness left no word of them"
FAILURES = frozenset({State.FAILED, State.OUT_OF_MEMORY, State.TIMEOUT, State.CANCELLED})
MOST_NAMES = 5


def with_files(verdict: Verdict, files: FilesSeen | None, rules: Rules) -> Verdict:
    """The verdict on an attempt whose outputs were looked at (None: nobody did)."""
    if verdict.state is not State.COMPLETED:
        left = _left(files) if files is not None and verdict.state in FAILURES else ""
        return replace(verdict, detail="; ".join(part for part in (verdict.detail, left) if part)) if left else verdict
    if not rules.must_write or verdict.source == PERSON or verdict.exit is None:
        return verdict
    if files is None:
        return _unseen(verdict, NOT_LOOKED_AT, rules)
    if not files.wrong:
        return verdict
    if not files.missing and not files.old and files.wrong == len(files.unseen):
        return _unseen(
            verdict, f"it exited with 0, and nobody could look at its outputs: {_listed(files.unseen)}", rules
        )
    detail = "; ".join(part for part in (_wrong(files), _left(files)) if part)
    return Verdict(
        State.FAILED, verdict.exit, reasons.MISSING_OUTPUT, verdict.verified, WITNESS, verdict.warnings, detail
    )


def missing_input(launch: LaunchFailure) -> Verdict:
    """The verdict on an attempt that was not started, since inputs of it match no file."""
    detail = f"no file matches its inputs: {launch.path}"
    if launch.errno != errno.ENOENT:
        detail = f"its inputs can't be looked at: {launch.path}: {os.strerror(launch.errno)}"
    return Verdict(State.FAILED, None, reasons.MISSING_INPUT, True, WITNESS, (), detail)


def _unseen(verdict: Verdict, text: str, rules: Rules) -> Verdict:
    if rules.fallback_completes:
        text = f"counted as completed by settle.fallback: {text}"
        return replace(verdict, verified=False, warnings=(*verdict.warnings, text))
    return Verdict(State.UNVERIFIED, verdict.exit, reasons.NONE, False, verdict.source, verdict.warnings, text)


def _wrong(files: FilesSeen) -> str:
    """`its output a.csv is missing`: the sentence around it says that it exited with 0."""
    parts = []
    if files.missing:
        parts.append(f"{_outputs(files.missing)} missing")
    if files.old:
        parts.append(f"{_outputs(files.old)} as before its start: it did not write {_them(files.old)}")
    if files.unseen:
        parts.append(f"nobody could look at {_listed(files.unseen)}")
    more = files.wrong - len(files.missing) - len(files.old) - len(files.unseen)
    return "; ".join(parts) + (f"; and {more} more outputs" if more > 0 else "")


def _left(files: FilesSeen) -> str:
    """What there is, or was, of its outputs."""
    if files.removed:
        return f"removed of its outputs: {_counted(files.names, files.removed)}"
    return f"left of its outputs: {_counted(files.names, files.written)}" if files.written else ""


def _outputs(patterns: Sequence[str]) -> str:
    return f"its output {patterns[0]} is" if len(patterns) == 1 else f"its outputs {_listed(patterns)} are"


def _them(patterns: Sequence[str]) -> str:
    return "it" if len(patterns) == 1 else "them"


def _listed(names: Sequence[str]) -> str:
    return _counted(names, len(names))


def _counted(names: Sequence[str], count: int) -> str:
    shown = names[:MOST_NAMES]
    more = count - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
