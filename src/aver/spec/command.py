"""A command of the command line (`aver run -- python x.py`) as a flow of one job.

The arguments stay as they are, byte for byte. The job is named after its program.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from aver.errors import UsageError
from aver.model.job import Argv, FlowSpec, JobSpec
from aver.spec.flags import Overrides, apply, clean_name


def flow_of_command(argv: Sequence[str], overrides: Overrides = Overrides()) -> FlowSpec:
    """One job that runs the command; raise UsageError if there is none."""
    if not argv or not argv[0]:
        raise UsageError("there is no command after --: write it as  aver run -- python x.py")
    if any("\0" in word for word in argv):
        raise UsageError("an argument of the command has a NUL byte in it: no program can get it")
    base = os.path.basename(argv[0].rstrip("/")) or argv[0]
    job = apply(JobSpec(clean_name(base), Argv(tuple(argv))), overrides)
    return FlowSpec(job.name, (job,), is_single=True)
