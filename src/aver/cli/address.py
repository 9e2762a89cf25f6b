"""Addresses of jobs and runs: `7`, `3/train`, `3/train[seed=2]`, `3/tr*`, `last`, `last/train`, `-1`, `-2`.

A number names one thing, a run or a job; a single job and its run share it. After the slash comes a
job's address as `plan.address` has it: a name or a glob, and the values that members must have. The
name of a matrix means all of its members. `last` and `-1` are the newest run, `-2` is the one before it.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from aver.errors import UsageError
from aver.model.record import Record
from aver.plan.address import parse_address as job_address

LAST = "last"


def typed_address(word: str) -> str:
    """A word of the command line: `-2` as `last~1`, since an option begins with a dash; others as they are."""
    number, slash, rest = word[1:].partition("/")
    if not word.startswith("-") or not (number.isascii() and number.isdigit()) or len(number) > 9 or not int(number):
        return word
    back = int(number) - 1
    return f"{LAST}{f'~{back}' if back else ''}{slash}{rest}"


def runs_back(text: str) -> tuple[int, str] | None:
    """How many runs before the newest an address begins, and what follows; None: it begins with a number."""
    head, slash, rest = text.strip().partition("/")
    step = ""
    if not slash:
        head, dot, number = head.partition(".")
        step = f".{number}" if dot else ""
    word, tilde, back = head.partition("~")
    if word.lower() != LAST or (tilde and not (back.isascii() and back.isdigit() and len(back) <= 9)):
        return None
    return int(back or 0), f"{slash}{rest}{step}"


class Number(Record):
    """A run or a job."""

    id: int


class Named(Record):
    """Jobs of a run by name."""

    run: int
    pattern: str

    def matches(self, name: str) -> bool:
        """Whether a job of this name is meant."""
        if name == self.pattern:
            return True
        wanted, found = job_address(self.pattern), job_address(name)
        values = dict(found.values)
        return fnmatchcase(found.name, wanted.name) and all(
            axis in values and fnmatchcase(values[axis], value) for axis, value in wanted.values
        )


class Step(Record):
    """One `srun` of a job."""

    job: int
    step: int


Address = Number | Named


def parse_step(text: str) -> Step | None:
    """Read `7.0`, the address of a step; None for anything else."""
    job, dot, step = text.strip().partition(".")
    words = (job.removeprefix("#"), step)
    if not dot or not all(word.isascii() and word.isdigit() and len(word) <= 15 for word in words):
        return None
    return Step(int(words[0]), int(step))


def parse_address(text: str) -> Address:
    """Read an address, or raise a UsageError that shows the forms."""
    number, slash, name = text.strip().partition("/")
    number = number.removeprefix("#")
    if not (number.isascii() and number.isdigit() and len(number) <= 15) or int(number) == 0 or (slash and not name):
        raise UsageError(f"{text!r} is not a job or run: use 7, 3/train, '3/train[seed=2]', '3/tr*' or last")
    if not slash:
        return Number(int(number))
    try:
        job_address(name)
    except ValueError as error:
        raise UsageError(str(error)) from None
    return Named(int(number), name)
