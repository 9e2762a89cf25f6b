"""What a job's shell does before the job: `module`, `conda` and `venv`; and the variables of `env_file`.

The statements are of sh, so that the job's own shell can have them on its first line, or a `sh` that then becomes the
program: no process is added, and exit codes and signals are the job's own. Pure.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence

from aver.model.job import Setup

SH = frozenset({"sh", "bash", "dash", "ksh", "zsh"})
_NAME = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)", re.DOTALL)


def setup_text(setup: Setup) -> str:
    """The statements, on one line; empty without any. What is missing is told, and the job exits 127."""
    parts = []
    if setup.modules:
        words = shlex.join(setup.modules)
        parts.append(
            'command -v module > /dev/null 2>&1 || . "${MODULESHOME:-/usr/share/modules}/init/sh" || exit 127; '
            f"module load {words} || exit 127;"
        )
    if setup.conda is not None:
        find = '. "$(conda info --base)/etc/profile.d/conda.sh"'
        parts.append(f"{find} && conda activate {shlex.quote(setup.conda)} || exit 127;")
    if setup.venv is not None:
        folder = shlex.quote(setup.venv)
        told = shlex.quote(f"aver: there is no venv in {setup.venv}")
        parts.append(
            f'VIRTUAL_ENV=$(CDPATH= cd -- {folder} && pwd) && [ -x "$VIRTUAL_ENV/bin/python" ] || '
            f"{{ echo {told} >&2; exit 127; }}; "
            "PATH=$VIRTUAL_ENV/bin:$PATH; export VIRTUAL_ENV PATH; unset PYTHONHOME;"
        )
    return " ".join(parts)


def with_setup(setup: Setup, shell: Sequence[str], text: str) -> str:
    """The text of a shell that reads sh, with what comes before it: on its first line, so that no line moves."""
    words = setup_text(setup) if _reads_sh(shell) else ""
    return f"{words} {text}" if words else text


def after_setup(setup: Setup, name: str, args: tuple[str, ...], shell: Sequence[str] = ()) -> tuple[str, ...]:
    """A program that is no such shell, started by one that has done what comes before it and becomes the program."""
    words = "" if _reads_sh(shell) else setup_text(setup)
    return ("/bin/sh", "-c", f'{words} exec "$@"', name, *args) if words else args


def _reads_sh(shell: Sequence[str]) -> bool:
    return bool(shell) and os.path.basename(shell[0]) in SH


def read_env_file(text: str) -> Iterator[tuple[int, tuple[str, str] | None]]:
    """Each line with a variable, by its number: name and value; None: it is no NAME=VALUE.

    Empty lines and those that begin with # are passed over. A value may be in quotes; nothing in it is expanded.
    """
    for number, line in enumerate(text.splitlines(), 1):
        words = line.strip()
        if not words or words.startswith("#"):
            continue
        found = _NAME.fullmatch(words)
        value = None if found is None else _unquoted(found[2])
        yield number, None if found is None or value is None else (found[1], value)


def _unquoted(text: str) -> str | None:
    if text[:1] in ("'", '"'):
        return text[1:-1] if len(text) > 1 and text.endswith(text[0]) else None
    return text
