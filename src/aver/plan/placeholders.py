"""`{name}` in a job's texts: replaced for the names that its matrix declares, and for no others.

All other braces stay, and so does `${name}`, which belongs to the shell. A value that is put
in is never looked at again. In a shell's text each value is quoted as one word of the shell.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

AXIS_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLACE = re.compile(r"(?<!\$)\{([A-Za-z_][A-Za-z0-9_]*)\}")


def fill(text: str, values: Mapping[str, str]) -> str:
    """The text with each declared `{name}` replaced by its value as it is."""
    return _PLACE.sub(lambda match: values.get(match[1], match[0]), text) if "{" in text else text


def fill_shell(text: str, values: Mapping[str, str]) -> str:
    """The text with each declared `{name}` replaced by its value, quoted for a shell."""
    if "{" not in text:
        return text
    return _PLACE.sub(lambda match: shlex.quote(values[match[1]]) if match[1] in values else match[0], text)


def names_in(text: str) -> frozenset[str]:
    """Every name that stands in braces, declared or not."""
    return frozenset(_PLACE.findall(text)) if "{" in text else frozenset()
