"""`reinit`: run jobs of a settled run again, by the flow and the environment as they are now."""

from __future__ import annotations

import os
from collections.abc import Mapping

from aver.client import vault
from aver.client.job_files import change_env, check_env, read_env, write_scripts
from aver.coordinator.requests.context import Context
from aver.coordinator.requests.dispatch import writes
from aver.coordinator.requests.retry import run_again
from aver.coordinator.requests.submit import check
from aver.coordinator.server import Peer
from aver.coordinator.state.machine import Machine
from aver.coordinator.state.run import LiveRun
from aver.errors import UsageError
from aver.model.events import FlowReplaced, PersonAsked
from aver.model.job import FlowSpec
from aver.model.record import replace
from aver.plan.matrix import FlowIndex
from aver.protocol.messages import Continued, Reinit
from aver.store.secrets import keep_values


@writes(Reinit)
def reinit_run(context: Context, _: Peer, request: Reinit, now: float) -> Continued:
    run = context.revive(request.run, now)
    if run is None:
        raise UsageError(f"run {request.run} does not exist")
    if not run.state.is_settled:
        raise UsageError(f"run {run.number} is not settled; aver watch {run.number}")
    causes: dict[int, str] = {}
    for job, why in request.causes:
        index = run.index_of(job)
        if index is None:
            raise UsageError(f"job {job} is not of run {run.number}")
        causes[index] = why
    if not causes:
        raise UsageError("the request names no jobs")
    if not all(pair.partition("=")[0] for pair in request.inherit):
        raise UsageError("the request's environment can't be read: a variable has no name")
    if not all(vault.is_sealed(digest) for digest, _ in request.values):
        raise UsageError("the flow's environment can't be read: a value is not sealed")
    check_env(context.home, run.number)
    flow = None if request.flow is None else _replace_files(context, run, request.flow, dict(request.values))
    if request.inherit:
        before = read_env(context.home, run.number)
        old = [before[name] for name in run.submission.origin.secrets if name in before]
        keep_values(os.fspath(context.home.path), run.number, old)
        change_env(context.home, run.number, request.inherit)
    try:
        run = reinit(context.machine, run, causes, flow, request.by, now)
    except ValueError as error:
        raise UsageError(f"the flow is wrong: {error}") from None
    return Continued(run.number, tuple(run.job_number(index) for index in causes), run.round)


def _replace_files(context: Context, run: LiveRun, flow: FlowSpec, values: dict[str, str]) -> FlowSpec:
    """Check the new flow and write what its jobs need; the flow with its environment sealed."""
    check(context, replace(run.submission, flow=flow))
    if list(FlowIndex(flow).names()) != list(run.segments[0].index.names()):
        raise UsageError(f"the flow has other jobs now than run {run.number}; submit it as a new run")
    flow, _ = vault.seal(context.home, flow)
    vault.store(context.home, run.number, values)
    secrets = vault.secret_values(flow, run.submission.origin.secrets, values)
    keep_values(os.fspath(context.home.path), run.number, secrets)
    write_scripts(context.home, run.number, flow)
    return flow


def reinit(
    machine: Machine, run: LiveRun, causes: Mapping[int, str], flow: FlowSpec | None, by: str, now: float
) -> LiveRun:
    """New attempts of jobs (by index, with the cause) of a settled run, by the flow as it is now; None: as it was.

    Raise ValueError if the flow is not a graph.
    """
    if flow is not None:
        machine.emit(FlowReplaced(now, run.number, by, flow))
        run = machine.runs[run.number]
        machine.advance(now)
    for index, why in causes.items():
        machine.emit(PersonAsked(now, run.number, run.job_number(index), by, "reinit", why))
    run_again(machine, run, list(causes), now)
    return run
