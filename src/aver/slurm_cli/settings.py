"""What Slurm's commands need of the user's settings, without the cost of reading settings that do not have it."""

from __future__ import annotations

import os

from aver.fast_start import TYPE_CHECKING
from aver.model.slurm_names import KNOWN_NAMES, NEWEST, RELEASES

if TYPE_CHECKING:
    from collections.abc import Sequence

_releases: dict[str, str] = {}  # by the path of the settings: asked for by each job that is shown


def secret_names() -> tuple[str, ...]:
    """The settings' `secret`; UsageError if settings that have the word can't be read."""
    if not _have(b"secret"):
        return ()
    from aver.config import load_config

    return load_config().secrets


def release() -> str:
    """The settings' `slurm.version`, such as `25.11`; UsageError if settings that have the word can't be read."""
    path = _path()
    if path not in _releases:
        _releases[path] = NEWEST
        if _have(b"version"):
            from aver.config import load_config

            _releases[path] = load_config().slurm.version
    return _releases[path]


def refuses_unknown_names() -> bool:
    """Whether the settings' `slurm.names` is `known`; UsageError if settings that have the word can't be read."""
    if not _have(b"names"):
        return False
    from aver.config import load_config

    return load_config().slurm.names == KNOWN_NAMES


def node_name() -> str:
    """The name under which this machine is a node."""
    return os.uname().nodename.partition(".")[0]


def is_since(first: str) -> bool:
    """Whether the commands are of this release of Slurm, or of a later one."""
    return release() >= first


def version_line() -> str:
    """What `--version` prints: `slurm 25.11.6`."""
    return f"slurm {RELEASES[release()]}"


def _have(word: bytes) -> bool:
    """Whether the word is in the settings; True also where that can't be read: who loads them says why."""
    try:
        with open(_path(), "rb") as file:
            return word in file.read()
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _path() -> str:
    """As `aver.config` finds it."""
    named = os.environ.get("AVER_CONFIG")
    if named:
        return named
    base = os.environ.get("XDG_CONFIG_HOME")
    folder = base if base and os.path.isabs(base) else os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(folder, "aver", "config.toml")


def names_only(text: str) -> str:
    """The text of --export without its values: `ALL,TOKEN=***`."""
    parts = [part.partition("=") for part in text.split(",")]
    return ",".join(f"{name}=***" if equals else name for name, equals, _ in parts)


def shown_words(given: Sequence[tuple[str, str | None]]) -> list[str]:
    """Options as words, without the values of --export."""
    return [
        f"--{name}" if text is None else f"--{name}={names_only(text) if name == 'export' else text}"
        for name, text in given
    ]


def verbosity(given: Sequence[tuple[str, str | None]]) -> int:
    """How often -v was given; a variable has the number."""
    return sum(
        int(text) if text and text.isascii() and text.isdigit() else 1 for name, text in given if name == "verbose"
    )


def defined_options(command: str, given: Sequence[tuple[str, str | None]]) -> list[str]:
    """What -v says of the options that count, the last of each: `srun: ntasks              : 2`."""
    last = {name: "set" if text is None or text == "" else text for name, text in given}
    if "export" in last:
        last["export"] = names_only(last["export"])
    level = verbosity(given)
    last["verbose"] = str(level)
    for name in ("time", "time-min"):
        if name in last:
            last[name] = _in_full(last[name])
    rule = "-" * 20
    lines = ["defined options", f"{rule} {rule}"]
    lines += [f"{name:<20}: {last[name]}" for name in sorted(last)]
    lines += [f"{rule} {rule}", "end of defined options", *(_propagated() if level > 1 else [])]
    return [f"{command}: {line}" for line in lines]


def _in_full(text: str) -> str:
    """A time limit as Slurm writes it: `00:03:00`; what can't be read as it is."""
    from aver.model.units import parse_time
    from aver.slurm_cli.texts import full_clock

    try:
        seconds = parse_time(text)
    except ValueError:
        return text
    return "UNLIMITED" if seconds is None else full_clock(seconds)


def _propagated() -> list[str]:
    """The limits and the umask that the job inherits, which -vv shows."""
    import resource

    lines = []
    for name in ("CPU", "FSIZE", "DATA", "STACK", "CORE", "RSS", "NPROC", "NOFILE", "MEMLOCK", "AS"):
        soft = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[0]
        lines.append(f"debug:  propagating RLIMIT_{name}={soft & (1 << 64) - 1}")
    umask = os.umask(0o077)
    os.umask(umask)
    return [*lines, f"debug:  propagating UMASK={umask:04o}"]
