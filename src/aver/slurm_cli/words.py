"""Slurm's words for states and reasons, and ours. docs/en/reference/slurm-commands.md says why."""

from __future__ import annotations

# ours -> Slurm's long word, short word, and the number by which squeue sorts
_SHOWN: dict[str, tuple[str, str, int]] = {
    "PENDING": ("PENDING", "PD", 0),
    "SUBMITTED": ("PENDING", "PD", 0),
    "SPECIAL_EXIT": ("SPECIAL_EXIT", "SE", 0),
    "RUNNING": ("RUNNING", "R", 1),
    "SUSPENDED": ("SUSPENDED", "S", 2),
    "COMPLETED": ("COMPLETED", "CD", 3),
    "CANCELLED": ("CANCELLED", "CA", 4),
    "SKIPPED": ("CANCELLED", "CA", 4),
    "FAILED": ("FAILED", "F", 5),
    "TIMEOUT": ("TIMEOUT", "TO", 6),
    "CHECKPOINTED": ("TIMEOUT", "TO", 6),
    "NODE_FAIL": ("NODE_FAIL", "NF", 7),
    "UNVERIFIED": ("NODE_FAIL", "NF", 7),
    "PREEMPTED": ("PREEMPTED", "PR", 8),
    "BOOT_FAIL": ("BOOT_FAIL", "BF", 9),
    "DEADLINE": ("DEADLINE", "DL", 10),
    "OUT_OF_MEMORY": ("OUT_OF_MEMORY", "OOM", 11),
    "COMPLETING": ("COMPLETING", "CG", 100),
    "SETTLING": ("COMPLETING", "CG", 100),
}

SHORT = {
    "PENDING": "PD", "RUNNING": "R", "SUSPENDED": "S", "COMPLETED": "CD", "CANCELLED": "CA", "FAILED": "F",
    "TIMEOUT": "TO", "NODE_FAIL": "NF", "PREEMPTED": "PR", "BOOT_FAIL": "BF", "DEADLINE": "DL",
    "OUT_OF_MEMORY": "OOM", "COMPLETING": "CG", "CONFIGURING": "CF", "RESIZING": "RS", "RESV_DEL_HOLD": "RD",
    "REQUEUED": "RQ", "REQUEUE_FED": "RF", "REQUEUE_HOLD": "RH", "REVOKED": "RV", "SIGNALING": "SI",
    "SPECIAL_EXIT": "SE", "STAGE_OUT": "SO", "STOPPED": "ST",
}  # fmt: skip
_LONG = {short: word for word, short in SHORT.items()}

LIVE = frozenset({"PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "SPECIAL_EXIT"})  # what squeue lists unless asked

_SPECIAL_EXIT = "job_requeued_in_special_exit_state"  # for Slurm a state, whose reason is that of every held requeue
_REASONS = {  # a requeued job of Slurm waits for its begin time
    "Retry": "BeginTime", "Checkpoint": "BeginTime", _SPECIAL_EXIT: "job_requeued_in_held_state",
}  # fmt: skip


def long_state(state: str) -> str:
    return _SHOWN[state][0] if state in _SHOWN else state


def queue_state(state: str, reason: str) -> str:
    """The word of squeue and scontrol; accounting knows no SPECIAL_EXIT."""
    return "SPECIAL_EXIT" if state == "PENDING" and reason == _SPECIAL_EXIT else long_state(state)


def short_state(state: str) -> str:
    return _SHOWN[state][1] if state in _SHOWN else state


def state_number(state: str) -> int:
    return _SHOWN[state][2] if state in _SHOWN else 999


def reason(state: str, ours: str) -> str:
    """Slurm's reason: ours, except for a wait for another attempt, a need that failed, and a deadline while it ran."""
    if state in ("PENDING", "SUBMITTED"):
        return _REASONS.get(ours, ours) or "None"
    if state == "SKIPPED" and ours.startswith("Need"):
        return "DependencyNeverSatisfied"
    if state == "TIMEOUT" and ours == "DeadLine":
        return "TimeLimit"
    return ours or "None"


def parse_state(text: str) -> str | None:
    """The long word of a state in either form and any case; None for what is none."""
    word = text.strip().upper()
    if word in SHORT:
        return word
    return _LONG.get(word)
