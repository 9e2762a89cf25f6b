"""Where the commands of a page run: on this machine, beside a real Slurm, behind ssh, or with Slurm's clients.

The second word of a `console` block says what the page needs: `slurm` (a real Slurm, which root can start), `ssh` (the
same behind the host `login`), `clients` (the clients of `scripts/clients` on PATH).
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from real_slurm import ONLY_ROOT, running_lab
from sshd import WHY_NOT, Sshd

ROOT = Path(__file__).resolve().parent.parent
CLIENTS = Path(os.environ.get("AVER_CLIENTS") or ROOT / ".venv-clients")
KNOWN = {"slurm", "ssh", "clients"}


@dataclass(frozen=True)
class Place:
    """What a page finds: variables, folders in front of PATH, and lines of the settings file."""

    environment: Mapping[str, str] = field(default_factory=dict)
    path: tuple[str, ...] = ()
    settings: str = ""


def missing(needs: Collection[str]) -> str:
    """Why a page with these needs can't run here; empty: it can."""
    assert KNOWN.issuperset(needs), f"unknown words after `console`: {needs}"
    if "clients" in needs and not (CLIENTS / "installed").exists():
        return f"there are no clients in {CLIENTS}: scripts/clients installs them"
    if "ssh" in needs and WHY_NOT:
        return WHY_NOT
    return ONLY_ROOT if {"slurm", "ssh"}.intersection(needs) and os.geteuid() != 0 else ""


@contextmanager
def place_for(needs: Collection[str], base: Path) -> Iterator[Place]:
    """What a page needs, while it runs. `base`: a folder that all users of the lab share."""
    environment: dict[str, str] = {}
    path: tuple[str, ...] = ()
    settings = ""
    with ExitStack() as stack:
        if "clients" in needs:
            path = (str(CLIENTS / "bin"),)
        if {"slurm", "ssh"}.intersection(needs):
            lab = stack.enter_context(running_lab(base))
            environment = {"SLURM_CONF": lab.configuration}
        if "ssh" in needs:
            folder = Path(tempfile.mkdtemp(prefix="sshd-", dir="/tmp"))  # the path of a socket is short
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            sshd = stack.enter_context(Sshd(folder, environment, "login").running())
            environment = {}
            settings = f'[slurm]\nssh = "{" ".join(sshd.words)}"\n'
        yield Place(environment, path, settings)
