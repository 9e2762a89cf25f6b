"""Where the witness is: the small C program that is the parent of each batch script and task.

What it does is in `docs/design/witness.md`. Nothing above this room is imported here.
"""

from __future__ import annotations

import os
from pathlib import Path

from aver.errors import UnreachableError


def binary() -> Path:
    """Return the path of the compiled witness, beside this module; UnreachableError if it can't be run."""
    path = Path(__file__).with_name("aver-witness")
    if not path.exists():
        raise UnreachableError(f"the witness {path} is not compiled: run python -m aver.witness.build")
    if not os.access(path, os.X_OK):
        raise UnreachableError(f"the witness {path} is not executable: run python -m aver.witness.build")
    return path
