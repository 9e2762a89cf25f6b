"""The batch of jobs that a job has generated: its file, read and checked before anything of it comes to be.

Nothing of it is in the store yet; values that are secrets are put in the vault here, so that the store never has them.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace

from aver.coordinator import vault
from aver.coordinator.allocations import check_allocation
from aver.coordinator.crashpoint import reached
from aver.coordinator.files import Which, job_files
from aver.coordinator.following import GeneratedBatch
from aver.coordinator.live import LiveRun
from aver.coordinator.requests import Requests
from aver.core.model import FlowSpec, JobSpec
from aver.core.template import fill
from aver.errors import UsageError
from aver.home import Home
from aver.spec.generated import parse_generated
from aver.store.secrets import keep_values

LARGEST_BYTES = 64 << 20


def read_generated(home: Home, requests: Requests, run: LiveRun, index: int) -> FlowSpec:
    """The batch of jobs that this job's file holds; GeneratedBatch says what is wrong with it."""
    spec = run.spec(index)
    assert spec.generates is not None
    job = run.job_number(index)
    which = Which(run.number, job, run.name(index), run.attempts.get(index, 1), run.values(index))
    folder = job_files(run.submission, spec, which, run.is_single).folder
    path = os.path.join(folder, fill(spec.generates, dict(run.values(index))))
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise GeneratedBatch(f"can't read {path}, which it was to generate: {error.strerror}") from None
    if len(data) > LARGEST_BYTES:
        raise GeneratedBatch(f"{path} has more than {LARGEST_BYTES} bytes")
    known = [one for segment in run.segments if segment.made_by != job for one in segment.flow.jobs]
    try:
        flow = beside(spec, parse_generated(data, path, known=known, now=time.time()))
        requests.check_fits(flow, run.submission.engine)
        check_allocation(replace(run.submission, flow=flow))
    except UsageError as error:
        raise GeneratedBatch(str(error)) from None
    secrets = vault.secret_values(flow, run.submission.origin.secrets)
    flow, values = vault.seal(home, flow)
    vault.store(home, run.number, values)
    keep_values(os.fspath(home.path), run.number, secrets)
    reached("generated-read")
    return flow


def beside(maker: JobSpec, flow: FlowSpec) -> FlowSpec:
    """Jobs that do not say where they run do so where the job ran that made them: its flow said it for all."""
    jobs = tuple(
        replace(
            spec,
            engine=maker.engine if spec.engine is None else spec.engine,
            host=maker.host if spec.host is None else spec.host,
        )
        for spec in flow.jobs
    )
    return replace(flow, jobs=jobs)
