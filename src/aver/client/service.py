"""A coordinator that comes back by itself: after a crash, and after a boot without anybody logging in.

With systemd it is a unit of the user's own service manager, which lingers: it runs from boot on, and goes on after the
last logout. The unit delegates nothing: the coordinator enters the scope that its jobs are in, as every coordinator
does, so that they outlive it. Without systemd a line of cron starts it at boot; then nobody brings it back after a
crash but the next command.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from aver.durable_files import write_file
from aver.engines.local.login import has_linger, linger_command
from aver.engines.local.user_manager import SLICE, find_manager_obstacle, runtime_folder, scope_of, user_name
from aver.errors import CantWriteError, UnreachableError
from aver.home import Home
from aver.launch import coordinator_command
from aver.model.record import Record

ASK_S = 60
SERVICE_WORD = "--service"  # of the coordinator's program: it waits for the lock, and does not leave when it is idle
CRON_PIDS = (Path("/run/crond.pid"), Path("/var/run/crond.pid"))
UNIT = """[Unit]
Description=Aver's coordinator of {home}
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart={command}
{environment}
Restart=always
RestartSec=1
Slice={slice}
KillMode=process

[Install]
WantedBy=default.target
"""


class Service(Record):
    """How the coordinator of a home is started by itself, and what is missing for that."""

    kind: str  # systemd, cron
    name: str  # the unit, or the line
    is_enabled: bool
    is_active: bool  # it runs at this moment, as a service
    missing: str = ""  # what keeps it from coming back after a boot, and the command that helps


def find_service(home: Home) -> Service:
    """How it is; UnreachableError, with the reason, where this machine has no way to start one by itself."""
    if _has_systemd():
        name = _unit_name(home)
        is_enabled = _ask("systemctl", "--user", "is-enabled", name) == "enabled"
        is_active = _ask("systemctl", "--user", "is-active", name) == "active"
        missing = "" if has_linger() or not is_enabled else f"it starts at login, not at boot: `{linger_command()}`"
        return Service("systemd", name, is_enabled, is_active, missing)
    line = _cron_line(home)
    return Service("cron", line, line in _crontab(home), False)


def enable(home: Home) -> Service:
    """Have the coordinator started now, at every boot, and with systemd after every crash. Twice is harmless."""
    home.prepare()
    if not _has_systemd():
        line = _cron_line(home)
        lines = _crontab(home)
        if line not in lines:
            _write_crontab([*lines, line])
        return find_service(home)
    path = _unit_path(home)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, unit_text(home).encode(), 0o644)
    except OSError as error:
        raise CantWriteError(f"can't write {path}: {error.strerror}") from None
    if not has_linger():
        _run("loginctl", "enable-linger")  # where an administrator has to allow it, `missing` says so
    _must("systemctl", "--user", "daemon-reload")
    _must("systemctl", "--user", "enable", path.name)
    _must("systemctl", "--user", "restart", path.name)
    return find_service(home)


def disable(home: Home) -> Service:
    """Undo `enable`. Jobs go on, and the next command starts a coordinator; linger is left as it is."""
    if not _has_systemd():
        line = _cron_line(home)
        lines = _crontab(home)
        if line in lines:
            _write_crontab([one for one in lines if one != line])
        return find_service(home)
    path = _unit_path(home)
    if path.exists():
        _must("systemctl", "--user", "disable", "--now", path.name)
        path.unlink(missing_ok=True)
        _must("systemctl", "--user", "daemon-reload")
    return find_service(home)


# ---- systemd ----------------------------------------------------------------------------------------------------


def _has_systemd() -> bool:
    """Whether the user's service manager runs; UnreachableError if systemd does and the manager does not."""
    if not os.path.isdir("/run/systemd/system"):
        return False
    obstacle = find_manager_obstacle()
    if obstacle is not None:
        raise UnreachableError(f"{obstacle.what}; {obstacle.remedy}")
    return True


def _unit_name(home: Home) -> str:
    named = os.environ.get("AVER_HOME") or os.environ.get("XDG_STATE_HOME")
    return scope_of(home.path).replace(".scope", ".service") if named else "aver.service"


def _unit_path(home: Home) -> Path:
    base = os.environ.get("XDG_CONFIG_HOME")
    folder = Path(base) if base and os.path.isabs(base) else Path(os.path.expanduser("~")) / ".config"
    return folder / "systemd" / "user" / _unit_name(home)


def unit_text(home: Home) -> str:
    """The unit's file."""
    environment = [f"Environment={_quoted(f'{name}={value}', '%')}" for name, value in _environment()]
    command = " ".join(_quoted(word, "%$") for word in _command(home))
    shown = str(home.path).replace("%", "%%")
    return UNIT.format(home=shown, command=command, environment="\n".join(environment), slice=SLICE)


def _quoted(text: str, doubled: str) -> str:
    """As systemd's unit files have it; the characters that mean something to it are doubled."""
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    for character in doubled:
        text = text.replace(character, character * 2)
    return f'"{text}"'


def _command(home: Home) -> list[str]:
    return [*coordinator_command(os.fspath(home.path)), SERVICE_WORD]


def _environment() -> list[tuple[str, str]]:
    folder = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # whence we were imported
    named = [(name, os.environ[name]) for name in ("AVER_CONFIG", "XDG_CONFIG_HOME") if name in os.environ]
    return [("PYTHONPATH", folder), *named]


# ---- cron -------------------------------------------------------------------------------------------------------


def _cron_line(home: Home) -> str:
    return f"@reboot {_shell_line(home)} >/dev/null 2>&1".replace("%", "\\%")


def _shell_line(home: Home) -> str:
    """What a shell runs to start the coordinator as a service."""
    words = [f"{name}={shlex.quote(value)}" for name, value in _environment()]
    return " ".join([*words, *(shlex.quote(word) for word in _command(home))])


def _crontab(home: Home) -> list[str]:
    """The user's lines; UnreachableError where no cron runs."""
    if shutil.which("crontab") is None or not any(path.exists() for path in CRON_PIDS):
        raise UnreachableError(
            "this machine has no way to start the coordinator at boot: neither systemd nor cron runs; "
            f"run this at boot, as your user: {_shell_line(home)}"
        )
    done = _run("crontab", "-l")
    if done.returncode != 0 and "no crontab for" not in done.stderr:
        raise UnreachableError(f"the lines of your crontab can't be read: {done.stderr.strip() or 'crontab -l failed'}")
    return done.stdout.splitlines() if done.returncode == 0 else []


def _write_crontab(lines: Sequence[str]) -> None:
    done = _run("crontab", "-", text="".join(f"{line}\n" for line in lines))
    if done.returncode != 0:
        raise CantWriteError(f"crontab refused the line: {done.stderr.strip()}")


# ---- programs ---------------------------------------------------------------------------------------------------


def _run(*command: str, text: str = "") -> subprocess.CompletedProcess[str]:
    own = {**os.environ, "XDG_RUNTIME_DIR": os.fspath(runtime_folder()), "LC_ALL": "C"}
    try:
        return subprocess.run(command, input=text, capture_output=True, text=True, timeout=ASK_S, check=False, env=own)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnreachableError(f"{command[0]} can't be run: {error}") from None


def _ask(*command: str) -> str:
    return _run(*command).stdout.strip()


def _must(*command: str) -> None:
    done = _run(*command)
    if done.returncode != 0:
        raise UnreachableError(f"`{' '.join(command)}` failed for {user_name()}: {done.stderr.strip()}")
