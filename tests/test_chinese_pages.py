"""The pages in Chinese: what is the same in both languages is the same, and the glossary's words are used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ENGLISH = ROOT / "docs" / "en"
CHINESE = ROOT / "docs" / "zh"
GLOSSARY = CHINESE / "glossary.md"
PAGES = sorted(CHINESE.rglob("*.md"))
TRANSLATED = [page for page in PAGES if page != GLOSSARY]
BLOCK = re.compile(r"^( {0,3})(`{3,})[^\n]*\n.*?^\1\2$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def name_of(page: Path) -> str:
    return page.relative_to(CHINESE).as_posix()


def english_of(page: Path) -> Path:
    return ROOT / "README.md" if page == CHINESE / "README.md" else ENGLISH / page.relative_to(CHINESE)


def blocks_of(text: str) -> list[str]:
    return [match[0] for match in BLOCK.finditer(text)]


def prose_of(text: str) -> str:
    return BLOCK.sub("", text)


def levels_of(text: str) -> list[int]:
    return [len(marks) for marks in re.findall(r"^(#+) ", prose_of(text), re.MULTILINE)]


def anchors_of(page: Path) -> set[str]:
    """The anchors that forges make of the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", prose_of(page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def table_below(heading: str) -> list[list[str]]:
    """The rows of the glossary's table below a heading, without its head."""
    section = GLOSSARY.read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def unused_words() -> list[str]:
    return [row[0] for row in table_below("不用的词")]


@pytest.mark.parametrize("page", TRANSLATED, ids=name_of)
def test_code_is_the_same(page: Path) -> None:
    """The fenced blocks are those of the English page in the same order, byte for byte: only those are executed."""
    assert blocks_of(page.read_text()) == blocks_of(english_of(page).read_text())


@pytest.mark.parametrize("page", TRANSLATED, ids=name_of)
def test_headings_are_the_same(page: Path) -> None:
    """As many headings as the English page, each of the same level."""
    assert levels_of(page.read_text()) == levels_of(english_of(page).read_text())


@pytest.mark.parametrize("page", TRANSLATED, ids=name_of)
def test_tables_have_as_many_rows(page: Path) -> None:
    """No row of a table is lost: an option, a key or a state that the English page has is there."""

    def rows(text: str) -> int:
        return len(re.findall(r"^\|", prose_of(text), re.MULTILINE))

    assert rows(page.read_text()) == rows(english_of(page).read_text())


def test_lists_of_slurms_options_are_the_same() -> None:
    """Each list of the generated part names the same options, fields and variables."""

    def lists(page: Path) -> list[list[str]]:
        lines = page.read_text().partition("\n### sbatch\n")[2].splitlines()
        return [sorted(re.findall(r"`([^`]+)`", line)) for line in lines if line.startswith("- ")]

    name = "reference/slurm-commands.md"
    assert lists(CHINESE / name) == lists(ENGLISH / name)
    assert len(lists(ENGLISH / name)) > 50


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_and_anchors_lead_somewhere(page: Path) -> None:
    """Every link names a file that is there, and a heading that this file has."""
    wrong = []
    for link in LINK.findall(prose_of(page.read_text())):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            wrong.append(link)
    assert not wrong


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_stay_in_chinese(page: Path) -> None:
    """A link goes to an English page only where there is no Chinese one."""
    wrong = []
    for link in LINK.findall(prose_of(page.read_text())):
        target = (page.parent / link.partition("#")[0]).resolve()
        if "://" not in link and target.is_relative_to(ENGLISH) and (CHINESE / target.relative_to(ENGLISH)).exists():
            wrong.append(link)
    assert not wrong


@pytest.mark.parametrize("page", TRANSLATED, ids=name_of)
def test_words_of_the_glossary(page: Path) -> None:
    """None of the words that the glossary rules out."""
    prose = prose_of(page.read_text())
    words = unused_words()
    assert len(words) > 5
    assert not [word for word in words if word in prose]


def test_the_glossary_chooses_once() -> None:
    """No English term has two rows, and no chosen word is ruled out."""
    rows = [row for heading in ("核心概念", "结束方式", "操作", "工作流与资源") for row in table_below(heading)]
    terms = [row[0] for row in rows]
    assert len(terms) == len(set(terms))
    assert not {row[1] for row in rows} & set(unused_words())


def test_the_index_lists_every_page() -> None:
    """Whoever starts at docs/zh/index.md finds every page in Chinese."""
    index = CHINESE / "index.md"
    listed = {(CHINESE / link.partition("#")[0]).resolve() for link in LINK.findall(index.read_text())}
    assert not [name_of(page) for page in PAGES if page != index and page not in listed]
