"""Compile the witness. `python -m aver.witness.build` does it in place.

Imports nothing of Aver, so that `setup.py` can load this file by its path. The target is replaced
in one step: a witness that runs keeps its program, and nobody sees half of one.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror")
HARDENED = ("-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2", "-Wl,-z,relro,-z,now")
SANITIZERS = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
PACKAGES = "apt-get install gcc libc6-dev"


class CompileError(Exception):
    """The witness can't be compiled; the text says what to do."""


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
            command = [*compiler, *FLAGS, *extra, str(source), "-o", str(part)]
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
            if done.returncode == 0:
                part.replace(target)
                return
            said = done.stderr.strip() or f"exit {done.returncode}"
    except OSError as error:
        raise CompileError(f"can't compile the witness to {target}: {error}") from error
    finally:
        part.unlink(missing_ok=True)
    hint = f": {PACKAGES}" if ".h: No such file" in said else ""
    raise CompileError(f"{compiler[0]} can't compile the witness {source}{hint}\n{said}")


def _compiler() -> list[str]:
    named = shlex.split(os.environ.get("CC", ""))
    for candidate in [named] if named else [["cc"], ["gcc"], ["clang"]]:
        if shutil.which(candidate[0]):
            return candidate
    wanted = named[0] if named else "a C compiler"
    raise CompileError(f"{wanted} is missing, so the witness can't be compiled: {PACKAGES}")


def main() -> int:
    folder = Path(__file__).resolve().parent
    try:
        compile(folder / "witness.c", folder / "aver-witness")
    except CompileError as error:
        print(error, file=sys.stderr)
        return 1
    print(folder / "aver-witness")
    return 0


if __name__ == "__main__":
    sys.exit(main())
