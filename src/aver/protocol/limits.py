"""Hard limits (`ulimit -H`) that jobs can't be given: a coordinator can't give out more than it was started with.

Slurm's commands say the sentence, so this imports little.
"""

from __future__ import annotations

from aver.fast_start import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAMES = {
    "NOFILE": "open files", "NPROC": "processes", "STACK": "stack bytes", "AS": "address space bytes",
    "DATA": "data bytes", "MEMLOCK": "locked bytes", "CORE": "core file bytes", "FSIZE": "file bytes",
    "CPU": "CPU seconds",
}  # fmt: skip


def lower_limits(wanted: Sequence[tuple[int, int, int]]) -> tuple[str, ...]:
    """Those of the submitter's limits (resource, soft, hard) of which this process has less; asked by a coordinator."""
    import resource

    named = {getattr(resource, f"RLIMIT_{name}"): words for name, words in _NAMES.items()}
    found = []
    for number, _, hard in wanted:
        if number not in named:
            continue
        given = resource.getrlimit(number)[1]
        if given != resource.RLIM_INFINITY and (hard == resource.RLIM_INFINITY or given < hard):
            yours = "unlimited" if hard == resource.RLIM_INFINITY else hard
            found.append(f"{named[number]} {given}, yours {yours}")
    return tuple(found)


def limits_sentence(lower: Sequence[str]) -> str:
    """What to say of them to who submitted; empty if there are none."""
    if not lower:
        return ""
    text = "jobs get lower limits than this shell's, since the coordinator was started with them"
    return f"{text} ({'; '.join(lower)}): `aver stop`, and submit again"
