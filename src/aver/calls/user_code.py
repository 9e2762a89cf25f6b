"""The edge to the user's code: functions, and classes whose pickling may raise anything."""

from __future__ import annotations

from typing import NamedTuple

from aver.fast_start import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Came(NamedTuple):
    """What came of it. `error` None: it returned `value`."""

    value: Any = None
    error: BaseException | None = None


def attempt(function: Callable[[], Any]) -> Came:
    """Call it; whatever it raises is told, SystemExit and Ctrl-C included."""
    try:
        return Came(function())
    except BaseException as error:
        return Came(error=error)
