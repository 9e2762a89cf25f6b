"""Diffs of edited flows: `patch` makes the new text of them, and many changed lines take no longer than few."""

from __future__ import annotations

import difflib
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.report.correction.diffs import unified_diff

lines = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "run: x\n"]), max_size=30)


def patched(old: str, diff: str) -> str:
    """What the hunks make of the old text, read strictly."""
    source = old.splitlines(keepends=True)
    made: list[str] = []
    at = 0
    for line in diff.splitlines(keepends=True)[2:]:
        if line.startswith("@@"):
            start, _, count = line.split()[1][1:].partition(",")
            begin = int(start) - (count != "0")
            made += source[at:begin]
            at = begin
        elif line.startswith("\\"):
            made[-1] = made[-1].removesuffix("\n")
        elif line.startswith("+"):
            made.append(line[1:])
        else:
            assert source[at].rstrip("\n") == line[1:].rstrip("\n")
            if line.startswith(" "):
                made.append(source[at])
            at += 1
    return "".join([*made, *source[at:]])


@given(lines, lines, st.booleans())
def test_the_diff_makes_the_new_text_of_the_old(old: list[str], new: list[str], ends: bool) -> None:
    """Whatever the two are; nothing where they are the same."""
    before, after = "".join(old), "".join(new) + ("" if ends else "end")
    diff = unified_diff(before, after, "a", "b")
    assert (diff == "") == (before == after)
    if diff:
        assert patched(before, diff) == after


def test_it_is_what_the_standard_library_says_of_an_edit() -> None:
    """A value here, a line there: the same hunks with the same context."""
    old = [f"line {number}\n" for number in range(40)]
    new = [*old[:5], "changed\n", *old[6:20], "added\n", "twice\n", *old[20:]]
    wanted = "".join(difflib.unified_diff(old, new, "a", "b"))
    assert unified_diff("".join(old), "".join(new), "a", "b") == wanted


def test_ten_thousand_changes() -> None:
    """Each job changed and got a line: every change is there."""
    old = "".join(f"job{number}:\n  mem: 1G\n  run: x\n" for number in range(10_000))
    new = old.replace("  mem: 1G\n", "  mem: 2G\n  time: 5m\n")
    diff = unified_diff(old, new, "a", "b")
    assert diff.count("\n+  mem: 2G\n+  time: 5m\n") == 10_000
    assert diff.count("\n-  mem: 1G\n") == 10_000


@pytest.mark.skipif(shutil.which("patch") is None, reason="needs patch")
def test_patch_reads_it(tmp_path: Path) -> None:
    """The real program, with a text that has no last newline."""
    old, new = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nend", "a\nb\nX\nd\ne\nf\ng\nh\ni\nj\nend\nmore"
    (tmp_path / "file").write_text(old)
    subprocess.run(
        ["patch", "-s", "file"], input=unified_diff(old, new, "file", "file").encode(), cwd=tmp_path, check=True
    )
    assert (tmp_path / "file").read_text() == new
