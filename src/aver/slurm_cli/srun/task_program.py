"""The program of a task that must first find itself: `srun --pty`, `--multi-prog`, and with scripts around it.

srun puts itself before the program with `--as-task`; that runs in the task's own process and becomes its program. What
can't be started ends it with the errno, as Slurm has it.

The file of --multi-prog says which program each task runs. A line is `ranks program arguments…`; ranks are `0`, `1-3`,
`4,6`, `*` for all that are left. In the words, `%t` is the task's number, `%o` its place among the ranks of its line,
`%%` a percent sign. The sentences of its mistakes are Slurm's.
"""

from __future__ import annotations

import os
import sys

from aver.fast_start import TYPE_CHECKING, c_signal
from aver.slurm_cli.output import say
from aver.slurm_cli.srun.options import Options, task_count
from aver.spec.getopt import BadOption

if TYPE_CHECKING:
    from collections.abc import Iterator

PTY = "pty"
AROUND = "around"
CHANGED_STATUS = 1
LONGEST_PROGRAMS_BYTES = 1 << 24
_QUOTES = "'\""


def main(words: list[str]) -> int:
    """`pty PROGRAM…`, `multi-prog FILE` or `around WHAT PROGRAM…`. Rarely returns where the program can be started."""
    kind, *rest = words
    rank = int(os.environ.get("SLURM_PROCID", "0"))
    if kind == PTY:
        _take_terminal(rank)
        command = rest
    elif kind == AROUND:
        from aver.slurm_cli.srun.scripts import enter

        entered = enter(rest[0], rest[1:], execute)
        if isinstance(entered, int):
            return entered
        command = entered
    else:
        command = _program(rest[0], rank)
    return execute(command)


def execute(command: list[str]) -> int:
    """Become the program; the errno where it can't be started."""
    for number in (c_signal.SIGPIPE, c_signal.SIGXFSZ):  # Python ignores them, the program is not to
        c_signal.signal(number, c_signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        say(f"slurmstepd: error: execve(): {command[0]}: {os.strerror(error.errno or 0)}")
        return error.errno or CHANGED_STATUS


def _take_terminal(rank: int) -> None:
    """The pseudo-terminal is the first task's; the others have nothing to read and nowhere to write."""
    import fcntl
    import termios

    if rank:
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        return
    try:
        os.setsid()
    except PermissionError:
        pass  # it leads its session already
    try:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    except OSError:
        pass  # a terminal all the same, without signals from its keys


def _program(path: str, rank: int) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return programs(file.read(), path, int(os.environ["SLURM_NTASKS"]))[rank]
    except (OSError, KeyError, BadOption) as error:
        say(f"slurmstepd: error: the configuration file {path} changed: {error}")
        sys.exit(CHANGED_STATUS)


def read_programs(options: Options) -> None:
    """Check the file of --multi-prog for all tasks before there is a step; BadOption has Slurm's sentences."""
    path = options.command[0]
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read(LONGEST_PROGRAMS_BYTES)
    except OSError:
        raise BadOption(f"error: Could not open multi_prog config file {path}") from None
    programs(text, path, task_count(options))


def programs(text: str, path: str, tasks: int) -> list[list[str]]:
    """The words of each task; raise BadOption with the line that is wrong, or the task that has none."""
    found: dict[int, list[str]] = {}
    for number, line in _lines(text):
        ranks, _, rest = line.partition(" ")
        words = _split(rest)
        try:
            if not words:
                raise ValueError
            chosen = _ranks(ranks, tasks, found)
        except ValueError as error:
            first = f"error: {error}\nsrun: " if str(error) else ""
            raise BadOption(f"{first}error: Line {number} of configuration file {path} invalid") from None
        for place, rank in enumerate(chosen):
            found[rank] = [_fill(word, rank, place) for word in words]
    for rank in range(tasks):
        if rank not in found:
            raise BadOption(f"error: Configuration file {path} invalid, no record for task id {rank}")
    return [found[rank] for rank in range(tasks)]


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines that say something, with their numbers; one that ends in `\\` goes on in the next."""
    whole, first = "", 0
    for number, line in enumerate(text.split("\n"), start=1):
        if not whole:
            first = number
        if line.endswith("\\"):
            whole += line[:-1] + " "
            continue
        joined = (whole + line).strip().replace("\t", " ")
        whole = ""
        if joined and not joined.startswith("#"):
            yield first, joined


def _ranks(text: str, tasks: int, taken: dict[int, list[str]]) -> list[int]:
    chosen: list[int] = []
    for part in text.split(","):
        if part == "*":
            chosen += [rank for rank in range(tasks) if rank not in taken and rank not in chosen]
            continue
        first, dash, last = part.partition("-")
        if not _is_number(first) or (dash and not _is_number(last)):
            raise ValueError(f"Invalid task range specification ({part})")
        low, high = int(first), int(last) if dash else int(first)
        if high < low:
            raise ValueError(f"Invalid task range, {low}-{high}")
        if high >= tasks:
            raise ValueError(f"Invalid task id, {high} >= ntasks")
        for rank in range(low, high + 1):
            if rank in taken or rank in chosen:
                raise ValueError(f"Duplicate record for task {rank}")
            chosen.append(rank)
    return chosen


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def _split(text: str) -> list[str]:
    """Words with quotes around and inside of them; a quote that is not closed ends with the line."""
    words: list[str] = []
    word: str | None = None
    quote = ""
    is_escaped = False
    for letter in text:
        if is_escaped:
            word, is_escaped = (word or "") + letter, False
        elif letter == "\\" and quote != "'":
            is_escaped = True
        elif quote:
            if letter == quote:
                quote = ""
            else:
                word = (word or "") + letter
        elif letter in _QUOTES:
            quote, word = letter, word or ""
        elif letter == " ":
            words += [] if word is None else [word]
            word = None
        else:
            word = (word or "") + letter
    return words if word is None else [*words, word]


def _fill(word: str, rank: int, place: int) -> str:
    parts = [part.replace("%t", str(rank)).replace("%o", str(place)) for part in word.split("%%")]
    return "%".join(parts)
