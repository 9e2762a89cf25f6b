"""The names of hosts that ssh may be given."""

from __future__ import annotations

import re

_USER = r"(?:[A-Za-z0-9_][^\s@:/'\"\\\x00-\x1f\x7f]*@)?"
_HOST = r"(?:[A-Za-z0-9_][A-Za-z0-9_.:%-]*|\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9_.-]+)?\])"
_IS_HOST = re.compile(f"{_USER}{_HOST}").fullmatch
_IS_ADDRESS = re.compile(rf"ssh://({_USER}(?:[A-Za-z0-9_][A-Za-z0-9_.%-]*|\[[^]]+\]))(?::([0-9]{{1,5}}))?/?").fullmatch
LONGEST = 255


def is_host(text: str) -> bool:
    """Whether it may be one: `login`, `me@login`, `ssh://me@login:2222`; no part of it is an option to ssh."""
    if len(text) > LONGEST:
        return False
    found = _IS_ADDRESS(text)
    return bool(_IS_HOST(found[1] if found else text))


def split_address(text: str) -> tuple[str, str]:
    """`me@login` and `2222` of `ssh://me@login:2222`, which only ssh understands; other names as they are."""
    found = _IS_ADDRESS(text)
    return (found[1], found[2] or "") if found else (text, "")
