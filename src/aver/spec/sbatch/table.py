"""The options of sbatch and salloc: their names, letters and variables. One table for lines, flags and variables.

Names alone, so that sbatch starts with little more than this; what the options mean is `spec.sbatch.options`.
"""

from __future__ import annotations

from aver.fast_start import TYPE_CHECKING
from aver.spec.getopt import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ABOUT = ("help", "usage", "version")
MEMORY = ("mem", "mem-per-cpu", "mem-per-gpu")  # of a job, in one of three ways
NOT_SERVED = ("container", "export-file", "gid", "uid")  # to leave it out would change what runs, or as whom

_FLAGS = (
    "consolidate-segments contiguous help:h hold:H ignore-pbs no-requeue overcommit:O oversubscribe:s parsable quiet:Q "
    "reboot requeue spread-job spread-segments stepmgr test-only usage use-min-nodes verbose:v version:V wait:W"
)
_VALUES = (
    "account:A acctg-freq array:a batch bb bbf begin:b chdir:D cluster-constraint clusters:M comment constraint:C "
    "container core-spec:S cores-per-socket cpu-freq cpus-per-gpu cpus-per-task:c deadline delay-boot dependency:d "
    "distribution:m error:e exclude:x export export-file extra-node-info:B gid gpu-bind gpu-freq gpus:G gpus-per-node "
    "gpus-per-socket gpus-per-task gres gres-flags hint input:i job-name:J kill-on-invalid-dep licenses:L mail-type "
    "mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu mincpus network nodefile:F nodelist:w nodes:N ntasks:n "
    "ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket ntasks-per-tres open-mode output:o partition:p "
    "power prefer priority profile propagate qos:q reservation segment signal sockets-per-node switches thread-spec "
    "threads-per-core time:t time-min tmp tres-bind tres-per-task uid wait-all-nodes wckey wrap"
)
_MAYBE = "exclusive get-user-env nice no-kill:k oom-kill-step"
_ALIASES = "cluster=clusters share=oversubscribe workdir=chdir"
_NOT_OF_SALLOC = frozenset(
    "array batch error export export-file ignore-pbs input kill-on-invalid-dep no-requeue ntasks-per-tres open-mode "
    "output parsable propagate requeue test-only wait wrap".split()
)
_OF_SALLOC = (" bell no-bell no-shell", " immediate:I kill-command:K x11")  # flags, and what may have a value

VARIABLES = {
    "SBATCH_ACCOUNT": "account", "SBATCH_ACCTG_FREQ": "acctg-freq", "SBATCH_ARRAY_INX": "array",
    "SBATCH_BATCH": "batch", "SBATCH_CLUSTERS": "clusters", "SLURM_CLUSTERS": "clusters",
    "SBATCH_CONSTRAINT": "constraint", "SBATCH_CONTAINER": "container", "SBATCH_CORE_SPEC": "core-spec",
    "SBATCH_CPUS_PER_GPU": "cpus-per-gpu", "SBATCH_DEBUG": "verbose", "SBATCH_DELAY_BOOT": "delay-boot",
    "SBATCH_DISTRIBUTION": "distribution", "SBATCH_ERROR": "error", "SBATCH_EXCLUSIVE": "exclusive",
    "SBATCH_EXPORT": "export", "SBATCH_GET_USER_ENV": "get-user-env", "SBATCH_GPUS": "gpus",
    "SBATCH_GPUS_PER_NODE": "gpus-per-node", "SBATCH_GPUS_PER_TASK": "gpus-per-task", "SBATCH_GRES": "gres",
    "SBATCH_HINT": "hint", "SBATCH_IGNORE_PBS": "ignore-pbs", "SBATCH_INPUT": "input",
    "SBATCH_JOB_NAME": "job-name", "SBATCH_MEM_PER_CPU": "mem-per-cpu", "SBATCH_MEM_PER_GPU": "mem-per-gpu",
    "SBATCH_MEM_PER_NODE": "mem", "SBATCH_NETWORK": "network", "SBATCH_NO_KILL": "no-kill",
    "SBATCH_NO_REQUEUE": "no-requeue", "SBATCH_OPEN_MODE": "open-mode", "SBATCH_OUTPUT": "output",
    "SBATCH_OVERCOMMIT": "overcommit", "SBATCH_PARTITION": "partition", "SBATCH_PROFILE": "profile",
    "SBATCH_QOS": "qos", "SBATCH_REQUEUE": "requeue", "SBATCH_RESERVATION": "reservation",
    "SBATCH_REQ_SWITCH": "switches", "SBATCH_SIGNAL": "signal", "SBATCH_SPREAD_JOB": "spread-job",
    "SBATCH_THREADS_PER_CORE": "threads-per-core", "SBATCH_THREAD_SPEC": "thread-spec", "SBATCH_TIMELIMIT": "time",
    "SBATCH_USE_MIN_NODES": "use-min-nodes", "SBATCH_WAIT": "wait", "SBATCH_WCKEY": "wckey",
}  # fmt: skip


def sbatch_table() -> Table:
    """The options of sbatch, on its command line and in `#SBATCH` lines."""
    return _sorted(Table(_FLAGS, _VALUES, _MAYBE, _ALIASES))


def salloc_table() -> Table:
    """The options of salloc: those of sbatch that have to do with no script, and its own."""
    flags, values, maybe = (
        " ".join(word for word in words.split() if word.partition(":")[0] not in _NOT_OF_SALLOC)
        for words in (_FLAGS, _VALUES, _MAYBE)
    )
    return _sorted(Table(flags + _OF_SALLOC[0], values, maybe + _OF_SALLOC[1], _ALIASES))


def memory_conflict(typed: Iterable[str], of_variables: Iterable[str] = ()) -> str | None:
    """Slurm's sentence if more than one of MEMORY is among the typed options, or in variables; None if not."""
    if len(set(MEMORY).intersection(typed)) > 1:
        return "fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive."
    if len(set(MEMORY).intersection(of_variables)) > 1:
        return "fatal: SLURM_MEM_PER_CPU, SLURM_MEM_PER_GPU, and SLURM_MEM_PER_NODE are mutually exclusive."
    return None


def without_lesser_memory(
    of_variables: list[tuple[str, str | None]], typed: Iterable[str]
) -> list[tuple[str, str | None]]:  # fmt: skip
    """The options of variables, without those of MEMORY that another typed one excludes."""
    kept = set(MEMORY).intersection(typed)
    return [(name, text) for name, text in of_variables if not kept or name not in MEMORY or name in kept]


def from_environment(
    variables: Mapping[str, str], environ: Mapping[str, str], options: Table
) -> list[tuple[str, str | None]]:
    """The options that variables set, in the order of the table; a flag's variable may have any value.

    -v alone has a number there: how often it is meant, and 0 is not at all.
    """
    return [
        (name, environ[variable] if options.takes[name] or name == "verbose" else None)
        for variable, name in variables.items()
        if variable in environ and not (name == "verbose" and environ[variable] == "0")
    ]


def _sorted(table: Table) -> Table:
    table.names = dict(sorted(table.names.items()))  # as messages list them
    return table
