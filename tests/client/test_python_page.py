"""The reference of Python names everything that `import aver` gives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import aver

PAGE = (Path(__file__).parents[2] / "docs" / "en" / "reference" / "python.md").read_text()


@pytest.mark.parametrize("name", [name for name in aver.__all__ if not name.startswith("_")])
def test_the_page_has_every_name(name: str) -> None:
    """Every public name of the package."""
    assert re.search(rf"\b{name}\b", PAGE)


@pytest.mark.parametrize(
    "kind", [aver.Flow, aver.Run, aver.Job, aver.Attempt, aver.Executor], ids=lambda kind: kind.__name__
)
def test_the_page_has_every_method(kind: type) -> None:
    """Every public method and property of the classes."""
    assert [name for name in dir(kind) if name[0] != "_" and not re.search(rf"\b{name}\b", PAGE)] == []
