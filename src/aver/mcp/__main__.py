"""`python -m aver.mcp`: what `aver mcp` becomes."""

from __future__ import annotations

import contextlib

from aver.mcp.server import serve

if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        serve()
