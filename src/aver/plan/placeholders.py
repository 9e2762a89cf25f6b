"""`{name}` in a job's texts: replaced for the names that its matrix declares, and for no others.

All other braces stay, and so does `${name}`, which belongs to the shell. A value that is put
in is never looked at again. For the text of a shell see `plan.shell_text`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

AXIS_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PARAMETER = "AVER_PARAM_"  # and a name: the variable that has its value
_VARIABLE = re.compile(PARAMETER + r"([A-Za-z_][A-Za-z0-9_]*)")
_PLACE = re.compile(r"(?<!\$)\{([A-Za-z_][A-Za-z0-9_]*)\}")


def fill(text: str, values: Mapping[str, str]) -> str:
    """The text with each declared `{name}` replaced by its value as it is."""
    return _PLACE.sub(lambda match: values.get(match[1], match[0]), text) if "{" in text else text


def parameters_in(text: str) -> frozenset[str]:
    """Every name whose variable the text mentions."""
    return frozenset(_VARIABLE.findall(text)) if PARAMETER in text else frozenset()


def names_in(text: str) -> frozenset[str]:
    """Every name that stands in braces, declared or not."""
    return frozenset(_PLACE.findall(text)) if "{" in text else frozenset()
