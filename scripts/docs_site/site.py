"""The site: every page as HTML beside its pictures, with navigation from the index and a search that needs no server.

Pages are those of docs/en, docs/zh and docs/design and of the top folder. Nothing is loaded from a network, and all
links are relative, so that the site also works from a folder.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import unicodedata
from pathlib import Path
from string import Template
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

from docs_site.pages import COMMENT, LANGUAGES, ROOT, SOURCE, all_pages, headings, pages_of
from docs_site.translation import OWN_PAGES, differences

FILES = Path(__file__).with_name("files")
ASSETS = ("page.css", "search.js", "icon.svg")
ATTRIBUTE = re.compile(r"\b(src|srcset|href)=\"([^\"]+)\"")
WORDS = {
    "en": {
        "search": "Search",
        "menu": "Pages",
        "contents": "On this page",
        "nothing": "Nothing found.",
        "behind": "",
    },
    "zh": {
        "search": "搜索",
        "menu": "页面",
        "contents": "本页内容",
        "nothing": "没有找到。",
        "behind": "本页落后于英文版，以英文版为准。",
    },
}


class Page(NamedTuple):
    """A page of the site: its source, its place in the site, its language."""

    source: Path
    place: str
    language: str


class Entry(NamedTuple):
    """A line of the navigation."""

    text: str
    page: Page


class Section(NamedTuple):
    """What the search finds: the place, the page's title, the heading and the text below it."""

    place: str
    title: str
    heading: str
    text: str


def build(folder: Path, root: Path = ROOT) -> int:
    """Write the site into the folder, which is made anew, and return how many pages it has."""
    site = _Site(root)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    sections: dict[str, list[Section]] = {language: [] for language in LANGUAGES}
    for page in site.pages.values():
        path = folder / page.place
        path.parent.mkdir(parents=True, exist_ok=True)
        text, found = site.page(page)
        path.write_text(text)
        sections[page.language] += found
    for language, found in sections.items():
        # A page that is not translated is found in English.
        translated = {section.place.partition("#")[0] for section in found}
        others = [one for one in sections[SOURCE] if _in(language, one.place.partition("#")[0]) not in translated]
        data = json.dumps([[*one] for one in (*found, *others)], ensure_ascii=False)
        (folder / f"search-{language}.js").write_text(f"window.searchSections = {data};\n")
    for source, place in sorted(site.copied.items()):
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / place)
    for name in ASSETS:
        shutil.copyfile(FILES / name, folder / name)
    started = [language for language in LANGUAGES if (folder / language / "index.html").exists()]
    start = Template((FILES / "start.html").read_text()).substitute(languages=json.dumps(started))
    (folder / "index.html").write_text(start)
    shutil.copyfile(root / "docs" / "llms.txt", folder / "llms.txt")
    return len(site.pages)


class _Site:
    """The pages by their sources; `copied` grows by what they show and link to."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.pages = {path: self._page(path) for path in all_pages(root)}
        self.copied: dict[Path, str] = {}
        self.template = Template((FILES / "page.html").read_text())
        self.markdown = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
        self.navigation = {language: self._navigation(language) for language in LANGUAGES}

    def _page(self, path: Path) -> Page:
        """docs/en/a.md is en/a.html; the README is one of the pages in English; design pages are in English."""
        name = path.relative_to(self.root)
        if name.parts[0] == "docs":
            name = name.relative_to("docs")
        elif name.name == "README.md":
            name = Path(SOURCE, name)
        language = name.parts[0] if name.parts[0] in LANGUAGES else SOURCE
        return Page(path, name.with_suffix(".html").as_posix(), language)

    def page(self, page: Page) -> tuple[str, list[Section]]:
        """The page as HTML, and its sections for the search."""
        text = page.source.read_text()
        is_behind = page.language != SOURCE and self._is_behind(page, text)
        body, title, contents, sections = self._body(page, COMMENT.sub("", text))
        words = WORDS[page.language]
        filled = self.template.substitute(
            language=page.language,
            title=html.escape(title if title == "Aver" else f"{title} · Aver"),
            top=_top(page.place),
            start=self._to(page, self._index(page.language)),
            notice=f'<p class="notice">{words["behind"]}</p>' if is_behind else "",
            languages=self._languages(page),
            navigation=self._shown_navigation(page),
            contents=_contents(contents, words["contents"]),
            body=body,
            **{f"word_{name}": word for name, word in words.items() if name != "behind"},
        )
        return filled, sections

    def _body(self, page: Page, text: str) -> tuple[str, str, list[tuple[int, str, str]], list[Section]]:
        tokens = self.markdown.parse(text)
        for token in tokens:
            _join_lines(token.children or [])
        slugs = iter(headings(text))
        contents: list[tuple[int, str, str]] = []
        found: list[tuple[str, str, list[str]]] = [("", "", [])]  # anchor, heading, words
        for at, token in enumerate(tokens):
            if token.type == "heading_open" and token.level == 0:
                slug, shown = next(slugs).slug, _plain(tokens[at + 1])
                token.attrSet("id", slug)
                contents.append((int(token.tag[1]), slug, shown))
                found.append((slug, shown, []))
            elif token.type == "inline":
                if tokens[at - 1].type != "heading_open":
                    found[-1][2].append(_plain(token))
                for child in token.children or []:
                    self._relink(page, child)
            elif token.type == "fence":
                found[-1][2].append(token.content)
            elif token.type == "html_block":
                self._relink(page, token)
        title = next((shown for level, _, shown in contents if level == 1), page.source.stem)
        sections = [
            Section(f"{page.place}#{slug}" if slug else page.place, title, shown, " ".join(" ".join(words).split()))
            for slug, shown, words in found
            if shown or words
        ]
        body = self.markdown.renderer.render(tokens, self.markdown.options, {})
        body = body.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")
        return body, title, contents, sections

    def _relink(self, page: Page, token: Token) -> None:
        """Targets as they are in the site. A link to a file that the site has not got becomes its text."""
        if token.type == "link_open":
            place = self._target(page, str(token.attrGet("href")))
            if place is None:
                token.attrs = {"class": "source", "title": unquote(str(token.attrGet("href")))}
            else:
                token.attrSet("href", place)
        elif token.type == "image":
            token.attrSet("src", self._target(page, str(token.attrGet("src"))) or "")
        elif token.type in ("html_inline", "html_block"):
            token.content = ATTRIBUTE.sub(
                lambda found: f'{found[1]}="{self._target(page, html.unescape(found[2])) or ""}"', token.content
            )

    def _target(self, page: Page, target: str) -> str | None:
        parts = urlsplit(target)
        if parts.scheme or parts.netloc or not parts.path:
            return target
        path = (page.source.parent / unquote(parts.path)).resolve()
        fragment = f"#{parts.fragment}" if parts.fragment else ""
        if path in self.pages:
            return self._to(page, self.pages[path]) + fragment
        if path.is_file() and path.is_relative_to(self.root / "docs"):
            self.copied[path] = path.relative_to(self.root / "docs").as_posix()
            return _relative(page.place, self.copied[path])
        return None

    def _to(self, page: Page, other: Page) -> str:
        return _relative(page.place, other.place)

    def _index(self, language: str) -> Page:
        own = self.pages.get(self.root / "docs" / language / "index.md")
        return own or self.pages[self.root / "docs" / SOURCE / "index.md"]

    def _navigation(self, language: str) -> list[tuple[str, list[Entry]]]:
        """The links of the index by its sections, to pages of this language where there are some."""
        index = self._index(language)
        groups: list[tuple[str, list[Entry]]] = []
        tokens = self.markdown.parse(COMMENT.sub("", index.source.read_text()))
        for at, token in enumerate(tokens):
            if token.type == "heading_open":
                groups.append((_plain(tokens[at + 1]), []))
            elif token.type == "inline" and groups and tokens[at - 1].type != "heading_open":
                entry = self._first_link(index, token)
                if entry and entry.page not in [one.page for _, entries in groups for one in entries]:
                    groups[-1][1].append(Entry(entry.text, self._own(language, entry.page)))
        return [group for group in groups if group[1]]

    def _first_link(self, index: Page, token: Token) -> Entry | None:
        """What a cell or an item begins with, if it is a link to a page."""
        children = token.children or []
        if not children or children[0].type != "link_open":
            return None
        path = urlsplit(str(children[0].attrGet("href"))).path
        page = self.pages.get((index.source.parent / unquote(path)).resolve())
        end = next(at for at, child in enumerate(children) if child.type == "link_close")
        return Entry("".join(child.content for child in children[1:end]), page) if page else None

    def _own(self, language: str, page: Page) -> Page:
        """The page in this language, or the page itself where it is not translated."""
        return next((one for one in self.pages.values() if one.place == _in(language, page.place)), page)

    def _shown_navigation(self, page: Page) -> str:
        parts = []
        for heading, entries in self.navigation[page.language]:
            items = []
            for text, target in entries:
                here = ' aria-current="page"' if target == page else ""
                other = "" if target.language == page.language else f' <small lang="en">{target.language}</small>'
                items.append(f'<li><a href="{self._to(page, target)}"{here}>{html.escape(text)}</a>{other}</li>')
            is_open = any(target == page for _, target in entries) or all(
                target.place.startswith(tuple(LANGUAGES)) for _, target in entries
            )
            parts.append(
                f"<details{' open' if is_open else ''}><summary>{html.escape(heading)}</summary>"
                f"<ul>{''.join(items)}</ul></details>"
            )
        return "".join(parts)

    def _languages(self, page: Page) -> str:
        """Links to the page in the other languages, or to their start."""
        links = []
        for language, name in LANGUAGES.items():
            if language != page.language and (self.root / "docs" / language).is_dir():
                other = self._own(language, page)
                target = other if other.language == language else self._index(language)
                links.append(f'<a href="{self._to(page, target)}" hreflang="{language}" lang="{language}">{name}</a>')
        return "".join(links)

    def _is_behind(self, page: Page, text: str) -> bool:
        name = page.source.relative_to(self.root / "docs" / page.language).as_posix()
        english = pages_of(SOURCE, self.root).get(name)
        return name not in OWN_PAGES and (english is None or bool(differences(english.read_text(), text)))


def _join_lines(children: list[Token]) -> None:
    """Take out the ends of lines between two Chinese characters: a browser would show a space there."""
    for at, child in enumerate(children):
        if child.type == "softbreak":
            before = next((one.content for one in reversed(children[:at]) if one.content), "")
            after = next((one.content for one in children[at + 1 :] if one.content), "")
            if _is_wide(before[-1:]) and _is_wide(after[:1]):
                child.type, child.tag = "text", ""


def _is_wide(letter: str) -> bool:
    return bool(letter) and unicodedata.east_asian_width(letter) in "WF"


def _in(language: str, place: str) -> str:
    """The place of the same page in another language."""
    first, slash, rest = place.partition("/")
    return f"{language}{slash}{rest}" if first in LANGUAGES else place


def _relative(place: str, target: str) -> str:
    return Path(os.path.relpath(target, Path(place).parent)).as_posix()


def _top(place: str) -> str:
    return "../" * place.count("/")


def _plain(token: Token) -> str:
    """The words of a paragraph or a heading, without marks."""
    return "".join(
        " " if child.type == "softbreak" else "" if child.type.startswith("html") else child.content
        for child in token.children or []
    )


def _contents(found: list[tuple[int, str, str]], heading: str) -> str:
    """The headings of levels 2 and 3, where there are some to choose from."""
    items = [(level, slug, text) for level, slug, text in found if level in (2, 3)]
    if len(items) < 2:
        return ""
    links = "".join(
        f'<li class="l{level}"><a href="#{slug}">{html.escape(text)}</a></li>' for level, slug, text in items
    )
    return f'<nav class="contents" aria-label="{heading}"><b>{heading}</b><ul>{links}</ul></nav>'
