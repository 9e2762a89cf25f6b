"""The folder that a run shares with its allocations: half-written, foreign and missing files say nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from aver.engines.api import AllocationAsk
from aver.engines.slurm.allocation.folder import SUBFOLDERS, Allocation, Asked, RunFolder, Size, size_of

ONE = Size(1, 0, 0)
KEY = "h.5.1.b"


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    made = RunFolder(tmp_path / "7")
    made.make()
    return made


def test_it_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    """A coordinator was killed while it made the folder: nothing is found, and the next one makes it."""
    (tmp_path / ".7" / SUBFOLDERS[0]).mkdir(parents=True)
    assert list(tmp_path.glob("[0-9]*")) == []
    folder = RunFolder(tmp_path / "7")
    folder.make()
    assert sorted(path.name for path in folder.path.iterdir()) == sorted(SUBFOLDERS)
    folder.make()
    assert folder.read().waiting == {}


def test_an_order_is_there_once(folder: RunFolder) -> None:
    """Of a cancellation and an allocation one wins."""
    size = Size(2, 300, 1, 60)
    name = folder.put_order(1, KEY, size, ["step"], b"#!/bin/sh\n")
    assert size_of(name) == size
    assert folder.read().waiting == {KEY: name}
    assert folder.handed_over() == {KEY}
    assert folder.take_back(name)
    assert not folder.take_back(name)
    assert (folder.read().waiting, folder.read().cancelled) == ({}, {KEY})


def test_an_order_that_was_half_put_was_not_handed_over(folder: RunFolder) -> None:
    (folder.path / "orders" / f"{KEY}.in").write_text("step\n")
    assert folder.handed_over() == set()
    (folder.path / "orders" / f"{KEY}.sh").write_text("#!/bin/sh\n")
    assert folder.handed_over() == set()


def test_what_no_allocation_wrote_says_nothing(folder: RunFolder) -> None:
    for path in ("in/none", "in/1_2_h.5.1.b", "started/x", f"started/1_1_0_0_0_{KEY}@n1", "started/@@", "cancelled/-"):
        (folder.path / path).touch()
    found = folder.read()
    assert (found.waiting, found.started, found.cancelled) == ({}, {}, set())


@pytest.mark.parametrize(
    ("text", "status"), [("0\n", 0), ("137\n", 137), ("", None), ("13", None), ("-1\n", None), ("\xff\n", None)]
)
def test_a_status_counts_when_it_is_whole(folder: RunFolder, text: str, status: int | None) -> None:
    (folder.path / "done" / KEY).write_bytes(text.encode("latin-1"))
    assert folder.status_of(KEY) == status


def test_what_was_asked_for_comes_back(folder: RunFolder) -> None:
    """One that is damaged is set aside and said, and counts as asked: nothing is taken twice."""
    ask = AllocationAsk(7, "r1", ("-N1",), 2, 120, None, "/work", 0o022)
    asked = Asked(ask, [Allocation("a.1", 5.0, 12, "RUNNING"), Allocation("a.2", 6.0)])
    folder.keep(asked)
    for number, text in enumerate(("", "[]", "{}", "\xff")):
        (folder.path / "asks" / f"bad{number}.json").write_bytes(text.encode("latin-1"))
    said: list[str] = []
    assert folder.load_asks(said.append) == [asked]
    assert len(said) == 4
    assert said[0].endswith(
        "is damaged, and set aside as bad0.json.damaged: what was taken for it is not used any more"
    )
    assert (folder.path / "asks" / "bad3.json.damaged").read_bytes() == b"\xff"
    assert folder.has_asked("bad3")
    assert folder.load_asks(said.append) == [asked]
    assert len(said) == 4


@pytest.mark.parametrize("text", ["", "n1", "n1 4 x 0\n", "\xff"])
def test_nodes_that_can_not_be_read_are_unknown(folder: RunFolder, text: str) -> None:
    (folder.path / "allocs" / "12").write_bytes(text.encode("latin-1"))
    assert folder.nodes(12) == ()
