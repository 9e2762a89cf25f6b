"""The script of sbatch: from a file, from stdin or of --wrap, with Slurm's checks and words."""

from __future__ import annotations

import os
import sys

from aver.fast_start import TYPE_CHECKING
from aver.slurm_cli.refusal import Refusal
from aver.spec.sbatch import lines

if TYPE_CHECKING:
    from collections.abc import Sequence

_FAULTS = {
    lines.EMPTY: "sbatch: error: Batch script is empty!",
    lines.BLANK: "sbatch: error: Batch script contains only whitespace!",
    lines.NO_INTERPRETER: """\
sbatch: error: This does not look like a batch script.  The first
sbatch: error: line must start with #! followed by the path to an interpreter.
sbatch: error: For instance: #!/bin/sh""",
    lines.TOO_LONG: "sbatch: error: Batch job submission failed: "
    "Pathname of a file, directory or other parameter too long",
    lines.NUL: """\
sbatch: error: The SLURM controller does not allow scripts that
sbatch: error: contain a NULL character '\\0'.""",
    lines.DOS: """\
sbatch: error: Batch script contains DOS line breaks (\\r\\n)
sbatch: error: instead of expected UNIX line breaks (\\n).""",
}


class BatchScript:
    """The text, the name that its job has without --job-name, and its path (None: stdin or --wrap)."""

    def __init__(self, text: str, name: str, path: str | None, shown: str) -> None:
        self.text = text
        self.name = name
        self.path = path
        self.shown = shown  # in messages about its lines


def find_script(wrap: str | None, words: Sequence[str]) -> BatchScript:
    """The script of this call; raise Refusal as Slurm refuses."""
    if wrap is not None:
        if words:
            raise Refusal("sbatch: error: Script arguments not permitted with --wrap option")
        return BatchScript(f"#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{wrap}\n", "wrap", None, "wrap")
    if not words:
        text = _checked(sys.stdin.buffer.read(lines.LARGEST_BYTES + 1))
        return BatchScript(text, "sbatch", None, "stdin")
    path = _search(words[0])
    try:
        with open(path, "rb") as file:
            data = file.read(lines.LARGEST_BYTES + 1)
    except IsADirectoryError:
        data = b""
    except OSError:
        raise Refusal(f"sbatch: error: Unable to open file {words[0]}") from None
    return BatchScript(_checked(data), os.path.basename(words[0]), os.path.abspath(path), words[0])


def add_file(script: BatchScript, path: str) -> None:
    """Put the text of --bbf behind the script's first line; what it says to sbatch is not read. Refusal as Slurm's."""
    try:
        with open(path, "rb") as file:
            added = lines.text_of(file.read(lines.LARGEST_BYTES + 1))
    except OSError:
        added = ""
    if not added:
        raise Refusal("sbatch: error: Invalid --bbf specification")
    first, _, rest = script.text.partition("\n")
    script.text = _checked("\n".join((first, added.removesuffix("\n"), rest)).encode("utf-8", "surrogateescape"))


def _search(name: str) -> str:
    """The script as it is named, or, for a bare name that is not here, the first of that name on PATH."""
    if "/" in name or os.path.exists(name):
        return name
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        path = os.path.join(folder, name)
        if folder and os.access(path, os.R_OK) and os.path.isfile(path):
            return path
    return name


def _checked(data: bytes) -> str:
    fault = lines.fault_of(data)
    if fault is not None:
        raise Refusal(_FAULTS[fault])
    return lines.text_of(data)
