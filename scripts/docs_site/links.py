"""Links: of the Markdown pages, as a forge resolves them, and of the built site."""

from __future__ import annotations

import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from docs_site.pages import ROOT, all_pages, headings, links_of

LOADED = frozenset({"src", "srcset", "poster", "data"})  # attributes by which a browser fetches something by itself


def broken_links(root: Path = ROOT) -> list[str]:
    """A sentence for each link of a page that leads to no file of the repository, or to no heading of a page."""
    return [
        f"{page.relative_to(root)}:{line}: {target}: {problem}"
        for page in all_pages(root)
        for line, target in links_of(page.read_text())
        if (problem := _problem(page, target, root))
    ]


def broken_site_links(site: Path) -> list[str]:
    """A sentence for each link of a built page that leads nowhere, and for all that comes from a network."""
    found = []
    for page in sorted(site.rglob("*.html")):
        for attribute, target in _parsed(page).targets:
            where = f"{page.relative_to(site)}: {target}"
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                if attribute in LOADED or attribute == "link":
                    found.append(f"{where}: is loaded from a network")
                continue
            path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if not path.is_file() or not path.is_relative_to(site.resolve()):
                found.append(f"{where}: no such file in the site")
            elif parts.fragment and path.suffix == ".html" and unquote(parts.fragment) not in _parsed(path).ids:
                found.append(f"{where}: no such place in the page")
    return found


def _problem(page: Path, target: str, root: Path) -> str:
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return ""
    path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if not path.exists():
        return "no such file"
    if not path.is_relative_to(root):
        return "outside of the repository"
    if parts.fragment and path.suffix == ".md" and unquote(parts.fragment) not in _anchors(path):
        return "no such heading"
    return ""


@cache
def _anchors(page: Path) -> frozenset[str]:
    text = page.read_text()
    return frozenset({one.slug for one in headings(text)} | set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text)))


class _Page(HTMLParser):
    """The ids of a page, and its targets, each with the attribute that names it; `link` for what a head loads."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.targets: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.ids.add(value or "")
            elif name == "href" or name in LOADED:
                self.targets.append(("link" if tag == "link" else name, value or ""))


@cache
def _parsed(page: Path) -> _Page:
    found = _Page()
    found.feed(page.read_text())
    return found
