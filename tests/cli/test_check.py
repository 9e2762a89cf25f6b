"""`aver check`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from aver.cli.commands.run import check

GOOD = "jobs:\n  a: {run: x}\n  b: {run: 'x {n}', needs: a, matrix: {n: 1..3}, partition: p}\n"
BAD = "jobs:\n  a: {run: x, mems: 3}\n  b: {needs: c, run: y}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "bad.yaml").write_text(BAD)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def checked(*args: str) -> Result:
    return CliRunner().invoke(check.command, args)


def test_no_mistakes(folder: Path) -> None:
    """Exit status 0, how many jobs there are, and what means nothing here."""
    result = checked("good.yaml")
    assert (result.exit_code, result.stdout) == (
        0,
        "good.yaml: note: job b: partition: means nothing on this machine\ngood.yaml: no mistakes; 4 jobs\n",
    )


def test_what_is_for_a_cluster_means_something_there(folder: Path) -> None:
    """Keys of Slurm are noted for jobs that run on this machine, not for those that go to Slurm."""
    (folder / "there.yaml").write_text("engine: slurm\nhost: me@login\njobs: {a: {run: x, partition: p}}\n")
    assert checked("there.yaml").stdout == "there.yaml: no mistakes; 1 job\n"


def test_mistakes(folder: Path) -> None:
    """Exit status 2 and one line for each mistake, of all files."""
    result = checked("bad.yaml", "good.yaml", "none.yaml")
    assert result.exit_code == 2
    lines = result.stdout.splitlines()
    assert lines[:2] == [
        'bad.yaml:2:15: unknown key "mems" in job "a"; did you mean "mem"?',
        'bad.yaml:3:14: job "b" needs "c", but this flow has no such job',
    ]
    assert lines[3] == "good.yaml: no mistakes; 4 jobs"
    assert lines[4].startswith('"none.yaml" does not exist')


def test_json(folder: Path) -> None:
    """The same as one document."""
    result = checked("bad.yaml", "--json")
    assert result.exit_code == 2
    (report,) = json.loads(result.stdout)["files"]
    assert (report["file"], report["is_right"], len(report["mistakes"])) == ("bad.yaml", False, 2)
    assert report["mistakes"][0] == {
        "line": 2,
        "column": 15,
        "text": 'unknown key "mems" in job "a"',
        "hint": 'did you mean "mem"?',
    }


def test_what_can_never_be_is_a_mistake(folder: Path) -> None:
    """A warning before the job begins, and more than this machine has."""
    (folder / "never.yaml").write_text(
        "jobs:\n  a: {run: x, time: 1h, signal: TERM@2h}\n  b: {run: x, cpus: 100000}\n"
        "  c: {run: x, mem: 900T}\n  d: {run: x, cpus: 100000, engine: slurm}\n"
    )
    result = checked("never.yaml")
    assert result.exit_code == 2
    said = result.stdout.splitlines()
    assert said[0] == "never.yaml:2:3: job a: its warning signal is due 2 h before its time limit of 1 h"
    assert said[1].startswith("never.yaml:3:3: job b: it asks for 100000 CPUs, and this machine has ")
    assert said[2].startswith("never.yaml:4:3: job c: it asks for 900.0 TiB of memory, and this machine has ")
    assert len(said) == 3
