"""Settings of the user: $AVER_CONFIG or XDG_CONFIG_HOME/aver/config.toml. Every key is optional.

Unknown keys and wrong values are errors with the file's name, not silently ignored.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from aver.errors import UsageError
from aver.model.host_name import is_host
from aver.model.job import NotifyOn, NotifyRule
from aver.model.notify_target import KINDS, parse_target, target_text
from aver.model.record import Record
from aver.model.slurm_names import ANY_NAMES, KNOWN_NAMES, NEWEST, RELEASES
from aver.model.units import parse_size, parse_time

SHIPPED_ENGINES = ("local", "slurm")
ALLOCATION_ENGINE = "allocation"  # chosen with --allocation, not by its name
ENGINE_NAME = re.compile(r"[a-z][a-z0-9_-]{0,30}")
POOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
MOST_OF_POOL = 1_000_000
SETTINGS = (
    "cpus", "engine", "engines", "gpus", "hide_gpus", "idle_exit", "keep_environments", "kill_wait",
    "max_processes", "max_running", "mem", "memory_overrun", "memory_rlimit", "notify", "pools", "requeue", "retention",
    "secret", "settle", "slurm",
)  # fmt: skip


class SlurmConfig(Record):
    """`[slurm]` and `[settle]`. Times in seconds."""

    commands: tuple[tuple[str, str], ...] = ()  # words of those whose names are others, such as sbatch = "spur sbatch"
    prefix: str = ""  # before the names of all others
    folder: str | None = None  # shared with the nodes; None: in the home
    host: str = ""  # the cluster's commands are there, through ssh; empty: they are here
    ssh: str = "ssh"  # the words that call it
    max_submitted: int | None = None
    poll_s: float = 1.0
    poll_max_s: float = 30.0
    timeout_s: float = 60.0
    names: str = ANY_NAMES  # of partitions, features and licenses that Slurm's commands on this machine accept
    version: str = NEWEST  # the release that Slurm's commands on this machine are of
    settle: tuple[tuple[str, float], ...] = ()  # what was set of engines.slurm.tracking.Settle
    fallback: str = "unverified"


class Retention(Record):
    """`[retention]`: which logs are cut by themselves, and how often that is looked at. None: no such bound."""

    older_than_s: float | None = None
    keep_last: int = 0
    max_bytes: int | None = None
    every_s: float = 3600.0


class Config(Record):
    """None: as the machine has it."""

    cpus: int | None = None
    mem_bytes: int | None = None
    gpus: int | None = None
    hide_gpus: bool = True  # from jobs that ask for none
    kill_wait_s: float = 30.0
    idle_exit_s: float = 10.0
    requeue: bool = False  # attempts that ran when the machine went down are tried again
    max_running: int | None = None
    max_processes: int | None = None  # of each job at once, where the kernel can count them (cgroup v2)
    memory_overrun: str = "warn"  # or fail: over a memory limit that could only be sampled
    memory_rlimit: str = "none"  # or data, as: what limits each process where memory can only be sampled
    pools: tuple[tuple[str, int], ...] = ()  # amounts that jobs of all runs share, by name
    secrets: tuple[str, ...] = ()
    notify: tuple[NotifyRule, ...] = ()
    retention: Retention | None = None
    keep_environments_s: float = 30 * 86400.0
    engine: str = SHIPPED_ENGINES[0]
    engines: tuple[tuple[str, str], ...] = ()  # further ones: the name, and module:attribute of its registration
    engine_settings: tuple[tuple[str, Mapping[str, object]], ...] = ()  # of those, by name
    slurm: SlurmConfig = SlurmConfig()


def config_path() -> Path:
    named = os.environ.get("AVER_CONFIG")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CONFIG_HOME")
    folder = Path(base) if base and os.path.isabs(base) else Path(os.path.expanduser("~")) / ".config"
    return folder / "aver" / "config.toml"


def engine_names() -> tuple[str, ...]:
    """The engines that a job may be for. The settings are read when they have changed: it may be asked for each job."""
    path = config_path()
    try:
        found = path.stat()
    except OSError:
        return _engine_names(path, 0, 0)
    return _engine_names(path, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=1)
def _engine_names(path: Path, changed_at_ns: int, size: int) -> tuple[str, ...]:
    return (*SHIPPED_ENGINES, *(name for name, _ in load_config().engines))


def load_config() -> Config:
    """Read the settings; a missing file is the defaults, a wrong one is a UsageError."""
    path = config_path()
    if os.environ.get("AVER_CONFIG") and not path.exists():
        raise UsageError(f"AVER_CONFIG names {path}, which does not exist")
    table = read_table(path)
    return check_table(path, table) if table else Config()


def read_table(path: Path) -> dict[str, Any]:
    """What is in the file, as it stands there; empty without a file. UsageError if it is not TOML."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UsageError(f"can't read the settings in {path}: {error.strerror}") from None
    import tomllib  # only where there is a file: start-up is short

    try:
        return tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not valid TOML: {error}") from None


def check_table(path: Path, table: Mapping[str, Any]) -> Config:
    """The settings of such a file; UsageError names the key that is wrong."""
    values: dict[str, Any] = {}
    slurm: dict[str, Any] = {}
    own: list[tuple[str, Mapping[str, object]]] = []
    try:
        engines = _engines(table.get("engines", {}))
    except ValueError as error:
        raise UsageError(f"{path}: engines: {error}") from None
    for key, value in table.items():
        try:
            match key:
                case "engines":
                    values["engines"] = engines
                case _ if key in dict(engines):
                    own.append((key, _table(value)))
                case "cpus" | "gpus" | "max_running" | "max_processes":
                    values[key] = _count(value, least=0 if key == "gpus" else 1)
                case "mem":
                    values["mem_bytes"] = parse_size(str(value))
                case "memory_overrun":
                    values[key] = _word(value, ("warn", "fail"))
                case "memory_rlimit":
                    values[key] = _word(value, ("none", "data", "as"))
                case "kill_wait" | "idle_exit":
                    values[f"{key}_s"] = _seconds(value)
                case "requeue" | "hide_gpus":
                    values[key] = _flag(value)
                case "pools":
                    values[key] = tuple(
                        (pool_name(name), _count(size, least=0)) for name, size in _table(value).items()
                    )
                case "notify":
                    values["notify"] = _notify(value)
                case "retention":
                    values["retention"] = _retention(value)
                case "keep_environments":
                    values["keep_environments_s"] = _seconds(value)
                case "secret":
                    values["secrets"] = _names(value)
                case "engine":
                    values["engine"] = _word(value, (*SHIPPED_ENGINES, *dict(engines)))
                case "slurm" | "settle":
                    slurm |= _slurm(value) if key == "slurm" else _settle(value)
                case _:
                    raise ValueError(f"unknown setting; known are {', '.join(SETTINGS)}")
        except ValueError as error:
            raise UsageError(f"{path}: {key}: {error}") from None
    if slurm:
        values["slurm"] = SlurmConfig(**slurm)
    if own:
        values["engine_settings"] = tuple(own)
    return Config(**values)


SETTLE_TIMES = {
    "ask_accounting": "ask_accounting_s", "never_seen": "never_seen_s", "record": "record_s", "stable": "stable_s",
    "long": "long_s", "unsure": "unsure_s",
}  # fmt: skip


def _slurm(table: object) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in _table(table).items():
        match key:
            case "commands":
                values["commands"] = tuple((name, _text(words)) for name, words in _table(value).items())
            case "prefix" | "folder" | "ssh":
                values[key] = _text(value)
            case "host":
                values[key] = _host(value)
            case "version":
                values[key] = _word(f"{value:.2f}" if isinstance(value, float) else value, tuple(RELEASES))
            case "names":
                values[key] = _word(value, (ANY_NAMES, KNOWN_NAMES))
            case "max_submitted":
                values[key] = _count(value, least=1)
            case "poll" | "poll_max" | "timeout":
                values[f"{key}_s"] = _seconds(value)
            case _:
                raise ValueError(
                    f"unknown setting {key!r}; known are commands, folder, host, max_submitted, names, "
                    "poll, poll_max, prefix, ssh, timeout, version"
                )
    return values


def _settle(table: object) -> dict[str, Any]:
    values: dict[str, Any] = {}
    times = []
    for key, value in _table(table).items():
        if key == "fallback":
            values["fallback"] = _word(value, ("unverified", "completed"))
        elif key in SETTLE_TIMES:
            times.append((SETTLE_TIMES[key], _seconds(value)))
        else:
            raise ValueError(f"unknown setting {key!r}; known are fallback, {', '.join(sorted(SETTLE_TIMES))}")
    return values | {"settle": tuple(times)}


def _engines(table: object) -> tuple[tuple[str, str], ...]:
    """The names of engines, and where their registrations are."""
    found = []
    for name, place in _table(table).items():
        if name in (*SHIPPED_ENGINES, ALLOCATION_ENGINE, *SETTINGS) or not ENGINE_NAME.fullmatch(name):
            raise ValueError(f"{name!r} can't be the name of an engine")
        if not re.fullmatch(r"[\w.]+:\w+", _text(place)):
            raise ValueError(f"{name} is {place!r}; write module:attribute, such as my_engine:ENGINE")
        found.append((name, place))
    return tuple(found)


def _table(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("must be a table")
    return value


def _host(value: object) -> str:
    text = _text(value)
    if not is_host(text):
        raise ValueError(f"{text!r} is not the name of a host, such as me@login.example.org")
    return text


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{value!r} is not a text")
    return value


def _word(value: object, known: tuple[str, ...]) -> str:
    if value not in known:
        raise ValueError(f"{value!r} is none of {', '.join(known)}")
    return str(value)


def pool_name(name: str) -> str:
    """The name, if a pool can have it; ValueError if not."""
    if not POOL_NAME.fullmatch(name):
        raise ValueError(f"{name!r} can't be the name of a pool: use letters, digits, _ - and .")
    return name


def _count(value: object, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"{value!r} is not a whole number of at least {least}")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is neither true nor false")
    return value


def _seconds(value: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if not 0 <= value <= 86400 * 365:
            raise ValueError(f"{value!r} is not a number of seconds")
        return float(value)
    seconds = parse_time(str(value))
    if seconds is None:
        raise ValueError(f"{value!r} is not a number of seconds")
    return float(seconds)


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise ValueError("must be a list of names")
    return tuple(value)


SHELL = ("/bin/sh", "-c")


def _notify(value: object) -> tuple[NotifyRule, ...]:
    """One table or several; each may be for several occasions."""
    return tuple(rule for table in (value if isinstance(value, list) else [value]) for rule in _notify_rules(table))


def _notify_rules(value: object) -> list[NotifyRule]:
    if isinstance(value, str):
        return [NotifyRule(NotifyOn.SETTLED, (), to=parse_target(value))]
    if not isinstance(value, dict):
        raise ValueError("must be a table with on and run")
    unknown = [key for key in value if key not in ("on", "run", "timeout", "attempts", *KINDS)]
    if unknown:
        known = ", ".join(("attempts", *KINDS, "on", "run", "timeout"))
        raise ValueError(f"unknown setting {unknown[0]!r}; known are {known}")
    named = [key for key in ("run", *KINDS) if key in value]
    if len(named) != 1:
        raise ValueError(f"needs one of run, {', '.join(KINDS)}")
    run, when, target = value.get("run"), value.get("on", "settled"), ""
    words: tuple[str, ...] = ()
    if named == ["run"]:
        words = (*SHELL, run) if isinstance(run, str) else _names(run)
        if not words or not words[-1]:
            raise ValueError("run is empty; give it a command")
    else:
        target = parse_target(target_text(named[0], value[named[0]]))
    occasions = []
    for word in when if isinstance(when, list) else [when]:
        if word not in tuple(NotifyOn):
            raise ValueError(f"on is {word!r}; it is one of {', '.join(NotifyOn)}")
        occasions.append(NotifyOn(word))
    timeout_s = _seconds(value.get("timeout", 30))
    attempts = _count(value.get("attempts", 5), least=1)
    return [NotifyRule(one, words, timeout_s, attempts, target) for one in occasions]


def _retention(value: object) -> Retention:
    if not isinstance(value, dict):
        raise ValueError("must be a table")
    values: dict[str, Any] = {}
    for key, one in value.items():
        match key:
            case "older_than" | "every":
                values[f"{key}_s"] = _seconds(one)
            case "keep_last":
                values[key] = _count(one, least=0)
            case "max_size":
                values["max_bytes"] = parse_size(str(one))
            case _:
                raise ValueError(f"unknown setting {key!r}; known are every, keep_last, max_size, older_than")
    if values.get("older_than_s") is None and values.get("max_bytes") is None and not values.get("keep_last"):
        raise ValueError("bounds nothing; give older_than, keep_last or max_size")
    return Retention(**values)
