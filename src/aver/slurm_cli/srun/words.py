"""What Slurm's srun and slurmstepd say of a step that was ended, or could not start. Only a failure needs it.

Pure but for the clock and a look at a script's first line. Words alone: the outcome is the coordinator's.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Mapping, Sequence
from signal import SIGKILL, SIGTERM
from typing import TYPE_CHECKING, Any

from aver.model.evidence import LaunchFailure
from aver.model.reasons import TIME_LIMIT
from aver.model.signals import signal_words
from aver.slurm_cli.settings import is_since

if TYPE_CHECKING:
    from aver.judge.step import TaskEnd

EXTRA_WAIT_S = 2  # what Slurm's srun gives beyond the kill wait
ENDING_SIGNALS = (SIGKILL, SIGTERM)


def ranges(numbers: Sequence[int]) -> str:
    """`0,2-3`"""
    parts: list[str] = []
    at = 0
    while at < len(numbers):
        end = at
        while end + 1 < len(numbers) and numbers[end + 1] == numbers[end] + 1:
            end += 1
        parts.append(str(numbers[at]) if at == end else f"{numbers[at]}-{numbers[end]}")
        at = end + 1
    return ",".join(parts)


class Notices:
    """The lines about how a step was ended, each once."""

    def __init__(self, step: str, node: str, kill_wait_s: float) -> None:
        self._step = step
        self._node = node
        self._kill_wait_s = kill_wait_s
        self._said: set[str] = set()
        self._is_aborted = False

    def of_task(self, message: Mapping[str, Any]) -> list[str]:
        """What there is to say of the step now that this task has ended."""
        state, raw = message["state"], message["raw"] or 0
        if message["because"]:
            return []
        if state == "OUT_OF_MEMORY":
            kills = message["oom_kills"]
            return self._fresh("memory", [self._memory(kills)] if kills else [])
        if state == "TIMEOUT":
            return self._fresh("cancelled", [self._cancelled(" DUE TO TIME LIMIT")])
        if state == "CANCELLED":
            self._is_aborted = True
            is_late = message["reason"] == TIME_LIMIT
            line = self._cancelled(" DUE TO TIME LIMIT") if is_late else self._by_signal(raw & 0x7F or SIGTERM)
            return self._fresh("cancelled", [line, self._aborted()])
        if raw & 0x7F in ENDING_SIGNALS and message["was_sent"]:
            return self._fresh("cancelled", [self._by_signal(raw & 0x7F)])
        return []

    def of_start(self, tasks: int, cpus: int) -> list[str]:
        """What -v says of a step that starts."""
        numbers = ranges(range(tasks))
        noun = f"{tasks} task{'s' if tasks > 1 else ''}"
        return [
            f"srun: jobid {self._step.partition('.')[0]}: nodes(1):`{self._node}', cpu counts: {cpus}(x1)",
            f"srun: launching StepId={self._step} on host {self._node}, {noun}: [{numbers}]",
            f"srun: launch/slurm: _task_start: Node {self._node}, {noun} started",
        ]

    def of_task_end(self, task: int, raw: int | None) -> list[str]:
        """What -v says of a task that ended."""
        front = "srun: launch/slurm: _task_finish:"
        status = "unknown" if raw is None else f"0x{raw:04x}"
        lines = [f"{front} Received task exit notification for 1 task of StepId={self._step} (status={status})."]
        return [*lines, f"{front} {self._node}: task {task}: Completed"] if raw == 0 else lines

    def of_bad_exit(self) -> list[str]:
        """--kill-on-bad-exit ends the others."""
        return self._fresh("cancelled", [self._terminating(), self._by_signal(SIGTERM)])

    def of_wait(self, wait_s: str, tasks: int, ends: Mapping[int, Mapping[str, Any]]) -> list[str]:
        """--wait ends the others; `ends` are those that ended by themselves."""
        self._is_aborted = True
        lines = [f"srun: First task exited {wait_s}s ago", *self.status(tasks, ends)]
        return self._fresh("cancelled", [*lines, self._terminating(), self._by_signal(SIGKILL), self._aborted()])

    def status(self, tasks: int, ends: Mapping[int, Mapping[str, Any]]) -> list[str]:
        """Which tasks run, and which have ended."""
        well = [task for task in sorted(ends) if ends[task]["raw"] == 0]
        groups = {
            "running": [task for task in range(tasks) if task not in ends],
            "exited": well,
            "exited abnormally": [task for task in sorted(ends) if task not in well],
        }
        return [
            f"srun: StepId={self._step} task{'s' if len(numbers) > 1 else ''} {ranges(numbers)}: {word}"
            for word, numbers in groups.items()
            if numbers
        ]

    def of_end(self, state: str, ends: Mapping[int, Mapping[str, Any]]) -> list[str]:
        """Slurm says so of every step with a task that TERM or KILL ended, unless srun aborted it."""
        ended = any((one["raw"] or 0) & 0x7F in ENDING_SIGNALS for one in ends.values())
        is_said = ended and not self._is_aborted and state != "OUT_OF_MEMORY"
        return [f"srun: Force Terminated StepId={self._step}"] if is_said else []

    def _fresh(self, what: str, lines: list[str]) -> list[str]:
        if what in self._said:
            return []
        self._said.add(what)
        return lines

    def _cancelled(self, why: str) -> str:
        at = time.strftime("%Y-%m-%dT%H:%M:%S")
        return f"slurmstepd: error: *** STEP {self._step} ON {self._node} CANCELLED AT {at}{why} ***"

    def _by_signal(self, number: int) -> str:
        """The line of a step that a signal ended; 25.05 was the first to name the signal."""
        return self._cancelled(f" DUE to SIGNAL {signal_words(number)}" if is_since("25.05") else "")

    def _aborted(self) -> str:
        seconds = int(self._kill_wait_s) + EXTRA_WAIT_S
        return f"srun: Job step aborted: Waiting up to {seconds} seconds for job step to finish."

    def _terminating(self) -> str:
        where = "" if is_since("23.02") else "launch/slurm: _step_signal: "
        return f"srun: {where}Terminating StepId={self._step}"

    def _memory(self, kills: int) -> str:
        if is_since("23.02"):
            found = f"Detected {kills} oom_kill event{'' if kills == 1 else 's'} in StepId={self._step}."
            why = "Some of the step tasks have been OOM Killed."
        else:
            found = f"Detected {kills} oom-kill event(s) in StepId={self._step}."
            why = "Some of your processes may have been killed by the cgroup out-of-memory handler."
        return f"slurmstepd: error: {found} {why}"


def task_words(message: Mapping[str, Any]) -> tuple[list[str], str]:
    """Of a task that ended badly: lines of slurmstepd, and what srun says of it."""
    if message["state"] == "OUT_OF_MEMORY":
        return [], "Out Of Memory"
    raw, detail = message["raw"], str(message["detail"])
    if raw is not None:
        core = " (core dumped)" if raw & 0x80 else ""
        return [], signal_words(raw & 0x7F) + core if raw & 0x7F else f"Exited with exit code {raw >> 8}"
    launch = launch_of(message)
    if launch is not None:
        return [launch_words(launch, detail)], f"Exited with exit code {launch.errno}"
    if message["reason"] == "JobLaunchFailure":
        return [f"slurmstepd: error: {detail}"], detail
    return [], f"{message['state']}: {detail}"


def launch_of(message: Mapping[str, Any]) -> LaunchFailure | None:
    """Why the task of this message could not start; None: it started, or nobody says."""
    launch = message["launch"]
    return None if launch is None else LaunchFailure(launch["operation"], launch["errno"], launch["path"])


def launch_words(launch: LaunchFailure, detail: str) -> str:
    """The line about a task that could not start, in Slurm's words; `detail` in ours."""
    why = os.strerror(launch.errno)
    match launch.operation:
        case "exec":
            interpreter = _interpreter(launch.path) if launch.errno == errno.ENOENT else None
            what = launch.path if interpreter is None else f"bad interpreter({interpreter})"
            return f"slurmstepd: error: execve(): {what}: {why}"
        case "chdir":
            return f"slurmstepd: error: couldn't chdir to `{launch.path}': {why}"
        case "stdin" | "stdout" | "stderr":
            return f"srun: error: Could not open {launch.operation} file: {why}"
        case _:
            return f"slurmstepd: error: {detail}"


def _interpreter(path: str) -> str | None:
    """What the script names in its first line; None if it is no script."""
    try:
        with open(path, "rb") as file:
            first = file.read(256).partition(b"\n")[0]
    except OSError:
        return None
    words = first[2:].split() if first.startswith(b"#!") else []
    return words[0].decode(errors="replace") if words else None


def summary(step: str, tasks: int, ends: Mapping[int, Mapping[str, Any]]) -> str:
    """One line about all tasks."""
    from aver.judge.step import Task, task_summary

    return task_summary(step, [Task(rank, *_end(rank, ends)) for rank in range(tasks)])


def _end(rank: int, ends: Mapping[int, Mapping[str, Any]]) -> tuple[TaskEnd, float | None, bool]:
    """The order in which ends were heard stands for their times."""
    from aver.judge.step import Lost, NotBegun, Running
    from aver.model.exit import ExitStatus

    message = ends.get(rank)
    if message is None:
        return Running(), None, False
    heard_at = float(list(ends).index(rank))
    raw = message["raw"]
    if raw is not None:
        return ExitStatus.from_wait(raw), heard_at, message["because"]
    if launch := launch_of(message):
        return launch, heard_at, message["because"]
    is_refused = message["reason"] == "JobLaunchFailure"
    end = NotBegun(is_refused) if is_refused or message["state"] == "CANCELLED" else Lost()
    return end, heard_at, message["because"]
