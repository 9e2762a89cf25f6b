"""The topics of `aver docs`: the pages of docs/en, or of another language, by their names.

A wheel carries the pages as `aver/docs`; in a source tree they are those of the tree.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from aver.errors import AverError, UsageError
from aver.model.suggestion import shown
from aver.printable import one_line

SOURCE = "en"
LANGUAGES = ("en", "zh")
PACKAGE = Path(__file__).resolve().parents[2]
UNLISTED = frozenset({"index", "glossary", "README"})
NEAREST = 3
NEAR = 0.7  # how alike two words are that one may have been meant for the other
_ROW = re.compile(r"^\| \[[^]]+\]\(([^)#]+)\.md\) \| (.*) \|$", re.MULTILINE)
_LINK = re.compile(r"\[([^]]+)\]\([^)]+\)")
_COMMENT = re.compile(r"^<!--.*?-->\n", re.MULTILINE | re.DOTALL)


class Topic(NamedTuple):
    """A page; `name` is its path without the ending, `short` the last part of it where no other page has the same."""

    name: str
    short: str
    about: str


def docs_folder() -> Path:
    """Where the pages are."""
    for folder in (PACKAGE / "docs", PACKAGE.parents[1] / "docs"):
        if (folder / SOURCE / "index.md").is_file():
            return folder
    raise AverError(f"this installation has no documentation in {PACKAGE / 'docs'}: install Aver again")


def language_of(environment: Mapping[str, str]) -> str:
    """The language of the locale where there are pages in it, else English."""
    for variable in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if locale := environment.get(variable):
            found = re.split(r"[_.@-]", locale.lower())[0]
            return found if found in LANGUAGES else SOURCE
    return SOURCE


def topics(language: str) -> list[Topic]:
    """Every topic in the order of the index, with what the index says of it, in the language where it can be had."""
    folder = docs_folder()
    names = [_name(path, folder / SOURCE) for path in sorted((folder / SOURCE).rglob("*.md"))]
    lasts = [name.rpartition("/")[2] for name in names]
    about = dict(_rows(folder / SOURCE / "index.md")) | dict(_rows(folder / language / "index.md"))
    order = {name: at for at, name in enumerate(about)}
    found = [
        Topic(name, last if lasts.count(last) == 1 else name, about.get(name) or _title(folder / SOURCE / f"{name}.md"))
        for name, last in zip(names, lasts, strict=True)
        if name not in UNLISTED
    ]
    return sorted(found, key=lambda topic: order.get(topic.name, len(order)))


def find_topic(word: str, known: list[Topic], commands: Mapping[str, str]) -> Topic:
    """The topic that the word names; raises a UsageError with the nearest ones where there is none."""
    wanted = word.lower().removesuffix(".md")
    for topic in known:
        if wanted in (topic.name.lower(), topic.short.lower()):
            return topic
    shorts = {name: topic.short for topic in known for name in (topic.name, topic.short)}
    near = [shorts[name] for name in shorts if len(wanted) > 2 and wanted in name]
    near += [shorts[name] for name in difflib.get_close_matches(wanted[:255], shorts, n=NEAREST, cutoff=NEAR)]
    nearest = list(dict.fromkeys(near))[:NEAREST]
    hint = f"did you mean {' or '.join(nearest)}? " if nearest else ""
    next_command = (
        f"`aver {wanted} --help` explains the command" if wanted in commands else "`aver docs` lists all topics"
    )
    raise UsageError(f"no topic {shown(one_line(word))}; {hint}{next_command}")


def page_text(name: str, language: str) -> str | None:
    """The page as Markdown, without the marks of its translators; None where it is not in this language."""
    path = docs_folder() / language / f"{name}.md"
    try:
        return _COMMENT.sub("", path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise AverError(f"can't read {path}: {error.strerror}") from None


def _name(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix().removesuffix(".md")


def _rows(index: Path) -> list[tuple[str, str]]:
    """The pages that an index lists, each with what it says of it."""
    if not index.is_file():
        return []
    rows = _ROW.findall(index.read_text(encoding="utf-8"))
    return [(name, _LINK.sub(r"\1", text).replace("`", "")) for name, text in rows]


def _title(path: Path) -> str:
    found = re.search(r"^# (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else ""
