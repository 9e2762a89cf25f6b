"""A pending job's dependencies as Slurm prints them: those that remain, each with how it stands."""

from __future__ import annotations

from aver.fast_start import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol

    class Job(Protocol):
        """A job, as far as one that waits for it needs it."""

        array_job: int | None
        array_index: str

        @property
        def is_pending(self) -> bool: ...
        @property
        def is_settled(self) -> bool: ...
        @property
        def ours(self) -> str: ...

    Numbered = Callable[[list[int]], Sequence[Job]]  # jobs by their numbers, and all jobs of runs by theirs

_GOOD = ("COMPLETED",)


def document_of(text: str) -> dict[str, Any] | None:
    """A dependency that was asked for later, as the store has those of submissions."""
    from aver.model.codec import encode
    from aver.spec.sbatch.dependency import parse_dependency

    try:
        after = parse_dependency(text)
    except ValueError:
        return None
    found: dict[str, Any] | None = None if after is None else encode(after)
    return found


def remaining(after: dict[str, Any], array_index: str, numbered: Numbered) -> str:
    """`afterok:31(unfulfilled),singleton(unfulfilled)`; with `?` between them where one is enough.

    `after` is as the store has it, of a job with this index in its array.
    """
    parts = []
    for term in after.get("terms", ()):
        kind = term["kind"]
        if kind == "singleton":
            parts.append("singleton(unfulfilled)")
            continue
        for number, index in term.get("jobs", ()):
            state = _stands(numbered([number]), kind, number, index, array_index)
            if state:
                minutes = term.get("delay_s", 0) // 60
                delay = f"+{minutes}" if minutes else ""
                parts.append(f"{kind}:{_target(numbered, number, index)}{delay}({state})")
    return ("?" if after.get("is_any") else ",").join(parts)


def _target(numbered: Numbered, number: int, index: int | None) -> str:
    if index is not None:
        return f"{number}_{index}"
    is_array = any(one.array_job == number for one in numbered([number])[:1])
    return f"{number}_*" if is_array else str(number)


def _stands(found: Sequence[Job], kind: str, number: int, index: int | None, array_index: str) -> str:
    """Empty when fulfilled."""
    if index is not None:
        found = [one for one in found if one.array_job == number and one.array_index == str(index)]
    elif kind == "aftercorr":
        found = [one for one in found if one.array_index == array_index] or found
    if kind == "after":
        return "unfulfilled" if any(one.is_pending for one in found) else ""
    if not all(one.is_settled for one in found):
        return "unfulfilled"
    if kind == "afterany":
        return ""
    good = all(one.ours in _GOOD for one in found)
    return "" if good is (kind != "afternotok") else "failed"
