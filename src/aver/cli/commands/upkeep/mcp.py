"""`aver mcp`: become the server of tools for agents."""

from __future__ import annotations

import os
import sys
from importlib.metadata import PackageNotFoundError, version

import click

from aver.errors import AverError

LEAST_VERSION = 2  # of the SDK


@click.command("mcp")
def command() -> None:
    """Serve tools for agents over the Model Context Protocol, on stdin and stdout.

    For the settings of an agent; it needs the extra `mcp`. The tools check, submit, list, wait for, explain, cancel,
    retry and recover runs; docs/en/guides/agents.md describes them. No tool runs a program other than as a job.

    \b
    Examples:
      aver mcp
    """
    try:
        installed = version("mcp")
    except PackageNotFoundError:
        raise AverError("aver mcp needs the MCP SDK: pip install 'aver[mcp]'") from None
    if int(installed.partition(".")[0]) < LEAST_VERSION:
        raise AverError(f"aver mcp needs the MCP SDK 2 or later, here is {installed}: pip install 'aver[mcp]'")
    os.execv(sys.executable, [sys.executable, "-P", "-m", "aver.mcp"])
