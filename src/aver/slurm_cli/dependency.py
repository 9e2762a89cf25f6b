"""A pending job's dependencies as Slurm prints them: those that remain, each with how it stands."""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` costs as much as the rest of the start
if TYPE_CHECKING:
    from typing import Any

    from aver.slurm_cli.facts import JobFacts

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


def remaining(job: JobFacts) -> str:
    """`afterok:31(unfulfilled),singleton(unfulfilled)`; with `?` between them where one is enough."""
    after = job.spec["after"]
    parts = []
    for term in after.get("terms", ()):
        kind = term["kind"]
        if kind == "singleton":
            parts.append("singleton(unfulfilled)")
            continue
        for number, index in term.get("jobs", ()):
            state = _stands(job, kind, number, index)
            if state:
                minutes = term.get("delay_s", 0) // 60
                delay = f"+{minutes}" if minutes else ""
                parts.append(f"{kind}:{_target(job, number, index)}{delay}({state})")
    return ("?" if after.get("is_any") else ",").join(parts)


def _target(job: JobFacts, number: int, index: int | None) -> str:
    if index is not None:
        return f"{number}_{index}"
    is_array = any(one.array_job == number for one in job.book.numbered([number])[:1])
    return f"{number}_*" if is_array else str(number)


def _stands(job: JobFacts, kind: str, number: int, index: int | None) -> str:
    """Empty when fulfilled."""
    found = job.book.numbered([number])
    if index is not None:
        found = [one for one in found if one.array_job == number and one.array_index == str(index)]
    elif kind == "aftercorr":
        found = [one for one in found if one.array_index == job.array_index] or found
    if kind == "after":
        return "unfulfilled" if any(one.is_pending for one in found) else ""
    if not all(one.is_settled for one in found):
        return "unfulfilled"
    if kind == "afterany":
        return ""
    good = all(one.ours in _GOOD for one in found)
    return "" if good is (kind != "afternotok") else "failed"
