"""Every command of a page that says `console` prints what the page shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from aver.engines.local.capabilities import find_cgroup
from page_commands import fits, read_page, run_page, unmarked

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "en").rglob("*.md"))]
EXECUTED = [page for page in PAGES if read_page(page.read_text()).commands]


@pytest.mark.parametrize("path", EXECUTED, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_print_what_the_page_shows(path: Path, aver_home: Path, tmp_path: Path) -> None:
    """`python tests/page_commands.py PAGE` writes the page's outputs anew."""
    folder = tmp_path / "project"
    folder.mkdir()
    page = read_page(path.read_text())
    if any(
        "bytearray" in one.text or "OutOfMemory" in one.prints or "for memory" in one.prints for one in page.commands
    ):
        base, reason = find_cgroup()
        if base is None:
            pytest.skip(f"the page shows a kill for memory: {reason}")
    printed = run_page(page, folder, aver_home)
    assert len(printed) == len(page.commands)
    for command, text in zip(page.commands, printed, strict=True):
        assert fits(command.prints, text), f"$ {command.text}{text}"


@pytest.mark.parametrize("path", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_block_with_commands_says_whether_it_is_executed(path: Path) -> None:
    """`console` is executed; `text` is not, since it needs a cluster, another program or a person."""
    assert unmarked(path.read_text()) == []


def test_what_is_not_printed_does_not_fit() -> None:
    """Another word, a missing line and another exit do not fit; another time, order of events or table width does."""
    assert fits(
        "00:00:01 job 3 a FAILED\n00:00:02 job 2 b RUNNING\n", "09:00:01 job 2 b RUNNING\n09:00:02 job 3 a FAILED\n"
    )
    assert fits("JOB  NAME\n  3  a  1.2 s\n", "JOB NAME\n 3 a   12 s\n")
    assert fits("one\n…\nfour\n", "one\ntwo\nthree\nfour\n")
    assert fits("one … three\n", "one two three\n")
    assert not fits("job 3 FAILED 1:0\n", "job 3 FAILED 2:0\n")
    assert not fits("one\ntwo\n", "one\n")
    assert not fits("one\n…\nfour\n", "one\ntwo\nfive\n")
    assert not fits("", "one\n")
