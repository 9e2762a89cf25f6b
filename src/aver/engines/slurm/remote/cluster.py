"""Hosts behind ssh: what this home keeps of each, and how its engine is made.

AVER_HOME/slurm/hosts/NAME has `host.json` (the host's name, and where our folder is there), `batches` (what was handed
over there) and `files.json` (which attempts have folders to be brought back).
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import shlex
import time
from collections.abc import Sequence
from pathlib import Path

from aver.config import Config
from aver.crashpoint import reached
from aver.durable_files import write_file
from aver.engines.slurm.allocation.engine import AllocationEngine
from aver.engines.slurm.allocation.folder import folders_in
from aver.engines.slurm.batches import Shelf
from aver.engines.slurm.cluster import pace_of, settle_of, site_of
from aver.engines.slurm.commands.call import Commands
from aver.engines.slurm.engine import SlurmEngine
from aver.engines.slurm.remote.allocation import HostFolders, RemoteTaker
from aver.engines.slurm.remote.engine import SyncedAllocator, SyncedEngine
from aver.engines.slurm.remote.folder_removal import REMOVED_THERE
from aver.engines.slurm.remote.host import Host, Layout, copy_of
from aver.engines.slurm.remote.sbatch_call import RemoteHander, RemoteRecords
from aver.engines.slurm.remote.ssh import Ssh
from aver.engines.slurm.remote.transfer import Transfers
from aver.errors import CantWriteError, UsageError
from aver.home import Home
from aver.log import log
from aver.model.codec import parse
from aver.witness import binary

NOTE = "host.json"


def known_hosts(home: Home) -> list[str]:
    """Hosts that may have something of ours."""
    found = []
    for note in sorted((home.path / "slurm" / "hosts").glob(f"*/{NOTE}")):
        name = _read(note).get("host")
        if name is not None and any((note.parent / "batches").glob("*.json")):
            found.append(name)
    return found


def ssh_to(home: Home, config: Config, host: str, agent: str | None = None) -> Ssh:
    """The connection to a host, with the words of ssh that the settings name."""
    try:
        words = tuple(shlex.split(config.slurm.ssh))
    except ValueError as error:
        raise UsageError(f"the settings: slurm.ssh can't be read: {error}") from None
    named = agent or site_of(home).get("SSH_AUTH_SOCK")
    return Ssh(host, words or ("ssh",), named if isinstance(named, str) else None)


def commands_on(config: Config, ssh: Ssh) -> Commands:
    return Commands(names=dict(config.slurm.commands), prefix=config.slurm.prefix, transport=ssh, is_elsewhere=True)


def host_of(home: Home, config: Config, ssh: Ssh, timeout_s: float) -> Host:
    """Our folder on the host; CantWriteError if what we know of it can't be kept."""
    note = _folder(home, ssh.host) / NOTE
    known = _read(note)
    if known.get("host") != ssh.host or "folder" not in known:
        known = {"host": ssh.host, "folder": f"~/.local/state/aver/slurm-{secrets.token_hex(4)}"}
    if config.slurm.folder:
        known["folder"] = f"{config.slurm.folder.rstrip('/')}/{home.path.name}"
    home.prepare()  # this may be the first that anybody does in it
    try:
        note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_file(note, json.dumps(known).encode())
    except OSError as error:
        raise CantWriteError(f"can't write {note}: {error.strerror}") from None

    def found(layout: Layout) -> None:
        try:
            write_file(note, json.dumps({**known, "base": layout.folder}).encode())
        except OSError as error:
            log(f"can't write {note}: {error.strerror}")

    return Host(ssh, known["folder"], binary(), timeout_s, log, found, time.time)


def make_host_engine(home: Home, config: Config, name: str) -> SyncedEngine:
    """The engine of a host; CantWriteError if its folders can't be made."""
    timeout_s = config.slurm.timeout_s
    ssh = ssh_to(home, config, name)
    host = host_of(home, config, ssh, timeout_s)
    place = _folder(home, name)
    try:
        (place / "batches").mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise CantWriteError(f"can't make {place / 'batches'}: {error.strerror}") from None
    commands = commands_on(config, ssh)
    engine = SlurmEngine(
        Shelf(place / "batches"), commands, RemoteHander(host, commands, timeout_s), RemoteRecords(host, timeout_s),
        settle_of(config), pace_of(config), log, reached,
    )  # fmt: skip
    transfers = Transfers(host, timeout_s, told=lambda: None)
    return SyncedEngine(engine, transfers, place / "files.json", log)


def allocation_hosts(home: Home) -> list[str]:
    """Hosts that may have allocations of ours, or folders of runs that are over."""
    found = []
    for note in sorted((home.path / "slurm" / "hosts").glob(f"*/{NOTE}")):
        name = _read(note).get("host")
        folders = folders_in(note.parent / "alloc")
        if name is not None and any(one.is_in_use or not (one.path / REMOVED_THERE).exists() for one in folders):
            found.append(name)
    return found


def make_host_allocator(home: Home, config: Config, name: str, key: str) -> SyncedAllocator:
    """The engine of a host's allocations; CantWriteError if its folders can't be made."""
    timeout_s = config.slurm.timeout_s
    ssh = ssh_to(home, config, name)
    host = host_of(home, config, ssh, timeout_s)
    place = _folder(home, name)
    try:
        (place / "alloc").mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise CantWriteError(f"can't make {place / 'alloc'}: {error.strerror}") from None
    commands = commands_on(config, ssh)
    engine = AllocationEngine(
        place / "alloc", commands, RemoteTaker(host, commands, key, timeout_s), RemoteRecords(host, timeout_s),
        settle_of(config), pace_of(config), config.kill_wait_s, log, reached, HostFolders(host, timeout_s),
    )  # fmt: skip
    transfers = Transfers(host, timeout_s, told=lambda: None)
    return SyncedAllocator(engine, transfers, place / "alloc-files.json", log)


def path_there(home: Home, host: str, path: str, folders: Sequence[str]) -> str | None:
    """Where a file of this machine is on the host; None: nothing was ever brought there."""
    base = _read(_folder(home, host) / NOTE).get("base")
    return copy_of(base, path, folders) if base is not None else None


def _folder(home: Home, host: str) -> Path:
    clean = re.sub(r"[^A-Za-z0-9._@-]", "_", host)[:80]
    return home.path / "slurm" / "hosts" / f"{clean}-{hashlib.sha256(host.encode()).hexdigest()[:8]}"


def _read(note: Path) -> dict[str, str]:
    try:
        words = parse(note.read_bytes())
    except (OSError, ValueError):
        return {}
    return (
        {str(key): value for key, value in words.items() if isinstance(value, str)} if isinstance(words, dict) else {}
    )
