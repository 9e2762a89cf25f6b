"""The options of srun. What means nothing on one machine is taken and left alone.

Precedence: flag, then srun's environment variable, then the job's own.
"""

from __future__ import annotations

from aver.spec.getopt import MAYBE, VALUE, BadOption, Table
from aver.spec.getopt import parse as parse_words

TYPE_CHECKING = False  # `typing` costs as much as the rest of the start
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TABLE = Table(
    flags=(
        "contiguous disable-status:X exact hold:H interactive label:l multi-prog no-allocate:Z overcommit:O overlap "
        "oversubscribe:s preserve-env:E quiet:Q quit-on-interrupt reboot spread-job test-only unbuffered:u "
        "use-min-nodes verbose:v help:h usage version:V as-job"
    ),
    values=(
        "accel-bind account:A acctg-freq bb bbf bcast-exclude begin:b chdir:D cluster-constraint clusters:M comment "
        "constraint:C container core-spec:S cores-per-socket cpu-bind cpu-freq cpus-per-gpu cpus-per-task:c deadline "
        "delay-boot dependency:d distribution:m epilog error:e exclude:x export extra-node-info:B gid gpu-bind "
        "gpu-freq gpus:G gpus-per-node gpus-per-socket gpus-per-task gres gres-flags het-group hint input:i job-name:J "
        "jobid licenses:L mail-type mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu mincpus mpi msg-timeout "
        "network nodefile:F nodelist:w nodes:N ntasks:n ntasks-per-core ntasks-per-gpu ntasks-per-node "
        "ntasks-per-socket open-mode output:o partition:p power prefer priority profile prolog qos:q relative:r "
        "reservation signal slurmd-debug sockets-per-node switches task-epilog task-prolog thread-spec threads:T "
        "threads-per-core time:t time-min tmp uid wait:W wckey"
    ),
    maybe=(
        "bcast compress exclusive immediate:I kill-on-bad-exit:K nice no-kill:k propagate pty resv-ports send-libs x11"
    ),
    aliases="cluster=clusters share=oversubscribe workdir=chdir",
)

ENVIRONMENT = {
    "SRUN_CPUS_PER_TASK": "cpus-per-task", "SLURM_NTASKS": "ntasks", "SLURM_NPROCS": "ntasks",
    "SLURM_STDOUTMODE": "output", "SLURM_STDERRMODE": "error", "SLURM_STDINMODE": "input",
    "SLURM_LABELIO": "label", "SLURM_KILL_BAD_EXIT": "kill-on-bad-exit", "SLURM_WAIT": "wait",
    "SLURM_OVERLAP": "overlap", "SLURM_EXACT": "exact", "SLURM_UNBUFFEREDIO": "unbuffered",
    "SLURM_OPEN_MODE": "open-mode", "SRUN_EXPORT_ENV": "export", "SLURM_WORKING_DIR": "chdir",
    "SLURM_STEP_MEM": "mem", "SLURM_OVERCOMMIT": "overcommit", "SLURM_MPI_TYPE": "mpi",
    "SLURM_MULTI_PROG": "multi-prog", "SLURM_TIMELIMIT": "time", "SLURM_ACCOUNT": "account", "SLURM_QOS": "qos",
    "SLURM_PARTITION": "partition", "SLURM_DEPENDENCY": "dependency", "SLURM_IMMEDIATE": "immediate",
    "SLURM_EXCLUSIVE": "exclusive", "SLURM_GPUS": "gpus", "SLURM_GRES": "gres", "SLURM_CONSTRAINT": "constraint",
    "SLURM_TASK_PROLOG": "task-prolog", "SLURM_TASK_EPILOG": "task-epilog", "SLURM_PROLOG": "prolog",
    "SLURM_EPILOG": "epilog", "SLURM_CONTAINER": "container", "SLURM_PROPAGATE": "propagate",
}  # fmt: skip

EXPORT_VARIABLE = "AVER_SRUN_EXPORT"  # has --export for the srun of a job of its own: command lines can be read

# what would change what runs, or as whom: to leave it out in silence would be wrong
NOT_SERVED = ("container", "epilog", "gid", "no-allocate", "prolog", "task-epilog", "task-prolog", "test-only", "uid")

WITHOUT_MEANING = tuple(
    (
        "accel-bind acctg-freq bb bbf bcast bcast-exclude cluster-constraint clusters compress contiguous core-spec "
        "cores-per-socket cpu-bind cpu-freq cpus-per-gpu delay-boot disable-status distribution extra-node-info "
        "gpu-bind gpu-freq gpus-per-socket gres-flags het-group hint interactive mail-type mail-user mcs-label "
        "mem-bind mem-per-gpu mincpus msg-timeout network no-kill nodefile ntasks-per-core ntasks-per-gpu "
        "ntasks-per-socket power prefer preserve-env profile quit-on-interrupt reboot relative resv-ports "
        "send-libs slurmd-debug sockets-per-node spread-job switches thread-spec threads threads-per-core time-min "
        "tmp unbuffered use-min-nodes verbose x11"
    ).split()
)


class BadSpecification(BadOption):
    """A value that Slurm's srun can't read: it then ends with 255."""


class Options:
    """What was asked for. Texts are as typed; None: not given."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.flags: set[str] = set()
        self.command: list[str] = []

    def get(self, name: str) -> str | None:
        return self.values.get(name)


def parse(arguments: Sequence[str], environ: Mapping[str, str]) -> Options:
    """Read the arguments up to the command; BadOption has the sentences that Slurm's srun prints."""
    parsed = parse_words(TABLE, arguments, stops_at_operand=True)
    options = Options()
    options.command = parsed.operands
    for name, value in parsed.given:
        if TABLE.takes[name] != VALUE:
            options.flags.add(name)
        if value is not None:
            options.values[name] = value
    if "as-job" in options.flags and EXPORT_VARIABLE in environ:
        options.values["export"] = environ[EXPORT_VARIABLE]
    for variable, name in ENVIRONMENT.items():
        value = environ.get(variable)
        if value and name not in options.values and name not in options.flags:
            if TABLE.takes[name] == VALUE:
                options.values[name] = value
            elif value not in ("0", "no"):
                options.flags.add(name)
                if TABLE.takes[name] == MAYBE:
                    options.values[name] = value
    return options


def number(text: str | None, what: str, least: int = 1, most: int = 1_000_000) -> int | None:
    """A count, or BadOption as Slurm says it."""
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()) or not least <= int(text) <= most:
        raise BadOption(f'error: Invalid numeric value "{text}" for --{what}.')
    return int(text)
