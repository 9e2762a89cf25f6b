"""What a job of an allocation has of it, by the options of sbatch that it was given."""

from __future__ import annotations

import re
from collections.abc import Mapping

from aver.coordinator.order.allocation_options import said_by
from aver.model.hostlists import expand
from aver.model.job import Argv, JobSpec, Script, Shell
from aver.model.record import Record
from aver.model.slurm_options import SlurmOptions
from aver.spec.sbatch.options import Values

NODES = re.compile(r"(?:--nodes=?|-N=?)(.*)")
_SRUN = re.compile(r"\bsrun\b")
_OF_TASKS = ("ntasks", "ntasks-per-node", "cpus-per-task", "nodes")


class Share(Record):
    """A job's part of an allocation."""

    nodes: int = 1
    tasks: SlurmOptions | None = None  # of a batch script, or of a job that says how many tasks it has
    exclude: tuple[str, ...] = ()  # names of nodes
    calls_srun: bool = False

    @property
    def has_steps(self) -> bool:
        """Whether steps that the job makes have its CPUs, and its own process none: else Slurm would not know that
        they are in use, and give them to other jobs."""
        return self.nodes > 1 or (self.tasks is not None and self.calls_srun)


def share_of(spec: JobSpec) -> Share:
    """ValueError with a sentence for what no allocation can do; `check_options` has checked which options there are."""
    if not spec.slurm_options and spec.slurm is None:
        return Share()
    said = said_by(spec.slurm_options)
    tasks = spec.slurm or _tasks(spec, said)
    return Share(_nodes(spec, tasks), tasks, _names(said.get("exclude", "")), tasks is not None and _calls_srun(spec))


def asked_nodes(spec: JobSpec) -> str | None:
    """The number of nodes as the job's options say it: --nodes=2, -N=2, -N2; None: they do not."""
    asked = [found[1] for word in spec.slurm_options if (found := NODES.fullmatch(word)) is not None]
    return asked[-1] if asked else None


def _nodes(spec: JobSpec, tasks: SlurmOptions | None) -> int:
    """At most one for each task, as in Slurm."""
    asked = asked_nodes(spec)
    if asked is not None and (not asked.isdecimal() or int(asked) < 1):
        raise ValueError(f"in an allocation give one number of nodes, not {asked!r}")
    nodes = 1 if asked is None else int(asked)
    return nodes if tasks is None or tasks.ntasks is None else min(nodes, tasks.ntasks)


def _tasks(spec: JobSpec, said: Mapping[str, str]) -> SlurmOptions | None:
    """What a flow's job says of its tasks; None: nothing. sbatch gets its `cpus` as those of each task."""
    if not {"ntasks", "ntasks-per-node"} & said.keys():
        return None
    values = Values()
    for name in _OF_TASKS:
        if name in said:
            try:
                values.take(name, said[name], 0.0)
            except ValueError as error:
                raise ValueError(f"--{name}: {error}") from None
    return SlurmOptions(
        ntasks=values.task_count,
        ntasks_per_node=values.tasks_per_node,
        cpus_per_task=values.cpus_per_task or spec.request.whole_cpus,
    )


def _calls_srun(spec: JobSpec) -> bool:
    match spec.command:
        case Script(text=text) | Shell(text=text):
            return _SRUN.search(text) is not None
        case Argv(args=args):
            return any(_SRUN.search(word) for word in args)


def _names(text: str) -> tuple[str, ...]:
    if "/" in text:
        raise ValueError(f"in an allocation --exclude names nodes, not the file {text!r}")
    try:
        return tuple(dict.fromkeys(expand(text)))
    except ValueError:
        raise ValueError(f"--exclude: {text!r} is not a list of nodes: use n3 or n[1-3]") from None
