"""The settings one by one: every key with its default and meaning, its value in the file, and how one is changed there.

A change rewrites one line and leaves the rest of the file as it is, comments too. What the file means afterwards is
compared with what it is to mean: where one line is not enough, nothing is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from aver.config import check_table, read_table
from aver.durable_files import naming_failures, write_file
from aver.errors import UsageError
from aver.model.record import Record
from aver.model.slurm_names import ANY_NAMES, NEWEST

_HEADER = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(#.*)?$")
_ANY_HEADER = re.compile(r"\s*\[")


class Kind(Enum):
    """How a value is written in the file."""

    NUMBER = "a whole number"
    TEXT = "a text"
    TIME = "a time with its unit, such as 90s, 5m or 2h"
    FLAG = "true or false"
    NAMES = "names with commas between them"
    TABLE = "a table"  # more than one line can say


class Setting(Record):
    """`default` is as it would be set; empty: `meaning` says what holds without the key."""

    key: str
    kind: Kind
    default: str
    meaning: str


SETTINGS = (
    Setting("cpus", Kind.NUMBER, "", "CPUs that jobs may use together; without it, those of the machine"),
    Setting("mem", Kind.TEXT, "", "memory that jobs may use together, such as 48G; without it, the machine's"),
    Setting("gpus", Kind.NUMBER, "", "GPUs that jobs may use; without it, those that are found"),
    Setting("hide_gpus", Kind.FLAG, "true", "jobs that ask for no GPUs see none"),
    Setting("max_running", Kind.NUMBER, "", "most jobs that run at once; without it, as many as fit"),
    Setting("max_processes", Kind.NUMBER, "", "most processes of a job at once (cgroup v2); without it, no limit"),
    Setting("memory_overrun", Kind.TEXT, "warn", "what a job over a sampled memory limit gets: a warning, or: fail"),
    Setting("memory_rlimit", Kind.TEXT, "none", "where memory is only sampled, limit each process by: data or as"),
    Setting("kill_wait", Kind.TIME, "30s", "time between TERM and KILL when a job is ended"),
    Setting("idle_exit", Kind.TIME, "10s", "how long an idle coordinator stays"),
    Setting("requeue", Kind.FLAG, "false", "rerun jobs that were lost with the machine"),
    Setting("engine", Kind.TEXT, "local", "default engine of jobs: local, slurm or one of `engines`"),
    Setting("engines", Kind.TABLE, "", "further engines, by name: module:attribute of the registration"),
    Setting("secret", Kind.NAMES, "", "environment variables whose values are masked in every output"),
    Setting("notify", Kind.TABLE, "", "who is notified of verdicts, and how"),
    Setting("pools", Kind.TABLE, "", "amounts that jobs of all runs share, by name: licence = 2"),
    Setting("keep_environments", Kind.TIME, "30d", "how long a settled run's environment and scripts are kept"),
    Setting("retention.older_than", Kind.TIME, "", "cut logs of runs that ended longer ago than this"),
    Setting("retention.keep_last", Kind.NUMBER, "0", "never cut the logs of the newest N runs"),
    Setting("retention.max_size", Kind.TEXT, "", "cut the oldest logs until all together have at most this size"),
    Setting("retention.every", Kind.TIME, "1h", "how often retention is applied"),
    Setting("slurm.commands", Kind.TABLE, "", 'other names of Slurm commands: sbatch = "spur sbatch"'),
    Setting("slurm.prefix", Kind.TEXT, "", "text before the names of all other Slurm commands"),
    Setting("slurm.folder", Kind.TEXT, "", "folder that the nodes share; without it, AVER_HOME/slurm"),
    Setting("slurm.host", Kind.TEXT, "", "host to reach Slurm on over ssh, such as me@login; without it, here"),
    Setting("slurm.ssh", Kind.TEXT, "ssh", "the ssh command"),
    Setting("slurm.max_submitted", Kind.NUMBER, "", "most jobs in Slurm's queue at once; without it, no limit"),
    Setting("slurm.names", Kind.TEXT, ANY_NAMES, "`known`: unknown partitions, nodes, features, licenses are rejected"),
    Setting("slurm.version", Kind.TEXT, NEWEST, "Slurm release that the Slurm commands on this machine follow"),
    Setting("slurm.poll", Kind.TIME, "1s", "shortest time between two polls of Slurm"),
    Setting("slurm.poll_max", Kind.TIME, "30s", "longest time between two polls of Slurm"),
    Setting("slurm.timeout", Kind.TIME, "60s", "time limit of one Slurm command"),
    Setting("settle.ask_accounting", Kind.TIME, "1m", "ask sacct about a submitted job that the queue lacks this long"),
    Setting("settle.never_seen", Kind.TIME, "5m", "FAILED if queue and sacct lack a submitted job this long"),
    Setting("settle.record", Kind.TIME, "10s", "wait for the witness's record when Slurm says failed"),
    Setting("settle.stable", Kind.TIME, "10s", "how long a row of sacct must stay unchanged to count"),
    Setting("settle.long", Kind.TIME, "10m", "longest wait for evidence of an end; then the job is UNVERIFIED"),
    Setting("settle.unsure", Kind.TIME, "1m", "sbatch's answer was lost: submit again if Slurm has no such job"),
    Setting("settle.fallback", Kind.TEXT, "unverified", "state of a job whose end nobody saw, or: completed"),
)  # fmt: skip


def find_setting(key: str) -> Setting:
    """Raise UsageError for a key that there is not."""
    for setting in SETTINGS:
        if setting.key == key:
            return setting
    raise UsageError(f"no setting {key!r}; `aver config` lists all")


def value_text(setting: Setting, table: Mapping[str, Any]) -> str | None:
    """The value in the file as it would be set; None: it is not there. A table is told by its size, for it may hold
    addresses that are secret."""
    value = _lookup(table, setting.key)
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case list() if setting.kind is not Kind.TABLE:
            return ",".join(map(str, value))
        case list() | dict():
            count = len(value) if isinstance(value, list) or setting.key != "notify" else 1
            return f"{count} in the file"
        case int() if setting.kind is Kind.TIME:
            return f"{value}s"
        case _:
            return str(value)


def set_value(path: Path, key: str, text: str | None) -> None:
    """Set the key in the file, or remove it (None); durable when this returns.

    UsageError if the value is wrong, or if the file can't be changed in one line.
    """
    setting = find_setting(key)
    if setting.kind is Kind.TABLE:
        raise UsageError(f"{key} is a table: write it in {path}")
    before = read_table(path)
    if text is None and _lookup(before, key) is None:
        return
    value = None if text is None else _parse(setting, text)
    wanted = _with_value(before, key, value)
    check_table(path, wanted)
    after = _edited(_read(path), key, None if value is None else json.dumps(value, ensure_ascii=False))
    if _loads(after) != wanted:
        raise UsageError(f"{path}: the line of {key} is not one that can be changed by itself: edit the file")
    with naming_failures(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, after.encode())


def _lookup(table: Mapping[str, Any], key: str) -> Any:
    section, _, name = key.rpartition(".")
    inner = table.get(section, {}) if section else table
    return inner.get(name) if isinstance(inner, Mapping) else None


def _with_value(table: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    section, _, name = key.rpartition(".")
    inner = dict(table.get(section, {}) if section else table)
    if value is None:
        inner.pop(name, None)
    else:
        inner[name] = value
    return {**table, section: inner} if section else inner


def _parse(setting: Setting, text: str) -> object:
    try:
        match setting.kind:
            case Kind.NUMBER:
                return int(text)
            case Kind.FLAG:
                return {"true": True, "false": False}[text]
            case Kind.NAMES:
                return [name for name in text.split(",") if name]
            case Kind.TIME if text.isdigit():
                raise ValueError(text)  # the file would take it for seconds, the command line takes minutes
            case _:
                return text
    except (ValueError, KeyError):
        raise UsageError(f"{setting.key}: {text!r} is not {setting.kind.value}") from None


def _edited(text: str, key: str, literal: str | None) -> str:
    """The file with this key's line replaced, removed or put at the end of its section."""
    section, _, name = key.rpartition(".")
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    begin, end = _bounds(lines, section)
    new = [] if literal is None else [f"{name} = {literal}\n"]
    own = re.compile(rf"\s*[\"']?{re.escape(name)}[\"']?\s*=")
    for at in range(begin, end):
        if own.match(lines[at]):
            return "".join([*lines[:at], *new, *lines[at + 1 :]])
    if begin == end == len(lines) and section and not _has_section(lines, section):
        gap = ["\n"] if lines else []
        return "".join([*lines, *gap, f"[{section}]\n", *new])
    while end > begin and not lines[end - 1].strip():
        end -= 1
    return "".join([*lines[:end], *new, *lines[end:]])


def _has_section(lines: list[str], section: str) -> bool:
    return any((found := _HEADER.match(line)) is not None and found[1] == section for line in lines)


def _bounds(lines: list[str], section: str) -> tuple[int, int]:
    """The lines of the section, without its header; those before the first header for keys that are in none."""
    begin = 0
    if section:
        found = [at for at, line in enumerate(lines) if (head := _HEADER.match(line)) and head[1] == section]
        begin = found[0] + 1 if found else len(lines)
    end = next((at for at in range(begin, len(lines)) if _ANY_HEADER.match(lines[at])), len(lines))
    return begin, end


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return ""


def _loads(text: str) -> dict[str, Any] | None:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
