"""The board of `aver top`: what is shown, which job is chosen, and what each key does. No terminal, no store.

`press` takes a key and returns what is to be done outside, if anything; `lines` is the screen as text.
"""

from __future__ import annotations

from aver.cli.output.table import cell_count, shortened
from aver.cli.top.feed import BAD, VIEWS, Item, Snapshot
from aver.model.record import Mutable, Record, field
from aver.model.states import UNSETTLED, State
from aver.printable import one_line

KEYS = "l log  w why  s show  c cancel  r retry  h hold  f view  / find  ? help  q quit"
HELP = (
    "up, down, j, k      choose a job (also page up and down, home and end)",
    "l, enter            its output, as it grows",
    "w                   why it is as it is, and what to do next",
    "s                   all facts, with memory and CPUs over time",
    "c                   cancel it",
    "r                   run it again",
    "h                   hold it, or release it",
    "f                   show all, running, waiting, failed or done jobs",
    "/                   show only jobs whose name has these letters, or matches 'train*'",
    "escape              show all again",
    "q                   quit; nothing that runs is touched",
)
ASKED = {"c": "cancel", "r": "retry"}
JOB, STATE, TIME, CPU, MEMORY = 6, 13, 10, 6, 17  # columns on the screen; the name has what is left
USED = CPU + 2 + MEMORY


class Line(Record):
    """`style`: bold, dim, bad, good, or chosen."""

    text: str
    style: str = ""


class Show(Record):
    """Show what `aver WORD JOB` prints, again and again while it is shown."""

    word: str
    job: int


class Act(Record):
    """Run `aver WORD JOB`, and say what it answered."""

    word: str
    job: int


class Quit(Record):
    pass


class Board(Mutable):
    snapshot: Snapshot = Snapshot((), (), 0, 0.0)
    view: str = VIEWS[0]
    name: str = ""
    chosen: int | None = None  # a job's number: it stays chosen where others come and go
    top: int = 0
    text: list[str] | None = None  # that is shown in place of the list
    shown: Show | None = None
    scroll: int | None = None  # lines from the end of the text; None: its beginning
    typing: str | None = None
    asking: Act | None = None
    message: str = ""
    height: int = field(default=24)

    # ---- what there is ------------------------------------------------------------------------

    def take(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        jobs = [item.job for item in snapshot.items]
        if self.chosen not in jobs:
            self.chosen = jobs[0] if jobs else None

    @property
    def item(self) -> Item | None:
        return next((item for item in self.snapshot.items if item.job == self.chosen), None)

    # ---- keys ---------------------------------------------------------------------------------

    def press(self, key: str) -> Show | Act | Quit | None:
        if self.typing is not None:
            self._type(key)
            return None
        if self.asking is not None:
            asked, self.asking = self.asking, None
            self.message = "" if key == "y" else "nothing was done"
            return asked if key == "y" else None
        self.message = ""
        if self.text is not None:
            return self._press_in_text(key)
        return self._press_in_list(key)

    def _type(self, key: str) -> None:
        assert self.typing is not None
        if key in ("enter", "escape"):
            self.name, self.typing = (self.typing if key == "enter" else ""), None
        elif key == "backspace":
            self.typing = self.typing[:-1]
        elif len(key) == 1 and key.isprintable():
            self.typing += key

    def _press_in_text(self, key: str) -> Quit | None:
        step = {"up": 1, "k": 1, "page up": self._rows, "down": -1, "j": -1, "page down": -self._rows}.get(key)
        if step is not None:
            most = max(0, len(self.text or ()) - self._rows)
            now = most if self.scroll is None else self.scroll
            self.scroll = min(most, max(0, now + step))
        elif key in ("q", "escape", "enter", "l", "w", "s", "?"):
            self.text = self.shown = self.scroll = None
        return None

    def _press_in_list(self, key: str) -> Show | Act | Quit | None:
        items = self.snapshot.items
        at = next((at for at, item in enumerate(items) if item.job == self.chosen), 0)
        steps = {"up": -1, "k": -1, "down": 1, "j": 1, "page up": -self._rows, "page down": self._rows}
        if key in steps and items:
            self.chosen = items[min(len(items) - 1, max(0, at + steps[key]))].job
        elif key in ("home", "g", "end", "G") and items:
            self.chosen = items[0 if key in ("home", "g") else -1].job
        elif key == "q":
            return Quit()
        elif key == "?":
            self.text, self.scroll = list(HELP), None
        elif key == "/":
            self.typing = self.name
        elif key == "f":
            self.view = VIEWS[(VIEWS.index(self.view) + 1) % len(VIEWS)]
        elif key == "escape":
            self.name, self.view = "", VIEWS[0]
        elif (item := self.item) is not None:
            return self._press_on(key, item)
        return None

    def _press_on(self, key: str, item: Item) -> Show | Act | None:
        if key in ("l", "enter", "w", "s"):
            self.shown = Show({"w": "why", "s": "show"}.get(key, "log"), item.job)
            self.text, self.scroll = ["…"], None if key in ("w", "s") else 0
            return self.shown
        if key in ASKED:
            self.asking = Act(ASKED[key], item.job)
        if key == "h":
            return Act("release" if item.is_held else "hold", item.job)
        return None

    # ---- the screen ---------------------------------------------------------------------------

    @property
    def _rows(self) -> int:
        return max(1, self.height - 3)

    def lines(self, width: int, height: int) -> list[Line]:
        """At most `height` lines of at most `width` columns."""
        self.height = height
        body = self._text_lines() if self.text is not None else self._list_lines(width)
        found = [self._head(), *body[: height - 2]]
        found += [Line("")] * (height - 1 - len(found))
        found.append(self._foot())
        return [Line(_cut(one_line(line.text), width), line.style) for line in found[:height]]

    def _head(self) -> Line:
        counts = ", ".join(f"{count} {word}" for word, count in self.snapshot.counts) or "no jobs yet"
        chosen = f"   showing: {self.view}" if self.view != VIEWS[0] else ""
        named = f"   name: {self.name}" if self.name else ""
        shown = f"   {self.shown.word} {self.shown.job}" if self.shown is not None else ""
        return Line(f"aver: {counts}{chosen}{named}{shown}", "bold")

    def _foot(self) -> Line:
        if self.typing is not None:
            return Line(f"/{self.typing}_", "bold")
        if self.asking is not None:
            return Line(f"{self.asking.word} job {self.asking.job}? y: yes, any other key: no", "bold")
        if self.message:
            return Line(self.message, "bold")
        return Line("up and down scroll, q goes back" if self.text is not None else KEYS, "dim")

    def _text_lines(self) -> list[Line]:
        text = self.text or []
        most = max(0, len(text) - self._rows)
        begin = 0 if self.scroll is None else most - min(most, self.scroll)
        return [Line(line) for line in text[begin : begin + self._rows + 1]]

    def _list_lines(self, width: int) -> list[Line]:
        items = self.snapshot.items
        rows = self._rows
        at = next((at for at, item in enumerate(items) if item.job == self.chosen), 0)
        self.top = min(max(0, len(items) - rows), max(self.top, at - rows + 1)) if at >= self.top else at
        free = width - JOB - STATE - TIME - 4 * 2
        longest = max((cell_count(item.name) for item in items), default=8)
        name = min(max(longest, 4), max(12, free - max(USED, free // 2)))
        found = [Line(_row(("JOB", "NAME", "STATE", "TIME"), name) + "  " + _fitted("CPU", CPU) + "  MEMORY", "bold")]
        for item in items[self.top : self.top + rows]:
            text = _row((str(item.job), item.name, item.state.value, item.time), name) + "  "
            if item.cpu or item.mem:
                text += f"{_fitted(item.cpu, CPU)}  {_fitted(item.mem, MEMORY)}  "
            found.append(Line(text + item.note, "chosen" if item.job == self.chosen else _style(item.state)))
        if self.snapshot.left_out and self.top + rows >= len(items):
            found.append(Line(f"{self.snapshot.left_out} more: / searches among all", "dim"))
        return found


def _row(cells: tuple[str, str, str, str], name: int) -> str:
    return "  ".join(_fitted(cell, size) for cell, size in zip(cells, (JOB, name, STATE, TIME), strict=True))


def _fitted(cell: str, size: int) -> str:
    short = shortened(one_line(cell), size)
    return short + " " * (size - cell_count(short))


def _cut(text: str, width: int) -> str:
    """What fits of the line, from its beginning on."""
    text = text.rstrip()
    if cell_count(text) <= width:
        return text
    while cell_count(text) > width - 1:
        text = text[: min(len(text) - 1, width)]
    return f"{text}…"


def _style(state: State) -> str:
    return "bad" if state in BAD else "good" if state in UNSETTLED and state is not State.PENDING else ""
