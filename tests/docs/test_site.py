"""The site: built from the pages, no link leads nowhere, nothing comes from a network, and the search finds things."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from chromium import Browser, chromium

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 30.0
PHONE = (390, 844)
DESK = (1400, 900)
ENGLISH = (
    "# A page\nOne.\n\n## Retries\nSee [the code](../../src/code.py), [a picture](../p.svg) and [above](#a-page).\n"
)
CHINESE = "# 一页\n一。\n**二**。\nThree.\n\n## 重试\n失败的作业会重试。\n"
INDEX = "# Aver\n\n## Guides\n| page | about |\n| --- | --- |\n| [A page](a.md) | one |\n| [B page](b.md) | two |\n"


def docs(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, root / "scripts" / "docs", *words], capture_output=True, text=True, cwd=root)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of this very tree."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    done = docs(ROOT, "build", "--to", str(folder))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small tree with the real tool: two English pages, of which one is translated, and the translation's index."""
    shutil.copytree(ROOT / "scripts" / "docs_site", tmp_path / "scripts" / "docs_site")
    shutil.copy(ROOT / "scripts" / "docs", tmp_path / "scripts" / "docs")
    texts = {
        "README.md": "# Aver\nStart at [the index](docs/en/index.md).\n\n<picture>\n"
        '<source media="(width: 9px)" srcset="docs/p.svg">\n<img src="docs/p.svg" alt="p">\n</picture>\n',
        "docs/llms.txt": "# Aver\n",
        "docs/p.svg": "<svg/>",
        "docs/en/index.md": INDEX,
        "docs/en/a.md": ENGLISH,
        "docs/en/b.md": "# B page\nTwo and more.\n",
        "docs/zh/index.md": INDEX.replace("Guides", "指南").replace("[B page](b.md)", "[乙页](../en/b.md)"),
        "docs/zh/a.md": CHINESE,
        "src/code.py": "",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for name in ("index.md", "a.md"):
        assert docs(tmp_path, "stamp", f"docs/zh/{name}").returncode == 0
    return tmp_path


def test_no_link_of_a_page_leads_nowhere() -> None:
    """Files and headings, as a forge shows them: `scripts/docs links` of this very tree."""
    done = docs(ROOT, "links")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_links_that_lead_nowhere_are_named(tree: Path) -> None:
    """With the page and the line; code and comments link nowhere."""
    (tree / "docs" / "en" / "b.md").write_text(
        "# B\n[gone](gone.md) [no part](a.md#gone) [part](a.md#retries)\n\n<!-- [x](x.md) -->\n\n"
        '```\n[y](y.md)\n```\n`[z](z.md)` [`code`](code.md)\n<img src="no.png"> [web](https://example.org/x)\n'
    )
    done = docs(tree, "links")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "docs/en/b.md:2: gone.md: no such file",
        "docs/en/b.md:2: a.md#gone: no such heading",
        "docs/en/b.md:9: code.md: no such file",
        "docs/en/b.md:10: no.png: no such file",
    ]


def test_every_page_is_in_the_site(site: Path) -> None:
    """English, Chinese and design pages, the README and the changelog; and what they link to."""
    for page in (ROOT / "docs").rglob("*.md"):
        assert (site / page.relative_to(ROOT / "docs").with_suffix(".html")).is_file()
    for name in ("index.html", "en/README.html", "CHANGELOG.html", "llms.txt", "search-en.js", "search-zh.js"):
        assert (site / name).is_file()


def test_a_site_loads_nothing_from_a_network(tree: Path) -> None:
    """A picture from another host makes the build fail; a link to another host does not."""
    (tree / "docs" / "en" / "b.md").write_text("# B page\n![x](https://example.org/x.png) [y](https://example.org/)\n")
    done = docs(tree, "build")
    assert done.returncode == 1
    assert "en/b.html: https://example.org/x.png: is loaded from a network\n" in done.stdout
    assert done.stdout.count("example.org") == 1


def test_pages_link_to_each_other_and_to_their_translations(tree: Path) -> None:
    """Links to pages and pictures are rewritten, one to a source file becomes text, a page knows its translation."""
    done = docs(tree, "build")
    assert (done.returncode, done.stderr) == (0, "")
    built = tree / "build" / "site"
    page = (built / "en" / "a.html").read_text()
    assert '<a href="../p.svg">a picture</a>' in page
    assert 'title="../../src/code.py">the code</a>' in page
    assert 'href="../zh/a.html" hreflang="zh"' in page
    assert '<h2 id="retries">' in page
    assert 'srcset="../p.svg">\n<img src="../p.svg" alt="p">' in (built / "en" / "README.html").read_text()
    chinese = (built / "zh" / "a.html").read_text()
    assert 'href="../en/a.html" hreflang="en"' in chinese
    assert '<a href="../en/b.html">乙页</a> <small' in chinese
    assert "notice" not in chinese
    assert "<p>一。<strong>二</strong>。\nThree.</p>" in chinese
    assert "en:" not in chinese
    assert '<a href="../zh/index.html" hreflang="zh"' in (built / "en" / "b.html").read_text()


def test_a_translation_that_is_behind_says_so(tree: Path) -> None:
    """Marked or not, a reader is told."""
    (tree / "docs" / "en" / "a.md").write_text(ENGLISH.replace("One.", "Another."))
    docs(tree, "build")
    assert '<p class="notice">本页落后于英文版' in (tree / "build" / "site" / "zh" / "a.html").read_text()


def test_a_folder_of_other_files_is_left_alone(tree: Path) -> None:
    """A site replaces a site, and nothing else."""
    assert docs(tree, "build").returncode == 0
    assert docs(tree, "build").returncode == 0
    done = docs(tree, "build", "--to", "docs")
    assert done.returncode == 2
    assert "no site" in done.stderr
    assert (tree / "docs" / "en" / "a.md").exists()


@pytest.mark.browser
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_pages_fit_the_window(browser: Browser, site: Path, size: tuple[int, int]) -> None:
    """No page is wider than a phone's or a desk's window; a phone shows the list of pages when it is asked for."""
    browser.resize(*size, is_phone=size == PHONE)
    for page in sorted((site / "en").rglob("*.html")):
        browser.open(page)
        assert browser.value("document.documentElement.scrollWidth") <= size[0], page
    is_shown = "document.querySelector('.pages nav').offsetHeight > 0"
    assert browser.value(is_shown) == (size == DESK)
    if size == PHONE:
        browser.click(".pages label")
        assert browser.value(is_shown)
    assert not browser.console
    assert all(url.startswith("file:") for url in browser.requests)


@pytest.mark.browser
def test_a_page_is_light_or_dark_as_the_reader_prefers(browser: Browser, site: Path) -> None:
    """Paper and ink change places."""
    shown = "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    browser.prefer("light")
    browser.open(site / "en" / "index.html")
    assert browser.value(shown) == ["rgb(255, 255, 255)", "rgb(31, 35, 40)"]
    browser.prefer("dark")
    assert browser.value(shown) == ["rgb(13, 17, 23)", "rgb(230, 237, 243)"]


def search(browser: Browser, text: str) -> list[str]:
    """Type it, and return the headings that are offered, once the sections are loaded."""
    browser.click(".search input")
    browser.value(
        "new Promise((done) => { const look = () => window.searchSections ? done() : setTimeout(look, 20); look(); })"
    )
    browser.value("document.querySelector('.search input').select()")
    browser.call("Input.insertText", text=text)
    found = browser.value(
        "[...document.querySelectorAll('.search li')].map((one) => (one.querySelector('b') ?? one).textContent)"
    )
    assert isinstance(found, list)
    return found


@pytest.mark.browser
def test_the_search_finds_a_section(browser: Browser, site: Path) -> None:
    """The page of that name comes first, and Enter goes there."""
    browser.resize(*DESK)
    browser.open(site / "en" / "reference" / "settings.html")
    assert search(browser, "exit stat")[0] == "Exit statuses"
    browser.key("Enter")
    end = time.monotonic() + DEADLINE_S
    arrived = "location.pathname.endsWith('/en/reference/exit-statuses.html') && document.readyState === 'complete'"
    while not browser.value(arrived):
        assert time.monotonic() < end, browser.value("location.pathname")
        time.sleep(0.05)
    assert search(browser, "xyzzyq exit") == ["Nothing found."]
    assert search(browser, "<b>[(\\") == ["Nothing found."]


@pytest.mark.browser
def test_the_search_finds_chinese(browser: Browser, tree: Path) -> None:
    """A part of a sentence without word breaks; pages that are not translated are found in English."""
    assert docs(tree, "build").returncode == 0
    browser.resize(*PHONE, is_phone=True)
    browser.open(tree / "build" / "site" / "zh" / "index.html")
    assert search(browser, "作业会重") == ["一页 › 重试"]
    assert search(browser, "more two") == ["B page"]
    assert search(browser, "不在") == ["没有找到。"]
    assert not browser.console
