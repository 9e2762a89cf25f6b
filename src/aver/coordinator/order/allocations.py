"""What a run wants of a cluster as a whole: what it was submitted with, once for each round, and what persons add."""

from __future__ import annotations

import os

from aver.coordinator.order.allocation_options import check_options, said_by
from aver.coordinator.order.share import share_of
from aver.coordinator.state.fold import ALLOCATE
from aver.coordinator.state.machine import Machine
from aver.coordinator.state.run import LiveRun
from aver.engines.api import AllocationAsk
from aver.engines.registry import capabilities_of
from aver.errors import UsageError
from aver.home import Home
from aver.model.codec import dumps
from aver.model.events import PersonAsked
from aver.model.job import Allocation, JobSpec, Submission

MOST = 100
CLUSTERS = "clusters"  # the option of sbatch


def asks_of(home: Home, run: LiveRun) -> list[AllocationAsk]:
    """All of them, each by its name: whoever got them before does nothing."""
    of_round = run.submission.allocation
    if of_round is None:
        return []
    named = [(f"r{run.round}", of_round), *((f"p{number}", one) for number, one in enumerate(run.extra, start=1))]
    origin = run.submission.origin
    return [
        AllocationAsk(
            run.number, name, one.words, one.count, one.headroom_s, os.fspath(home.env(run.number)), origin.folder,
            origin.umask, host_of(run.submission),
        )
        for name, one in named
    ]  # fmt: skip


def allocator_of(run: LiveRun) -> str | None:
    """The engine that takes the run's allocations; None: no job of it runs in one."""
    names = dict.fromkeys(spec.engine or run.submission.engine for spec in run.submission.flow.jobs)
    return next((name for name in names if capabilities_of(name).uses_allocations), None)


def want_more(machine: Machine, run: LiveRun, wish: Allocation, by: str, now: float) -> None:
    """Take note of a person's wish; it is acted on when it is durable. UsageError says what is wrong with it."""
    if run.submission.allocation is None:
        raise UsageError(f'run {run.number} does not run in allocations: aver submit --allocation "-N 4 -t 4:00:00" …')
    _check(wish)
    for spec in _inside(run.submission):
        _check_job(spec, wish)
    machine.emit(PersonAsked(now, run.number, None, by, ALLOCATE, dumps(wish)))


def check_allocation(submission: Submission) -> None:
    """Refuse what no allocation can do, and what would take a job of sbatch's out of sight."""
    for spec in submission.flow.jobs:
        can = capabilities_of(spec.engine or submission.engine)
        if can.takes_sbatch_options and CLUSTERS in said_by(spec.slurm_options):
            raise UsageError(f"job {spec.name!r}: leave out --{CLUSTERS} (-M): jobs go to sbatch's own cluster")
    inside = _inside(submission)
    if submission.allocation is None:
        if inside:
            raise UsageError('the engine allocation needs an allocation: aver submit --allocation "-N 4 -t 4:00:00" …')
        return
    _check(submission.allocation)
    host = host_of(submission)
    for spec in inside:
        own = submission.host if spec.host is None else spec.host
        if own != host:
            raise UsageError(
                f"job {spec.name!r}: the allocations of a run are on one cluster: the first job is for "
                f"{host or 'that of this machine'}, this one for {own or 'that of this machine'}"
            )
        _check_job(spec, submission.allocation)


def host_of(submission: Submission) -> str:
    """Of the cluster that has the run's allocations; empty: this machine has its commands."""
    first = next(iter(_inside(submission)), None)
    return submission.host if first is None or first.host is None else first.host


def _inside(submission: Submission) -> list[JobSpec]:
    """The jobs that run in allocations."""
    engines = ((spec, spec.engine or submission.engine) for spec in submission.flow.jobs)
    return [spec for spec, engine in engines if capabilities_of(engine).uses_allocations]


def _check_job(spec: JobSpec, wish: Allocation) -> None:
    """Refuse a job that an allocation with these words can't run as it says."""
    try:
        share_of(spec)
        check_options(spec, wish.words)
    except ValueError as error:
        raise UsageError(f"job {spec.name!r}: {error}") from None


def _check(wish: Allocation) -> None:
    if not 1 <= wish.count <= MOST:
        raise UsageError(f"{wish.count} allocations: 1 to {MOST} are possible")
    if wish.headroom_s < 0:
        raise UsageError("the headroom of an allocation can't be negative")
    if any("\0" in word for word in wish.words):
        raise UsageError("the words of an allocation can't contain a NUL byte")
