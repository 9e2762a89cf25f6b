"""The options of `#SBATCH` lines as Aver's own commands read them: every mistake is noted at its place.

What the options are and mean is in `options`. Long names may be cut as long as they stay unique, as getopt does. The
last of two lines wins.
"""

from __future__ import annotations

from dataclasses import replace

from aver.model.job import JobSpec
from aver.spec.document import Point
from aver.spec.mistakes import Mistakes, did_you_mean, shown
from aver.spec.sbatch.names import SHORT
from aver.spec.sbatch.options import LONG, USES, Takes, Values

__all__ = ["LONG", "SHORT", "BatchOptions", "Takes"]

_REFUSED = {
    "array": "write a flow with a matrix instead",
    "dependency": "write a flow with needs instead",
    "wrap": "a script is given already",
}
_READ_AND_IGNORED = frozenset({"nodes", "requeue", "no-requeue"})


class BatchOptions:
    """Collects the options of all `#SBATCH` lines of a script."""

    def __init__(self, mistakes: Mistakes, now: float) -> None:
        self._mistakes = mistakes
        self._now = now
        self._values = Values()
        self._ignored: dict[str, None] = {}
        self._place = Point(1, 1)

    def read(self, words: list[str], place: Point) -> None:
        """Take in the words of one line; every mistake is noted at `place`."""
        self._place = place
        rest = list(reversed(words))
        while rest:
            word = rest.pop()
            if word.startswith("--") and len(word) > 2:
                self._long(word[2:], rest)
            elif word.startswith("-") and len(word) > 1 and word != "--":
                self._short(word[1:], rest)
            else:
                self._wrong(f"{shown(word)} is no option", "options begin with -")
                return

    def job(self, spec: JobSpec) -> JobSpec:
        """The job with all that the lines say."""
        return replace(self._values.job(spec), ignored=tuple(self._ignored))

    def _wrong(self, text: str, hint: str = "") -> None:
        self._mistakes.add(self._place, text, hint)

    def _long(self, text: str, rest: list[str]) -> None:
        name, equals, value = text.partition("=")
        full = _full_name(name)
        if full is None:
            self._wrong(f'unknown option "--{name}"', did_you_mean(f"--{name}", [f"--{one}" for one in LONG]))
            rest.clear()
            return
        takes = LONG[full]
        if takes is Takes.NOTHING and equals:
            self._wrong(f"--{full} takes no value")
        elif takes is Takes.VALUE and not equals:
            if not rest:
                self._wrong(f"--{full} needs a value")
                return
            self._use(full, rest.pop())
        else:
            self._use(full, value)

    def _short(self, text: str, rest: list[str]) -> None:
        full = SHORT.get(text[0])
        if full is None:
            self._wrong(f'unknown option "-{text[0]}"')
            rest.clear()
        elif LONG[full] is not Takes.VALUE:
            self._use(full, "")
            if len(text) > 1:
                self._short(text[1:], rest)
        elif len(text) > 1:
            self._use(full, text[1:])
        elif rest:
            self._use(full, rest.pop())
        else:
            self._wrong(f"-{text[0]} needs a value")

    def _use(self, name: str, value: str) -> None:
        if name in _REFUSED:
            self._wrong(f"--{name} in a script is not supported here", _REFUSED[name])
            return
        if name not in USES or name in _READ_AND_IGNORED:
            self._ignored[f"--{name}: means nothing on this machine"] = None
        if name == "export" and "ALL" not in value.split(","):
            self._ignored["--export: the job has the whole environment of its submitter all the same"] = None
        try:
            self._values.take(name, value, self._now)
        except ValueError as error:
            self._wrong(f"--{name}: {error}")


def _full_name(name: str) -> str | None:
    if name in LONG:
        return name
    fitting = [full for full in LONG if full.startswith(name)] if name else []
    return fitting[0] if len(fitting) == 1 else None
