"""Slurm's words for the states of a job, translated here and nowhere else."""

from __future__ import annotations

from functools import lru_cache

from aver.model.evidence import SchedulerWord
from aver.model.states import SchedulerState

WORDS: dict[str, SchedulerState] = {
    "PENDING": SchedulerState.PENDING,
    "REQUEUED": SchedulerState.PENDING,
    "REQUEUE_FED": SchedulerState.PENDING,
    "REQUEUE_HOLD": SchedulerState.PENDING,
    "RESV_DEL_HOLD": SchedulerState.PENDING,
    "SPECIAL_EXIT": SchedulerState.PENDING,
    "CONFIGURING": SchedulerState.RUNNING,
    "RUNNING": SchedulerState.RUNNING,
    "RESIZING": SchedulerState.RUNNING,
    "SIGNALING": SchedulerState.RUNNING,
    "STOPPED": SchedulerState.SUSPENDED,
    "SUSPENDED": SchedulerState.SUSPENDED,
    "COMPLETING": SchedulerState.COMPLETING,
    "STAGE_OUT": SchedulerState.COMPLETING,
    "EXPEDITING": SchedulerState.PRESENT,
    "LAUNCH_FAILED": SchedulerState.PRESENT,
    "POWER_UP_NODE": SchedulerState.PRESENT,
    "RECONFIG_FAIL": SchedulerState.PRESENT,
    "REVOKED": SchedulerState.PRESENT,
    "COMPLETED": SchedulerState.COMPLETED,
    "FAILED": SchedulerState.FAILED,
    "OUT_OF_MEMORY": SchedulerState.OUT_OF_MEMORY,
    "TIMEOUT": SchedulerState.TIMEOUT,
    "CANCELLED": SchedulerState.CANCELLED,
    "NODE_FAIL": SchedulerState.NODE_FAIL,
    "BOOT_FAIL": SchedulerState.BOOT_FAIL,
    "PREEMPTED": SchedulerState.PREEMPTED,
    "DEADLINE": SchedulerState.DEADLINE,
}
REQUEUED = "REQUEUED"
_BEGUN = (SchedulerState.RUNNING, SchedulerState.SUSPENDED, SchedulerState.COMPLETING)


@lru_cache(maxsize=256)
def read_word(said: str) -> SchedulerWord:
    """`CANCELLED by 1001` and a shortened `CANCELLED+` are CANCELLED; a word that is not in the table is UNKNOWN."""
    return SchedulerWord(state_of(said), said, said.partition(" by ")[2].strip())


def state_of(said: str) -> SchedulerState:
    return WORDS.get(first_word(said), SchedulerState.UNKNOWN)


def first_word(said: str) -> str:
    """`CANCELLED` of `CANCELLED by 1001` and of a shortened `CANCELLED+`."""
    return said.partition(" ")[0].rstrip("+")


def has_ended(said: str) -> bool:
    """Whether the end and the exit code of a row with this word mean something."""
    return state_of(said).is_end or first_word(said) == "LAUNCH_FAILED"


def has_started(said: str) -> bool:
    """Whether its start means something, and is not a forecast."""
    return has_ended(said) or state_of(said) in _BEGUN
