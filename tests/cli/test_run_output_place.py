"""Where the output of a command goes that has no name for it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from product import Product

TEXT = "echo said"


def test_the_output_of_a_command_is_in_the_home(aver: Product, aver_home: Path) -> None:
    """`run` and `submit` leave nothing in the current folder; `log` and `show` know the file."""
    assert aver("run", "--", "sh", "-c", TEXT).out == "said\n"
    number = aver.submit("--", "sh", "-c", TEXT)
    aver("watch", str(number))
    assert list(aver.folder.iterdir()) == []
    for job in (1, number):
        log = aver_home / "logs" / f"aver-{job}.out"
        assert log.read_text() == aver("log", str(job)).out == "said\n"
        assert str(log) in aver("show", str(job)).out


def test_each_attempt_has_its_own_file_in_the_home(aver: Product, aver_home: Path) -> None:
    """A retry keeps what the attempt before it wrote."""
    aver("run", "--retry", "1", "--", "sh", "-c", 'echo "try $AVER_ATTEMPT"; exit 3')
    logs = sorted((aver_home / "logs").iterdir())
    assert [(path.name, path.read_text()) for path in logs] == [
        ("aver-1.2.out", "try 2\n"),
        ("aver-1.out", "try 1\n"),
    ]


def test_the_mode_of_a_log_follows_the_umask(aver: Product, aver_home: Path) -> None:
    """As of any file that the command itself would write."""
    before = os.umask(0o027)
    try:
        aver("run", "--", "sh", "-c", f"{TEXT} > mine; {TEXT}")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (aver.folder / "mine", aver_home / "logs" / "aver-1.out")]
    assert modes == [0o640, 0o640]


def test_output_chooses_the_file(aver: Product, aver_home: Path) -> None:
    """A relative one is in the current folder."""
    aver("run", "--output", "o-%j.txt", "--", "sh", "-c", TEXT)
    assert (aver.folder / "o-1.txt").read_text() == "said\n"
    assert list((aver_home / "logs").iterdir()) == []


def test_scripts_and_flows_write_where_they_were_submitted(aver: Product, aver_home: Path) -> None:
    """Slurm's default for a script; a folder of the run for a flow."""
    (aver.folder / "job.sh").write_text(f"#!/bin/sh\n{TEXT}\n")
    (aver.folder / "flow.yaml").write_text(f"jobs: {{one: {{run: {TEXT}}}}}\n")
    aver("run", "job.sh")
    aver("run", "flow.yaml")
    found = {str(path.relative_to(aver.folder)) for path in aver.folder.rglob("*.out")}
    assert found == {"aver-1.out", "aver-2/one.out"}
    assert list((aver_home / "logs").iterdir()) == []


def test_a_folder_that_cant_be_written_is_no_obstacle(aver_home: Path) -> None:
    """Nobody can make a file in /proc; a command runs there all the same."""
    assert Product(Path("/proc"))("run", "--", "sh", "-c", "pwd").out == "/proc\n"


def test_prune_cuts_logs_in_the_home(aver: Product, aver_home: Path) -> None:
    """They are Aver's own, wherever they are."""
    aver("run", "--", "sh", "-c", "seq 100000")
    log = aver_home / "logs" / "aver-1.out"
    before = log.stat().st_size
    answer = aver("prune", "--max-size", "1K")
    assert (answer.status, "[aver: pruned " in log.read_text(), log.stat().st_size < before) == (0, True, True)
