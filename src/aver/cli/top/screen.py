"""The terminal of `aver top`: curses draws the board's lines and reads keys. It is left as it was, however we end."""

from __future__ import annotations

import contextlib
import curses
import locale
import os
import signal
import subprocess
import sys
import time
from types import FrameType

from aver.cli.session import Session
from aver.cli.top.board import Act, Board, Quit, Show
from aver.cli.top.feed import Feed
from aver.errors import AverError

TICK_S = 1.0
CALL_S = 60.0
LOG_LINES = "1000"
NAMES = {
    curses.KEY_UP: "up", curses.KEY_DOWN: "down", curses.KEY_PPAGE: "page up", curses.KEY_NPAGE: "page down",
    curses.KEY_HOME: "home", curses.KEY_END: "end", curses.KEY_ENTER: "enter", curses.KEY_BACKSPACE: "backspace",
}  # fmt: skip
LETTERS = {"\n": "enter", "\r": "enter", "\x1b": "escape", "\x7f": "backspace", "\b": "backspace", "\x03": "q"}
COLOURS = {"bad": curses.COLOR_RED, "good": curses.COLOR_BLUE}


class Ended(BaseException):
    """A signal asked us to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def show_top(session: Session) -> int:
    """Show the board until it is left; the exit status is that of the signal that ended it, as a shell has it."""
    locale.setlocale(locale.LC_ALL, "")
    os.environ.setdefault("ESCDELAY", "25")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    signal.signal(signal.SIGTSTP, _stop)  # before curses starts: its own handler ignores Ctrl-Z while it draws
    try:
        curses.wrapper(lambda window: _Terminal(session, window).run())
    except Ended as ended:
        return 128 + ended.number
    except KeyboardInterrupt:
        return 0
    return 0


def _end(number: int, _: FrameType | None) -> None:
    raise Ended(number)


def _stop(_: int, __: FrameType | None) -> None:
    """Give the terminal back, stop, and draw everything again when we are continued."""
    with contextlib.suppress(curses.error):  # curses has not started yet
        curses.endwin()
    signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTSTP)
    signal.signal(signal.SIGTSTP, _stop)
    with contextlib.suppress(curses.error, OSError):
        curses.def_shell_mode()
        columns, lines = os.get_terminal_size(0)  # a stopped program hears of no resize
        curses.resizeterm(lines, columns)
        curses.doupdate()


class _Terminal:
    def __init__(self, session: Session, window: curses.window) -> None:
        self._window = window
        self._feed = Feed(session)
        self._board = Board()
        self._styles = {"bold": curses.A_BOLD, "dim": curses.A_DIM, "chosen": curses.A_REVERSE, "": 0}
        with contextlib.suppress(curses.error):
            curses.curs_set(0)
        if curses.has_colors() and not os.environ.get("NO_COLOR"):
            curses.use_default_colors()
            for place, (style, colour) in enumerate(COLOURS.items(), start=1):
                curses.init_pair(place, colour, -1)
                self._styles[style] = curses.color_pair(place)

    def run(self) -> None:
        due = 0.0
        while True:
            now = time.monotonic()
            if now >= due:
                self._read()
                due = time.monotonic() + TICK_S
            self._draw()
            self._window.timeout(max(1, int((due - time.monotonic()) * 1000)))
            key = self._key()
            if key is None:
                continue
            before = (self._board.view, self._board.name)
            action = self._board.press(key)
            if isinstance(action, Quit):
                return
            if isinstance(action, Act):
                self._board.message = _said([action.word, str(action.job)])
            if action is not None or (self._board.view, self._board.name) != before:
                due = 0.0

    def _key(self) -> str | None:
        try:
            found = self._window.get_wch()
        except curses.error:
            return None
        if isinstance(found, int):
            return NAMES.get(found, "")  # a resize too: the next turn draws anew
        return LETTERS.get(found, found)

    def _read(self) -> None:
        board = self._board
        try:
            board.take(self._feed.read(board.view, board.name))
        except AverError as error:
            board.message = str(error)
        if board.shown is not None:
            board.text = _text_of(board.shown)

    def _draw(self) -> None:
        height, width = self._window.getmaxyx()
        self._window.erase()
        for at, line in enumerate(self._board.lines(width - 1, height)):
            with contextlib.suppress(curses.error):  # a terminal that has just become smaller
                self._window.addstr(at, 0, line.text.ljust(width - 1) if line.style == "chosen" else line.text,
                                    self._styles.get(line.style, 0))  # fmt: skip
        self._window.refresh()


def _text_of(shown: Show) -> list[str]:
    more = ["-n", LOG_LINES] if shown.word == "log" else []
    return _call([shown.word, str(shown.job), *more]) or ["(nothing yet)"]


def _said(words: list[str]) -> str:
    return " ".join(_call(words)) or "done"


def _call(words: list[str]) -> list[str]:
    """The lines that the command prints: what is masked or refused there is so here."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "aver", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=CALL_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return [str(error)]
    return done.stdout.decode("utf-8", "replace").splitlines()
