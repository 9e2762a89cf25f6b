"""The summary of all tasks of a step, for srun: only a failure needs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aver.judge.step import Lost, Running, Task, TaskEnd, task_summary
from aver.model.exit import ExitStatus
from aver.slurm_cli.srun.words import launch_of


def summary(step: str, tasks: int, ends: Mapping[int, Mapping[str, Any]]) -> str:
    return task_summary(step, [Task(rank, *_end(rank, ends)) for rank in range(tasks)])


def _end(rank: int, ends: Mapping[int, Mapping[str, Any]]) -> tuple[TaskEnd, float | None, bool]:
    """The order in which ends were heard stands for their times."""
    message = ends.get(rank)
    if message is None:
        return Running(), None, False
    heard_at = float(list(ends).index(rank))
    raw = message["raw"]
    if raw is not None:
        return ExitStatus.from_wait(raw), heard_at, message["because"]
    return launch_of(message) or Lost(), heard_at, message["because"]
