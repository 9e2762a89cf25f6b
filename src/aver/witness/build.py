"""Compile what is in C: the witness, and the plain case of srun. `python -m aver.witness.build` does it in place.

Imports nothing of Aver, so that `setup.py` can load this file by its path. The target is replaced
in one step: a witness that runs keeps its program, and nobody sees half of one.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror")
HARDENED = ("-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2", "-Wl,-z,relro,-z,now")
SANITIZERS = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
PACKAGES = "apt-get install gcc libc6-dev"


PROGRAMS = {"witness/witness.c": "witness/aver-witness", "slurm_cli/srun/srun.c": "slurm_cli/srun/aver-srun"}  # of aver
_AVER = Path(__file__).resolve().parent.parent


class CompileError(Exception):
    """A program can't be compiled; the text says what to do."""


def compile(source: Path, target: Path, sanitize: bool = False, must_be_static: bool = False) -> None:  # noqa: A001
    """Compile `source` to the program `target`, static where that is possible; CompileError with a sentence if not.

    With `must_be_static` a compiler that can't link statically is an error: the program is for other machines.
    """
    compiler = _compiler()
    part = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    linked: tuple[tuple[str, ...], ...] = (("-fPIE", "-static-pie"), ("-static",))
    if not must_be_static:
        linked = (*linked, ())
    attempts = [SANITIZERS] if sanitize else [(*HARDENED, *how) for how in linked]
    said = ""
    try:
        for extra in attempts:
            command = [*compiler, *FLAGS, *extra, f'-DAVER_VERSION="{_version()}"', str(source), "-o", str(part)]
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
            if done.returncode == 0:
                part.replace(target)
                return
            said = done.stderr.strip() or f"exit {done.returncode}"
    except OSError as error:
        raise CompileError(f"can't compile {target}: {error}") from error
    finally:
        part.unlink(missing_ok=True)
    hint = f": {PACKAGES}" if ".h: No such file" in said else ""
    raise CompileError(f"{compiler[0]} can't compile {source}{hint}\n{said}")


def _compiler() -> list[str]:
    named = shlex.split(os.environ.get("CC", ""))
    for candidate in [named] if named else [["cc"], ["gcc"], ["clang"]]:
        if shutil.which(candidate[0]):
            return candidate
    wanted = named[0] if named else "a C compiler"
    raise CompileError(f"{wanted} is missing, so the witness can't be compiled: {PACKAGES}")


def _version() -> str:
    found = re.search(r'^__version__ = "(.+)"$', (_AVER / "version.py").read_text(), re.MULTILINE)
    if found is None:
        raise CompileError(f"{_AVER / 'version.py'} has no version")
    return found[1]


def compile_all(folder: Path, must_be_static: bool = False) -> None:
    """Compile all programs below `folder`, which is that of the package; CompileError as `compile`."""
    for source, target in PROGRAMS.items():
        (folder / target).parent.mkdir(parents=True, exist_ok=True)
        compile(_AVER / source, folder / target, must_be_static=must_be_static)


def main() -> int:
    try:
        compile_all(_AVER)
    except CompileError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
