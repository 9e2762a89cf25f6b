"""Options as getopt_long reads them, with no imports to speak of.

Short options alone or together (`-hj7`), long ones whole or cut as long as they stay unique, values after `=`, glued
or as the next word; operands may stand anywhere, and `--` ends the options. The words of its errors are glibc's, which
Slurm's commands pass on.
"""

from __future__ import annotations

from aver.fast_start import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

FLAG, VALUE, MAYBE = 0, 1, 2  # takes nothing, needs a value, may have one after `=` or glued to its letter


UNKNOWN, AMBIGUOUS, NEEDS_VALUE, TAKES_NO_VALUE = "unknown", "ambiguous", "needs a value", "takes no value"


class BadOption(Exception):
    """The sentence to print, without the program's name; where the parser found it, which mistake of which option."""

    def __init__(self, text: str, problem: str = "", option: str = "") -> None:
        super().__init__(text)
        self.problem = problem
        self.option = option


class Table:
    """Which options a command has. Words are `name` or `name:letter`; an alias is another name of an option."""

    def __init__(self, flags: str = "", values: str = "", maybe: str = "", aliases: str = "") -> None:
        self.takes: dict[str, int] = {}
        self.letters: dict[str, str] = {}
        self.names: dict[str, str] = {}
        for words, takes in ((flags, FLAG), (values, VALUE), (maybe, MAYBE)):
            for word in words.split():
                name, _, letter = word.partition(":")
                self.takes[name] = takes
                self.names[name] = name
                if letter:
                    self.letters[letter] = name
        for word in aliases.split():
            alias, _, name = word.partition("=")
            self.names[alias] = name

    def full_name(self, name: str, typed: str) -> str:
        """The option that a whole or cut long name means; raise BadOption if none or several."""
        if name in self.names:
            return self.names[name]
        fitting = [one for one in self.names if one.startswith(name)] if name else []
        if not fitting:
            raise BadOption(f"unrecognized option '--{typed}'", UNKNOWN, f"--{name}")
        if len({self.names[one] for one in fitting}) > 1:
            possible = " ".join(f"'--{one}'" for one in fitting)
            text = f"option '--{name}' is ambiguous; possibilities: {possible}"
            raise BadOption(text, AMBIGUOUS, f"--{name}")
        return self.names[fitting[0]]


class Parsed:
    """What was given: each option with its value in order, and the operands."""

    def __init__(self) -> None:
        self.given: list[tuple[str, str | None]] = []
        self.operands: list[str] = []

    def has(self, name: str) -> bool:
        return any(one == name for one, _ in self.given)

    def get(self, name: str) -> str | None:
        """The last value of an option; None where it was not given or had none."""
        return next((value for one, value in reversed(self.given) if one == name), None)

    def all(self, name: str) -> list[str]:
        return [value for one, value in self.given if one == name and value is not None]


def parse(table: Table, words: Sequence[str], *, stops_at_operand: bool = False, into: Parsed | None = None) -> Parsed:
    """Read the words after the program's name; raise BadOption at the first mistake.

    `into`, where it is given, then has what stands before the mistake.
    """
    parsed = Parsed() if into is None else into
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "--":
            parsed.operands += words[at:]
            break
        if not word.startswith("-") or word == "-":
            parsed.operands.append(word)
            if stops_at_operand:
                parsed.operands += words[at:]
                break
        elif word.startswith("--"):
            at = _long(table, word[2:], words, at, parsed)
        else:
            at = _short(table, word[1:], words, at, parsed)
    return parsed


def _long(table: Table, text: str, words: Sequence[str], at: int, parsed: Parsed) -> int:
    typed, equals, value = text.partition("=")
    name = table.full_name(typed, text)
    takes = table.takes[name]
    if takes == FLAG and equals:
        raise BadOption(f"option '--{name}' doesn't allow an argument", TAKES_NO_VALUE, f"--{name}")
    if takes == VALUE and not equals:
        if at >= len(words):
            raise BadOption(f"option '--{name}' requires an argument", NEEDS_VALUE, f"--{name}")
        parsed.given.append((name, words[at]))
        return at + 1
    parsed.given.append((name, value if equals else None))
    return at


def _short(table: Table, letters: str, words: Sequence[str], at: int, parsed: Parsed) -> int:
    for place, letter in enumerate(letters):
        name = table.letters.get(letter)
        if name is None:
            raise BadOption(f"invalid option -- '{letter}'", UNKNOWN, f"-{letter}")
        rest = letters[place + 1 :]
        takes = table.takes[name]
        if takes == FLAG:
            parsed.given.append((name, None))
            continue
        if rest or takes == MAYBE:
            parsed.given.append((name, rest or None))
            return at
        if at >= len(words):
            raise BadOption(f"option requires an argument -- '{letter}'", NEEDS_VALUE, f"-{letter}")
        parsed.given.append((name, words[at]))
        return at + 1
    return at
