"""Small tables in a notebook, drawn again while what they show changes. IPython is used where it runs, never needed."""

from __future__ import annotations

import html
import os
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from aver.errors import AverError

PAUSE_S = 0.5  # between two looks
SHOWN = 20  # rows of a table


class Table(NamedTuple):
    """A table as it is now, and the line that stands for it. `is_final`: it will not change any more."""

    text: str
    html: str
    is_final: bool


class Shown(ABC):
    """What a notebook shows as a table, while it changes."""

    @abstractmethod
    def _table(self) -> Table:
        """The table as things are now."""

    def _drawing(self) -> Callable[[], Table | None]:
        """What draws the table again; None from it: there is nothing to draw any more."""
        return self._table

    def _repr_html_(self) -> str:
        """The table as things are now."""
        return self._table().html

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return _bundle(self._table())

    def _ipython_display_(self) -> None:
        """Show the table and go on drawing it until it is final; in a terminal, print what it is."""
        if _has_kernel():
            _show(self._drawing())
        else:
            print(repr(self))


def progress(counts: Mapping[str, int], settled: int) -> str:
    """A bar and how many are in each state."""
    total = sum(counts.values())
    words = ", ".join(f"{count} {html.escape(state)}" for state, count in counts.items())
    return f'<progress value="{settled}" max="{total or 1}"></progress> {settled} of {total} settled: {words or "none"}'


def table(title: str, bar: str, heads: Sequence[str], rows: Iterable[Sequence[object]], left_out: int) -> str:
    """As HTML; all texts are escaped but the bar."""
    head = "".join(f"<th>{html.escape(one)}</th>" for one in heads)
    lines = "".join("<tr>" + "".join(f"<td>{html.escape(str(one))}</td>" for one in row) + "</tr>" for row in rows)
    more = f"<p>and {left_out} more</p>" if left_out > 0 else ""
    return f"<b>{html.escape(title)}</b><br>{bar}<table><tr>{head}</tr>{lines}</table>{more}"


def _has_kernel() -> bool:
    """Whether this is a notebook's kernel, whose front end can draw again."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def _bundle(table: Table) -> dict[str, str]:
    return {"text/plain": table.text, "text/html": table.html}


def _show(draw: Callable[[], Table | None]) -> None:
    display: Any = sys.modules["IPython"].display
    found = draw()
    if found is None:
        return
    name = f"aver-{os.urandom(8).hex()}"
    display.display(_bundle(found), raw=True, display_id=name)
    if found.is_final:
        return

    def update(now: Table) -> None:
        display.update_display(_bundle(now), raw=True, display_id=name)

    threading.Thread(target=_follow, args=(draw, update, found), name="aver-table", daemon=True).start()


def _follow(draw: Callable[[], Table | None], update: Callable[[Table], None], shown: Table) -> None:
    """Draw again whatever changes, until it is final; what can't be read any more is said below the last state."""
    pause = threading.Event()
    while not shown.is_final:
        pause.wait(PAUSE_S)
        try:
            now = draw()
        except AverError as error:
            said = f"not followed any more: {error}"
            update(Table(f"{shown.text} ({said})", f"{shown.html}<p>{html.escape(said)}</p>", True))
            return
        if now is None:
            return
        if now != shown:
            update(now)
        shown = now
