"""Translated pages say which English text they reflect; one that is behind says so itself."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENGLISH = (
    "# Title\nOne.\n\n## First part\nSaid\nso.\n\n```\n## not a heading\n```\n\n"
    "### Detail\nMore.\n\n## Second part\nEnd.\n"
)
CHINESE = "# 标题\n一。\n\n## 第一部分\n如此。\n\n```\n## not a heading\n```\n\n### 细节\n更多。\n\n## 第二部分\n完。\n"


def docs(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, root / "scripts" / "docs", *words], capture_output=True, text=True, cwd=root)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small tree of its own with the real tool: one English page, its translation, and a page that has none."""
    shutil.copytree(ROOT / "scripts" / "docs_site", tmp_path / "scripts" / "docs_site")
    shutil.copy(ROOT / "scripts" / "docs", tmp_path / "scripts" / "docs")
    (tmp_path / "docs" / "en").mkdir(parents=True)
    (tmp_path / "docs" / "zh").mkdir()
    (tmp_path / "README.md").write_text("# Aver\n")
    (tmp_path / "docs" / "en" / "a.md").write_text(ENGLISH)
    (tmp_path / "docs" / "zh" / "a.md").write_text(CHINESE)
    (tmp_path / "docs" / "zh" / "glossary.md").write_text("# 术语\n")
    return tmp_path


def test_no_page_is_behind_without_saying_so() -> None:
    """`scripts/docs status` of this very tree."""
    done = docs(ROOT, "status", "--behind")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), (
        "translate what is named, then scripts/docs stamp"
    )


def test_a_page_without_stamps_is_behind(tree: Path) -> None:
    """What is not stamped is not taken for current; pages that are missing are listed and no failure."""
    done = docs(tree, "status")
    assert done.returncode == 1
    assert "missing  docs/zh/README.md" in done.stdout
    assert 'behind   docs/zh/a.md\n         "标题" has no stamp' in done.stdout
    assert "glossary" not in done.stdout


def test_a_stamped_page_is_current_until_the_english_text_changes(tree: Path) -> None:
    """Only the section that changed is named; broken lines are no change; stamping one section is enough."""
    page, english = tree / "docs" / "zh" / "a.md", tree / "docs" / "en" / "a.md"
    assert docs(tree, "stamp", "docs/zh/a.md").returncode == 0
    assert docs(tree, "status", "--behind").returncode == 0
    lines = page.read_text().splitlines()
    assert lines[0].startswith("<!-- en: title ")
    assert lines[lines.index("## 第一部分") - 1].startswith("<!-- en: first-part ")
    assert [line for line in lines if not line.startswith("<!--")] == CHINESE.splitlines()
    english.write_text(ENGLISH.replace("Said\nso.", "Said so."))
    assert docs(tree, "status", "--behind").returncode == 0
    english.write_text(ENGLISH.replace("More.", "Much more."))
    done = docs(tree, "status", "--behind")
    assert (done.returncode, done.stdout) == (1, "behind   docs/zh/a.md\n         #first-part is behind\n")
    assert docs(tree, "stamp", "docs/zh/a.md", "second-part").returncode == 0
    assert docs(tree, "status", "--behind").returncode == 1
    assert docs(tree, "stamp", "docs/zh/a.md", "first-part").returncode == 0
    assert docs(tree, "status", "--behind").returncode == 0
    once = page.read_text()
    assert docs(tree, "stamp", "docs/zh/a.md").returncode == 0
    assert page.read_text() == once


def test_a_mark_admits_that_a_page_is_behind(tree: Path) -> None:
    """A page may be behind when it says so, and may not say so when it is not."""
    page = tree / "docs" / "zh" / "a.md"
    page.write_text("<!-- behind: the end is missing -->\n" + CHINESE.partition("## 第二部分")[0])
    done = docs(tree, "status")
    assert done.returncode == 0
    assert "behind   docs/zh/a.md (marked: the end is missing)" in done.stdout
    page.write_text("<!-- behind: the end is missing -->\n" + CHINESE)
    assert docs(tree, "stamp", "docs/zh/a.md").returncode == 0
    done = docs(tree, "status", "--behind")
    assert done.returncode == 1
    assert "remove the mark" in done.stdout


def test_sections_that_come_and_go_are_named(tree: Path) -> None:
    """A new English section is not translated, a removed one is too many, a removed page is said to be gone."""
    docs(tree, "stamp", "docs/zh/a.md")
    english = tree / "docs" / "en" / "a.md"
    english.write_text(ENGLISH.replace("## Second part", "## Last part"))
    said = docs(tree, "status", "--behind").stdout
    assert "#last-part is not translated" in said
    assert "#second-part is no longer in the English page" in said
    english.unlink()
    assert "there is no such English page" in docs(tree, "status", "--behind").stdout


def test_what_cannot_be_stamped_is_said_in_one_line(tree: Path) -> None:
    """Another number of sections, an unknown section, a page that is no translation: exit status 2, nothing written."""
    page = tree / "docs" / "zh" / "a.md"
    page.write_text(CHINESE.partition("## 第二部分")[0])
    before = page.read_text()
    for words, said in (
        (["docs/zh/a.md"], "2 sections, but the English page has 3"),
        (["docs/zh/a.md", "third"], "no section #third"),
        (["docs/en/a.md"], "is not a translated page"),
        (["docs/zh/glossary.md"], "no English page"),
    ):
        done = docs(tree, "stamp", *words)
        assert done.returncode == 2
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert page.read_text() == before
