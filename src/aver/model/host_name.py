"""The names of hosts that ssh may be given."""

from __future__ import annotations

import re

_IS_HOST = re.compile(r"[A-Za-z0-9_][^\s'\"\\\x00-\x1f\x7f]{0,254}").fullmatch


def is_host(text: str) -> bool:
    """Whether it may be one: `login`, `me@login`, `ssh://me@login:2222`; never an option."""
    return bool(_IS_HOST(text))
