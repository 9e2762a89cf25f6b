"""The pages as text: where they are, their sections, their anchors and their links."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = "en"
LANGUAGES = {"en": "English", "zh": "中文"}
FENCE = re.compile(r" {0,3}(```+|~~~+)")
HEADING = re.compile(r"(#{1,6}) +(.*?) *#*$")
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
LINK = re.compile(r"(?<!\\)\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")


class Heading(NamedTuple):
    """A heading of a page; `line` counts from 0."""

    line: int
    level: int
    text: str
    slug: str


def pages_of(language: str, root: Path = ROOT) -> dict[str, Path]:
    """The user's pages of a language by their names: the paths below docs/LANGUAGE, and README.md."""
    folder = root / "docs" / language
    found = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*.md"))}
    return {"README.md": root / "README.md", **found} if language == SOURCE else found


def all_pages(root: Path = ROOT) -> list[Path]:
    """Every page of the repository that a reader meets: those of the top folder and those of docs/."""
    return [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md"))]


def headings(text: str) -> list[Heading]:
    """The headings outside of code, with the anchors that forges give them."""
    found: list[Heading] = []
    seen: Counter[str] = Counter()
    for number, line in _prose(text):
        if match := HEADING.match(line):
            slug = slug_of(match[2])
            count = seen[slug]
            seen[slug] += 1
            found.append(Heading(number, len(match[1]), match[2], f"{slug}-{count}" if count else slug))
    return found


def slug_of(heading: str) -> str:
    """The anchor that forges make of a heading: lower case, no punctuation, hyphens for spaces."""
    shown = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", shown.lower()).strip().replace(" ", "-")


def links_of(text: str) -> list[tuple[int, str]]:
    """The targets of all links and pictures outside of code, each with its line, counted from 1."""
    found = []
    for number, line in _prose(COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text)):
        prose = re.sub(r"(`+).*?\1", "", re.sub(r"\[`[^`\]]*`\]", "[code]", line))
        found += [(number + 1, match[1]) for match in LINK.finditer(prose)]
        found += [
            (number + 1, target)
            for target in re.findall(r"<(?:img|source|a)\b[^>]*?\b(?:src|srcset|href)=\"([^\"]+)\"", prose)
        ]
    return found


def _prose(text: str) -> Iterator[tuple[int, str]]:
    """The lines outside of fenced code with their numbers."""
    fence = ""
    for number, line in enumerate(text.splitlines()):
        match = FENCE.match(line)
        if fence:
            if match and match[1].startswith(fence) and line.strip() == match[1]:
                fence = ""
        elif match:
            fence = match[1]
        else:
            yield number, line
