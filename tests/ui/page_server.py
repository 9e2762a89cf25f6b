"""A real `aver ui` in a process of its own, and requests to it as programs and browsers make them."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from aver.model.job import Matrix, Need, Needs
from live_home import LiveHome, shell_job

DEADLINE_S = 60.0
GATE = 'until [ -e "$GATE" ]; do sleep 0.05; done'


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    text: str

    @property
    def data(self) -> Any:
        return json.loads(self.text)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=DEADLINE_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(os.fspath(self._path))


class PageServer:
    """`link` is what it printed; `host`, `place`, `token` are parts of it."""

    def __init__(self, process: subprocess.Popen[str], link: str, said: str, socket_path: Path | None) -> None:
        self.process = process
        self.link = link
        self.said = said
        self.socket_path = socket_path
        found = re.fullmatch(r"http://([^/]+)/([\w-]+)/\?token=([\w-]+)", link)
        assert found, link
        self.host, self.place, self.token = found.groups()
        self.cookie = ""
        self.change = ""

    @property
    def base(self) -> str:
        return f"http://{self.host}/{self.place}/"

    def connection(self) -> http.client.HTTPConnection:
        if self.socket_path is not None:
            return _UnixConnection(self.socket_path)
        return http.client.HTTPConnection(self.host, timeout=DEADLINE_S)

    def ask(self, method: str, path: str, headers: Mapping[str, str] = {}, body: bytes | None = None) -> Answer:
        """Any request; no cookie and no Origin unless they are given. The path begins with /."""
        connection = self.connection()
        try:
            connection.request(method, path, body, {"Host": self.host, **headers})
            response = connection.getresponse()
            text = response.read().decode("utf-8", "replace")
            return Answer(response.status, {key.lower(): value for key, value in response.getheaders()}, text)
        finally:
            connection.close()

    def log_in(self) -> None:
        answer = self.ask("GET", f"/{self.place}/?token={self.token}")
        assert answer.status == 200, answer
        self.cookie = answer.headers["set-cookie"].partition(";")[0]
        self.change = self.get("session")["change"] or ""

    def get(self, path: str) -> Any:
        answer = self.ask("GET", f"/{self.place}/api/{path}", {"Cookie": self.cookie})
        assert answer.status == 200, answer
        return answer.data

    def own_headers(self) -> dict[str, str]:
        """Those of the page's own changes."""
        return {
            "Cookie": self.cookie, "Origin": f"http://{self.host}", "X-Aver-Change": self.change,
            "Content-Type": "application/json",
        }  # fmt: skip

    def post(self, word: str, **fields: Any) -> Answer:
        return self.ask("POST", f"/{self.place}/api/act/{word}", self.own_headers(), json.dumps(fields).encode())


@contextlib.contextmanager
def page_server(home: Path, folder: Path, port: int = 0, **options: bool) -> Iterator[PageServer]:
    """A server of this home, in this folder; it is ended at the end."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "aver.ui", json.dumps({"port": port, **options})],
        env={**os.environ, "AVER_HOME": str(home)},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        link, said = process.stdout.readline().strip(), process.stdout.readline().strip()
        assert link, process.communicate()[1]
        yield PageServer(process, link, said, home / "ui.sock" if options.get("socket") else None)
    finally:
        process.terminate()
        _, errors = process.communicate(timeout=DEADLINE_S)
        assert "Traceback" not in errors, errors


def mixed_flow(live: LiveHome) -> int:
    """Jobs 2 to 7: prep completed, of train one member failed, eval was skipped."""
    run = live.submit(
        shell_job("prep", "echo prepared"),
        shell_job("train", "echo seed {seed}; test {seed} != 2", needs=Needs((Need("prep"),)),
                  matrix=Matrix((("seed", ("1", "2", "3")),))),
        shell_job("eval", "true", needs=Needs((Need("train"),))),
        name="mixed",
    )  # fmt: skip
    live.settle([run])
    return run


@contextlib.contextmanager
def served(home: Path, folder: Path, **options: bool) -> Iterator[PageServer]:
    """The same, with a cookie."""
    with page_server(home, folder, **options) as found:
        found.log_in()
        yield found


@contextlib.contextmanager
def shared_home(folder: Path) -> Iterator[LiveHome]:
    """A home for several tests, in this folder."""
    (folder / "work").mkdir()
    found = LiveHome(folder / "home", folder / "work")
    yield found
    found.end_everything()


def aver(home: Path, *args: str) -> str:
    """What a command prints."""
    env = {**os.environ, "AVER_HOME": str(home)}
    return subprocess.run(
        [sys.executable, "-m", "aver", *args], env=env, capture_output=True, text=True, check=True
    ).stdout
