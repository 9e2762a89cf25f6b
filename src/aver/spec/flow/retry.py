"""`retry:` and `checkpoint:` of a job.

retry: 3
retry: {max: 3, on: [OUT_OF_MEMORY, "exit:75", "exit:70-79", "signal:BUS", NodeDown],
        grow: {mem: 2x, time: 1.5x}, ceiling: {mem: 64G, time: 12h}, backoff: 30s}
checkpoint: true
checkpoint: {codes: [0, 85], rounds: 20}
"""

from __future__ import annotations

import re

from aver.model import reasons
from aver.model.job import CheckpointRule, RetryRule
from aver.model.signals import parse_signal
from aver.model.states import State
from aver.spec.document import Entry, Mapping, Scalar, Sequence, Value
from aver.spec.mistakes import did_you_mean, shown
from aver.spec.values import Reader

MAX_ATTEMPTS = 1000
MAX_GROWTH = 100.0
RETRY_KEYS = ("max", "on", "grow", "ceiling", "backoff")
BACKOFF_KEYS = ("first", "factor")
CHECKPOINT_KEYS = ("codes", "rounds")

DEFAULT_STATES = (
    State.FAILED,
    State.OUT_OF_MEMORY,
    State.TIMEOUT,
    State.NODE_FAIL,
    State.BOOT_FAIL,
    State.PREEMPTED,
)
RETRY_STATES = {state.value: state for state in (*DEFAULT_STATES, State.DEADLINE, State.CANCELLED, State.UNVERIFIED)}
RETRY_REASONS = (*reasons.OF_FAILURES, "RaisedSignal")
_CODES = re.compile(r"([0-9]{1,3})(?:-([0-9]{1,3}))?")
_GROWTH = re.compile(r"([0-9]{1,4}(?:\.[0-9]{1,6})?)x?")


def read_retry(entry: Entry, reader: Reader) -> RetryRule | None:
    if isinstance(entry.value, Scalar):
        most = reader.integer(entry, 0, MAX_ATTEMPTS)
        return None if most is None else RetryRule(most, DEFAULT_STATES)
    mapping = reader.mapping(entry)
    if mapping is None:
        return None
    parts = reader.parts(mapping, RETRY_KEYS)
    if "max" not in parts:
        reader.wrong(entry, 'has no "max"', "say how many further attempts there may be, such as max: 3")
    most = reader.integer(parts["max"], 0, MAX_ATTEMPTS) if "max" in parts else 0
    on = _read_on(parts["on"], reader) if "on" in parts else _On(states=list(DEFAULT_STATES))
    grow_mem, grow_time = _read_grow(parts["grow"], reader) if "grow" in parts else (1.0, 1.0)
    mem, time = _read_ceiling(parts["ceiling"], reader) if "ceiling" in parts else (None, None)
    backoff, factor = _read_backoff(parts["backoff"], reader) if "backoff" in parts else (0.0, 2.0)
    return RetryRule(
        most or 0,
        tuple(on.states),
        tuple(on.codes),
        tuple(on.signals),
        tuple(on.reasons),
        grow_mem,
        grow_time,
        mem,
        time,
        backoff,
        factor,
    )


class _On:
    def __init__(self, states: list[State] | None = None) -> None:
        self.states = states or []
        self.codes: list[int] = []
        self.signals: list[int] = []
        self.reasons: list[str] = []


def _read_on(entry: Entry, reader: Reader) -> _On:
    on = _On()
    items = entry.value.items if isinstance(entry.value, Sequence) else (entry.value,)
    if not items:
        reader.wrong(entry, "is an empty list", "leave it out for any failure")
    for item in items:
        word = _one_pair(item) or reader.text_of(entry, item)
        if word is not None:
            _read_word(Entry(entry.key, item), word.strip(), on, reader)
    return on


def _one_pair(item: Value) -> str | None:
    """`exit: 75` without quotes is a map in YAML; it means the same."""
    if isinstance(item, Mapping) and len(item.entries) == 1:
        ((key, part),) = item.entries.items()
        if key in ("exit", "signal") and isinstance(part.value, Scalar):
            return f"{key}:{part.value.text}"
    return None


def _read_word(at: Entry, word: str, on: _On, reader: Reader) -> None:
    kind, colon, rest = word.partition(":")
    if colon and kind == "exit":
        match = _CODES.fullmatch(rest.strip())
        first = int(match[1]) if match else 256
        last = int(match[2] or match[1]) if match else 256
        if not 0 < first <= last <= 255:
            reader.wrong(at, f"has {shown(word)}; an exit code is 1 to 255", "write it as exit:75 or exit:70-79")
            return
        on.codes += range(first, last + 1)
    elif colon and kind == "signal":
        try:
            on.signals.append(parse_signal(rest))
        except ValueError as error:
            reader.wrong(at, f"has {shown(word)}: {error}")
    elif word in RETRY_STATES:
        on.states.append(RETRY_STATES[word])
    elif word in RETRY_REASONS:
        on.reasons.append(word)
    elif word in State.__members__:
        reader.wrong(at, f"has {word}, which is not a failure")
    else:
        upper = word.upper()
        known = (*RETRY_STATES, *RETRY_REASONS)
        hint = f'did you mean "{upper}"?' if upper in RETRY_STATES else did_you_mean(word, known)
        hint = hint or 'write a state, a reason, "exit:N" or "signal:NAME"'
        reader.wrong(at, f"has {shown(word)}, which is not a state, reason, exit code or signal", hint)


def _read_grow(entry: Entry, reader: Reader) -> tuple[float, float]:
    if isinstance(entry.value, Scalar):
        both = _growth(entry, reader)
        return both, both
    mapping = reader.mapping(entry)
    if mapping is None:
        return 1.0, 1.0
    found = {"mem": 1.0, "time": 1.0}
    for key, part in mapping.entries.items():
        if key in found:
            found[key] = _growth(part, reader)
        else:
            reader.unknown_key(part.key, found)
    return found["mem"], found["time"]


def _growth(entry: Entry, reader: Reader) -> float:
    text = reader.text(entry)
    if text is None:
        return 1.0
    match = _GROWTH.fullmatch(text.strip())
    factor = float(match[1]) if match else 0.0
    if not 1.0 <= factor <= MAX_GROWTH:
        reader.wrong(entry, f"is {shown(text)}; it is a factor from 1x to 100x", "write it as 2x or 1.5x")
        return 1.0
    return factor


def _read_ceiling(entry: Entry, reader: Reader) -> tuple[int | None, int | None]:
    mapping = reader.mapping(entry)
    if mapping is None:
        return None, None
    parts = reader.parts(mapping, ("mem", "time"))
    mem = reader.size(parts["mem"]) if "mem" in parts else None
    return mem, reader.time(parts["time"]) if "time" in parts else None


def _read_backoff(entry: Entry, reader: Reader) -> tuple[float, float]:
    factor = 2.0
    first: Entry | None = entry
    if isinstance(entry.value, Mapping):
        parts = reader.parts(entry.value, BACKOFF_KEYS)
        first = parts.get("first")
        factor = _growth(parts["factor"], reader) if "factor" in parts else 2.0
        if first is None:
            reader.wrong(entry, 'has no "first"', "write it as {first: 30s, factor: 2}")
    seconds = reader.duration(first) if first else None
    return float(seconds or 0), factor


def read_checkpoint(entry: Entry, reader: Reader) -> CheckpointRule | None:
    if isinstance(entry.value, Scalar):
        return CheckpointRule() if reader.boolean(entry) else None
    mapping = reader.mapping(entry)
    if mapping is None:
        return None
    parts = reader.parts(mapping, CHECKPOINT_KEYS)
    codes: tuple[int, ...] = (0,)
    if "codes" in parts:
        value = parts["codes"].value
        items = value.items if isinstance(value, Sequence) else (value,)
        found = [reader.integer(Entry(parts["codes"].key, item), 0, 255) for item in items]
        codes = tuple(code for code in found if code is not None)
        if not items:
            reader.wrong(parts["codes"], "is an empty list")
    rounds = reader.integer(parts["rounds"], 1) if "rounds" in parts else None
    return CheckpointRule(codes, rounds or CheckpointRule().rounds)
