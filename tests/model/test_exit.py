"""Exit statuses: nothing is lost between a wait status and its text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.model.exit import ExitStatus

ENDED = st.one_of(
    st.builds(lambda code: code << 8, st.integers(0, 255)),
    st.builds(lambda signal, core: signal | (0x80 if core else 0), st.integers(1, 64), st.booleans()),
)


def is_ended(raw: int) -> bool:
    """What wait(2) can say of an ended process on Linux, written out differently from the code."""
    code, low = divmod(raw, 256)
    if low == 0:
        return 0 <= code <= 255
    return code == 0 and 1 <= low % 128 <= 64


@given(ENDED)
def test_wait_status_round_trip(raw: int) -> None:
    """Decoding and encoding gives the same wait status, core flag included."""
    assert ExitStatus.from_wait(raw).wait_status == raw


def test_every_16_bit_number_is_decoded_without_loss_or_refused() -> None:
    """All 65,536: those of an ended process survive the round trip, and the others raise."""
    for raw in range(0x10000):
        if is_ended(raw):
            assert ExitStatus.from_wait(raw).wait_status == raw
        else:
            with pytest.raises(ValueError, match="not a wait status"):
                ExitStatus.from_wait(raw)


@pytest.mark.parametrize("raw", [-1, 0x10000, 1 << 40])
def test_numbers_that_are_no_wait_status(raw: int) -> None:
    """A number outside 16 bits is refused."""
    with pytest.raises(ValueError, match="not a wait status"):
        ExitStatus.from_wait(raw)


@given(ENDED, ENDED)
def test_different_ends_have_different_texts(one: int, other: int) -> None:
    """Two ends that differ in more than the core flag are written differently."""
    first, second = ExitStatus.from_wait(one), ExitStatus.from_wait(other)
    assert (str(first) == str(second)) == ((one & ~0x80) == (other & ~0x80))


@given(ENDED)
def test_text_round_trip(raw: int) -> None:
    """`code:signal` is read back as it was written; only the core flag is not in the text."""
    assert ExitStatus.parse(str(ExitStatus.from_wait(raw))) == ExitStatus.from_wait(raw & ~0x80)


def test_exit_137_is_not_a_kill() -> None:
    """137:0 and 0:9 are two things, though a shell shows both as 137."""
    own, killed = ExitStatus.from_wait(137 << 8), ExitStatus.from_wait(9)
    assert own != killed
    assert (str(own), str(killed)) == ("137:0", "0:9")
    assert own.shell_code == killed.shell_code == 137


def test_success_is_zero_and_nothing_else() -> None:
    """Only 0:0 is a success."""
    assert ExitStatus().is_success
    assert not ExitStatus(code=1).is_success
    assert not ExitStatus(signal=1).is_success


@pytest.mark.parametrize(
    ("code", "signal", "core"),
    [(256, 0, False), (-1, 0, False), (0, 65, False), (0, -1, False), (1, 9, False), (0, 0, True)],
)
def test_impossible_statuses_can_not_be_made(code: int, signal: int, core: bool) -> None:
    """A code and a signal, a core without a signal, and numbers out of range raise."""
    with pytest.raises(ValueError):
        ExitStatus(code, signal, core)


@pytest.mark.parametrize(
    "text", ["", "1", ":", "1:", ":9", "-1:0", "1:9", "256:0", "0:65", "٣:0", "1:0:0", " 1:0", "0001:0"]
)
def test_texts_that_are_no_exit(text: str) -> None:
    """Anything but two plain numbers that fit raises."""
    with pytest.raises(ValueError):
        ExitStatus.parse(text)
