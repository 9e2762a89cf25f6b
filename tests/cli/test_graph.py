"""`aver graph`."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from click.testing import CliRunner

from aver.cli.commands.run import graph
from aver.errors import CantWriteError
from aver.spec.mistakes import SpecError

GOOD = "jobs:\n  a: {run: x}\n  b: {run: 'x {n}', needs: a, matrix: {n: 1..3}}\n"
BAD = "jobs:\n  b: {needs: c, run: y}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "bad.yaml").write_text(BAD)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_graph(folder: Path) -> None:
    """Text to the terminal, SVG and DOT by the name of the file."""
    runner = CliRunner()
    assert runner.invoke(graph.command, ["good.yaml"]).stdout == "good\n└─ a\n   └─ b ×3\n"
    assert runner.invoke(graph.command, ["good.yaml", "-o", "x.svg"]).exit_code == 0
    ET.parse(folder / "x.svg")
    assert runner.invoke(graph.command, ["good.yaml", "-f", "dot"]).stdout.startswith('digraph "good" {')


def test_graph_says_what_is_wrong(folder: Path) -> None:
    """Mistakes and unwritable files are errors of the user."""
    runner = CliRunner()
    assert isinstance(runner.invoke(graph.command, ["bad.yaml"]).exception, SpecError)
    result = runner.invoke(graph.command, ["good.yaml", "-o", "no/such/x.svg"])
    assert isinstance(result.exception, CantWriteError)
    result = runner.invoke(graph.command, ["good.yaml", "-o", "x.png"])
    assert "-f dot | dot -Tpng -o x.png" in str(result.exception)
    assert not (folder / "x.png").exists()
