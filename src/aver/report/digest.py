"""A run's failures within a budget of bytes: causes first, then the ends of logs as far as there is room.

Whoever pays for every byte (an agent, a chat) gets the most useful part, and is told what was left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aver.model.record import Record, replace
from aver.render.causes import SHOWN
from aver.render.masking import Masking
from aver.report.causes import CauseSeen, Diagnosis, Paths
from aver.report.tails import masked_tail

LEAST_BYTES = 1000  # a head with every state's count, and the next command, fit into this
LOG_BYTES = 16 * 1024
LOG_LINES = 40
LONGEST_NAME = 80
LONGEST_SENTENCE = 400
HINTS = 2
JOBS_TRIED = 5  # of a cause, until one has a log


class Quote(Record):
    """A well-known line of a log. It is a hint, never evidence. `count` is the number of logs with this line."""

    name: str
    line: str
    advice: str
    count: int
    job: int


class LogTail(Record):
    """The end of a log; `is_cut`: its beginning is left out."""

    job: int
    path: str
    is_cut: bool
    text: str


class DigestCause(Record):
    """`jobs` are the first few of `count`; `log` is the end of one job's log, None if there is none or no room."""

    state: str
    sentence: str
    count: int
    jobs: tuple[int, ...]
    hints: tuple[Quote, ...]
    log: LogTail | None
    next: tuple[str, ...]


class Digest(Record):
    """`is_truncated`: the budget left out `causes_left_out` causes, or parts of logs and texts."""

    run: int
    name: str
    state: str
    counts: dict[str, int]
    unsettled: int
    causes: tuple[DigestCause, ...]
    causes_left_out: int
    is_truncated: bool
    next: tuple[str, ...]


Size = Callable[[Digest], int]  # the bytes that a digest takes where it is shown


def digest(
    run: int, name: str, state: str, found: Diagnosis, paths: Paths, masking: Masking, max_bytes: int, size: Size
) -> Digest:
    """Return the failures of a run within `max_bytes`, as `size` counts them; secrets are masked before any cut."""
    causes = tuple(_cause(seen, masking) for seen in found.causes)
    made = Digest(
        run, _clipped(masking.whole(name), LONGEST_NAME), state, found.counts, found.unsettled, causes, 0, False, ()
    )
    made = _with_next(made, max_bytes)
    while made.causes and size(made) > max_bytes:
        kept = made.causes[:-1]
        made = replace(made, causes=kept, causes_left_out=len(causes) - len(kept), is_truncated=True)
        made = _with_next(made, max_bytes)
    logs = [(index, _log(seen, paths, masking)) for index, seen in enumerate(found.causes[: len(made.causes)])]
    there = [(index, log) for index, log in logs if log is not None]
    for done, (index, log) in enumerate(there):
        share = (max_bytes - size(made)) // (len(there) - done)
        made = _with_log(made, index, log, size(made) + share, size, max_bytes)
    return made


def _cause(seen: CauseSeen, masking: Masking) -> DigestCause:
    cause = seen.cause
    hints = tuple(
        Quote(one.hint.name, masking.whole(one.hint.line), one.hint.advice, one.count, one.job)
        for one in seen.hints[:HINTS]
    )
    sentence = _clipped(masking.whole(cause.sentence), LONGEST_SENTENCE)
    jobs = tuple(one.job for one in cause.jobs[:SHOWN])
    return DigestCause(cause.state.value, sentence, cause.count, jobs, hints, None, cause.next)


def _clipped(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _with_next(made: Digest, max_bytes: int) -> Digest:
    """The commands that say more of what is not here."""
    commands = [f"aver watch {made.run}"] if made.unsettled else []
    if made.is_truncated:
        commands.append(f"aver failures {made.run} --max-bytes {4 * max_bytes}")
    return replace(made, next=tuple(commands))


def _log(seen: CauseSeen, paths: Paths, masking: Masking) -> LogTail | None:
    """The last lines of the first job of the cause that wrote any."""
    for one in seen.cause.jobs[:JOBS_TRIED] if seen.cause.has_log else ():
        for path in paths(one.job, one.attempt):
            data, is_whole = masked_tail(path, LOG_BYTES, masking)
            lines = data.decode("utf-8", "replace").splitlines()
            if any(line.strip() for line in lines):
                kept = lines[-LOG_LINES:]
                return LogTail(one.job, masking.whole(path), len(kept) < len(lines) or not is_whole, "\n".join(kept))
    return None


def _with_log(made: Digest, index: int, log: LogTail, share: int, size: Size, max_bytes: int) -> Digest:
    """The digest with as much of the log's end as fits into `share` bytes, all of it counted."""
    whole = _put(made, index, log)
    if size(whole) <= share:
        return whole
    cut = _with_next(replace(made, is_truncated=True), max_bytes)
    low, high = 0, len(log.text)  # characters of the end: `low` fit, `high` do not
    while high - low > 1:
        middle = (low + high) // 2
        if size(_put(cut, index, _end_of(log, middle))) <= share:
            low = middle
        else:
            high = middle
    end = _end_of(log, low)
    return _put(cut, index, end) if end.text.strip() else _fitting(cut, made, max_bytes, size)


def _end_of(log: LogTail, characters: int) -> LogTail:
    """The last whole lines within a number of characters; of a longer line its end."""
    text = log.text[len(log.text) - characters :]
    is_line_cut = 0 < characters < len(log.text) and log.text[-characters - 1] != "\n"
    if is_line_cut and "\n" in text:
        text = text.partition("\n")[2]
    return replace(log, text=text, is_cut=True)


def _put(made: Digest, index: int, log: LogTail) -> Digest:
    causes: Sequence[DigestCause] = made.causes
    return replace(made, causes=(*causes[:index], replace(causes[index], log=log), *causes[index + 1 :]))


def _fitting(wanted: Digest, otherwise: Digest, max_bytes: int, size: Size) -> Digest:
    """Say that a log was left out, if there is room to say it."""
    return wanted if size(wanted) <= max_bytes else replace(otherwise, is_truncated=True)
