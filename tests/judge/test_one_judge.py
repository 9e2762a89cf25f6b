"""Law 2: only the judge makes a verdict."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import aver

SOURCE = Path(aver.__file__).parent
READS_BACK = {Path("store/read/rows.py")}  # a verdict that the judge made, from its columns


def verdicts_made(tree: ast.AST) -> Iterator[int]:
    """Lines that construct a Verdict, or make another one from one that is there."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name == "Verdict" or (name == "replace" and node.args and "verdict" in ast.unparse(node.args[0]).lower()):
            yield node.lineno


def test_only_the_judge_makes_a_verdict() -> None:
    """No module outside `judge/` constructs or changes a Verdict."""
    made = {
        f"{path.relative_to(SOURCE)}:{line}"
        for path in SOURCE.rglob("*.py")
        if path.relative_to(SOURCE).parts[0] != "judge" and path.relative_to(SOURCE) not in READS_BACK
        for line in verdicts_made(ast.parse(path.read_text()))
    }
    assert made == set()


def test_the_search_finds_what_it_looks_for() -> None:
    """A construction, a construction through a module, and a changed copy are each found."""
    text = "Verdict(1)\nevidence.Verdict(2)\nreplace(verdict, reason='x')\nreplace(spec, x=1)\nreplace(self.verdict)\n"
    assert sorted(verdicts_made(ast.parse(text))) == [1, 2, 3, 5]


def test_nothing_reads_our_own_sentences() -> None:
    """No module cuts an errno out of a sentence of ours."""
    texts = {path: path.read_text() for path in SOURCE.rglob("*.py")}
    cutting = ('"errno "', '" (errno "', '"(errno')
    assert [str(path) for path, text in texts.items() if any(word in text for word in cutting)] == []
