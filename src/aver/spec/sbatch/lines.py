"""A batch script as text: whether it can be one, its `#SBATCH` lines, and their words as Slurm splits them.

Text alone, so that sbatch starts with little more than this. The words of complaints are those of the caller.
"""

from __future__ import annotations

from aver.spec.prologue import without_prologue

MAGIC = "#SBATCH"
LARGEST_BYTES = 4 << 20  # Slurm's usual max_script_size

EMPTY, BLANK, NO_INTERPRETER, TOO_LONG, NUL, DOS = "empty", "blank", "no interpreter", "too long", "nul", "dos"


class OpenQuote(Exception):
    """A line of a script ends inside of a quotation; `args[0]` is the quotation mark."""


def fault_of(data: bytes) -> str | None:
    """Why Slurm would refuse the script, the first reason that it would give; None: it would not."""
    if not data.strip():
        return BLANK if data else EMPTY
    if not data.startswith(b"#!"):
        return NO_INTERPRETER
    if len(data) > LARGEST_BYTES:
        return TOO_LONG
    return NUL if b"\0" in data else DOS if b"\r\n" in data else None


def text_of(data: bytes) -> str:
    """The script as it was submitted: one that is running may have a prologue of ours."""
    return without_prologue(data.decode("utf-8", "surrogateescape"))


def magic_lines(text: str) -> list[tuple[int, str]]:
    """(line number, what follows #SBATCH), up to the first command."""
    found = []
    for number, line in enumerate(text.split("\n"), start=1):
        rest = line[len(MAGIC) :]
        if line.startswith(MAGIC) and (not rest or rest[0] in " \t-"):
            found.append((number, rest))
        elif line.strip() and not line.lstrip().startswith("#"):
            break
    return found


def split_line(line: str) -> list[str]:
    """The words of one #SBATCH line; raise OpenQuote. A `#` begins a comment only where a word could begin."""
    words: list[str] = []
    word: str | None = None
    quote = ""
    escaped = False
    for letter in line:
        if escaped:
            word = (word or "") + letter
            escaped = False
        elif letter == "\\" and quote != "'":
            escaped = True
        elif quote:
            if letter == quote:
                quote = ""
            else:
                word = (word or "") + letter
        elif letter in "\"'":
            quote = letter
            word = word or ""
        elif letter in " \t\r":
            if word is not None:
                words.append(word)
            word = None
        elif letter == "#" and word is None:
            break
        else:
            word = (word or "") + letter
    if quote:
        raise OpenQuote(quote)
    if word is not None:
        words.append(word)
    return words
