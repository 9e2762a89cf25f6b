"""Which translated pages are behind the English ones, section by section.

English is the source. A section is what stands below a heading of level 1 or 2. In a translated page the line before
each of these headings is a stamp, `<!-- en: SLUG HASH -->`: the anchor of the English section that it reflects, and
that section's hash when it was translated. How lines are broken does not count.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import NamedTuple

from docs_site.pages import LANGUAGES, ROOT, SOURCE, Heading, headings, pages_of

SECTION_LEVEL = 2
STAMP = re.compile(r"<!-- en: (\S+) ([0-9a-f]+) -->")
BEHIND = re.compile(r"^<!-- behind: (.*?) -->$", re.MULTILINE)
OWN_PAGES = frozenset({"glossary.md"})  # pages of a translation that have no English one


class TranslationError(Exception):
    """A page that can't be stamped, in a sentence."""


class PageStatus(NamedTuple):
    """A translated page against its English one; `behind` has a sentence for each section that differs."""

    name: str
    is_missing: bool
    behind: tuple[str, ...]
    mark: str | None

    @property
    def is_wrong(self) -> bool:
        """Behind without a mark that says so, or marked though nothing is behind."""
        return not self.is_missing and bool(self.behind) == (self.mark is None)


def translations() -> list[str]:
    return [language for language in LANGUAGES if language != SOURCE]


def status(language: str, root: Path = ROOT) -> list[PageStatus]:
    """Every page of the source and of the translation."""
    english, translated = pages_of(SOURCE, root), pages_of(language, root)
    found = []
    for name in sorted({*english, *translated} - OWN_PAGES):
        if name not in translated:
            found.append(PageStatus(name, True, (), None))
        elif name not in english:
            found.append(
                PageStatus(name, False, ("there is no such English page",), _mark(translated[name].read_text()))
            )
        else:
            text = translated[name].read_text()
            found.append(PageStatus(name, False, tuple(differences(english[name].read_text(), text)), _mark(text)))
    return found


def differences(english: str, translated: str) -> list[str]:
    """A sentence for each section that is missing, not stamped, behind or too many."""
    current = hashes(english)
    stamps: dict[str, str] = {}
    found = []
    lines = translated.splitlines()
    for heading in _sections(translated):
        match = STAMP.fullmatch(lines[heading.line - 1].strip()) if heading.line else None
        if match:
            stamps[match[1]] = match[2]
        else:
            found.append(f'"{heading.text}" has no stamp')
    found += [f"#{slug} is not translated" for slug in current if slug not in stamps]
    found += [f"#{slug} is behind" for slug, value in stamps.items() if slug in current and current[slug] != value]
    return found + [f"#{slug} is no longer in the English page" for slug in stamps if slug not in current]


def stamped(english: str, translated: str, only: tuple[str, ...] = ()) -> str:
    """The translated page with the current hashes, of the sections `only` or of all; sections are paired in order."""
    current = hashes(english)
    if unknown := [slug for slug in only if slug not in current]:
        raise TranslationError(
            f"no section #{unknown[0]} in the English page; it has {', '.join(f'#{one}' for one in current)}"
        )
    lines = translated.splitlines()
    mine = _sections(translated)
    if len(mine) != len(current):
        raise TranslationError(
            f"{len(mine)} sections, but the English page has {len(current)}: "
            f"{' · '.join(one.text for one in mine)}  against  {' · '.join(current)}"
        )
    for heading, slug in reversed(list(zip(mine, current, strict=True))):
        above = heading.line - 1
        old = STAMP.fullmatch(lines[above].strip()) if heading.line else None
        if old and only and slug not in only:
            continue
        if only and slug not in only:
            raise TranslationError(f"#{slug} has no stamp yet: stamp the whole page first")
        lines[above + 1 - bool(old) : above + 1] = [f"<!-- en: {slug} {current[slug]} -->"]
    return "\n".join(lines) + "\n"


def hashes(english: str) -> dict[str, str]:
    """The hash of each section by its anchor; what stands above the first heading counts with the first."""
    lines = english.splitlines()
    found = _sections(english)
    starts = [0, *(one.line for one in found[1:])]
    ends = [*starts[1:], len(lines)]
    return {
        one.slug: hashlib.sha256(" ".join("\n".join(lines[start:end]).split()).encode()).hexdigest()[:10]
        for one, start, end in zip(found, starts, ends, strict=True)
    }


def _sections(text: str) -> list[Heading]:
    return [one for one in headings(text) if one.level <= SECTION_LEVEL]


def _mark(text: str) -> str | None:
    found = BEHIND.search(text)
    return found[1] if found else None
