"""Hints: which well-known line the end of a log has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.report.hints import KNOWN, LONGEST_QUOTE, find_hint


@pytest.mark.parametrize(
    ("text", "name", "line"),
    [
        ("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB", "CUDA out of memory", None),
        ("cp: error writing 'x': No space left on device", "no space left", None),
        ("OSError: [Errno 122] Disk quota exceeded", "disk quota exceeded", None),
        ("bash: line 1:  4711 Killed                  python x.py", "killed", None),
        ("Traceback (most recent call last):\n  File \"x\"\nValueError: no", "exception", "ValueError: no"),
        ("Traceback (most recent call last):\n  File \"x\"\nValueError: \nbad", "exception", "ValueError:"),
        ("Traceback (most recent call last):\n  File \"x\"", "Traceback", "Traceback (most recent call last):"),
        ("Traceback …\nModuleNotFoundError: No module named 'foo'", "missing module", None),
        ("[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(...)", "NCCL timeout", None),
        ("MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD", "MPI_Abort", None),
        ("./a.out: error while loading shared libraries: libx.so: cannot open", "missing library", None),
        ("train.sh: line 3: module: command not found", "command not found", None),
        ("terminate called after throwing an instance of 'std::bad_alloc'", "memory refused", None),
        ("error: could not compile", "error", None),
    ],
)  # fmt: skip
def test_well_known_lines(text: str, name: str, line: str | None) -> None:
    """Each is quoted as it was written, with a name."""
    hint = find_hint(f"before\n{text}\nafter it\n".encode())
    assert hint is not None
    assert hint.name == name
    assert hint.line == (line or text.splitlines()[-1])


@pytest.mark.parametrize("text", ["all is well\n", "", "Killed7 terrors found in 0 errors\n", "no Killedness\n"])
def test_ordinary_output_has_none(text: str) -> None:
    """Words inside of others are no hint."""
    assert find_hint(text.encode()) is None


def test_what_says_more_wins_and_of_the_same_the_last() -> None:
    """A cause stands before the wreck that it leaves, and the last attempt of a loop counts."""
    text = b"No space left on device: a\nNo space left on device: b\nTraceback (most recent call last):\nKilled\n"
    hint = find_hint(text)
    assert hint is not None
    assert hint.line == "No space left on device: b"


def test_lines_that_differ_in_figures_are_one() -> None:
    """Forty members that wanted forty amounts are one hint."""
    one, two = find_hint(b"CUDA out of memory. Tried 2.5 GiB"), find_hint(b"CUDA out of memory. Tried 12 GiB")
    assert one is not None
    assert two is not None
    assert one.key == two.key


def test_progress_bars_colours_and_long_lines() -> None:
    """What a bar wrote over is gone, escapes are gone, and a quotation has an end."""
    hint = find_hint(b" 10%\r 20%\r\x1b[31mERROR: " + b"x" * 10_000 + b"\x1b[0m\n")
    assert hint is not None
    assert hint.line.startswith("ERROR: xxx")
    assert len(hint.line) == LONGEST_QUOTE


@given(st.binary(max_size=3000))
def test_any_bytes_will_do(data: bytes) -> None:
    """A log may hold anything."""
    hint = find_hint(data)
    assert hint is None or hint.name in {known.name for known in KNOWN}
