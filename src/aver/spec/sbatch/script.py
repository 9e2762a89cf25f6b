"""A batch script: its text as it is, and its `#SBATCH` lines as a job.

Lines are read as Slurm reads them: from the start of the file to the first line that is a
command. Options that mean nothing on one machine are kept in `ignored`; unknown ones, and
those that would change what runs and can't be honoured, are mistakes. Flags win over lines.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

from aver.model.job import FlowSpec, JobSpec, Script
from aver.spec.document import Point
from aver.spec.flags import Overrides, apply, clean_name
from aver.spec.mistakes import Mistakes
from aver.spec.prologue import without_prologue
from aver.spec.sbatch.directives import BatchOptions
from aver.spec.sbatch.names import MAGIC, magic_lines

MAX_BYTES = 4 * 1024 * 1024
NO_INTERPRETER = (
    "This does not look like a batch script. The first line must start with #! followed by the path to an interpreter."
)


def parse_script(
    data: bytes, file: str, overrides: Overrides = Overrides(), *, args: Sequence[str] = (), now: float
) -> FlowSpec:
    """One job that runs the script; raise SpecError with all mistakes."""
    mistakes = Mistakes(file)
    _check_text(data, mistakes)
    mistakes.refuse_if_any()
    text = without_prologue(data.decode("utf-8", "surrogateescape"))
    options = BatchOptions(mistakes, now)
    for number, line in magic_lines(text):
        words = _words(line, number, mistakes)
        options.read(words, Point(number, len(MAGIC) + 1 + _indent(line)))
    mistakes.refuse_if_any()
    spec = options.job(JobSpec(clean_name(os.path.basename(file)), Script(text, tuple(args))))
    job = apply(spec, overrides)
    return FlowSpec(job.name, (job,), is_single=True)


def _check_text(data: bytes, mistakes: Mistakes) -> None:
    start = Point(1, 1)
    if len(data) > MAX_BYTES:
        mistakes.add(None, f"a batch script has at most {MAX_BYTES // 2**20} MiB", "put data into files of their own")
    elif not data:
        mistakes.add(None, "Batch script is empty!")
    elif not data.strip():
        mistakes.add(None, "Batch script contains only whitespace!")
    elif data.startswith(b"\x7fELF"):
        mistakes.add(None, "this is a program, not a batch script", "put the command after --:  aver run -- PROGRAM")
    elif not _has_interpreter(data):
        hint = ""
        if data.startswith(b"\xef\xbb\xbf#!"):
            hint = "it begins with a byte order mark: save it as UTF-8 without one"
        mistakes.add(start, NO_INTERPRETER, hint)
    elif b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        mistakes.add(Point(line, 1), "Slurm does not allow scripts that contain a NULL character '\\0'.")
    elif b"\r\n" in data:
        line = data.count(b"\n", 0, data.index(b"\r\n")) + 1
        text = "Batch script contains DOS line breaks (\\r\\n) instead of expected UNIX line breaks (\\n)."
        mistakes.add(Point(line, 1), text, "convert it, for example with dos2unix")


def _has_interpreter(data: bytes) -> bool:
    return data.startswith(b"#!") and bool(data.partition(b"\n")[0][2:].strip())


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _words(line: str, number: int, mistakes: Mistakes) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=False)
    lexer.whitespace_split = True
    lexer.commenters = "#"
    try:
        return list(lexer)
    except ValueError as error:
        mistakes.add(Point(number, len(MAGIC) + 1 + _indent(line)), f"{str(error).lower()} in this #SBATCH line")
        return []
