"""A YAML or JSON text as nodes with positions.

Plain scalars are resolved here, by the rules of YAML 1.2 and fewer of them: null, true, false,
decimal integers and floats. All else (`12:30`, `on`, `yes`, `0o7`, dates) stays text, and each
scalar keeps its text as it was written. Keys are text and unique; merge keys (`<<`) are done.
This is not a loader of objects: tags other than `!!str` are mistakes. Aliases share one node.
"""

from __future__ import annotations

import importlib
import json
import re
from typing import Any, NamedTuple

import yaml
from yaml.composer import Composer
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.scanner import Scanner

from aver.spec.mistakes import Mistakes, Point, shown

try:
    _FastParser: Any = importlib.import_module("yaml.cyaml").CParser
except ImportError:
    _FastParser = None

MAX_BYTES = 32 * 1024 * 1024
MAX_DEPTH = 64
MAX_NODES = 10_000_000  # after aliases are followed


class Scalar(NamedTuple):
    line: int
    column: int
    text: str  # as written
    value: str | int | float | bool | None


class Sequence(NamedTuple):
    line: int
    column: int
    items: tuple[Value, ...]


class Entry(NamedTuple):
    key: Scalar
    value: Value


class Mapping(NamedTuple):
    line: int
    column: int
    entries: dict[str, Entry]


Value = Scalar | Sequence | Mapping

_STR_TAG = "tag:yaml.org,2002:str"
_PLAIN, _TEXT = "plain", "text"
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INT = re.compile(r"[-+]?[0-9]{1,100}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,5})?")
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class _TooDeep(Exception):
    pass


class _Resolving:
    """Stands in for PyYAML's resolver: says only whether a scalar was plain, and guards the depth."""

    depth = 0

    def descend_resolver(self, parent: object, index: object) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _TooDeep

    def ascend_resolver(self) -> None:
        self.depth -= 1

    def resolve(self, kind: type, value: object, implicit: Any) -> str:
        return _PLAIN if kind is yaml.ScalarNode and implicit[0] else _TEXT


class _PythonParser(_Resolving, Reader, Scanner, Parser, Composer):
    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)
        Composer.__init__(self)


_Parser: Any = _PythonParser if _FastParser is None else type("_CParser", (_Resolving, _FastParser), {})


def raised(value: Value, lines: int) -> Value:
    """The node with all its lines raised, as of an included file; nodes that are shared stay so."""
    made: dict[int, Value] = {}

    def of(node: Value) -> Value:
        found = made.get(id(node))
        if found is None:
            match node:
                case Scalar():
                    found = node._replace(line=node.line + lines)
                case Sequence():
                    found = Sequence(node.line + lines, node.column, tuple([of(item) for item in node.items]))
                case Mapping():
                    entries = {
                        name: Entry(_raised(one.key, lines), of(one.value)) for name, one in node.entries.items()
                    }
                    found = Mapping(node.line + lines, node.column, entries)
            made[id(node)] = found
        return found

    return of(value)


def _raised(key: Scalar, lines: int) -> Scalar:
    return key._replace(line=key.line + lines)


def read_document(data: bytes | str, mistakes: Mistakes, *, is_json: bool = False) -> Value | None:
    """The document's root, or None if it can't be read at all. Every mistake found is noted."""
    text = data if isinstance(data, str) else _decode(data, mistakes)
    if text is None:
        return None
    if len(text) > MAX_BYTES:
        mistakes.add(None, f"the file has more than {MAX_BYTES // 2**20} MiB", "generate jobs, or use a matrix")
        return None
    mistakes.source = text
    bad = _UNPRINTABLE.search(text)
    if bad:
        what = "a NUL byte" if bad[0] == "\0" else f"the character U+{ord(bad[0]):04X}"
        mistakes.add(_point(text, bad.start()), f"{what} is not allowed here", "is this a text file?")
        return None
    return _read_json(text, mistakes) if is_json else _read_yaml(text, mistakes)


def _decode(data: bytes, mistakes: Mistakes) -> str | None:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        mistakes.add(Point(1, 1), "the file is UTF-16, not UTF-8", "save it as UTF-8")
        return None
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        byte = f"\\x{data[error.start]:02x}"
        mistakes.add(_point(before, len(before)), f"the byte {byte} is not UTF-8", "save the file as UTF-8")
        return None


def _point(text: str, index: int) -> Point:
    return Point(text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index))


def _read_yaml(text: str, mistakes: Mistakes) -> Value | None:
    parser = _Parser(text)
    try:
        root = parser.get_single_node()
    except _TooDeep:
        mistakes.add(None, f"the file is nested more than {MAX_DEPTH} levels deep")
        return None
    except yaml.MarkedYAMLError as error:
        _note_syntax(text, error, mistakes)
        return None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mistakes.add(None, f"not YAML: {str(error).splitlines()[0] if str(error) else type(error).__name__}")
        return None
    finally:
        parser.dispose()
    if root is None:
        mistakes.add(Point(1, 1), "the file is empty")
        return None
    return _Conversion(mistakes).convert(root)


def _note_syntax(text: str, error: yaml.MarkedYAMLError, mistakes: Mistakes) -> None:
    mark = error.problem_mark or error.context_mark
    place = Point(mark.line + 1, mark.column + 1) if mark else Point(1, 1)
    problem = error.problem or error.context or "not YAML"
    lines = text.splitlines()
    line = lines[place.line - 1] if place.line <= len(lines) else ""
    hint = ""
    if problem == "but found another document":
        problem, hint = "a second document starts here", "a file holds one flow"
    elif problem.startswith("found undefined alias"):
        hint = "an alias (*name) comes after its anchor (&name); put text that begins with * in quotes"
    elif "\t" in line[: len(line) - len(line.lstrip())]:
        problem, hint = "a tab is used to indent", "YAML wants spaces"
    elif problem.startswith("mapping values are not allowed"):
        hint = "put text that contains ': ' in quotes, and look at the indentation"
    elif problem.startswith("found character"):
        hint = "put text that begins with this character in quotes"
    mistakes.add(place, problem, hint)


class _Conversion:
    """PyYAML's nodes to ours. An alias is converted once."""

    def __init__(self, mistakes: Mistakes) -> None:
        self._mistakes = mistakes
        self._done: dict[int, tuple[Value, int]] = {}
        self._open: set[int] = set()
        self._size = 0
        self._jobs: yaml.Node | None = None  # what the root calls jobs

    def convert(self, node: yaml.Node) -> Value | None:
        """None, with a mistake, if the aliases unfold to too much."""
        if isinstance(node, yaml.MappingNode):
            self._jobs = next((value for key, value in node.value if key.value == "jobs"), None)
        value = self._value(node)
        if self._size > MAX_NODES:
            self._mistakes.add(value, "the aliases of this file unfold to too many values")
            return None
        return value

    def _value(self, node: yaml.Node) -> Value:
        if isinstance(node, yaml.ScalarNode):
            self._size += 1
            return self._scalar(node)
        done = self._done.get(id(node))
        if done:
            self._size += done[1]
            return done[0]
        mark = node.start_mark
        line, column = mark.line + 1, mark.column + 1
        if id(node) in self._open:
            self._mistakes.add(Point(line, column), "an alias contains itself")
            return Scalar(line, column, "", None)
        self._open.add(id(node))
        before = self._size
        self._size += 1
        if node.tag != _TEXT:
            self._note_tag(node)
        value: Value
        if isinstance(node, yaml.SequenceNode):
            value = Sequence(line, column, tuple([self._value(item) for item in node.value]))
        else:
            value = Mapping(line, column, self._entries(node))
        self._open.discard(id(node))
        self._done[id(node)] = (value, self._size - before)
        return value

    def _scalar(self, node: yaml.ScalarNode) -> Scalar:
        mark, text, tag = node.start_mark, node.value, node.tag
        value: str | int | float | bool | None = text
        if tag == _PLAIN:
            value = resolve_plain(text)
        elif tag != _TEXT and tag != _STR_TAG:
            self._note_tag(node)
        return Scalar(mark.line + 1, mark.column + 1, text, value)

    def _note_tag(self, node: yaml.Node) -> None:
        mark = node.start_mark
        tag = node.tag.replace("tag:yaml.org,2002:", "!!")
        hint = "put text that begins with ! in quotes"
        self._mistakes.add(Point(mark.line + 1, mark.column + 1), f"the tag {shown(tag)} means nothing here", hint)

    def _entries(self, node: yaml.Node) -> dict[str, Entry]:
        entries: dict[str, Entry] = {}
        merged: list[Mapping] = []
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                mark = key_node.start_mark
                hint = "put text that begins with { or [ in quotes"
                self._mistakes.add(Point(mark.line + 1, mark.column + 1), "a key must be a word", hint)
                self._value(value_node)
                continue
            key = self._scalar(key_node)
            value = self._value(value_node)
            if key.text == "<<" and key_node.tag == _PLAIN:
                merged += self._merged(value)
            elif key.text in entries:
                first = entries[key.text].key
                hint = f"it is first at line {first.line}"
                noun = "job name" if node is self._jobs else "key"
                self._mistakes.add(key, f"duplicate {noun} {shown(key.text)}", hint)
            else:
                entries[key.text] = Entry(key, value)
        for mapping in merged:
            self._size += len(mapping.entries)
            for text, entry in mapping.entries.items():
                entries.setdefault(text, entry)
        return entries

    def _merged(self, value: Value) -> list[Mapping]:
        found = value.items if isinstance(value, Sequence) else (value,)
        mappings = [item for item in found if isinstance(item, Mapping)]
        if len(mappings) < len(found):
            self._mistakes.add(value, 'the merge key "<<" takes a map or a list of maps')
        return mappings


def resolve_plain(text: str) -> str | int | float | bool | None:
    """What a plain scalar stands for."""
    if text in _WORDS:
        return _WORDS[text]
    first = text[0]
    if first.isalpha() or first not in "+-.0123456789":
        return text
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


def _read_json(text: str, mistakes: Mistakes) -> Value | None:
    """JSON by its own rules; positions come from the YAML reader, which reads nearly all of it."""
    if not text.strip():
        mistakes.add(Point(1, 1), "the file is empty")
        return None
    pairs_of: dict[int, list[tuple[str, Any]]] = {}

    def keep(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        pairs_of[id(made)] = pairs
        return made

    try:
        loaded = json.loads(text, object_pairs_hook=keep)
    except json.JSONDecodeError as error:
        mistakes.add(Point(error.lineno, error.colno), f"not JSON: {error.msg}")
        return None
    except (RecursionError, ValueError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else "a number has too many digits"
        mistakes.add(None, f"not JSON that can be read: {why}")
        return None
    trial = Mistakes(mistakes.file)
    value = _read_yaml(text, trial)
    if value is not None:
        return _read_yaml(text, mistakes) if len(trial) else value
    return _without_places(loaded, pairs_of, mistakes, 0)


def _without_places(loaded: Any, pairs_of: dict[int, Any], mistakes: Mistakes, depth: int) -> Value | None:
    if depth > MAX_DEPTH:
        mistakes.add(None, f"the file is nested more than {MAX_DEPTH} levels deep")
        return None
    if isinstance(loaded, dict):
        entries: dict[str, Entry] = {}
        for key, item in pairs_of[id(loaded)]:
            if key in entries:
                mistakes.add(Point(1, 1), f"duplicate key {shown(key)}")
            value = _without_places(item, pairs_of, mistakes, depth + 1)
            if value is None:
                return None
            entries[key] = Entry(Scalar(1, 1, key, key), value)
        return Mapping(1, 1, entries)
    if isinstance(loaded, list):
        items = [_without_places(item, pairs_of, mistakes, depth + 1) for item in loaded]
        known = tuple(item for item in items if item is not None)
        return Sequence(1, 1, known) if len(known) == len(items) else None
    word = loaded if isinstance(loaded, str) else json.dumps(loaded)
    return Scalar(1, 1, word, loaded)
