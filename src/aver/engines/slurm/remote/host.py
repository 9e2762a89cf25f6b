"""The folder of ours on a cluster's host: the witness, our `srun`, the records, and the files of flows.

It is made and filled once per connection's life, by two calls. The witness is brought along where the host has another
one or none, and checked by its hash; on a machine of another kind there is none, and verdicts come from accounting.
`files` is where a folder of this machine has its copy: `FOLDER/files/home/me/project` is /home/me/project of here.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from aver.engines.slurm.commands.call import Reply, Trouble
from aver.engines.slurm.remote.ssh import Ssh
from aver.engines.slurm.submit.script import Witness
from aver.engines.slurm.submit.shim import srun_shim
from aver.model.record import Record


class Layout(Record):
    """Absolute paths on the host. `remark` says why there is no witness; empty: there is one."""

    folder: str
    witness: Witness
    shim: str
    skew_s: float = 0.0  # how far the host's clock is ahead of ours
    remark: str = ""

    @property
    def records(self) -> str:
        return f"{self.folder}/records"

    def there(self, path: str, folders: Sequence[str]) -> str:
        """The host's path of a file of here: its copy's if it is in one of these folders, else the same."""
        return copy_of(self.folder, path, folders)


def copy_of(base: str, path: str, folders: Sequence[str]) -> str:
    return f"{base}/files{path}" if is_in(path, folders) else path


def is_in(path: str, folders: Sequence[str]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


class Host:
    """One host, used from several threads."""

    def __init__(
        self, ssh: Ssh, folder: str, witness: Path, timeout_s: float,
        log: Callable[[str], None], found: Callable[[Layout], None], now: Callable[[], float],
    ) -> None:  # fmt: skip
        self.ssh = ssh
        self._folder = folder
        self._witness = witness
        self._timeout_s = timeout_s
        self._log = log
        self._found = found  # is told where our folder is
        self._now = now
        self._layout: Layout | None = None
        self._lock = threading.Lock()

    def layout(self) -> Layout | Trouble:
        """Where things are, once they are there; the first call brings them."""
        with self._lock:
            if self._layout is None:
                made = self._make()
                if isinstance(made, Trouble):
                    return made
                self._layout = made
                self._found(made)
                if made.remark:
                    self._log(f"{self.ssh.host}: {made.remark}")
            return self._layout

    def _make(self) -> Layout | Trouble:
        try:
            witness = self._witness.read_bytes()
        except OSError as error:
            return Trouble(f"can't read the witness: {error.strerror}", began=False)
        name = hashlib.sha256(witness).hexdigest()
        reply = self.ssh.run_text(_FIND.format(folder=shlex.quote(self._folder), name=name[:12]), self._timeout_s)
        trouble = _trouble(self.ssh.host, reply)
        if trouble is not None:
            return trouble
        lines = reply.out.splitlines()
        if len(lines) != 4 or not lines[0].startswith("/") or not lines[2].isdecimal():
            return Trouble(f"{self.ssh.host}: its answer can't be read: {reply.out[:200]!r}", began=False)
        folder, machine, clock, found = lines
        skew_s = int(clock) + 0.5 - self._now()
        installed = Witness(f"{folder}/bin/aver-witness-{name[:12]}", name)
        shim = srun_shim(installed, f"{folder}/records")
        layout = Layout(folder, installed, f"{folder}/shim-{hashlib.sha256(shim).hexdigest()[:12]}", skew_s)
        mine = os.uname().machine
        if machine != mine:
            remark = f"a {machine} machine can't run the witness of this {mine}: verdicts come from accounting"
            return Layout(folder, installed, layout.shim, skew_s, remark)
        text = _BRING.format(
            witness=shlex.quote(installed.path), size=len(witness) if found != name else 0, hash=name,
            shim=shlex.quote(layout.shim),
        )  # fmt: skip
        reply = self.ssh.run_text(text, self._timeout_s, (witness if found != name else b"") + shim)
        return _trouble(self.ssh.host, reply) or layout


def _trouble(host: str, reply: Reply | Trouble) -> Trouble | None:
    if isinstance(reply, Trouble):
        return reply
    if reply.status == 0:
        return None
    said = reply.err.strip().rpartition("\n")[2] or f"exit status {reply.status}"
    return Trouble(f"{host}: can't make our folder: {said}", began=False, reason="CantWrite")


_FIND = """\
folder={folder}
case $folder in "~/"*) folder=$HOME/${{folder#"~/"}} ;; esac
umask 077
mkdir -p -- "$folder" && cd -P -- "$folder" || return 1
up=$PWD
while :; do
    found=$(stat -c '%u %a %G' -- "$up") || return 1
    mode=0${{found#* }} mode=${{mode%% *}}
    case ${{found%% *}} in
    0 | "$EUID") ;;
    *) echo "$up is another user's: set slurm.folder to a folder that only you can write" >&2; return 1 ;;
    esac
    [ "${{found##* }}" != "$(id -un)" ] || mode=$((mode & ~020)) # a group of one's own
    if [ $((mode & 022)) -ne 0 ] && [ $((mode & 01000)) -eq 0 ] && [ "$up" != "$PWD" ]; then
        echo "others can rename what is in $up: set slurm.folder to a folder that only you can write" >&2; return 1
    fi
    [ "$up" != / ] || break
    up=${{up%/*}} up=${{up:-/}}
done
[ -O . ] && chmod 700 . || {{ echo "$PWD is another user's: set slurm.folder to another one" >&2; return 1; }}
for one in * .[!.]*; do
    found=$(stat -c %u -- "$one" 2>/dev/null) || continue
    [ "$found" = "$EUID" ] || {{ echo "$PWD/$one is another user's: remove it" >&2; return 1; }}
done
mkdir -p records bin files || return 1
pwd && uname -m && date +%s || return 1
found=$(sha256sum 2>/dev/null <"bin/aver-witness-{name}") && echo "${{found%% *}}" || echo -
"""

_BRING = """\
umask 022
witness={witness} shim={shim}
if [ {size} -gt 0 ]; then
    head -c {size} >"$witness.$$" || return 1
    found=$(sha256sum <"$witness.$$") && [ "${{found%% *}}" = {hash} ] ||
        {{ rm -f "$witness.$$"; echo "the witness came over with another hash" >&2; return 1; }}
    chmod 755 "$witness.$$" && mv -f "$witness.$$" "$witness" || return 1
fi
mkdir -p "$shim" && cat >"$shim/srun.$$" && chmod 755 "$shim/srun.$$" && mv -f "$shim/srun.$$" "$shim/srun"
"""
