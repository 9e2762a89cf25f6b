"""Who may ask the live page: nobody without the token, no other site, no other user; every answer has its headers."""

from __future__ import annotations

import os
import signal
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from page_server import PageServer, page_server, served

from live_home import LiveHome
from second_user import needs_root, other_does

ONE_HOME = True
READS = ("", "files/main.js", "api/session", "api/now", "api/runs", "api/events", "metrics", "api/openapi.json", "none")


@pytest.fixture
def read_only(live: LiveHome) -> Iterator[PageServer]:
    with served(live.home.path, live.folder, read_only=True) as found:
        yield found


def open_above(home: Path) -> None:
    """The folders above the home are not what keeps a second user out."""
    for folder in home.parents:
        if folder.stat().st_uid == os.geteuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)


@pytest.mark.parametrize("path", READS)
def test_without_a_cookie_nothing_is_answered(server: PageServer, path: str) -> None:
    """Every path, known or not, gives the same refusal."""
    answer = server.ask("GET", f"/{server.place}/{path}")
    assert answer.status == 403
    assert answer.data == {"kind": "error", "error": "open the link that `aver ui` printed"}


@pytest.mark.parametrize("cookie", ["aver=wrong", "aver=", "other=1", "aver", "\x01=;;"])
def test_a_wrong_cookie_is_none(server: PageServer, cookie: str) -> None:
    assert server.ask("GET", f"/{server.place}/api/session", {"Cookie": cookie}).status == 403


def test_a_wrong_token_opens_nothing(server: PageServer) -> None:
    """Neither in the link nor as a header; and the right one elsewhere than at the link is no login."""
    for token in ("wrong", server.token[:-1], server.token + "x"):
        answer = server.ask("GET", f"/{server.place}/?token={token}")
        assert answer.status == 403
        assert "set-cookie" not in answer.headers
        bearer = {"Authorization": f"Bearer {token}"}
        assert server.ask("GET", f"/{server.place}/api/session", bearer).status == 403
    assert server.ask("GET", f"/{server.place}/api/session?token={server.token}").status == 403
    assert server.ask("GET", f"/?token={server.token}").status == 403


def test_the_cookie_is_for_this_page_alone(server: PageServer) -> None:
    """Scripts can't read it, other sites don't send it, other ports' paths don't get it."""
    answer = server.ask("GET", f"/{server.place}/?token={server.token}")
    words = [word.strip() for word in answer.headers["set-cookie"].split(";")]
    assert words[1:] == [f"Path=/{server.place}", "HttpOnly", "SameSite=Strict"]
    assert server.token not in answer.headers["set-cookie"]
    assert server.token not in answer.text


def test_a_program_reads_with_the_token_and_changes_nothing(server: PageServer) -> None:
    bearer = {"Authorization": f"Bearer {server.token}"}
    assert server.ask("GET", f"/{server.place}/metrics", bearer).status == 200
    answer = server.ask("POST", f"/{server.place}/api/act/cancel", {**bearer, "Origin": f"http://{server.host}"}, b"{}")
    assert answer.status == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost", "[::1]:{port}", ""]
)
def test_another_host_name_is_refused(server: PageServer, host: str) -> None:
    """A name that leads here by DNS is not ours (DNS rebinding), whatever cookie comes with it."""
    named = host.format(port=server.host.rpartition(":")[2])
    for path in (f"/{server.place}/api/session", f"/{server.place}/?token={server.token}"):
        answer = server.ask("GET", path, {"Host": named, "Cookie": server.cookie})
        assert answer.status in (400, 421)
        assert "set-cookie" not in answer.headers


def test_localhost_with_our_port_is_ours(server: PageServer) -> None:
    named = server.host.replace("127.0.0.1", "localhost")
    assert server.ask("GET", f"/{server.place}/api/session", {"Host": named, "Cookie": server.cookie}).status == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_reads_nothing(server: PageServer, site: str) -> None:
    """Not even with the cookie: another port of this host is another site's page."""
    headers = {"Cookie": server.cookie, "Sec-Fetch-Site": site}
    assert server.ask("GET", f"/{server.place}/api/session", headers).status == 403
    assert server.ask("GET", f"/{server.place}/api/session", {**headers, "Sec-Fetch-Site": "same-origin"}).status == 200


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Origin", "http://evil.example"),
        ("Origin", "null"),
        ("Origin", None),
        ("X-Aver-Change", "wrong"),
        ("X-Aver-Change", None),
        ("Cookie", None),
        ("Sec-Fetch-Site", "cross-site"),
        ("Content-Type", "text/plain"),
        ("Content-Type", "application/x-www-form-urlencoded"),
    ],
)
def test_a_change_needs_everything(live: LiveHome, server: PageServer, name: str, value: str | None) -> None:
    """With one thing missing or wrong the job goes on."""
    run = live.run_text("sleep 600")
    live.wait_running(run)
    headers = {**server.own_headers(), **({} if value is None else {name: value})}
    if value is None:
        del headers[name]
    body = b'{"ids": [%d]}' % run
    answer = server.ask("POST", f"/{server.place}/api/act/cancel", headers, body)
    assert answer.status in (403, 415), answer
    assert live.job(run).state == "RUNNING"
    assert server.post("cancel", ids=[run]).status == 200
    live.settle([run])


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH"])
def test_other_methods_are_refused(server: PageServer, method: str) -> None:
    """A preflight of another site gets no permission."""
    answer = server.ask(method, f"/{server.place}/api/act/cancel", {**server.own_headers(), "Content-Length": "0"})
    assert answer.status == 405
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_a_large_change_is_refused(server: PageServer) -> None:
    headers = {**server.own_headers(), "Content-Length": str(1 << 30)}
    assert server.ask("POST", f"/{server.place}/api/act/check", headers, b"{}").status == 413


def test_read_only_changes_nothing(live: LiveHome, read_only: PageServer) -> None:
    """It shows everything, gives no token of changes, and refuses every change."""
    run = live.run_text("sleep 600")
    live.wait_running(run)
    assert read_only.get("session")["is_read_only"] is True
    assert read_only.get("session")["change"] is None
    answer = read_only.post("cancel", ids=[run])
    assert answer.status == 403
    assert live.job(run).state == "RUNNING"


@pytest.mark.parametrize("path", ["", "files/main.js", "api/session", "api/nothing", "api/runs/77"])
def test_every_answer_has_its_headers(server: PageServer, path: str) -> None:
    """No inline script, no frame, no other site, no guess of a type, nothing kept."""
    headers = server.ask("GET", f"/{server.place}/{path}", {"Cookie": server.cookie}).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert not [name for name in headers if name.startswith("access-control")]


@needs_root
def test_another_user_gets_nothing(live: LiveHome, server: PageServer) -> None:
    """A second uid can connect to the port, and learns nothing; it knows neither token nor place."""
    host, port = server.host.split(":")

    def try_all() -> None:
        for path in ("/", "/api/runs", f"/{server.place}/api/runs"):  # even if it knew the place
            with socket.create_connection((host, int(port)), timeout=30) as connection:
                connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {server.host}\r\nConnection: close\r\n\r\n".encode())
                answer = b"".join(iter(lambda: connection.recv(65536), b""))
            assert answer.startswith(b"HTTP/1.1 403 ")
            assert answer.count(b"open the link") == 1
        try:
            os.listdir(live.home.path)
        except PermissionError:
            return
        raise AssertionError("the home is open")

    open_above(live.home.path)
    other_does(try_all)


@needs_root
def test_another_user_can_t_reach_the_socket(live: LiveHome) -> None:
    """With --socket there is no port; the socket is in the home and for its owner alone."""
    with page_server(live.home.path, live.folder, socket=True) as server:
        path = live.home.path / "ui.sock"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(live.home.path.stat().st_mode) == 0o700
        assert f"ssh -L 8642:{path} " in server.said
        server.log_in()
        assert server.ask("GET", f"/{server.place}/", {"Cookie": server.cookie, "Host": "localhost:9"}).status == 200
        assert server.ask("GET", f"/{server.place}/", {"Cookie": server.cookie, "Host": "evil.example"}).status == 421

        def try_it() -> None:
            with socket.socket(socket.AF_UNIX) as connection:
                try:
                    connection.connect(os.fspath(path))
                except PermissionError:
                    return
            raise AssertionError("it could connect")

        open_above(live.home.path)
        other_does(try_it)
    assert not path.exists()


def test_a_killed_server_leaves_nothing_in_the_way(live: LiveHome) -> None:
    """The socket of a server that was killed is replaced; that of one that answers is not."""
    with page_server(live.home.path, live.folder, socket=True) as first:
        first.process.send_signal(signal.SIGKILL)
        first.process.wait()
        assert (live.home.path / "ui.sock").exists()
        with page_server(live.home.path, live.folder, socket=True) as second:
            second.log_in()
            with pytest.raises(AssertionError, match="another `aver ui --socket` answers"):
                page_server(live.home.path, live.folder, socket=True).__enter__()
            assert second.get("session")["home"] == str(live.home.path)


def test_a_port_that_is_taken_is_one_line(live: LiveHome) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(AssertionError, match=f"^aver: can't listen at 127.0.0.1:{port}: Address already in use"):
            page_server(live.home.path, live.folder, port=port).__enter__()
