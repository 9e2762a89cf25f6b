"""One job of a flow, and the flow's defaults: keys to a JobSpec.

Each key has one reader. A job starts from the draft that the defaults made; what it says
itself wins; `env` is joined. Every mistake is noted, and reading goes on.
"""

from __future__ import annotations

import copy
import re
import shlex
from collections.abc import Callable, Iterable
from typing import Any

from aver.config import MOST_OF_POOL, POOL_NAME, SHIPPED_ENGINES, engine_names
from aver.model.job import (
    Argv,
    Command,
    Condition,
    JobSpec,
    Scope,
    Shell,
)
from aver.model.units import parse_cpus
from aver.plan.address import JOB_NAME
from aver.plan.placeholders import PARAMETER, names_in, parameters_in
from aver.plan.shell_text import WHOLE_NUMBER, Context, places_in, used_in
from aver.spec.clock import parse_moment
from aver.spec.document import Entry, Mapping, Scalar, Sequence
from aver.spec.flow.cluster_keys import CLUSTER_READERS
from aver.spec.flow.container import read_container
from aver.spec.flow.draft import DEFAULT_SHELL, Draft, Put, parsed, simple
from aver.spec.flow.file_keys import put_inputs, put_outputs
from aver.spec.flow.keys import COUNT, DEFAULTS_KEYS, FLAG, FOREIGN_JOB_KEYS, JOB_KEYS, TEXT, TEXTS, Schema
from aver.spec.flow.matrix import Allowance, matrix_entries, values_by_name
from aver.spec.flow.needs import GROUPS, ReadNeeds, read_needs
from aver.spec.flow.params import FILLED_AT_START, Params
from aver.spec.flow.retry import read_checkpoint, read_retry
from aver.spec.flow.setup import read_env_file
from aver.spec.mistakes import did_you_mean, shown
from aver.spec.times import parse_kill_wait, parse_warning
from aver.spec.values import Reader, kind

SHELLS = {"bash": DEFAULT_SHELL, "sh": ("sh", "-e")}
CONDITIONS = {"success": Condition.NEEDS, "always": Condition.ALWAYS, "failure": Condition.FAILURE}
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MAX_PRIORITY = 2**31 - 1
MOST_PLACES = 20  # of one text that are named as mistakes


class ReadJob:
    """A job that was read, with where its name stands and what it needs."""

    __slots__ = ("name", "read_needs", "spec")

    def __init__(self, name: Scalar, read: ReadNeeds, spec: JobSpec) -> None:
        self.name = name
        self.read_needs = read
        self.spec = spec


def read_defaults(mapping: Mapping, reader: Reader, params: Params, above: Draft | None = None) -> Draft:
    """What the defaults say, over those `above` them."""
    draft = Draft() if above is None else copy.copy(above)
    for key, entry in mapping.entries.items():
        if key not in FILLED_AT_START:
            entry = params.put_into(entry)
        if key in DEFAULTS_KEYS:
            _READERS[key](draft, entry, reader)
        elif key in JOB_KEYS:
            reader.mistakes.add(entry.key, f"{shown(key)} can't have a default", "say it in each job")
        else:
            reader.unknown_key(entry.key, DEFAULTS_KEYS, FOREIGN_JOB_KEYS)
    return draft


class NeedsMemory:
    """Needs by the node that they were read from: an alias that many jobs share is read once."""

    def __init__(self) -> None:
        self._read: dict[int, ReadNeeds] = {}

    def read(self, entry: Entry, reader: Reader) -> ReadNeeds:
        if isinstance(entry.value, Scalar):
            return read_needs(entry, reader)
        known = self._read.get(id(entry.value))
        if known is None:
            known = self._read[id(entry.value)] = read_needs(entry, reader)
        return known


def read_job(
    entry: Entry, defaults: Draft, memory: NeedsMemory, allowance: Allowance, reader: Reader
) -> ReadJob | None:
    """The job, or None if nothing of it could be read. `entry.key` is its name."""
    allowance.count_job()
    name = entry.key
    check_name(name, reader)
    mapping = entry.value
    if isinstance(mapping, Scalar) and isinstance(mapping.value, str):
        hint = f"write it as {name.text}: {{run: ...}}"
        reader.mistakes.add(mapping, f"{reader.where} must be a map, not {kind(mapping)}", hint)
        return None
    if not isinstance(mapping, Mapping):
        reader.mistakes.add(mapping, f"{reader.where} must be a map, not {kind(mapping)}", 'give it at least "run"')
        return None
    draft = copy.copy(defaults)
    for key, part in mapping.entries.items():
        if key not in FILLED_AT_START:
            part = allowance.params.put_into(part)
        read = _READERS.get(key)
        if read is not None:
            read(draft, part, reader)
        elif key == "needs":
            draft.read_needs = memory.read(part, reader)
        elif key == "matrix":
            draft.matrix = allowance.matrix(part, reader)
        else:
            reader.unknown_key(part.key, JOB_KEYS, FOREIGN_JOB_KEYS)
    if "run" not in mapping.entries:
        reader.mistakes.add(name, f'{reader.where} has no "run"', "say what it runs, such as run: python x.py")
    params = allowance.params
    draft.params = params.of_job(_used_names(draft)) if params.values else ()
    _check_whole(mapping, draft, params, reader)
    command: Command = Argv(draft.run) if isinstance(draft.run, tuple) else Shell(draft.run or "", draft.shell)
    return ReadJob(name, draft.read_needs, draft.spec(name.text, command))


def check_name(name: Scalar, reader: Reader) -> None:
    text = name.text
    if text in GROUPS:
        reader.mistakes.add(name, f'a job can\'t be named "{text}"', "needs uses that word")
    elif not JOB_NAME.fullmatch(text):
        clean = re.sub(r"[^A-Za-z0-9_.-]+", "-", text).strip("-.")[:255]
        hint = "use letters, digits, _ - and . and begin with a letter, digit or _"
        if JOB_NAME.fullmatch(clean):
            hint += f', such as "{clean}"' if len(clean) < 60 else ""
        problem = "is too long for the name of a job" if len(text) > 255 else "can't be the name of a job"
        reader.mistakes.add(name, f"{shown(text)} {problem}", hint)


def _check_whole(mapping: Mapping, draft: Draft, params: Params, reader: Reader) -> None:
    """What concerns several keys together."""
    parts = mapping.entries
    if "signal" in parts and draft.signal and draft.time is None and "time" not in parts:
        reader.wrong(parts["signal"], "warns before a time limit that there is not", 'add "time"')
    is_warned = draft.signal is not None or draft.step_warning is not None or "signal" in parts
    if "checkpoint" in parts and draft.checkpoint and not is_warned and "srun_termination_signal" not in parts:
        reader.wrong(parts["checkpoint"], "needs a warning signal", "add it, such as signal: TERM@5m")
    if draft.condition is Condition.FAILURE and "needs" not in parts:
        reader.wrong(parts["if"], "is failure, and there is no need that could fail", 'add "needs"')
    if draft.begin is not None and draft.deadline is not None and draft.begin >= draft.deadline:
        reader.wrong(parts.get("deadline") or parts["begin"], "leaves no time between begin and deadline")
    _check_container(parts, draft, reader)
    if draft.matrix is None and not params.values:
        return
    values = {} if draft.matrix is None else values_by_name(draft.matrix)
    unknown = _check_places(
        parts.get("run"), draft, values | {name: {one} for name, one in params.values.items()}, reader
    )
    if draft.matrix is not None:
        _check_axes_used(parts["matrix"], draft, values.keys() - unknown, reader)


def _check_container(parts: dict[str, Entry], draft: Draft, reader: Reader) -> None:
    if draft.container is None:
        return
    for key, value in (("venv", draft.venv), ("conda", draft.conda), ("module", draft.module)):
        if value:
            place = parts.get("container") or parts.get(key) or parts["run"]
            reader.wrong(place, f"is in a container, which has no {key} of this machine", f'leave "{key}" out')
    if draft.container.is_of_daemon and draft.mem is not None:
        place = parts.get("mem") or parts.get("container") or parts["run"]
        text = "has a memory limit, which nobody can watch in a container of docker's daemon"
        reader.wrong(place, text, "use podman or apptainer, or leave mem out")


def _check_places(entry: Entry | None, draft: Draft, values: dict[str, set[str]], reader: Reader) -> set[str]:
    """Note each place in the text of a shell where a value can't be put in; return the names that stand there."""
    found: set[str] = set()
    if entry is None or not isinstance(draft.run, str) or not isinstance(entry.value, Scalar):
        return found
    told = 0
    odd: dict[str, str | None] = {}  # of each name a value that is not a whole number: looked for once
    for place in places_in(draft.run, draft.shell):
        if place.name not in values:
            continue
        written = f"{{{place.name}}}"
        if place.context is Context.NUMBER and place.name not in odd:
            wrong = (one for one in values[place.name] if not WHOLE_NUMBER.fullmatch(one))
            odd[place.name] = min(wrong, default=None)
        if place.context is Context.UNKNOWN:
            text = f"has {written} {place.why}, where no value can be put in"
        elif place.context is Context.NUMBER and (value := odd[place.name]) is not None:
            text = f"has {written} inside ((...)), and its value {shown(value)} is not a whole number"
        else:
            continue
        found.add(place.name)
        told += 1
        if told > MOST_PLACES:
            continue
        at = reader.mistakes.inside(entry.value, written, draft.run.count(written, 0, place.start))
        text = f"{shown(entry.key.text)} in {reader.where} {text}"
        reader.mistakes.add(at, text, f"use the variable ${PARAMETER}{place.name} there")
    return found


def _check_axes_used(entry: Entry, draft: Draft, declared: Iterable[str], reader: Reader) -> None:
    mapping = matrix_entries(entry)
    used = _used_names(draft)
    if any(written.address.is_same for written in draft.read_needs.written):
        return  # which axes it uses is known once the other jobs are
    for name in sorted(declared):
        if name not in used:
            found = mapping.entries.get(name) if mapping is not None else None
            dollar = isinstance(draft.run, str) and f"${{{name}}}" in draft.run
            hint = f"write {{{name}}}, not ${{{name}}}" if dollar else f"use {{{name}}} in run, env or output"
            place = found.key if found else entry.key
            reader.mistakes.add(place, f"matrix key {shown(name)} is not used in {reader.where}", hint)


def _used_names(draft: Draft) -> set[str]:
    """The names that the job's texts have, as `{name}` or as a variable."""
    used: set[str] = set(used_in(draft.run, draft.shell)) if isinstance(draft.run, str) else set()
    for text in _texts_with_places(draft):
        used |= names_in(text)
    for text in draft.run if isinstance(draft.run, tuple) else (draft.run or "",):
        used |= parameters_in(text)
    return used


def _texts_with_places(draft: Draft) -> Iterable[str]:
    yield from draft.run if isinstance(draft.run, tuple) else ()
    yield from (value for _, value in draft.env)
    yield from (written.need.job for written in draft.read_needs.written)
    for texts in (draft.inputs, draft.optional_inputs, draft.outputs, draft.optional_outputs):
        yield from texts
    for text in (draft.folder, draft.stdin, draft.output, draft.error, draft.generates, draft.comment):
        if text:
            yield text


def _run(draft: Draft, entry: Entry, reader: Reader) -> None:
    if isinstance(entry.value, Sequence):
        args = [reader.text_of(entry, item) for item in entry.value.items]
        draft.run = tuple(arg for arg in args if arg is not None)
        if not args or (args[0] is not None and not args[0].strip()):
            reader.wrong(entry, "names no program")
    elif isinstance(entry.value, Mapping):
        reader.wrong(entry, "must be text or a list of arguments, not a map", "put text that contains ': ' in quotes")
    else:
        draft.run = reader.filled(entry)


def _env(draft: Draft, entry: Entry, reader: Reader) -> None:
    mapping = reader.mapping(entry)
    if mapping is None:
        return
    values = dict(draft.env)
    for name, part in mapping.entries.items():
        if not _ENV_NAME.fullmatch(name):
            reader.mistakes.add(part.key, f"{shown(name)} can't be the name of a variable in {reader.where}")
            continue
        text = reader.text(part)
        if text is not None:
            values[name] = text
    draft.env = tuple(values.items())


def _env_file(draft: Draft, entry: Entry, reader: Reader) -> None:
    values: dict[str, str] = {}
    for path in reader.texts(entry) or ():
        try:
            if reader.files is None:
                raise ValueError("no file can be read here")
            text = reader.files.text(path)
        except (OSError, ValueError) as error:
            why = (error.strerror if isinstance(error, OSError) else None) or str(error)
            reader.wrong(entry, f"can't be read: {path}: {why}")
            continue
        for line, pair in read_env_file(text):
            if pair is None or "\0" in pair[1]:
                reader.wrong(entry, f"has no NAME=VALUE in line {line} of {path}")
            else:
                values[pair[0]] = pair[1]
    draft.file_env = tuple(values.items())


def _shell(draft: Draft, entry: Entry, reader: Reader) -> None:
    words: tuple[str, ...] | None = None
    if isinstance(entry.value, Sequence):
        words = reader.texts(entry)
    else:
        text = reader.filled(entry)
        try:
            words = SHELLS.get(text) or tuple(shlex.split(text)) if text is not None else None
        except ValueError as error:
            reader.wrong(entry, f"is wrong: {str(error).lower()}")
    if words == ():
        reader.wrong(entry, "is empty")
    elif words:
        draft.shell = words


def _if(draft: Draft, entry: Entry, reader: Reader) -> None:
    text = reader.text(entry)
    if text is None:
        return
    if text in CONDITIONS:
        draft.condition = CONDITIONS[text]
        return
    bare = re.sub(r"[^a-z]", "", text)
    hint = f"write {bare}" if bare in CONDITIONS else did_you_mean(text, CONDITIONS)
    reader.wrong(entry, f"is {shown(text)}; it is one of {', '.join(CONDITIONS)}", hint)


def _signal(draft: Draft, entry: Entry, reader: Reader) -> None:
    draft.signal = parsed(entry, reader, lambda text: parse_warning(text, Scope.PROGRAM))


def _kill_wait(draft: Draft, entry: Entry, reader: Reader) -> None:
    draft.kill_wait = parsed(entry, reader, parse_kill_wait)


def _begin(draft: Draft, entry: Entry, reader: Reader) -> None:
    draft.begin = parsed(entry, reader, lambda text: parse_moment(text, reader.now))


def _deadline(draft: Draft, entry: Entry, reader: Reader) -> None:
    draft.deadline = parsed(entry, reader, lambda text: parse_moment(text, reader.now))
    if draft.deadline is not None and draft.deadline <= reader.now:
        reader.wrong(entry, "is in the past")


def _tags(draft: Draft, entry: Entry, reader: Reader) -> None:
    tags = reader.texts(entry)
    for tag in tags or ():
        if not JOB_NAME.fullmatch(tag):
            reader.wrong(entry, f"has {shown(tag)}; a tag is a word of letters, digits, _ - and .")
    draft.tags = tags or ()


def _pools(draft: Draft, entry: Entry, reader: Reader) -> None:
    """Names, of which it takes one each, or a map with amounts."""
    found: dict[str, int | None] = {}
    if isinstance(entry.value, Mapping):
        for name, part in entry.value.entries.items():
            found[name] = reader.integer(part, 1, MOST_OF_POOL)
    else:
        found = dict.fromkeys(reader.texts(entry) or (), 1)
    for name in found:
        if not POOL_NAME.fullmatch(name):
            reader.wrong(entry, f"has {shown(name)}; the name of a pool has letters, digits, _ - and .")
    draft.pools = tuple((name, amount) for name, amount in found.items() if amount is not None)


def _oom(draft: Draft, entry: Entry, reader: Reader) -> None:
    draft.oom_warns = reader.word(entry, ("fail", "warn")) == "warn"


def _engine(draft: Draft, entry: Entry, reader: Reader) -> None:
    is_shipped = isinstance(entry.value, Scalar) and entry.value.text in SHIPPED_ENGINES
    draft.engine = reader.word(entry, SHIPPED_ENGINES if is_shipped else engine_names()) or draft.engine


_KINDS: tuple[tuple[Schema, Callable[[Reader, Entry], Any]], ...] = (
    (TEXT, Reader.filled),
    (TEXTS, Reader.texts),
    (FLAG, Reader.boolean),
    (COUNT, lambda reader, entry: reader.integer(entry, 1)),
)  # a key with one of these schemas is read into the draft's attribute of its name, unless it has a reader below

_READERS: dict[str, Put] = {
    **{name: simple(name, read) for name, key in JOB_KEYS.items() for schema, read in _KINDS if key.schema is schema},
    "run": _run,
    "if": _if,
    "cpus": simple("cpus", lambda reader, entry: parsed(entry, reader, parse_cpus)),
    "gpus": simple("gpus", lambda reader, entry: reader.integer(entry, 0)),
    "mem": simple("mem", Reader.size),
    "time": simple("time", Reader.time),
    "signal": _signal,
    "kill_wait": _kill_wait,
    "checkpoint": simple("checkpoint", lambda reader, entry: read_checkpoint(entry, reader)),
    "retry": simple("retry", lambda reader, entry: read_retry(entry, reader)),
    "oom": _oom,
    "inputs": put_inputs,
    "outputs": put_outputs,
    "env": _env,
    "shell": _shell,
    "begin": _begin,
    "deadline": _deadline,
    "priority": simple("priority", lambda reader, entry: reader.integer(entry, -MAX_PRIORITY, MAX_PRIORITY)),
    "comment": simple("comment", Reader.text),
    "tags": _tags,
    "pools": _pools,
    "env_file": _env_file,
    "container": simple("container", lambda reader, entry: read_container(entry, reader)),
    "engine": _engine,
    **CLUSTER_READERS,
}
