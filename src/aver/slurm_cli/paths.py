"""A job's files, by the same function that the coordinator opens them with.

That function reads a few fields of a submission and of a spec; a view of the stored document has them, and costs none
of the classes.
"""

from __future__ import annotations

from aver.client.output_paths import JobFiles, Which, job_files
from aver.fast_start import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from aver.store.columns import LightJob

_STREAMS = {"stdin": None, "stdout": None, "stderr": None, "append": False, "log_folder": ""}
_SPEC = {"name": "", "folder": None, "matrix": None}
_SLURM = {"command": None}
_ORIGIN = {"folder": "", "user": "", "host": ""}


class _View:
    """A stored document, in which fields that have their default are left out."""

    def __init__(self, document: dict[str, Any], defaults: dict[str, Any], **parts: object) -> None:
        self.__dict__.update(defaults | document | parts)


def files_of(
    spec: dict[str, Any],
    slurm: dict[str, Any] | None,
    origin: dict[str, Any],
    row: LightJob,
    array_index: int | None,
    is_single: bool,
) -> JobFiles:
    """Where the attempt, or the job's newest, reads and writes."""
    view: Any = _View(
        spec,
        _SPEC,
        streams=_View(spec.get("streams", {}), _STREAMS),
        slurm=None if slurm is None else _View(slurm, _SLURM),
        matrix=None,
    )
    submission: Any = _View({}, {}, origin=_View(origin, _ORIGIN))
    attempt = max(1, row.attempt or row.newest)
    name = row.name
    values: tuple[tuple[str, str], ...] = ()
    if array_index is not None:
        name = spec.get("name", name)
    elif spec.get("matrix") or spec.get("params"):
        values = _values(spec, row.member)
    member = row.member if array_index is None and spec.get("matrix") else array_index
    which = Which(run=row.run, job=row.id, name=name, attempt=attempt, values=values, member=member)
    return job_files(submission, view, which, is_single)


def _values(spec: dict[str, Any], member: int) -> tuple[tuple[str, str], ...]:
    from aver.model.codec import decode
    from aver.model.job import JobSpec
    from aver.plan.matrix import values_of

    return values_of(decode(JobSpec, JobSpec.read_older(spec)), member)
