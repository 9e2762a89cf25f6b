"""`step` and `signal_step`: what `srun` asks for. Checked here, carried out on the state machine's steps.

After the reply, which comes when the step's intent is durable, `srun` is told of each task's end, and of the step's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from aver.coordinator.order.order import shared_files
from aver.coordinator.requests.context import Context
from aver.coordinator.requests.dispatch import serves
from aver.coordinator.server import Peer, close_all
from aver.coordinator.state.attempt import LiveStep
from aver.coordinator.state.machine import Machine
from aver.coordinator.state.steps import is_waiting
from aver.coordinator.watchers import step_token, task_end
from aver.errors import CantWriteError, UsageError
from aver.home import Home
from aver.model.events import Event, StepEnded
from aver.protocol.messages import Signalled, SignalStep, Step, StepCode, StepTaken, TaskEnd
from aver.render.masking import values_of
from aver.store.secrets import keep_values

_TASK = re.compile(r"\.s[0-9]+\.t[0-9]+\Z")


@serves(Step)
def step(context: Context, peer: Peer, request: Step, now: float) -> StepTaken:
    """Begin a step, or take up the one that this token has begun before. One that is refused is not begun."""
    machine, key = context.machine, attempt_key(request.key)
    known = machine.step_by_token(request.token)
    if known is None or known.state is not None:
        ended = _ended_reply(known, machine.identity.host) if known else _stored_end(context, key, request.token)
        if ended is not None:
            return ended
    if known is None and peer.token is not None and peer.descriptors:
        raise UsageError("a connection can have the standard streams of one step")
    streams = peer.take_streams()
    scratch = None
    try:
        attempt = machine.attempts.get(key)
        if attempt is not None and (known is None or known.env_file is None):
            scratch = _env_path(context.home, attempt.run, attempt.job, attempt.attempt, "new")
            _write_env(context, attempt.run, scratch, request.env)
        taken = machine.begin_step(key, request.token, request.spec, streams, now)
    except BaseException:
        close_all(streams)
        if scratch is not None:
            scratch.unlink(missing_ok=True)
        raise
    if taken.streams != streams:
        close_all(streams)
    if scratch is not None:
        of = taken.attempt
        taken.env_file = os.fspath(_env_path(context.home, of.run, of.job, of.attempt, str(taken.number)))
        scratch.rename(taken.env_file)  # not for durability: its number is known only now
    peer.token = step_token(taken.attempt.job, taken.attempt.attempt, taken.number)
    run = machine.runs[taken.attempt.run]
    return StepTaken(
        job=taken.attempt.job,
        step=taken.number,
        waiting=is_waiting(taken),
        node=machine.identity.host,
        kill_wait_s=run.kill_wait_s(taken.attempt.index, context.kill_wait_s),
        tasks=_ended_tasks(taken),
        files=tuple(shared_files(run, taken, machine.identity.host).items()),
        ended=None,
    )


def _stored_end(context: Context, key: str, token: str) -> StepTaken | None:
    """A step that has ended while its srun could not hear it."""
    attempt = context.machine.attempts.get(key)
    reader = context.open_reader()
    if attempt is None or reader is None:
        return None
    with reader:
        for row in reader.steps(attempt.job, attempt.attempt):
            if row.token == token and row.state.is_settled:
                tasks = tuple(
                    task_end(one.task, one.verdict, one.cause, one.because)
                    for one in reader.tasks(row.job, row.attempt, row.step)
                )
                code = StepCode(row.srun_code, row.state.value)
                return StepTaken(row.job, row.step, False, context.machine.identity.host, 0.0, tasks, (), code)
    return None


def _ended_reply(step: LiveStep, host: str) -> StepTaken:
    """The step has ended, and its srun comes back only now."""
    assert step.state is not None
    code = StepCode(step.srun_code, step.state.value)
    return StepTaken(step.attempt.job, step.number, False, host, 0.0, _ended_tasks(step), (), code)


def _ended_tasks(step: LiveStep) -> tuple[TaskEnd, ...]:
    return tuple(
        task_end(one.number, one.verdict, one.cause, one.because) for one in step.tasks if one.verdict is not None
    )


def _write_env(context: Context, run: int, path: Path, env: Sequence[str]) -> None:
    """The tasks' environment is srun's own, mode 0600 as all of them."""
    live = context.machine.runs.get(run)
    if live is not None and live.submission.origin.secrets:
        values = values_of((os.fsencode(pair) for pair in env), live.submission.origin.secrets)
        keep_values(os.fspath(context.home.path), run, map(os.fsdecode, values))
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(fd, "wb") as file:
            file.write(b"".join(os.fsencode(pair) + b"\0" for pair in env))
    except OSError as error:
        raise CantWriteError(f"can't write {path}: {error.strerror}") from None


def forget_env(context: Context, events: Sequence[Event]) -> None:
    """The environment of a step is of no use after its end."""
    for event in events:
        if isinstance(event, StepEnded):
            _env_path(context.home, event.run, event.job, event.attempt, str(event.step)).unlink(missing_ok=True)


def _env_path(home: Home, run: int, job: int, attempt: int, step: str) -> Path:
    return home.path / "env" / f"{run}.{job}.{attempt}.{step}.env"


@serves(SignalStep)
def signal_step(context: Context, _: Peer, request: SignalStep, now: float) -> Signalled:
    context.hear(now)  # srun may pass on what a witness has sent it: what that was for comes first
    return signal(context.machine, request, now)


def signal(machine: Machine, request: SignalStep, now: float) -> Signalled:
    """Send a signal to a step's tasks; without one, end them."""
    step = machine.find_step(attempt_key(request.key), request.step)
    if step is None:
        return Signalled("not running")
    if refusal := step.attempt.can.refusals.step_signal:
        raise UsageError(f"step {step.attempt.job}.{request.step} {refusal}")
    if request.signal is not None:
        if request.by is None and step.echoes.pop(request.signal, 0.0) > now:
            return Signalled("signalled")  # its tasks have got it with the whole job
        machine.signal_step(step, request.signal)
        return Signalled("signalled")
    if request.by:
        machine.kill_step(step, request.by, now)
    else:
        machine.cancel_step(step, "request", now)
    return Signalled("cancelling")


def attempt_key(key: str) -> str:
    """The key of the job's attempt; a task of a step has its own, which begins with it."""
    return _TASK.sub("", key)
