"""The witness as a batch script names it, wherever a test has put it."""

from __future__ import annotations

import hashlib
from pathlib import Path

from aver.engines.slurm.submit.script import Witness


def witness_at(path: Path | str) -> Witness:
    """With the hash of the file that is there now; of a missing one, that of nothing."""
    file = Path(path)
    return Witness(str(path), hashlib.sha256(file.read_bytes() if file.is_file() else b"").hexdigest())
