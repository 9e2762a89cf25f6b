"""The cluster of a home: where its files lie, and how its engine is made.

AVER_HOME/slurm has `batches` (what was handed over), `records` (what the witnesses on the nodes left), `bin` (the
witness and our `srun`) and `site.json`: where Slurm's commands were found by the last one who submitted, since the
coordinator may have been started elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from aver.config import Config, load_config
from aver.crashpoint import reached
from aver.durable_files import write_file
from aver.engines.slurm.allocation.engine import AllocationEngine
from aver.engines.slurm.allocation.request import Taker
from aver.engines.slurm.batches import Shelf
from aver.engines.slurm.commands.call import Commands
from aver.engines.slurm.engine import SlurmEngine
from aver.engines.slurm.submit.sbatch_call import Hander
from aver.engines.slurm.submit.script import Witness
from aver.engines.slurm.submit.shim import install_shim
from aver.engines.slurm.track.evidence import Settle
from aver.engines.slurm.track.exit_records import Records
from aver.engines.slurm.track.pace import Pace
from aver.errors import CantWriteError
from aver.home import Home
from aver.log import log
from aver.model.codec import parse
from aver.ownership import check_shared, make_folder, make_shared
from aver.witness import binary

KEPT = ("PATH", "SLURM_CONF", "SSH_AUTH_SOCK")


def folder(home: Home, config: Config) -> Path:
    return Path(config.slurm.folder).expanduser() / home.path.name if config.slurm.folder else home.path / "slurm"


def note_site(home: Home, env: Sequence[str]) -> None:
    """Keep where the submitter finds Slurm's commands; CantWriteError if that can't be kept."""
    pairs = dict(pair.partition("=")[::2] for pair in env)
    words = {name: _without(pairs[name], os.fspath(home.bin)) for name in KEPT if name in pairs}
    try:
        (home.path / "slurm").mkdir(mode=0o700, exist_ok=True)
        write_file(home.path / "slurm" / "site.json", json.dumps(words).encode())
    except OSError as error:
        raise CantWriteError(f"can't write in {home.path / 'slurm'}: {error.strerror}") from None


def commands_of(home: Home, config: Config, environment: Mapping[str, str] | None = None) -> Commands:
    """Slurm's commands, as the settings name them, where this environment or else the last submitter finds them."""
    site = site_of(home) if environment is None else environment
    path, conf = site.get("PATH"), site.get("SLURM_CONF")
    return Commands(
        names=dict(config.slurm.commands),
        path=path if isinstance(path, str) else None,
        conf=conf if isinstance(conf, str) else None,
        prefix=config.slurm.prefix,
    )


def site_of(home: Home) -> Mapping[str, object]:
    """What the last submitter's environment said."""
    try:
        site = parse((home.path / "slurm" / "site.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return site if isinstance(site, dict) else {}


def settle_of(config: Config) -> Settle:
    return Settle(**dict(config.slurm.settle), fallback=config.slurm.fallback)


def pace_of(config: Config) -> Pace:
    own = config.slurm
    most_s = max(own.poll_s, own.poll_max_s)
    return Pace(
        least_s=own.poll_s, most_s=most_s, trouble_most_s=2 * most_s, retry_least_s=5 * own.poll_s,
        retry_most_s=4 * most_s, timeout_s=own.timeout_s,
    )  # fmt: skip


def make_engine(home: Home, config: Config) -> SlurmEngine:
    """The engine with its folders; CantWriteError if they can't be made."""
    slurm, shared = home.path / "slurm", folder(home, config)
    try:
        (slurm / "batches").mkdir(mode=0o700, parents=True, exist_ok=True)
        _make_shared(shared, "records", "bin")
        witness = _install(shared / "bin", "aver-witness", binary().read_bytes())
        shim = install_shim(shared / "shim", witness, os.fspath(shared / "records")).parent
    except OSError as error:
        text = f"can't make the folders of the cluster's engine: {error.filename}: {error.strerror}"
        raise CantWriteError(text) from None
    commands = commands_of(home, config)
    hander = Hander(
        lambda: commands_of(home, config),
        witness=witness, records=os.fspath(shared / "records"), shim=os.fspath(shim),
        own_folder=os.fspath(home.bin), timeout_s=config.slurm.timeout_s,
    )  # fmt: skip
    return SlurmEngine(
        Shelf(slurm / "batches"), commands, hander, Records(shared / "records"), settle_of(config), pace_of(config),
        log, reached,
    )  # fmt: skip


def make_allocator(home: Home, config: Config, key: str) -> AllocationEngine:
    """The engine whose attempts are steps of allocations; CantWriteError if its folders can't be made."""
    shared, known = folder(home, config), home.path / "slurm" / "allocations"
    if known.exists() and not (shared / "alloc").is_dir():
        raise CantWriteError(f"{shared / 'alloc'} is not there, where this home's allocations have their orders")
    try:
        known.parent.mkdir(mode=0o700, exist_ok=True)
        _make_shared(shared, "alloc", "alloc-records", "bin")
        known.touch(mode=0o600)
        witness = _install(shared / "bin", "aver-witness", binary().read_bytes())
        shim = install_shim(shared / "alloc-shim", witness, os.fspath(shared / "alloc-records")).parent
    except OSError as error:
        text = f"can't make the folders of the cluster's engine: {error.filename}: {error.strerror}"
        raise CantWriteError(text) from None
    taker = Taker(
        lambda: commands_of(home, config), home=key, witness=witness, shim=os.fspath(shim),
        records=os.fspath(shared / "alloc-records"), own_folder=os.fspath(home.bin), timeout_s=config.slurm.timeout_s,
    )  # fmt: skip
    return AllocationEngine(
        shared / "alloc", commands_of(home, config), taker, Records(shared / "alloc-records"), settle_of(config),
        pace_of(config), config.kill_wait_s, log, reached,
    )  # fmt: skip


def check_shared_folder(home: Home) -> None:
    """Refuse a `slurm.folder` in which others could put something in the place of ours: UsageError."""
    config = load_config()
    if config.slurm.folder:
        check_shared(os.fspath(folder(home, config)))


def _make_shared(shared: Path, *names: str) -> None:
    make_shared(os.fspath(shared))
    for name in names:
        make_folder(os.fspath(shared / name))


def _install(place: Path, name: str, data: bytes) -> Witness:
    """Put the file there under a name that tells its content, so that jobs that use an older one are left alone."""
    sha256 = hashlib.sha256(data).hexdigest()
    path = place / f"{name}-{sha256[:12]}"
    if not path.exists() or path.read_bytes() != data:
        write_file(path, data)
    os.chmod(path, 0o755)
    return Witness(os.fspath(path), sha256)


def _without(path: str, entry: str) -> str:
    return ":".join(one for one in path.split(":") if one != entry)
