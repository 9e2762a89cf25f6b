"""A batch of jobs that a job with `generates:` wrote: JSON or YAML, in the format of a flow's `jobs`.

The batch is the map or list of jobs itself, or a map with `jobs` (and `defaults`, `axes`). All or
nothing: a batch with any mistake is refused with all of them. Its jobs may need any job of
the run and must not take a name that the run has. A batch is smaller than a flow may be, since
the coordinator adds it in one go.
"""

from __future__ import annotations

from collections.abc import Sequence

from aver.model.job import FlowSpec, JobSpec
from aver.spec.document import Entry, Mapping, Scalar, read_document
from aver.spec.flow.draft import Draft
from aver.spec.flow.file import collector_paused, read_jobs
from aver.spec.flow.job import read_defaults
from aver.spec.flow.matrix import Allowance, read_axes
from aver.spec.flow.params import Params
from aver.spec.mistakes import Mistakes
from aver.spec.values import Reader

_WRAPPER = {"jobs", "defaults", "axes"}
MOST_JOBS = 100_000  # of one batch, members counted


def parse_generated(
    data: bytes | str, file: str, *, known: Sequence[JobSpec], now: float, flow: FlowSpec | None = None
) -> FlowSpec:
    """The generated jobs as a FlowSpec named after the file; raise SpecError with all mistakes.

    `known` are the jobs that the run has already; `flow` has their defaults and params.
    """
    mistakes = Mistakes(file)
    jobs: tuple[JobSpec, ...] = ()
    with collector_paused():
        root = read_document(data, mistakes, is_json=file.endswith(".json"))
        if root is not None:
            entry = Entry(Scalar(root.line, root.column, "jobs", "jobs"), root)
            defaults = Draft.of(None if flow is None else flow.defaults)
            allowance = Allowance(MOST_JOBS, params=None if flow is None else Params(dict(flow.params)))
            if isinstance(root, Mapping) and "jobs" in root.entries and _WRAPPER.issuperset(root.entries):
                entry = root.entries["jobs"]
                if "defaults" in root.entries:
                    reader = Reader(mistakes, "defaults", now)
                    mapping = reader.mapping(root.entries["defaults"])
                    defaults = read_defaults(mapping, reader, allowance.params, defaults) if mapping else defaults
                if "axes" in root.entries:
                    read_axes(root.entries["axes"], Reader(mistakes, "axes", now), allowance)
            jobs = read_jobs([(entry, defaults)], known, allowance, mistakes, now)
    mistakes.refuse_if_any()
    return FlowSpec(mistakes.file, jobs)
