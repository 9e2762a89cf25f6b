"""What `srun` asks the coordinator for: a step, and signals to it. Checked here, carried out on the driver's steps.

After the reply, which comes when the step's intent is durable, `srun` is told of each task's end, and of the step's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aver.coordinator.order.order import shared_files
from aver.coordinator.server import Peer
from aver.coordinator.state.attempt import LiveStep
from aver.coordinator.state.machine import Driver
from aver.coordinator.state.steps import is_waiting
from aver.engines.api import LOCAL
from aver.errors import AverError, CantWriteError, UsageError
from aver.home import Home
from aver.model.codec import decode
from aver.model.events import Event, StepEnded, StepStarted, TaskEnded
from aver.model.evidence import TaskCause, Verdict
from aver.model.job import StepSpec
from aver.render.masking import values_of
from aver.store.read.reader import Reader
from aver.store.secrets import keep_values

MOST_TASKS = 100_000
STREAMS = 3
_TASK = re.compile(r"\.s[0-9]+\.t[0-9]+\Z")


@dataclass(slots=True)
class Stepping:
    home: Home
    driver: Driver
    open_reader: Callable[[], Reader | None]
    kill_wait_s: float

    def begin(self, peer: Peer, request: dict[str, Any], now: float) -> dict[str, Any]:
        """Begin a step, or take up the one that this token has begun before."""
        key, token = _attempt_key(request), request.get("token")
        if not isinstance(token, str) or not token:
            raise UsageError("the request names no job")
        known = self.driver.step_by_token(token)
        if known is None or known.state is not None:
            ended = _ended_reply(known, self.driver.identity.host) if known else self._ended(key, token)
            if ended is not None:
                return ended
        streams = peer.take_descriptors()
        try:
            step = self.driver.begin_step(key, token, self._spec(request), streams[:STREAMS], now)
            if step.env_file is None:
                step.env_file = os.fspath(self._write_env(step.attempt.run, key, step.number, request.get("env", [])))
        except AverError:
            _close(streams)
            raise
        _close(streams[STREAMS:] if step.streams == streams[:STREAMS] else streams)
        peer.token = step_token(step.attempt.job, step.attempt.attempt, step.number)
        return {
            "job": step.attempt.job,
            "step": step.number,
            "waiting": is_waiting(step),
            "node": self.driver.identity.host,
            "kill_wait_s": self.driver.runs[step.attempt.run].kill_wait_s(step.attempt.index, self.kill_wait_s),
            "tasks": _ended_tasks(step),
            "files": shared_files(self.driver.runs[step.attempt.run], step, self.driver.identity.host),
        }

    def _spec(self, request: dict[str, Any]) -> StepSpec:
        try:
            spec = decode(StepSpec, request.get("spec"))
        except ValueError as error:
            raise UsageError(f"the step can't be read: {error}") from None
        if not 1 <= spec.tasks <= MOST_TASKS or spec.cpus_per_task < 1:
            raise UsageError(f"Invalid number of tasks: {spec.tasks}")
        if not spec.args:
            raise UsageError("No command given to execute.")
        return spec

    def _ended(self, key: str, token: str) -> dict[str, Any] | None:
        """A step that has ended while its srun could not hear it."""
        attempt = self.driver.attempts.get(key)
        reader = self.open_reader()
        if attempt is None or reader is None:
            return None
        with reader:
            for row in reader.steps(attempt.job, attempt.attempt):
                if row.token == token and row.state.is_settled:
                    tasks = reader.tasks(row.job, row.attempt, row.step)
                    return {
                        "job": row.job,
                        "step": row.step,
                        "waiting": False,
                        "node": self.driver.identity.host,
                        "tasks": [task_message(one.task, one.verdict, one.cause, one.because) for one in tasks],
                        "ended": {"code": row.srun_code, "state": row.state.value},
                    }
        return None

    def _write_env(self, run: int, key: str, step: int, env: object) -> Path:
        """The tasks' environment is srun's own, mode 0600 as all of them."""
        if not isinstance(env, list) or not all(isinstance(pair, str) and "\0" not in pair for pair in env):
            raise UsageError("the step's environment can't be read")
        live = self.driver.runs.get(run)
        if live is not None and live.submission.origin.secrets:
            values = values_of((os.fsencode(pair) for pair in env), live.submission.origin.secrets)
            keep_values(os.fspath(self.home.path), run, map(os.fsdecode, values))
        path = step_env_path(self.home, run, key, step)
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with open(fd, "wb") as file:
                file.write(b"".join(os.fsencode(pair) + b"\0" for pair in env))
        except OSError as error:
            raise CantWriteError(f"can't write {path}: {error.strerror}") from None
        return path

    def forget(self, events: Sequence[Event]) -> None:
        """The environment of a step is of no use after its end."""
        for event in events:
            if isinstance(event, StepEnded):
                key = self.driver.identity.key(event.job, event.attempt)
                step_env_path(self.home, event.run, key, event.step).unlink(missing_ok=True)

    def signal(self, request: dict[str, Any], now: float) -> dict[str, Any]:
        """Send a signal to a step's tasks; without one, end them."""
        key, number, signal = _attempt_key(request), request.get("step"), request.get("signal")
        if not isinstance(number, int):
            raise UsageError("the request names no step")
        if signal is not None and (not isinstance(signal, int) or not 1 <= signal <= 64):
            raise UsageError(f"{signal!r} is not a signal number")
        step = self.driver.find_step(key, number)
        if step is None:
            return {"did": "not running"}
        if step.attempt.engine != LOCAL:
            raise UsageError(f"step {step.attempt.job}.{number} is Slurm's: its own scancel reaches it")
        by = request.get("by")
        if signal is None:
            if isinstance(by, str) and by:
                self.driver.kill_step(step, by, now)
            else:
                self.driver.cancel_step(step, "request", now)
            return {"did": "cancelling"}
        self.driver.signal_step(step, signal)
        return {"did": "signalled"}


def _attempt_key(request: dict[str, Any]) -> str:
    """The key of the job's attempt; a task of a step has its own, which begins with it."""
    key = request.get("key")
    if not isinstance(key, str):
        raise UsageError("the request names no job")
    return _TASK.sub("", key)


def _close(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _ended_tasks(step: LiveStep) -> list[dict[str, Any]]:
    ended = [one for one in step.tasks if one.verdict is not None]
    return [task_message(one.number, one.verdict, one.cause, one.because) for one in ended]


def _ended_reply(step: LiveStep, host: str) -> dict[str, Any]:
    """The step has ended, and its srun comes back only now."""
    assert step.state is not None
    return {
        "job": step.attempt.job,
        "step": step.number,
        "waiting": False,
        "node": host,
        "tasks": _ended_tasks(step),
        "ended": {"code": step.srun_code, "state": step.state.value},
    }


def step_env_path(home: Home, run: int, key: str, step: int) -> Path:
    return home.path / "env" / f"{run}.{key}.{step}.env"


def step_token(job: int, attempt: int, step: int) -> str:
    """By which the messages of a step find its srun."""
    return f"{job}.{attempt}.{step}"


def task_message(task: int, verdict: Verdict | None, cause: TaskCause, because: bool) -> dict[str, Any]:
    launch = cause.launch
    exit_status = None if verdict is None else verdict.exit
    return {
        "task": task,
        "state": None if verdict is None else verdict.state.value,
        "reason": None if verdict is None else verdict.reason,
        "detail": "" if verdict is None else verdict.detail,
        "raw": None if exit_status is None else exit_status.wait_status,
        "because": because,
        "launch": None
        if launch is None
        else {"operation": launch.operation, "errno": launch.errno, "path": launch.path},
        "oom_kills": cause.oom_kills,
        "was_sent": cause.was_sent,
    }


def step_message(event: StepStarted | TaskEnded | StepEnded) -> dict[str, Any]:
    """What srun is told, after the commit."""
    match event:
        case StepStarted():
            return {"begun": event.step}
        case TaskEnded():
            return task_message(event.task, event.verdict, event.cause, event.because)
        case StepEnded():
            return {"ended": {"code": event.srun_code, "state": event.verdict.state.value}}
