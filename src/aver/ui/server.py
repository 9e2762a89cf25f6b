"""Where the page listens, the link that leads to it, and the process that serves it."""

from __future__ import annotations

import contextlib
import os
import shlex
import socket
import stat
import sys
import webbrowser
from collections.abc import Callable
from pathlib import Path

import uvicorn

from aver.client.origin import user_name
from aver.durable_files import replace_file
from aver.errors import AverError, CantWriteError, UsageError
from aver.home import Home
from aver.model.record import Record
from aver.ui.access import Guard, Keys, new_keys
from aver.ui.app import make_app

LOOPBACK = "127.0.0.1"
BACKLOG = 128
TUNNEL_PORT = 8642  # of the user's own machine, in the line that is printed
END_S = 2  # that open connections have at the end


class Options(Record):
    """Of `aver ui`. `port` 0: any that is free."""

    port: int = 0
    socket: bool = False
    open: bool = False
    read_only: bool = False


def serve(options: Options) -> None:
    """Serve until SIGINT or SIGTERM; AverError if nothing can be served."""
    home = Home.find()
    home.prepare()
    keys = new_keys()
    listener = _listen_in(home) if options.socket else _listen_at(options.port)
    port = None if options.socket else listener.getsockname()[1]
    app = make_app(keys, options.read_only)
    server = _Server(
        uvicorn.Config(
            Guard(app, keys, port, options.read_only),
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=END_S,
        ),
        [home.ui_socket] if options.socket else [],
    )
    app.state.feed.is_over = lambda: server.should_exit

    def tell() -> None:
        print(_words(home, keys, port), flush=True)
        if options.open:
            _open_browser(home, _link(keys, port or TUNNEL_PORT), server)

    server.when_begun = tell
    with contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[listener])


class _Server(uvicorn.Server):
    """Tells of itself when it takes signals, and removes its files when one ends it: it is raised again right after."""

    def __init__(self, config: uvicorn.Config, files: list[Path]) -> None:
        super().__init__(config)
        self.files = files
        self.when_begun: Callable[[], None] = lambda: None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.when_begun()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for path in self.files:
            with contextlib.suppress(OSError):
                path.unlink()
        await super().shutdown(sockets)


def _listen_at(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise AverError(f"can't listen at {LOOPBACK}:{port}: {error.strerror}; --port chooses another one") from None
    return listener


def _listen_in(home: Home) -> socket.socket:
    """A socket in the home, for its owner alone; what a killed server left behind is replaced."""
    folder = os.open(home.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    short = f"/proc/self/fd/{folder}/{home.ui_socket.name}"  # a socket's path is short, a home's may be long
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        if _answers(short):
            raise UsageError(f"another `aver ui --socket` answers at {home.ui_socket}: use its link, or end it")
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISSOCK(os.lstat(short).st_mode):
                os.unlink(short)
        listener.bind(short)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise CantWriteError(f"can't listen at {home.ui_socket}: {error.strerror}") from None
    except UsageError:
        listener.close()
        raise
    finally:
        os.umask(before)
        os.close(folder)
    return listener


def _answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as trial:
        try:
            trial.connect(path)
        except OSError:
            return False
    return True


def _link(keys: Keys, port: int) -> str:
    """By number: another user may listen at localhost's other address."""
    return f"http://{LOOPBACK}:{port}/{keys.place}/?token={keys.token}"


def _words(home: Home, keys: Keys, port: int | None) -> str:
    """The link alone on its line, then how to reach it from another machine."""
    there = f"{user_name()}@{socket.gethostname()}"
    if port is None:
        path = shlex.quote(str(home.ui_socket))
        return (
            f"{_link(keys, TUNNEL_PORT)}\n"
            f"the page listens at {home.ui_socket}; on your machine first: ssh -L {TUNNEL_PORT}:{path} {there}"
        )
    return f"{_link(keys, port)}\nfrom another machine first: ssh -L {port}:{LOOPBACK}:{port} {there}"


def _open_browser(home: Home, link: str, server: _Server) -> None:
    """Open a file that leads to the link: a browser's arguments are in the list of processes, for everybody to read."""
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or sys.platform == "darwin"):
        print("there is no display here: open the link yourself", file=sys.stderr)
        return
    text = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={link}"><title>aver</title>'
    try:
        replace_file(home.ui_link, text.encode(), 0o600)
    except OSError as error:
        raise CantWriteError(f"can't write {home.ui_link}: {error.strerror}") from None
    server.files.append(home.ui_link)
    if not webbrowser.open(home.ui_link.as_uri()):
        print("no browser could be started: open the link yourself", file=sys.stderr)
