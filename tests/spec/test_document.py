"""YAML and JSON texts as nodes with positions."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.spec import document
from aver.spec.document import Mapping, Scalar, Sequence, Value, read_document, resolve_plain
from aver.spec.mistakes import Mistakes, SpecError


def read(text: str | bytes, *, is_json: bool = False) -> Value:
    mistakes = Mistakes("f.yaml")
    value = read_document(text, mistakes, is_json=is_json)
    mistakes.refuse_if_any()
    assert value is not None
    return value


def complaints(text: str | bytes, *, is_json: bool = False) -> list[str]:
    with pytest.raises(SpecError) as caught:
        read(text, is_json=is_json)
    return [str(mistake) for mistake in caught.value.mistakes]


def plain(value: Value) -> object:
    match value:
        case Scalar():
            return value.value
        case Sequence():
            return [plain(item) for item in value.items]
        case Mapping():
            return {key: plain(entry.value) for key, entry in value.entries.items()}


@pytest.mark.parametrize(
    "text",
    ["12:30", "1:30:00", "on", "off", "yes", "no", "y", "0o7", "0x1F", "0b1", "2030-01-20", "1_000", ".inf", "1-12"],
)
def test_yaml_1_1_surprises_stay_text(text: str) -> None:
    """What only YAML 1.1, or nobody, would expect to be a number, a date or a truth value is text."""
    assert plain(read(f"a: {text}\n")) == {"a": text}


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("-3", -3), ("007", 7), ("1.50", 1.5), ("1e3", 1000.0), (".5", 0.5), ("true", True), ("False", False),
     ("~", None), ("null", None), ("", None), ('"1"', "1"), ("'true'", "true"), ("!!str 1", "1")],
)  # fmt: skip
def test_plain_scalars_are_resolved(text: str, value: object) -> None:
    """Core rules of YAML 1.2; quoted text is always text, and the written text is kept."""
    entry = read(f"a: {text}\n")
    assert plain(entry) == {"a": value}


def test_text_is_kept_as_written() -> None:
    """A number's own spelling survives, so that 1.10 does not become 1.1."""
    value = read("a: 1.10\n")
    assert isinstance(value, Mapping)
    scalar = value.entries["a"].value
    assert isinstance(scalar, Scalar)
    assert (scalar.text, scalar.line, scalar.column) == ("1.10", 1, 4)


def test_columns_count_characters() -> None:
    """A column is counted in characters, not in bytes."""
    value = read("ä: {ö: 1}\n")
    assert isinstance(value, Mapping)
    inner = value.entries["ä"].value
    assert isinstance(inner, Mapping)
    assert (inner.column, inner.entries["ö"].value.column) == (4, 8)


def test_anchors_and_merge_keys() -> None:
    """Aliases share their value; a merge key fills in what is not said; earlier maps of a list win."""
    text = "a: &a {x: 1, y: 2}\nb: &b {y: 3, z: 4}\nc: {<<: *a, x: 9}\nd: {<<: [*a, *b]}\n"
    value = plain(read(text))
    assert isinstance(value, dict)
    assert value["c"] == {"x": 9, "y": 2}
    assert value["d"] == {"x": 1, "y": 2, "z": 4}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: 1\nb: 2\na: 3\n", 'f.yaml:3:1: duplicate key "a"; it is first at line 1'),
        ("jobs:\n  a: 1\n  a: 2\n", 'f.yaml:3:3: duplicate job name "a"; it is first at line 2'),
        ("a:\n\tb: 1\n", "f.yaml:2:1: a tab is used to indent; YAML wants spaces"),
        ("a: 1\n---\nb: 2\n", "f.yaml:2:1: a second document starts here; a file holds one flow"),
        ("", "f.yaml:1:1: the file is empty"),
        ("# only words\n", "f.yaml:1:1: the file is empty"),
        ("a: !x 1\n", 'f.yaml:1:4: the tag "!x" means nothing here; put text that begins with ! in quotes'),
        ("[a]: 1\n", "f.yaml:1:1: a key must be a word; put text that begins with { or [ in quotes"),
        ("a: &a [*a]\n", "f.yaml:1:4: an alias contains itself"),
        ("a: {<<: 3}\n", 'f.yaml:1:9: the merge key "<<" takes a map or a list of maps'),
        (b"a: 1\nb: \xff\n", "f.yaml:2:4: the byte \\xff is not UTF-8; save the file as UTF-8"),
        ("a: 1\nb: x\0\n", "f.yaml:2:5: a NUL byte is not allowed here; is this a text file?"),
        ("a: 1\n".encode("utf-16"), "f.yaml:1:1: the file is UTF-16, not UTF-8; save it as UTF-8"),
    ],
)
def test_mistakes_of_the_text(text: str | bytes, complaint: str) -> None:
    """Each mistake of the text itself has its place."""
    assert complaints(text) == [complaint]


def test_a_byte_order_mark_is_fine() -> None:
    """Editors on other systems write one."""
    assert plain(read(b"\xef\xbb\xbfa: 1\n")) == {"a": 1}


def test_alias_bombs_are_refused() -> None:
    """Nine levels of nine aliases are refused at once, not unfolded."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    assert complaints("\n".join(lines)) == ["f.yaml:1:1: the aliases of this file unfold to too many values"]


@pytest.mark.parametrize("text", ["[" * 100_000, "{a: " * 100_000, "- " * 5_000 + "x"])
def test_deep_nesting_is_refused(text: str) -> None:
    """Nesting has an end long before the stack has."""
    assert complaints(text) == ["f.yaml: the file is nested more than 64 levels deep"]


def test_a_huge_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a limit of size."""
    monkeypatch.setattr(document, "MAX_BYTES", 2**20)
    assert complaints("# " + "x" * 2**20) == ["f.yaml: the file has more than 1 MiB; generate jobs, or use a matrix"]


def test_json_by_its_own_rules() -> None:
    """JSON has surrogate pairs and tabs, which YAML has not; its mistakes are JSON's."""
    assert plain(read('{"a": "\\ud83d\\ude00",\n\t"b": [1, null]}', is_json=True)) == {
        "a": "\U0001f600",
        "b": [1, None],
    }
    assert complaints('{"a": 1,}', is_json=True)[0].startswith("f.yaml:1:9: not JSON: ")
    assert complaints('{"a": 1,\n "a": 2}', is_json=True) == ['f.yaml:2:2: duplicate key "a"; it is first at line 1']


def test_without_the_c_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser in Python gives the same."""
    text = "a: &a {x: 1, y: '2'}\nb: [on, 1.5, *a]\n"
    fast = read(text)
    monkeypatch.setattr(document, "_Parser", document._PythonParser)
    assert read(text) == fast
    assert complaints("a: 1\na: 2\n") == ['f.yaml:2:1: duplicate key "a"; it is first at line 1']


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
def test_json_is_read_as_json_reads_it(value: object) -> None:
    """Whatever the json module writes is read back as the same value."""
    assert plain(read(json.dumps(value), is_json=True)) == value


@given(st.text(max_size=200) | st.binary(max_size=200))
def test_no_text_breaks_the_reader(text: str | bytes) -> None:
    """Any text or bytes give a value or mistakes, never another error."""
    mistakes = Mistakes("x")
    if read_document(text, mistakes) is None:
        assert len(mistakes)
    mistakes = Mistakes("x")
    if read_document(text, mistakes, is_json=True) is None:
        assert len(mistakes)


@given(st.text(alphabet="0123456789+-.eE_xo:", min_size=1, max_size=120))
def test_resolving_never_fails(text: str) -> None:
    """Anything that looks like a number is a number or text."""
    assert isinstance(resolve_plain(text), str | int | float)
