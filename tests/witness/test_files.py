"""The look at a job's files: inputs before the start, outputs then and after the end."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from witness_driver import Line, Slot, acts, is_running, read_lines, sh, until

from hanging_folder import hanging


def once(binary: Path, folder: Path, script: str, *options: str) -> tuple[int, Line]:
    record = folder.parent / "record"
    words = [str(binary), "once", "--record", str(record), "--key", "7.1", *options, "--", "bash", "-c", script]
    done = subprocess.run(words, cwd=folder, check=False, timeout=60, stderr=subprocess.PIPE)
    (line,) = read_lines(record)
    return done.returncode, line


def found(line: Line) -> dict[str, Any]:
    files = line["files"]
    assert abs(files["at"] - time.time()) < 60
    return {name: value for name, value in files.items() if value and name != "at"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    (made / "old.csv").write_text("old")
    return made


@pytest.mark.parametrize(
    ("pattern", "script", "expected"),
    [
        ("o new.csv", "echo x > new.csv", {"outputs": 1, "written": 1, "names": ["new.csv"]}),
        ("o new.csv", "true", {"outputs": 1, "wrong": 1, "missing": ["new.csv"]}),
        ("o old.csv", "true", {"outputs": 1, "wrong": 1, "old": ["old.csv"]}),
        ("o old.csv", "echo new > old.csv", {"outputs": 1, "written": 1, "names": ["old.csv"]}),
        ("o old.csv", "touch old.csv", {"outputs": 1, "written": 1, "names": ["old.csv"]}),
        ("p new.csv", "true", {"outputs": 1}),
        ("p old.csv", "true", {"outputs": 1}),
        ("o *.csv", "true", {"outputs": 1, "wrong": 1, "old": ["*.csv"]}),
        ("o *.csv", "touch b.csv", {"outputs": 1, "written": 1, "names": ["b.csv"]}),
        ("o *.csv", "touch .b.csv", {"outputs": 1, "wrong": 1, "old": ["*.csv"]}),
        ("o d", "mkdir -p d/e", {"outputs": 1, "wrong": 1, "missing": ["d"]}),
        ("o d", "mkdir -p d/e; touch d/e/f", {"outputs": 1, "written": 1, "names": ["d/e/f"]}),
        ("o d/", "mkdir -p d/e; touch d/e/f", {"outputs": 1, "written": 1, "names": ["d/e/f"]}),
        ("o d/**/f?", "mkdir -p d/e; touch d/e/f1", {"outputs": 1, "written": 1, "names": ["d/e/f1"]}),
        ("o a[1].csv", "touch 'a[1].csv'", {"outputs": 1, "written": 1, "names": ["a[1].csv"]}),
        ("o ü?.csv", "touch üß.csv", {"outputs": 1, "written": 1, "names": ["Ã¼Ã\x9f.csv"]}),
        ("o link", "ln -s nowhere link", {"outputs": 1, "wrong": 1, "missing": ["link"]}),
        ("o link", "ln -s old.csv link", {"outputs": 1, "written": 1, "names": ["link"]}),
    ],
)
def test_outputs(witness_binary: Path, folder: Path, pattern: str, script: str, expected: dict[str, object]) -> None:
    """What is there, and whether it is as it was before the start."""
    _, line = once(witness_binary, folder, script, "--file", pattern)
    assert found(line) == expected


def test_times_that_a_program_sets(witness_binary: Path, folder: Path) -> None:
    """A copy that keeps its source's time is new all the same: no clock decides."""
    os.utime(folder / "old.csv", (1, 1))
    _, line = once(witness_binary, folder, "cp -p old.csv new.csv; cp -p old.csv x; mv x old.csv",
                   "--file", "o new.csv", "--file", "o old.csv")  # fmt: skip
    assert found(line)["written"] == 2


def test_written_just_before_the_start(witness_binary: Path, folder: Path) -> None:
    """A file of the same size that was written an instant before is told from the one that the job writes."""
    for _ in range(20):
        (folder / "old.csv").write_text("aaa")
        _, line = once(witness_binary, folder, "printf bbb > old.csv", "--file", "o old.csv")
        assert found(line)["written"] == 1


def test_inputs_that_match_nothing(witness_binary: Path, folder: Path) -> None:
    """Nothing is started, and the record names all of them."""
    options = ("--file", "i old.csv", "--file", "i data/*.csv", "--file", "i none", "--file", "o x")
    status, line = once(witness_binary, folder, "touch started", *options)
    assert line["launch"] == {"op": "input", "errno": 2, "path": "data/*.csv, none"}
    assert (status, line["raw"], "files" in line, (folder / "started").exists()) == (127, None, False, False)


@pytest.mark.parametrize(
    ("options", "script", "left", "removed"),
    [
        (("--clean", "-"), "touch a; exit 3", [], 1),
        ((), "touch a; exit 3", ["a"], 0),
        (("--clean", "-"), "touch a b", ["a", "b"], 0),
        (("--clean", "-"), "touch a b; rm b", [], 1),
        (("--clean", "-"), "touch a; kill -9 $$", [], 1),
        (("--clean", "-", "--warn", "28 60000 a", "--time", "60000"), "touch a; exit 3", [], 1),
        (
            ("--clean", "k", "--warn", "28 60000 a", "--time", "60000"),
            "touch a; exit 3",
            ["a"],
            0,
        ),
    ],
)
def test_clean(
    witness_binary: Path, folder: Path, options: tuple[str, ...], script: str, left: list[str], removed: int
) -> None:
    """A failed attempt leaves none of its outputs; what it did not write, and its inputs, stay."""
    files = ("--file", "o a", "--file", "o b", "--file", "p *.csv", "--file", "i in.csv")
    (folder / "in.csv").write_text("in")
    _, line = once(witness_binary, folder, f"echo more >> in.csv; {script}", *options, *files)
    assert line["files"]["removed"] == removed
    assert sorted(path.name for path in folder.iterdir()) == [*left, "in.csv", "old.csv"]


def test_many_long_names_fit(witness_binary: Path, folder: Path) -> None:
    """A record stays whole, whatever the names are; the counts have all of them."""
    patterns = [word for index in range(200) for word in ("--file", f"o {index}-" + "ä" * 100)]
    _, line = once(
        witness_binary, folder, f"touch {' '.join(f'n{i}' for i in range(100))}", *patterns, "--file", "o n*"
    )
    assert (line["files"]["wrong"], line["files"]["written"]) == (200, 100)
    assert 1 <= len(line["files"]["missing"]) <= 20


def test_the_slot_goes_on(slot: Slot, folder: Path) -> None:
    """A witness looks for one job after the other; nobody is left who looks."""
    fields = (f"d{folder}", "E" + "PATH=" + os.environ["PATH"], "fo new.csv")
    assert slot.sh("1.1", "touch new.csv", *fields)["files"]["written"] == 1
    assert slot.sh("2.1", "true", *fields)["files"]["old"] == ["new.csv"]
    assert slot.fail("3.1", *fields, "fi none", *sh("true"))["launch"]["op"] == "input"
    assert "files" not in slot.sh("4.1", "true", *fields[:2])
    with open(f"/proc/{slot.process.pid}/task/{slot.process.pid}/children") as file:
        assert file.read() == ""


def test_who_looks_is_none_of_the_job(slot: Slot, folder: Path) -> None:
    """A signal to all of the job and its cancellation leave whoever looks alone."""
    fields = (f"d{folder}", "E" + "PATH=" + os.environ["PATH"], "fo new.csv")
    slot.start("1.1", *fields, *sh("trap 'touch new.csv; exit 0' TERM; touch ready; while :; do sleep 0.05; done"))
    until((folder / "ready").exists)
    slot.send("S", "k1.1", "s15", "ca")
    end = slot.expect("end")
    assert end["files"]["written"] == 1


def test_a_folder_that_hangs(slot: Slot, folder: Path) -> None:
    """It is said that the look takes a while; a cancellation ends the wait, and the record says that nobody looked."""
    (folder / "there").mkdir()
    fields = (f"d{folder}", "E" + "PATH=" + os.environ["PATH"], "fo there/new.csv")
    start = slot.start("1.1", *fields, *sh("until test -e go; do sleep 0.01; done"))
    with hanging(folder / "there"):
        (folder / "go").touch()
        assert slot.expect("look")["key"] == "1.1"
        assert not is_running(start["pid"])
        slot.send("C", "k1.1")
        end = slot.expect("end")
    assert ("files" in end, end["raw"], acts(end)) == (False, 0, [("cancel", 9)])
    until(lambda: slot.process.poll() is not None)  # the next job must not have what is stuck
