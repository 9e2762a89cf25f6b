"""Secrets never get through, wherever the chunks are cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aver.cli.output.masking import Masking


def test_a_value_is_masked_in_bytes_and_text() -> None:
    """Both forms of a text are masked."""
    masking = Masking([b"hunter2"])
    assert masking.whole(b"say hunter2!") == b"say ***!"
    assert masking.whole("say hunter2!") == "say ***!"


def test_values_come_from_the_named_variables_only() -> None:
    """A name that is not marked secret is shown."""
    masking = Masking.of_environment([b"TOKEN=abc=d", b"HOME=/root", b"EMPTY="], ["TOKEN", "EMPTY", "MISSING"])
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
