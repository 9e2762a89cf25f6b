"""The one place that writes to the terminal, a pipe or a file.

Data goes to stdout, words about it to stderr, each masked. Bytes that are not UTF-8 go
out as they came in. Colours are used on a terminal only, and never with NO_COLOR.
"""

from __future__ import annotations

import io
import os
import re
import select
import sys
from collections.abc import Sequence
from typing import BinaryIO

from aver.cli.output import ReaderLeft
from aver.errors import CantWriteError, UsageError
from aver.model.states import State
from aver.printable import one_line, printable
from aver.render.masking import Masking, to_bytes

COLOURS = {
    State.COMPLETED: "32",
    State.RUNNING: "34",
    State.PENDING: "2",
    State.SUBMITTED: "2",
    State.SETTLING: "2",
    State.SUSPENDED: "33",
    State.COMPLETING: "34",
    State.SKIPPED: "2",
    State.CANCELLED: "33",
    State.CHECKPOINTED: "36",
    State.UNVERIFIED: "35",
}
BAD = "31"
NARROWEST = 20  # columns below which nothing is folded
NAMED = 5  # names of jobs in a summary
_COMMAND = re.compile(r"`[^`]*`|(?<=; )aver [^;]*$")
_GLUE = "\ue000"  # in place of a space that stays within its line
_COLOURED = re.compile(r"(\x1b\[[0-9]{1,2}m[A-Z_]+\x1b\[0m|[\n\t])")  # what `coloured` makes, and the ends of lines


def unselected_text(names: Sequence[str]) -> str:
    """`; 2 not selected: prep, plot`; nothing where all jobs of the flow are in the run."""
    if not names:
        return ""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"; {len(names)} not selected: {printable(', '.join(names[:NAMED]))}{more}"


class Output:
    """Where a command's answer goes."""

    def __init__(self, out: BinaryIO, err: BinaryIO, masking: Masking = Masking()) -> None:
        self._out = out
        self._err = err
        self.masking = masking

    @classmethod
    def standard(cls) -> Output:
        return cls(sys.stdout.buffer, sys.stderr.buffer)

    @property
    def out_is_terminal(self) -> bool:
        return self._out.isatty()

    @property
    def err_is_terminal(self) -> bool:
        return self._err.isatty()

    @property
    def has_colours(self) -> bool:
        return self.out_is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    @property
    def can_draw(self) -> bool:
        """Whether both streams are one terminal that knows how to move its cursor."""
        return self.out_is_terminal and self.err_is_terminal and os.environ.get("TERM", "dumb") != "dumb"

    @property
    def width(self) -> int:
        return self._size()[0]

    @property
    def height(self) -> int:
        return self._size()[1]

    def _size(self) -> tuple[int, int]:
        """COLUMNS and LINES count first, then the terminal, then 100 by 24."""
        for file in (self._err, self._out):
            try:
                found = os.get_terminal_size(file.fileno())
            except (OSError, ValueError):
                continue
            if found.columns > 0:
                return _named("COLUMNS", found.columns), _named("LINES", found.lines or 24)
        return _named("COLUMNS", 100), _named("LINES", 24)

    def line(self, text: str) -> None:
        """Write one line of the answer."""
        self.raw(to_bytes(_safe(self.masking.whole(text), self.out_is_terminal)) + b"\n")

    def say(self, sentence: str) -> None:
        """Write a sentence of the answer, folded between words on a terminal."""
        for part in self.folded(sentence):
            self.line(part)

    def folded(self, text: str, used: int = 0) -> list[str]:
        """The text in lines that fit beside `used` columns on a terminal; whole elsewhere.

        It is masked before: a secret with a space in it may be folded there.
        """
        masked, left = self.masking.whole(text), self.width - used
        return folded(masked, left) if self.out_is_terminal and left >= NARROWEST else [masked]

    def raw(self, data: bytes) -> None:
        """Write bytes of the answer as they are; the caller has masked them."""
        _write(self._out, data)

    def page(self, lines: Sequence[str]) -> None:
        """Write lines of our own, styled ones among them; through the pager where the terminal is too low for them."""
        text = "".join(f"{line}\n" for line in lines)
        if len(lines) < self.height:
            self.raw(text.encode())
            return
        import click  # few answers are this long

        try:
            click.echo_via_pager(text, color=None if self.has_colours else False)  # None: as the pager can
        except ValueError:
            raise UsageError(f"PAGER is not a command: {os.environ.get('PAGER')}") from None

    def pause(self, seconds: float) -> None:
        """Wait that long; raise ReaderLeft as soon as nobody can read the answer any more."""
        poll = select.poll()
        poll.register(self._out, 0)  # errors and hang-ups are reported without being asked for
        if poll.poll(seconds * 1000):
            raise ReaderLeft

    def note(self, text: str) -> None:
        """Write one line about the answer, to stderr."""
        said = f"aver: {_safe(self.masking.whole(text), self.err_is_terminal)}"
        lines = folded(said, self.width) if self.err_is_terminal else [said]
        _write(self._err, to_bytes("\n  ".join(lines) + "\n"))

    def quote(self, line: bytes) -> None:
        """Write one line of a job's output, to stderr."""
        text = self.masking.whole(line).decode("utf-8", "surrogateescape")
        _write(self._err, to_bytes(f"  | {_safe(text, self.err_is_terminal)}\n"))

    def error_raw(self, data: bytes) -> None:
        """Write bytes to stderr as they are; the caller has masked them."""
        _write(self._err, data)


def folded(text: str, width: int) -> list[str]:
    """The text in lines of this width, broken between words but never inside a command that it names."""
    if len(text) <= width or "\n" in text:
        return [text]
    import textwrap  # only where a line is too long

    joined = _COMMAND.sub(lambda found: found.group().replace(" ", _GLUE), text)
    lines = textwrap.wrap(joined, width - 2, break_long_words=False, break_on_hyphens=False)
    return [line.replace(_GLUE, " ") for line in lines]


def _named(variable: str, otherwise: int) -> int:
    text = os.environ.get(variable, "")
    return int(text) if text.isascii() and text.isdigit() and 0 < int(text) < 100_000 else otherwise


def _write(file: BinaryIO, data: bytes) -> None:
    try:
        if isinstance(file, io.BufferedWriter):
            _write_through(file.raw, data)
        else:
            file.write(data)
            file.flush()
    except BrokenPipeError:
        raise ReaderLeft from None
    except OSError as error:
        raise CantWriteError(f"can't write the answer: {error.strerror}") from None


def _write_through(raw: io.RawIOBase, data: bytes) -> None:
    """Write all of it past the buffer. A thread that waits for a reader would hold the buffer's lock, and the
    interpreter, which flushes the buffer when it leaves, would wait with it for ever."""
    left = memoryview(data)
    while left:
        taken = raw.write(left)
        if taken is None:  # somebody has made it non-blocking
            select.select([], [raw], [], 1.0)
        left = left[taken or 0 :]


def _safe(text: str, is_terminal: bool) -> str:
    """The text without control characters of others, which could draw on the terminal or make it do something.

    Bytes that are not UTF-8 go to a file or a pipe as they are; a terminal may take some for control characters.
    """
    if text.isprintable():
        return text
    spelled = printable if is_terminal else one_line
    parts = _COLOURED.split(text)  # every second one matched
    return "".join(part if at % 2 else spelled(part) for at, part in enumerate(parts))


def coloured(state: State) -> str:
    """The state's name in its colour, for a terminal."""
    return f"\x1b[{COLOURS.get(state, BAD)}m{state}\x1b[0m"
