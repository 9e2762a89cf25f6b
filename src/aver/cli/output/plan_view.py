"""`aver run --dry-run` for people."""

from __future__ import annotations

import shlex

from aver.cli.output.documents import Planned
from aver.printable import printable


def plan_lines(document: Planned) -> list[str]:
    """For people: each job, whether it runs and why, and its script and environment."""
    lines: list[str] = []
    for job in document.jobs:
        if not job.runs:
            lines.append(f"{job.name}: taken from run {job.from_run} (job {job.from_job})")
            continue
        lines.append(f"{job.name}: would run{f': {job.why}' if job.why else ''}")
        lines.append(f"  folder   {job.folder}")
        lines.append(f"  {'command' if job.script is None else 'shell  '}  {shlex.join(job.command) or '-'}")
        lines += [f"  env      {name}={value}" for name, value in job.env.items()]
        lines += [f"  | {line}" for line in (job.script or "").splitlines()]
    runs = sum(job.runs for job in document.jobs)
    taken = len(document.jobs) - runs
    lines.append(f"{runs} would run" + (f", {taken} taken from earlier runs" if document.since is not None else ""))
    lines.append(f"each also has {document.inherited} variables of this environment, and AVER_* with its numbers")
    return [printable(line, keep="\t") for line in lines]
