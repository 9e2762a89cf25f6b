"""`aver ui`: become the server of the live page."""

from __future__ import annotations

import json
import os
import sys
from importlib.util import find_spec

import click

from aver.cli.session import Session
from aver.errors import AverError, UsageError


@click.command("ui")
@click.option("--port", type=click.IntRange(1, 65535), metavar="N", help="Port of 127.0.0.1 (default: any free one).")
@click.option("--socket", is_flag=True, help="Listen at a Unix socket in the home instead, for an ssh tunnel.")
@click.option("--open", "is_opened", is_flag=True, help="Open the page in a browser.")
@click.option("--read-only", is_flag=True, help="Show everything, change nothing.")
def command(port: int | None, socket: bool, is_opened: bool, read_only: bool) -> None:
    """Serve the live page of all runs and jobs, to look at and to act on, in a browser.

    Prints the link that opens the page, and serves it until Ctrl-C. Only this machine can reach it, and only with the
    token in the link; from another machine, use the ssh line that is printed. Jobs keep running when it ends. It needs
    the extra `ui`.

    \b
    Examples:
      aver ui --open
      aver ui --port 8642 --read-only
      aver ui --socket
    """
    if any(find_spec(name) is None for name in ("starlette", "uvicorn")):
        raise AverError("aver ui needs starlette and uvicorn: pip install 'aver[ui]'")
    if socket and port is not None:
        raise UsageError("give --port or --socket, not both")
    Session().refresh()
    options = {"port": port or 0, "socket": socket, "open": is_opened, "read_only": read_only}
    os.execv(sys.executable, [sys.executable, "-P", "-m", "aver.ui", json.dumps(options)])
