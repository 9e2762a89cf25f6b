"""Secrets never get through, wherever the chunks are cut."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.render.masking import Digests, Masking, forms, values_of


def test_a_value_is_masked_in_bytes_and_text() -> None:
    """Both forms of a text are masked."""
    masking = Masking([b"hunter2"])
    assert masking.whole(b"say hunter2!") == b"say ***!"
    assert masking.whole("say hunter2!") == "say ***!"


def test_values_come_from_the_named_variables_only() -> None:
    """A name that is not marked secret is shown."""
    masking = Masking(values_of([b"TOKEN=abc=d", b"HOME=/root", b"EMPTY="], ["TOKEN", "EMPTY", "MISSING"]))
    assert masking.whole(b"abc=d in /root") == b"*** in /root"


def test_without_secrets_nothing_changes() -> None:
    """No secret, or an empty one, masks nothing."""
    assert not Masking([b""])
    assert Masking([b""]).whole(b"text") == b"text"
    assert Masking().stream().feed(b"text") == b"text"


def test_the_longer_of_two_values_wins_across_chunks() -> None:
    """A value that begins like a longer one does not let the rest of the longer one out."""
    stream = Masking([b"abc", b"abcdef"]).stream()
    assert stream.feed(b"x abc") + stream.feed(b"def y") + stream.finish() == b"x *** y"
    stream = Masking([b"abc", b"abcdef"]).stream()
    assert stream.feed(b"x abc") + stream.feed(b" y") + stream.finish() == b"x *** y"


def test_nothing_is_kept_back_without_need() -> None:
    """A line that can't begin a secret is shown at once."""
    stream = Masking([b"hunter2"]).stream()
    assert stream.feed(b"a line\n") == b"a line\n"
    assert stream.feed(b"a hun") == b"a "
    assert stream.feed(b"gry dog") == b"hungry dog"
    assert stream.finish() == b""


def test_lines_of_a_value_are_masked_by_themselves() -> None:
    """A key of several lines is hidden also when one line of it is shown alone."""
    assert Masking([b"BEGIN KEY\nsecretline\nEND"]).whole(b"> secretline <") == b"> *** <"


def test_bytes_that_are_not_utf8_pass_unchanged() -> None:
    """Masking a text keeps bytes that are not UTF-8."""
    assert Masking([b"pass"]).whole("\udcff pass") == "\udcff ***"


@given(
    st.lists(st.text("ab", min_size=1, max_size=4).map(str.encode), min_size=1, max_size=3),
    st.lists(st.text("abc", max_size=6).map(str.encode), max_size=8),
)
def test_a_stream_is_masked_as_a_whole_would_be(values: list[bytes], chunks: list[bytes]) -> None:
    """Where the chunks are cut makes no difference."""
    masking = Masking(values)
    stream = masking.stream()
    assert b"".join([*map(stream.feed, chunks), stream.finish()]) == masking.whole(b"".join(chunks))


@pytest.mark.parametrize(
    "write",
    [shlex.quote, repr, json.dumps, lambda text: json.dumps(text, ensure_ascii=False),
     lambda text: repr([text + "'\""]),
     lambda text: json.dumps(shlex.quote(text)), lambda text: repr(text.encode()), lambda text: " ".join(text.split())],
    ids=["shell", "repr", "json", "json utf-8", "repr of more", "shell in json", "bytes", "words"],
)  # fmt: skip
@pytest.mark.parametrize("value", ['it\'s $5\tor "six"\nsecond line\n', "pl\u00e4in'word", "back\\slash and\x1b[1m"])
def test_a_quoted_value_is_masked(write: Callable[[str], str], value: str) -> None:
    """However a program writes it, no word of it is left."""
    shown = Masking([value.encode()]).whole(write(value))
    assert "***" in shown
    for word in ("it", "five", "six", "second", "pl", "word", "back", "slash"):
        assert word not in shown


KEY = bytes(range(32))
texts = st.text("ab", min_size=1, max_size=5).map(str.encode)


@given(st.lists(texts, min_size=1, max_size=3), st.lists(texts, max_size=3), st.lists(texts, max_size=8))
def test_digests_mask_what_the_value_would(gone: list[bytes], values: list[bytes], chunks: list[bytes]) -> None:
    """What was removed is found by its digests, in one text as in a stream of chunks; no line of them has it."""
    digests = Digests(KEY, (line for value in gone for line in Digests(KEY).lines_of(value)))
    masking = Masking(values, digests)
    stream = masking.stream()
    masked = masking.whole(b"".join(chunks))
    assert b"".join([*map(stream.feed, chunks), stream.finish()]) == masked
    assert all(form not in masked for value in gone for form in forms(value))


def test_digests_of_other_lengths_and_of_another_key_mask_nothing() -> None:
    """Damaged lines are passed over, and a digest says nothing without its key."""
    lines = Digests(KEY).lines_of(b"hunter2")
    assert Masking((), Digests(KEY, lines)).whole(b"a hunter2!") == b"a ***!"
    assert Masking((), Digests(bytes(32), lines)).whole(b"a hunter2!") == b"a hunter2!"
    assert not Masking((), Digests(KEY, [b"", b"x:y:z", b"0:1:aa", b"7:1"]))


def test_two_maskings_together_hide_both() -> None:
    """Of several runs: values and digests alike."""
    sealed = [Masking((), Digests(KEY, Digests(KEY).lines_of(value))) for value in (b"first", b"second")]
    both = Masking() | sealed[0] | Masking([b"third"]) | sealed[1]
    assert both.whole("first second third fourth") == "*** *** *** fourth"


def test_a_document_is_masked_in_each_text() -> None:
    """Lists and objects inside; numbers stay."""
    masking = Masking([b"hunter2"])
    assert masking.document({"a": ["x hunter2", 1, None], "b": {"c": "hunter2"}}) == {
        "a": ["x ***", 1, None],
        "b": {"c": "***"},
    }
