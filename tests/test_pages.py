"""The pages: each can be found from the index, for people and for models. tests/docs checks their links."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest

from llms_text import FILE, llms_text

ROOT = Path(__file__).resolve().parent.parent
ENGLISH = sorted((ROOT / "docs" / "en").rglob("*.md"))


def links_of(page: Path) -> set[Path]:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)  # what is quoted links nowhere
    found = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)
    return {(page.parent / link).resolve() for link in found if "://" not in link}


@pytest.mark.parametrize("page", ENGLISH, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_lines_of_the_sources_are_short(page: Path) -> None:
    """A sentence or a clause a line, at most 100 characters; tables, code and long links excepted."""
    text = re.sub(r"^<!-- (?:from|made).*?<!-- .*?-->", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
    prose = [line for line in text.splitlines() if not line.startswith(("|", "!", "#")) and "](" not in line]
    assert [line for line in prose if len(line) > 100 and " " in line.strip("-* ")[:90]] == []


def test_the_index_lists_every_page() -> None:
    """Whoever starts at docs/en/index.md finds every page in English."""
    listed = links_of(ROOT / "docs" / "en" / "index.md")
    pages = [page for folder in ("en", "design") for page in (ROOT / "docs" / folder).rglob("*.md")]
    assert not [page for page in pages if page.name != "index.md" and page not in listed]


def test_llms_txt_is_the_index() -> None:
    """A model is told of the same pages as a person."""
    assert FILE.read_text() == llms_text(), "python tests/llms_text.py"


def test_the_architecture_names_files_that_are_there() -> None:
    """Every path in ARCHITECTURE.md, linked or not, is in the repository or in src/aver; a bare name is somewhere."""
    named = set(re.findall(r"`([\w./]+(?:\.py|\.c|/))`", (ROOT / "ARCHITECTURE.md").read_text()))
    source = ROOT / "src" / "aver"
    inside = [path.relative_to(source).as_posix() for path in source.rglob("*")]
    ends = tuple(f"/{path}" for path in inside)
    assert not [name for name in named if not any(one.endswith(f"/{name.rstrip('/')}") for one in ends)]


def test_lines_in_troubleshooting_are_in_the_code() -> None:
    """Each line that the page quotes is printed: its parts between the dots stand in the source."""
    sources = [ROOT / "setup.py", *(ROOT / "src" / "aver").rglob("*.py")]
    texts = [re.sub(r'"\s*\n\s*f?"', "", path.read_text()) for path in sources]  # strings that go on in the next line
    page = (ROOT / "docs" / "en" / "troubleshooting.md").read_text()
    section = page.split("## Lines that Aver prints", 1)[1].split("\n## ", 1)[0]
    quoted = re.findall(r"^\| (`+)(.+?)\1", section, flags=re.MULTILINE)
    assert len(quoted) >= 10
    texts.append(os.strerror(errno.ENOSPC))
    for _, line in quoted:
        parts = [part.strip() for part in re.split("…|: (?=No space)", line) if part.strip()]
        unknown = [part for part in parts if not any(part in text for text in texts)]
        assert not unknown, line
