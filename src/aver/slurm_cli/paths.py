"""A job's files, by the same function that the coordinator opens them with.

That function reads a few fields of a submission and of a spec; a view of the stored document has them, and costs none
of the classes.
"""

from __future__ import annotations

from aver.client.output_paths import JobFiles, Which, job_files

TYPE_CHECKING = False  # `typing` costs as much as the rest of the start
if TYPE_CHECKING:
    from typing import Any

    from aver.slurm_cli.facts import JobFacts

_STREAMS = {"stdin": None, "stdout": None, "stderr": None, "append": False}
_SPEC = {"name": "", "folder": None, "matrix": None}
_SLURM = {"command": None}
_ORIGIN = {"folder": "", "user": "", "host": ""}


class _View:
    """A stored document, in which fields that have their default are left out."""

    def __init__(self, document: dict[str, Any], defaults: dict[str, Any], **parts: object) -> None:
        self.__dict__.update(defaults | document | parts)


def files_of(job: JobFacts) -> JobFiles:
    """Where the attempt, or the job's newest, reads and writes."""
    streams = _View(job.spec.get("streams", {}), _STREAMS)
    slurm = None if job.slurm is None else _View(job.slurm, _SLURM)
    spec: Any = _View(job.spec, _SPEC, streams=streams, slurm=slurm, matrix=None)
    submission: Any = _View({}, {}, origin=_View(job.origin, _ORIGIN))
    attempt = max(1, job.row.attempt or job.row.newest)
    name, member = job.row.name, None
    values: tuple[tuple[str, str], ...] = ()
    if job.array_job is not None:
        name, member = job.spec.get("name", name), int(job.array_index)
    elif job.spec.get("matrix"):
        values = _values(job)
    which = Which(run=job.row.run, job=job.row.id, name=name, attempt=attempt, values=values, member=member)
    return job_files(submission, spec, which, job.is_single)


def _values(job: JobFacts) -> tuple[tuple[str, str], ...]:
    from aver.model.codec import decode
    from aver.model.job import JobSpec
    from aver.plan.matrix import member_at

    return member_at(decode(JobSpec, job.spec), job.row.member).values
