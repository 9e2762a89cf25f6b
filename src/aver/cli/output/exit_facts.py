"""An exit status as commands show it."""

from __future__ import annotations

from aver.model.record import dataclass


@dataclass(frozen=True, slots=True)
class ExitFacts:
    """`text` is code:signal; `return_code` is what a shell would show."""

    text: str
    code: int
    signal: int
    core_dumped: bool
    return_code: int
