"""`{name}` in the text of a shell: where each one stands, and how a value is put in there.

Pure. The text is followed as sh and bash read it: quotes, comments, substitutions, here-documents. A value is put in
so that the shell's word has exactly that value: quoted where the text is bare, escaped inside quotes. Where that can't
be known (here-documents, `${...}`, backquotes, another language) the place is UNKNOWN: `spec` refuses such a text, and
no command is made of it. A backslash before `{name}` keeps it as it is; in a comment it stays too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from aver.plan.placeholders import AXIS_NAME

WHOLE_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")  # what may stand in $((...)): nothing else is a value there
_LIKE_SH = frozenset({"sh", "dash", "ash"})
_LIKE_BASH = frozenset({"bash", "zsh", "ksh", "ksh93", "mksh"})
_PLACE = re.compile(r"(?<!\$)\{(" + AXIS_NAME.pattern + r")\}")
_PLAIN = re.compile(r"[^\s\\'\"`$#<>();&|{}]+")  # of a bare word; nothing in it changes what follows
_PLAIN_INSIDE = re.compile(r"[^\\'\"`$(){}\n]+")
_SPECIAL = frozenset("$#?!*@-0123456789")  # `$$`, `$#`, ...
_HEREDOC = re.compile(
    r"<<(-?)[ \t]*(?:'([^'\n]+)'|\"([^\"\n$`\\]+)\"|(\\?)([\w.!%+,/:=@^~-]+))(?=[\s;&|()<>]|\Z)", re.ASCII
)
_ANSI = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_BACKQUOTES = re.compile(r"`(?:[^`\\]|\\.)*`", re.DOTALL)


class Context(Enum):
    """What a shell does with the text around a place."""

    BARE = "bare"
    SINGLE = "single"  # inside '...'
    DOUBLE = "double"  # inside "..."
    NUMBER = "number"  # inside $((...))
    COMMENT = "comment"
    UNKNOWN = "unknown"


class Place(NamedTuple):
    """One `{name}`: where it is in the text, and for UNKNOWN inside or behind what."""

    start: int
    end: int
    name: str
    context: Context
    why: str = ""


class _Frame:
    """What the scan is inside of: the text itself or `$(`, `"`, `${`, `((`."""

    __slots__ = ("depth", "is_in_quotes", "kind", "start")

    def __init__(self, kind: str, start: int, is_in_quotes: bool) -> None:
        self.kind = kind
        self.start = start
        self.is_in_quotes = is_in_quotes
        self.depth = 0  # of parentheses


def fill_shell(text: str, values: Mapping[str, str], shell: Sequence[str]) -> str:
    """The text with each declared `{name}` replaced, as its context asks.

    Raise ValueError where a value can't be put in so that it stays what it is.
    """
    if "{" not in text:
        return text
    out: list[str] = []
    done = 0
    for place in places_in(text, tuple(shell)):
        if place.name in values:
            out += (text[done : place.start], _quoted(values[place.name], place, text))
            done = place.end
    return "".join((*out, text[done:]))


def _quoted(value: str, place: Place, text: str) -> str:
    match place.context:
        case Context.BARE:
            return "'" + value.replace("'", "'\\''") + "'"
        case Context.SINGLE:
            return value.replace("'", "'\\''")
        case Context.DOUBLE:
            return re.sub(r'([\\"$`])', r"\\\1", value)
        case Context.NUMBER if WHOLE_NUMBER.fullmatch(value):
            return f"({value})" if value.startswith("-") else value
        case Context.COMMENT:
            return text[place.start : place.end]
        case Context.NUMBER:
            raise ValueError(f"{value!r} is not a whole number, and {{{place.name}}} stands in ((...))")
        case Context.UNKNOWN:
            raise ValueError(f"{{{place.name}}} stands {place.why}, where no value can be put in")


def used_in(text: str, shell: Sequence[str]) -> frozenset[str]:
    """The names for which a value is put in."""
    if "{" not in text:
        return frozenset()
    kept = (Context.COMMENT, Context.UNKNOWN)
    return frozenset(place.name for place in places_in(text, tuple(shell)) if place.context not in kept)


@lru_cache(maxsize=256)
def places_in(text: str, shell: tuple[str, ...]) -> tuple[Place, ...]:
    """Every `{name}`, declared or not, in the order of the text."""
    dialect = _dialect(shell)
    if dialect is None:
        why = f"in text for {_base(shell[0]) if shell else 'no shell'}, whose quotes are not known"
        return tuple(Place(*found.span(), found[1], Context.UNKNOWN, why) for found in _PLACE.finditer(text))
    return tuple(_Scan(text, is_bash=dialect == "bash").places())


def _dialect(shell: Iterable[str]) -> str | None:
    """The language of the last word that names a shell; another machine's shell reads the text twice."""
    found = None
    for word in (part for argument in shell for part in argument.split()):
        name = _base(word)
        if name == "ssh":
            return None
        if name in _LIKE_SH or name in _LIKE_BASH:
            found = "sh" if name in _LIKE_SH else "bash"
    return found


def _base(path: str) -> str:
    return path.rpartition("/")[2]


class _Scan:
    def __init__(self, text: str, is_bash: bool) -> None:
        self._text = text
        self._is_bash = is_bash
        self._at = 0
        self._found: list[Place] = []
        self._frames = [_Frame("text", 0, False)]
        self._is_in_word = False
        self._heredocs: list[tuple[str, bool, bool]] = []  # delimiter, tabs are stripped, the body is as it is

    def places(self) -> list[Place]:
        step = {
            "text": self._bare, "$(": self._bare, '"': self._double, "${": self._parameter, "((": self._number,
        }  # fmt: skip
        while self._at < len(self._text):
            step[self._frames[-1].kind]()
        if len(self._frames) > 1:
            self._forget(self._frames[1].start, f"behind {self._frames[1].kind} without its end")
        elif self._heredocs:
            self._forget(0, "beside a here-document without its body")
        return self._found

    # What a character means, by what it stands in

    def _bare(self) -> None:
        text, at = self._text, self._at
        char = text[at]
        plain = _PLAIN.match(text, at)
        if plain:
            if not self._is_in_word and plain[0] == "case" and self._frames[-1].kind == "$(":
                self._lose("behind case in $(...)")  # its patterns end in a parenthesis
                return
            self._at = plain.end()
            self._is_in_word = True
        elif char == "\\":
            self._at += 2
            self._is_in_word |= text[at + 1 : at + 2] != "\n"
        elif char == "'":
            self._region(text.find("'", at + 1) + 1, Context.SINGLE)
        elif char in '"`$':
            self._is_in_word = True
            self._quote_or_dollar(char)
        elif char == "#" and not self._is_in_word:
            end = text.find("\n", at)
            self._region(len(text) if end < 0 else end, Context.COMMENT)
            self._is_in_word = False
        elif char == "{":
            self._brace(Context.BARE)
            self._is_in_word = True
        elif char == "#" or char == "}":
            self._at += 1
            self._is_in_word = True
        else:
            self._operator(char)

    def _operator(self, char: str) -> None:
        text, at, frame = self._text, self._at, self._frames[-1]
        was_in_word, self._is_in_word = self._is_in_word, False
        self._at += 1
        if char == "\n" and self._heredocs:
            self._skip_heredocs()
        elif text.startswith("<<<", at):
            self._at = at + 3
        elif text.startswith("<<", at):
            found = _HEREDOC.match(text, at)
            if found is None:
                self._lose("behind << whose end is not known")
                return
            word = found[2] or found[3] or found[5]
            self._heredocs.append((word, bool(found[1]), found[5] is None or bool(found[4])))
            self._at = found.end()
        elif text.startswith("((", at) and not was_in_word:
            if not self._is_bash:
                self._lose("behind ((")
                return
            self._push("((", at, 2)
        elif char == "(":
            frame.depth += 1
        elif char == ")" and frame.depth:
            frame.depth -= 1
        elif char == ")" and frame.kind == "$(":
            self._pop(0)

    def _double(self) -> None:
        char = self._text[self._at]
        plain = _PLAIN_INSIDE.match(self._text, self._at)
        if plain:
            self._at = plain.end()
        elif char == '"':
            self._pop()
        elif char in "`$":
            self._quote_or_dollar(char)
        else:
            self._inside(char, Context.DOUBLE)

    def _parameter(self) -> None:
        frame, char = self._frames[-1], self._text[self._at]
        if char == "}":
            self._pop()
        elif char in "'\"" and frame.is_in_quotes:
            self._lose("behind quotes in ${...} in quotes")  # shells differ
        elif char == "'":
            self._region(self._text.find("'", self._at + 1) + 1, Context.UNKNOWN, "inside ${...}")
        elif char in '"`$':
            self._quote_or_dollar(char)
        else:
            self._inside(char, Context.UNKNOWN)

    def _number(self) -> None:
        frame, char = self._frames[-1], self._text[self._at]
        if char in "'\"`":
            self._lose("behind quotes in ((...))")
        elif char == "$":
            self._quote_or_dollar(char)
        elif char == "(":
            frame.depth += 1
            self._at += 1
        elif char == ")" and frame.depth:
            frame.depth -= 1
            self._at += 1
        elif char == ")" and self._text.startswith("))", self._at):
            self._pop(2)
        elif char == ")":
            self._lose("behind (( without ))")
        else:
            self._inside(char, Context.NUMBER)

    def _inside(self, char: str, context: Context) -> None:
        """Any other character of quotes, a parameter or a number."""
        if char == "\\":
            self._at += 2
        elif char == "{":
            self._brace(context)
        elif char == "\n" and self._heredocs:
            self._lose("beside a here-document")
        else:
            self._at += 1

    def _quote_or_dollar(self, char: str) -> None:
        text, at, kind = self._text, self._at, self._frames[-1].kind
        following = text[at + 1 : at + 2]
        if char == '"':
            self._push('"', at, 1)
        elif char == "`":
            found = _BACKQUOTES.match(text, at)
            self._region(found.end() if found else 0, Context.UNKNOWN, "inside `...`")
        elif text.startswith("$((", at):
            self._push("((", at, 3)
        elif following == "(":
            self._push("$(", at, 2)
            self._is_in_word = False
        elif following == "{":
            self._push("${", at, 2)
        elif following == "'" and kind in ("text", "$("):
            found = _ANSI.match(text, at)
            if found and not self._is_bash and "\\" in found[1]:
                self._lose("behind $'...'")  # sh knows no escapes in it
                return
            self._region(found.end() if found else 0, Context.UNKNOWN, "inside $'...'")
        else:
            self._at += 2 if following in _SPECIAL and following else 1

    # How the scan goes on

    def _push(self, kind: str, start: int, width: int) -> None:
        around = self._frames[-1]
        is_in_quotes = around.kind == '"' or (around.kind == "${" and around.is_in_quotes)
        self._frames.append(_Frame(kind, start, is_in_quotes))
        self._at = start + width

    def _pop(self, width: int = 1) -> None:
        self._frames.pop()
        self._at += width
        self._is_in_word = True

    def _brace(self, context: Context) -> None:
        found = _PLACE.match(self._text, self._at)
        if found is None:
            self._at += 1
            return
        self._note(found, context)
        self._at = self._at + 1 if self._frames[-1].kind == "${" else found.end()

    def _note(self, found: re.Match[str], context: Context, why: str = "") -> None:
        if any(frame.kind == "${" for frame in self._frames) and context is not Context.COMMENT:
            context, why = Context.UNKNOWN, why or "inside ${...}"
        self._found.append(Place(*found.span(), found[1], context, why))

    def _region(self, end: int, context: Context, why: str = "") -> None:
        """Text up to `end` that is of one kind; 0: it has no end."""
        if end <= self._at:
            self._lose("behind a quote without its end")
            return
        if self._heredocs and context is not Context.COMMENT and "\n" in self._text[self._at : end]:
            self._lose("beside a here-document")
            return
        for found in _PLACE.finditer(self._text, self._at, end):
            self._note(found, context, why)
        self._at = end
        self._is_in_word = True

    def _skip_heredocs(self) -> None:
        """The bodies of the here-documents that the line began."""
        for word, is_stripped, is_literal in self._heredocs:
            while True:
                if self._at >= len(self._text):
                    self._lose("behind a here-document without its end")
                    return
                end = self._text.find("\n", self._at)
                line = self._text[self._at : len(self._text) if end < 0 else end]
                bare = line.lstrip("\t") if is_stripped else line
                if (not is_literal and line.endswith("\\")) or bare.startswith(f"{word})"):
                    self._lose("inside a here-document")
                    return
                if bare != word:
                    for found in _PLACE.finditer(self._text, self._at, self._at + len(line)):
                        self._note(found, Context.UNKNOWN, "inside a here-document")
                self._at += len(line) + 1
                if bare == word:
                    break
        self._heredocs.clear()

    def _lose(self, why: str) -> None:
        """The text is not understood from here on, nor what was begun and has not ended."""
        if len(self._frames) > 1:
            self._forget(self._frames[1].start, why)
        for found in _PLACE.finditer(self._text, self._at):
            self._found.append(Place(*found.span(), found[1], Context.UNKNOWN, why))
        self._at = len(self._text)
        del self._frames[1:]
        self._heredocs.clear()

    def _forget(self, start: int, why: str) -> None:
        """Nothing behind `start` was understood after all."""
        self._found = [
            place._replace(context=Context.UNKNOWN, why=why) if place.start >= start else place for place in self._found
        ]
