"""Ready-made receivers of notifications: `desktop`, `mail:me@example.org`, `slack:URL`, `webhook:URL`.

An address may be the name of a variable of the run's environment, `slack:$SLACK_URL`: its value is then stored nowhere
else, and looked up when a notification is sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

KINDS = ("desktop", "mail", "slack", "webhook")
_VARIABLE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})", re.ASCII)
_MAIL = re.compile(r"[\w.+%][\w.+%-]*(@[\w.-]+)?")
_URL = re.compile(r"https?://[^\s/?#@]+([/?#]\S*)?")
_HOW = "write desktop, mail:me@example.org, slack:URL or webhook:URL"


def parse_target(text: str) -> str:
    """The receiver as it is kept; ValueError says what is wrong, without the address, which may be secret."""
    kind, colon, address = text.strip().partition(":")
    address = address.strip()
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is not a receiver: {_HOW}")
    if kind == "desktop":
        if colon:
            raise ValueError("desktop has no address")
        return kind
    if not _VARIABLE.fullmatch(address) and not (_MAIL if kind == "mail" else _URL).fullmatch(address):
        what = "an address such as me@example.org" if kind == "mail" else "a URL such as https://example.org/hook"
        raise ValueError(f"{kind} needs {what}, or $NAME of a variable that has one")
    return f"{kind}:{address}"


def target_text(kind: str, address: object) -> str:
    """A receiver that is written as a key and its value: `mail: me@example.org`, `desktop: true`."""
    if kind == "desktop" and address is True:
        return kind
    return f"{kind}:{address if isinstance(address, str) else ''}"


def variable_of(target: str) -> str | None:
    """The variable that has the receiver's address; None: the address is in the target."""
    found = _VARIABLE.fullmatch(target.partition(":")[2])
    return None if found is None else found[1] or found[2]


def secret_variables(targets: Iterable[str]) -> tuple[str, ...]:
    """The variables that have URLs of receivers: whoever knows such a URL may write to its channel."""
    urls = (target for target in targets if target.partition(":")[0] in ("slack", "webhook"))
    return tuple(name for name in map(variable_of, urls) if name is not None)
