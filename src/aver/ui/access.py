"""Who may ask: each request passes here before anything is read, and each answer gets its headers here.

`docs/design/page.md` says which danger each check stands against. A refusal says nothing about the home.
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aver.model.record import Record

COOKIE = "aver"
CHANGE_HEADER = "x-aver-change"
MOST_BODY = 4 << 20
READS = ("GET", "HEAD")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
_LOCAL = re.compile(r"(localhost|127\.0\.0\.1)(:[0-9]{1,5})?")
_WELCOME = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=./">'
    '<link rel="icon" href="files/icon.svg"><title>aver</title><p><a href="./">aver</a></p></html>'
)


class Keys(Record):
    """The secrets of one process. `place` is in each path, `token` in the link, `session` is the cookie's value, and
    `change` goes with each change."""

    place: str
    token: str
    session: str
    change: str


def new_keys() -> Keys:
    return Keys(secrets.token_urlsafe(16), *(secrets.token_urlsafe(32) for _ in range(3)))


class Refused(Exception):
    """A request that is not answered: the status, and a line that says what to do."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class Guard:
    """The application behind all checks. `port` None: a Unix socket, which a tunnel reaches by any port."""

    def __init__(self, app: ASGIApp, keys: Keys, port: int | None, is_read_only: bool) -> None:
        self._app = app
        self._keys = keys
        self._port = port
        self._is_read_only = is_read_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # no websockets; nothing to do at start and end

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        try:
            is_welcome = self._check(scope)
        except Refused as refused:
            await _answer_error(send_guarded, refused)
            return
        if is_welcome:
            await self._welcome(send_guarded)
            return
        await self._app({**scope, "path": scope["path"].removeprefix(f"/{self._keys.place}")}, receive, send_guarded)

    def _check(self, scope: Scope) -> bool:
        """Raise Refused, or return whether it is the link with the right token."""
        headers = _Headers(scope)
        host = headers.only("host")
        if host is None or not self._is_own_host(host):
            raise Refused(421, "this server answers only to 127.0.0.1 and localhost with its own port")
        origin = headers.only("origin")
        if headers.count("origin") and origin != f"http://{host}":
            raise Refused(403, "the request comes from another site")
        method, path = scope["method"], scope["path"]
        is_start = path == f"/{self._keys.place}/" and method in READS
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0] if is_start else ""
        if given:
            if not _same(given, self._keys.token):
                raise Refused(403, "the token is not that of this server: open the link that `aver ui` printed")
            return True
        if headers.only("sec-fetch-site") not in (None, "same-origin", "none"):
            raise Refused(403, "the request comes from another site")
        if not path.startswith(f"/{self._keys.place}/") or not self._is_known(headers, method):
            raise Refused(403, "open the link that `aver ui` printed")
        if method not in READS:
            self._check_change(headers, method, origin)
        return False

    def _is_own_host(self, host: str) -> bool:
        if self._port is None:
            return _LOCAL.fullmatch(host) is not None
        return host in (f"127.0.0.1:{self._port}", f"localhost:{self._port}")

    def _is_known(self, headers: _Headers, method: str) -> bool:
        """By the cookie; programs that only read may give the token as a header."""
        kind, _, given = (headers.only("authorization") or "").partition(" ")
        if kind.lower() == "bearer" and method in READS and _same(given, self._keys.token):
            return True
        try:
            cookies = SimpleCookie(headers.only("cookie") or "")
        except CookieError:
            return False
        return COOKIE in cookies and _same(cookies[COOKIE].value, self._keys.session)

    def _check_change(self, headers: _Headers, method: str, origin: str | None) -> None:
        if method != "POST":
            raise Refused(405, "only GET and POST are answered")
        if origin is None:
            raise Refused(403, "a change must say which site it comes from")
        if not _same(headers.only(CHANGE_HEADER) or "", self._keys.change):
            raise Refused(403, "the token of changes is missing or wrong: reload the page")
        if self._is_read_only:
            raise Refused(403, "this page is read-only: `aver ui` without --read-only can change things")
        if (headers.only("content-type") or "").partition(";")[0].strip() != "application/json":
            raise Refused(415, "a change is JSON")
        length = headers.only("content-length") or ""
        if not length.isdecimal():
            raise Refused(411, "a change has a length")
        if int(length[:20]) > MOST_BODY:
            raise Refused(413, f"a change has at most {MOST_BODY >> 20} MiB")

    async def _welcome(self, send: Send) -> None:
        """Set the cookie, and lead to the page by a step of our own: from another site it would be kept back."""
        place = self._keys.place
        cookie = f"{COOKIE}={self._keys.session}; Path=/{place}; HttpOnly; SameSite=Strict"
        headers = [(b"content-type", b"text/html; charset=utf-8"), (b"set-cookie", cookie.encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": _WELCOME.encode()})


class _Headers:
    def __init__(self, scope: Scope) -> None:
        self._pairs = scope["headers"]

    def count(self, name: str) -> int:
        return sum(key == name.encode() for key, _ in self._pairs)

    def only(self, name: str) -> str | None:
        """The value of a header that is there exactly once."""
        values = [value for key, value in self._pairs if key == name.encode()]
        return values[0].decode("latin-1") if len(values) == 1 else None


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())


async def _answer_error(send: Send, refused: Refused) -> None:
    body = json.dumps({"kind": "error", "error": refused.text}).encode()
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
