"""Settings of the user: $AVER_CONFIG or XDG_CONFIG_HOME/aver/config.toml. Every key is optional.

Unknown keys and wrong values are errors with the file's name, not silently ignored.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from aver.core.record import dataclass
from aver.core.units import parse_size, parse_time
from aver.errors import UsageError


@dataclass(frozen=True, slots=True)
class Config:
    """None: as the machine has it."""

    cpus: int | None = None
    mem_bytes: int | None = None
    gpus: int | None = None
    kill_wait_s: float = 30.0
    idle_exit_s: float = 10.0
    max_running: int | None = None
    secrets: tuple[str, ...] = ()


def config_path() -> Path:
    named = os.environ.get("AVER_CONFIG")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CONFIG_HOME")
    folder = Path(base) if base and os.path.isabs(base) else Path(os.path.expanduser("~")) / ".config"
    return folder / "aver" / "config.toml"


def load_config() -> Config:
    """Read the settings; a missing file is the defaults, a wrong one is a UsageError."""
    path = config_path()
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        if os.environ.get("AVER_CONFIG"):
            raise UsageError(f"AVER_CONFIG names {path}, which does not exist") from None
        return Config()
    except OSError as error:
        raise UsageError(f"can't read the settings in {path}: {error.strerror}") from None
    import tomllib  # only where there is a file: start-up is short

    try:
        table = tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not valid TOML: {error}") from None
    return _from_table(path, table)


def _from_table(path: Path, table: dict[str, Any]) -> Config:
    values: dict[str, Any] = {}
    for key, value in table.items():
        try:
            match key:
                case "cpus" | "gpus" | "max_running":
                    values[key] = _count(value, least=0 if key == "gpus" else 1)
                case "mem":
                    values["mem_bytes"] = parse_size(str(value))
                case "kill_wait" | "idle_exit":
                    values[f"{key}_s"] = _seconds(value)
                case "secret":
                    values["secrets"] = _names(value)
                case _:
                    known = "cpus, gpus, idle_exit, kill_wait, max_running, mem, secret"
                    raise ValueError(f"unknown setting; known are {known}")
        except ValueError as error:
            raise UsageError(f"{path}: {key}: {error}") from None
    return Config(**values)


def _count(value: object, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"{value!r} is not a whole number of at least {least}")
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
