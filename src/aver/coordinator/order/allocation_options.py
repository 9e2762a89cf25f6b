"""What becomes of each option of sbatch that a job in an allocation has: obeyed, of the whole allocation, or refused.

Nothing is left out in silence. A test holds that every option of `spec.sbatch.table` is in exactly one of the lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from aver.model.job import JobSpec
from aver.spec.getopt import BadOption, Parsed, parse
from aver.spec.sbatch.table import sbatch_table

OBEYED = frozenset("nodes ntasks ntasks-per-node exclude".split())
OF_SCRIPT = {  # obeyed in a batch script, whose request and rules have them; a flow has keys of its own for them
    "cpus-per-task": "cpus", "mem": "mem", "mem-per-cpu": "mem", "mail-type": "notify", "mail-user": "notify",
}  # fmt: skip
OF_AVER = {  # what Aver does itself for every job, by the key of a flow; scripts have none of them in their words
    "array": "matrix", "begin": "begin", "chdir": "folder", "comment": "comment", "deadline": "deadline",
    "dependency": "needs", "error": "error", "export": "env", "hold": "hold", "input": "stdin", "job-name": "name",
    "kill-on-invalid-dep": "needs", "no-requeue": "requeue", "open-mode": "append", "output": "output",
    "priority": "priority", "requeue": "requeue", "signal": "signal", "time": "time", "wrap": "run",
}  # fmt: skip
OF_ALLOCATION = frozenset(  # where a job may run and on whose account: its allocation has the same, or it is refused
    "account acctg-freq batch bb bbf cluster-constraint consolidate-segments constraint contiguous core-spec "
    "cores-per-socket delay-boot extra-node-info mcs-label network nice no-kill oversubscribe partition power prefer "
    "profile qos reboot reservation segment sockets-per-node spread-job spread-segments stepmgr switches thread-spec "
    "threads-per-core tmp use-min-nodes wait-all-nodes wckey".split()
)
REFUSED = {
    **dict.fromkeys(("nodelist", "nodefile"), "a job can't choose its nodes: leave out --{name}, or use --exclude"),
    **dict.fromkeys(("gres", "gpus", "gpus-per-node", "gpus-per-task"), "use gpus, not --{name}"),
    **dict.fromkeys(("mem-per-gpu", "cpus-per-gpu", "gpus-per-socket"), "use mem, cpus and gpus, not --{name}"),
    **dict.fromkeys(("mincpus", "tres-per-task"), "use cpus, not --{name}"),
    "licenses": "use pools, not --{name}: its jobs would share the licenses of the allocation",
    "exclusive": "jobs share its nodes: leave out --{name}, or ask for all cpus of a node",
    "time-min": "a job has one time limit: leave out --{name}",
    **dict.fromkeys(
        "cpu-freq distribution gpu-bind gpu-freq gres-flags hint mem-bind ntasks-per-core ntasks-per-gpu "
        "ntasks-per-socket ntasks-per-tres oom-kill-step overcommit propagate tres-bind".split(),
        "give --{name} to srun inside the job",
    ),
    **dict.fromkeys(
        "clusters container export-file get-user-env gid help ignore-pbs parsable quiet test-only uid usage verbose "
        "version wait".split(),
        "leave out --{name}",
    ),
}


@lru_cache(maxsize=1000)
def said_by(words: tuple[str, ...]) -> Mapping[str, str]:
    """The last text of each option; what sbatch has only with a site's plugin stands by its own word."""
    table, rest = sbatch_table(), list(words)
    said: dict[str, str] = {}
    while True:
        parsed = Parsed()
        try:
            parse(table, rest, into=parsed)
        except BadOption as bad:
            at = next((at for at, word in enumerate(rest) if bad.option and word.startswith(bad.option)), None)
            if at is not None:
                said[rest.pop(at)] = ""
                continue
        return {**said, **{name: text or "" for name, text in parsed.given}}


def check_options(spec: JobSpec, words: Sequence[str]) -> None:
    """Raise ValueError with a sentence if an allocation with these words would not do what the job asks for."""
    said = said_by(spec.slurm_options)
    of_allocation = said_by(tuple(words))
    for name, text in said.items():
        if name in REFUSED:
            raise ValueError(f"in an allocation {REFUSED[name].format(name=name)}")
        if name in OBEYED or (name in OF_SCRIPT and (spec.slurm is not None or _is_of_tasks(name, said))):
            continue
        key = OF_SCRIPT.get(name) or OF_AVER.get(name)
        if key is not None:
            raise ValueError(f"in an allocation use {key}, not --{name}")
        if of_allocation.get(name) != text:
            word = name if name.startswith("-") else f"--{name}={text}" if text else f"--{name}"
            raise ValueError(f"{word} is for the whole allocation: give it the same, or leave it out of the job")


def _is_of_tasks(name: str, said: Mapping[str, str]) -> bool:
    """Whether it is the key `tasks` of a flow, which has the CPUs of each task in words."""
    return name == "cpus-per-task" and not said.keys().isdisjoint({"ntasks", "ntasks-per-node"})
