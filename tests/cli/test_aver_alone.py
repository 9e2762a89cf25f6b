"""`aver` alone: what runs, and what failed since the last look."""

from __future__ import annotations

from pathlib import Path

from product import Product
from stored_past import Aver

from aver.cli.commands.look.overview import SHOWN


def test_aver_alone_says_what_failed_since_the_last_look(past: Path, call: Aver) -> None:
    """The second look has no news; a home without jobs shows the help."""
    first = call()
    assert first.status == 0
    assert first.out.splitlines()[0] == "0 running, 0 waiting"
    assert "\n2 failed\n" in first.out
    assert "OUT_OF_MEMORY" in first.out
    assert "aver why" in first.out
    assert "\nnone failed since " in call().out


def test_aver_alone_names_an_old_job_that_failed_late(aver: Product) -> None:
    """However many with higher numbers failed before the last look."""
    aver.submit("--", "sh", "-c", "until test -e go; do sleep 0.05; done; exit 1")
    for _ in range(SHOWN + 1):
        aver("run", "--", "false")
    assert f"{SHOWN + 1} failed" in aver().out
    (aver.folder / "go").touch()
    aver("watch", "1")
    (line,) = [line for line in aver().out.splitlines() if "FAILED" in line]
    assert line.split()[0] == "1"


def test_aver_alone_in_an_empty_home_is_the_help(aver: Product) -> None:
    """There is nothing to look at yet."""
    answer = aver()
    assert answer.status == 0
    assert "Usage: aver" in answer.out
