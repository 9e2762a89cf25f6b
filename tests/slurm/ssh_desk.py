"""A home whose jobs go to the lab's Slurm through an sshd on loopback."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from fault_desk import ClusterHome, FaultLab
from fault_desk import job as plain_job

from aver.model.job import FlowSpec, JobSpec, Submission
from aver.model.record import replace
from sshd import HOST, Sshd

CUT = """\
cut() { # end the connection that this process came through
    local process=$$ parent
    while [ "$process" -gt 1 ]; do
        parent=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$process/status")
        if [ "$parent" = "$(cat @SSHD@)" ]; then kill -9 "$process"; return; fi
        process=$parent
    done
}
once() { mkdir "@FOLDER@/once-$1" 2>/dev/null; }
"""


class SshHome(ClusterHome):
    """A home whose flows run on the lab behind the sshd. `synced` is brought there and back."""

    def __init__(self, path: Path, folder: Path, lab: FaultLab, sshd: Sshd) -> None:
        self.sshd = sshd
        self.synced = folder / "project"
        self.synced.mkdir()
        super().__init__(path, folder, lab)

    def configure(self, commands: Mapping[str, Path] = {}, timeout: float = 5, **settle: float) -> None:
        super().configure(commands, timeout, **settle)
        text = self.config.read_text()
        host = f'[slurm]\nhost = "{HOST}"\nssh = "{" ".join(self.sshd.words)}"\n'
        self.config.write_text(text.replace("[slurm]\n", host, 1))

    def wrapper(self, name: str, text: str) -> Path:
        """As it is, and it may `cut` the connection, and do a thing `once NAME`."""
        cut = CUT.replace("@SSHD@", str(self.sshd.pid_file)).replace("@FOLDER@", str(self.folder))
        return super().wrapper(name, cut + text)

    def cancel_all(self) -> None:
        """Nothing of this home is left in the lab, which others use."""
        names = self.lab.call("squeue", "-h", "-a", "-O", "JobID:20,Name:300").splitlines()
        keys = {path.stem.split(".")[0] for path in self.home.path.glob("slurm/hosts/*/batches/*.json")}
        asks = "".join(path.read_text() for path in self.home.path.glob("slurm/hosts/*/alloc/*/asks/*.json"))
        keys |= {name.split(".")[2] for name in re.findall(r'"name": "(aver\.[^"]+)"', asks)}
        left = [line.split()[0] for line in names if any(f".{key}." in line for key in keys)]
        if left:
            self.lab.can_ask("scancel", *left)

    def aver(self, *words: str) -> subprocess.CompletedProcess[str]:
        """What a user types, in the project's folder."""
        return subprocess.run(
            [sys.executable, "-m", "aver", *words], cwd=self.synced, capture_output=True, text=True, timeout=60,
            check=False,
        )  # fmt: skip

    def there(self, path: Path) -> Path:
        """The copy of a file of here on the host."""
        return next(self.sshd.home.glob(".local/state/aver/slurm-*")) / "files" / str(path).lstrip("/")

    def submission(self, flow: FlowSpec) -> Submission:
        found = super().submission(flow)
        return replace(found, host=HOST, origin=replace(found.origin, folder=str(self.synced)))

    def ssh_job(self, name: str, text: str, **fields: object) -> JobSpec:
        """A job that says that it ran: the environment of here does not go to the host."""
        spec = plain_job(name, text, **fields)
        command = spec.command
        return replace(spec, command=replace(command, text=f"RAN={self.ran}; {command.text}"))  # type: ignore[union-attr]
