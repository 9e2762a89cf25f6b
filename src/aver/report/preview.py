"""What a submission would run, without submitting it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable

from aver.client.documents import JobPreview, Preview
from aver.config import load_config
from aver.engines.local.capabilities import room_here
from aver.engines.local.tools import missing_tools
from aver.engines.registry import capabilities_of
from aver.errors import UsageError
from aver.model.job import Argv, Command, FlowSpec, Need, Script, Shell, Submission
from aver.plan.matrix import members
from aver.render import verdict
from aver.render.masking import Masking

SHOWN = 20  # definitions of jobs


def preview(submission: Submission) -> Preview:
    """What would run; UsageError if it never could. Its texts may have secrets in them (`secret_values`)."""
    flow = submission.flow
    wrong = impossible(flow)
    if wrong:
        raise UsageError("\n".join(f"job {job}: {text}" for job, text in wrong))
    jobs = tuple(
        JobPreview(
            job.name,
            len(members(job)),
            _text(job.command),
            tuple(map(_need, (*job.needs.all_of, *(need for group in job.needs.any_of for need in group)))),
            job.engine or submission.engine,
            job.request.cpus,
            job.request.gpus,
            job.request.mem_bytes,
            job.request.time_s,
        )
        for job in flow.jobs[:SHOWN]
    )
    count = sum(len(members(job)) for job in flow.jobs)
    ignored = tuple(dict.fromkeys(option for job in flow.jobs for option in job.ignored))
    return Preview(
        flow.name, count, submission.origin.folder, jobs, len(flow.jobs) - len(jobs), ignored,
        flow.unselected,
    )  # fmt: skip


def secret_values(submission: Submission, environment: Iterable[str]) -> Masking:
    """What hides the secrets of a submission that has no run."""
    names = set(submission.origin.secrets)
    own = [pair for job in submission.flow.jobs for pair in job.env]
    pairs = [*(one.partition("=")[::2] for one in environment), *own]
    return Masking(os.fsencode(value) for name, value in pairs if name in names)


def _text(command: Command) -> str:
    match command:
        case Argv(args=args):
            return shlex.join(args)
        case Shell(text=text):
            return text
        case Script(text=text):
            return f"(batch script, {len(text.splitlines())} lines)"


def _need(need: Need) -> str:
    return need.job


def impossible(flow: FlowSpec) -> list[tuple[str, str]]:
    """What no run could do: a warning before the job has begun, and more than this machine has."""
    config = load_config()
    has = room_here(config)
    found = []
    for job in flow.jobs:
        wants, limit_s = job.request, job.request.time_s
        if job.warning is not None and limit_s is not None and job.warning.lead_s >= limit_s:
            lead = verdict.duration_words(job.warning.lead_s)
            limit = verdict.duration_words(limit_s)
            found.append((job.name, f"its warning signal is due {lead} before its time limit of {limit}"))
        if capabilities_of(job.engine or config.engine).has_queue:
            continue
        found += [(job.name, text) for text in missing_tools(job.setup)]
        if wants.cpus > has.cpus:
            found.append((job.name, f"it asks for {wants.cpus} CPUs, and this machine has {has.cpus}"))
        if wants.gpus > has.gpus:
            found.append((job.name, f"it asks for {wants.gpus} GPUs, and this machine has {has.gpus}"))
        if (wants.mem_bytes or 0) > has.mem_bytes:
            asked, there = (verdict.bytes_words(size or 0) for size in (wants.mem_bytes, has.mem_bytes))
            found.append((job.name, f"it asks for {asked} of memory, and this machine has {there}"))
    return found
