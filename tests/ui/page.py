"""The live page as a person uses it, in a real Chromium."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from page_server import PageServer

from chromium import Browser
from live_home import wait_for

LEAVING = ("Inspected target navigated", "Execution context", "Cannot find context", "of null")


class Page:
    """One server's page in the browser; every wait is for something that can be seen."""

    def __init__(self, browser: Browser, server: PageServer) -> None:
        self.browser = browser
        self.server = server
        browser.go("about:blank")  # what the page of a server that has ended says is not ours
        browser.resize(1280, 900)
        browser.prefer("light")
        browser.console.clear()
        browser.requests.clear()
        browser.call("Page.navigate", url=server.link)
        self.wait("document.querySelector('main h1') !== null")

    def value(self, expression: str) -> Any:
        return self.browser.value(expression)

    def wait(self, expression: str, deadline_s: float = 60.0) -> Any:
        """What the expression gives as soon as it is true; while the page is being left nothing is."""

        def look() -> Any:
            try:
                return self.browser.value(expression)
            except AssertionError as error:
                if any(words in str(error) for words in LEAVING):
                    return None
                raise

        try:
            return wait_for(look, expression, deadline_s)
        except BaseException:
            print(self.text()[:3000], self.browser.console)
            raise

    def open(self, route: str, title: str) -> None:
        """Go to a view, and wait for its title."""
        self.value(f"location.hash = {json.dumps('#/' + route)}")
        self.wait(f"document.title.includes({json.dumps(title)})")

    def text(self, selector: str = "main") -> str:
        found = self.value(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")
        assert isinstance(found, str)
        return found

    def see(self, words: str, selector: str = "main", deadline_s: float = 60.0) -> None:
        """Wait until these words are there."""
        place = f"(document.querySelector({json.dumps(selector)})?.innerText ?? '')"
        self.wait(f"{place}.includes({json.dumps(words)})", deadline_s)

    def click(self, selector: str) -> None:
        self.wait(f"document.querySelector({json.dumps(selector)}) !== null")
        self.browser.click(selector)

    def type(self, selector: str, text: str) -> None:
        self.value(f"document.querySelector({json.dumps(selector)}).focus()")
        self.browser.call("Input.insertText", text=text)

    def choose(self, path: Path, text: str) -> None:
        """Write a flow's file, and choose it in the view that submits."""
        path.write_text(text)
        root = self.browser.call("DOM.getDocument")["root"]["nodeId"]
        node = self.browser.call("DOM.querySelector", nodeId=root, selector="#file")["nodeId"]
        self.browser.call("DOM.setFileInputFiles", files=[str(path)], nodeId=node)

    def key(self, key: str) -> None:
        code = {"Escape": 27}.get(key, 0)
        text = key if len(key) == 1 else ""
        for kind in ("keyDown", "keyUp"):
            self.browser.call("Input.dispatchKeyEvent", type=kind, key=key, text=text, windowsVirtualKeyCode=code)

    def is_quiet(self) -> None:
        """The console is empty, and nobody else than our server was asked."""
        assert self.browser.console == [], self.browser.console
        own = (self.server.base, "about:")
        others = [url for url in self.browser.requests if not url.startswith(own)]
        assert others == [], others
