"""A job's files, by the same functions that the coordinator opens them with. Apart, since they cost imports."""

from __future__ import annotations

from aver.coordinator.files import JobFiles, Which, job_files
from aver.core.codec import decode
from aver.core.model import FlowSpec, JobSpec, Origin, Submission
from aver.slurm_cli.facts import JobFacts


def files_of(job: JobFacts) -> JobFiles:
    """Where the job's newest attempt reads and writes."""
    spec = decode(JobSpec, job.spec)
    is_single = job.is_single
    submission = Submission(FlowSpec(spec.name, (spec,), is_single=is_single), decode(Origin, job.origin))
    values = (("array", job.array_index),) if job.array_job is not None else _values(spec, job)
    which = Which(run=job.row.run, job=job.row.id, name=job.row.name, attempt=max(1, job.row.newest), values=values)
    return job_files(submission, spec, which, is_single)


def _values(spec: JobSpec, job: JobFacts) -> tuple[tuple[str, str], ...]:
    from aver.core.expand import member_at

    return member_at(spec, job.row.member).values
