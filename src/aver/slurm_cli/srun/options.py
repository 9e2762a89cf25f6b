"""The options of srun, what they ask of a step, and its help. What means nothing on one machine is left alone.

Precedence: flag, then srun's environment variable, then the job's own.
"""

from __future__ import annotations

import os

from aver.fast_start import TYPE_CHECKING
from aver.slurm_cli.output import show
from aver.spec.getopt import MAYBE, VALUE, BadOption, Table
from aver.spec.getopt import parse as parse_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

TABLE = Table(
    flags=(
        "contiguous disable-status:X exact hold:H interactive label:l multi-prog no-allocate:Z overcommit:O overlap "
        "oversubscribe:s preserve-env:E quiet:Q quit-on-interrupt reboot spread-job test-only unbuffered:u "
        "use-min-nodes verbose:v wait-for-children help:h usage version:V as-job"
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
        "threads-per-core time:t time-min tmp tres-bind tres-per-task uid wait:W wckey"
    ),
    maybe=(
        "bcast compress exclusive immediate:I kill-on-bad-exit:K nice no-kill:k oom-kill-step propagate pty resv-ports "
        "send-libs x11"
    ),
    aliases="cluster=clusters share=oversubscribe workdir=chdir",
)

CHECKED = ("distribution", "gpus", "gpus-per-node", "gpus-per-task", "gres", "tres-per-task")  # by `step_checks`
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
    "SLURM_EPILOG": "epilog", "SLURM_DEBUG": "verbose", "SLURM_CONTAINER": "container", "SLURM_PROPAGATE": "propagate",
}  # fmt: skip

EXPORT_VARIABLE = "AVER_SRUN_EXPORT"  # has --export for the srun of a job of its own: command lines can be read

# what would change what runs, or as whom: to leave it out in silence would be wrong
NOT_SERVED = ("container", "gid", "no-allocate", "uid")

WITHOUT_MEANING = tuple(
    (
        "accel-bind acctg-freq bb bbf bcast-exclude cluster-constraint clusters compress contiguous core-spec "
        "cores-per-socket cpu-bind cpu-freq cpus-per-gpu delay-boot distribution extra-node-info "
        "gpu-bind gpu-freq gpus-per-socket gres-flags het-group hint interactive mail-type mail-user mcs-label "
        "mem-bind mem-per-gpu mincpus msg-timeout network no-kill nodefile ntasks-per-core ntasks-per-gpu "
        "ntasks-per-socket oom-kill-step power prefer profile reboot relative "
        "resv-ports send-libs slurmd-debug sockets-per-node spread-job switches thread-spec threads threads-per-core "
        "time-min tmp tres-bind unbuffered use-min-nodes wait-for-children x11"
    ).split()
)

NOT_AVAILABLE = "Requested node configuration is not available"
_MPI_TYPES = ("pmi2", "pmix", "pmix_v1", "pmix_v2", "pmix_v3", "pmix_v4", "pmix_v5", "cray_shasta")
_PROPAGATED = ("CPU", "FSIZE", "DATA", "STACK", "CORE", "RSS", "NPROC", "NOFILE", "MEMLOCK", "AS")


class BadSpecification(BadOption):
    """A value that Slurm's srun can't read: it then ends with 255."""


class Options:
    """What was asked for. Texts are as typed; None: not given."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.flags: set[str] = set()
        self.command: list[str] = []
        self.verbosity = 0

    def get(self, name: str) -> str | None:
        return self.values.get(name)


def parse(arguments: Sequence[str], environ: Mapping[str, str]) -> Options:
    """Read the arguments up to the command; BadOption has the sentences that Slurm's srun prints."""
    parsed = parse_words(TABLE, arguments, stops_at_operand=True)
    options = Options()
    options.command = parsed.operands
    for name, value in parsed.given:
        options.verbosity += name == "verbose"
        if TABLE.takes[name] != VALUE:
            options.flags.add(name)
        if value is not None:
            options.values[name] = value
    memory = [name for name in ("mem", "mem-per-cpu", "mem-per-gpu") if name in options.values]
    if len(memory) > 1:
        from aver.spec.sbatch.table import memory_conflict

        raise BadOption(memory_conflict(memory) or "")
    for part in options.values.get("tres-per-task", "").split(","):
        name, _, count = part.replace("=", ":").partition(":")
        if name == "cpu":
            options.values["cpus-per-task"] = count
    if "as-job" in options.flags and EXPORT_VARIABLE in environ:
        options.values["export"] = environ[EXPORT_VARIABLE]
    for variable, name in ENVIRONMENT.items():
        value = environ.get(variable)
        if value and name not in options.values and name not in options.flags and not (name == "mem" and memory):
            if name == "verbose":
                options.verbosity = int(value) if value.isascii() and value.isdigit() else 1
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


def more_nodes(options: Options) -> bool:
    """Whether more nodes are asked for than there are: one. BadSpecification if that can't be read."""
    nodes = options.get("nodes")
    if nodes is None:
        return False
    least, _, most = nodes.partition("-")
    if not least and most.isascii() and most.isdigit():
        return False  # at most so many
    if not (least.isascii() and least.isdigit()):
        raise BadSpecification(f'error: "{nodes}" is not a valid node count')
    return int(least) > 1


def task_count(options: Options, job_cpus: int = 0) -> int:
    """How many tasks were asked for; without a number, and with -c, as many as have room in the CPUs of the job."""
    asked = number(options.get("ntasks"), "ntasks") or number(options.get("ntasks-per-node"), "ntasks-per-node")
    if asked:
        return asked
    per_task = number(options.get("cpus-per-task"), "cpus-per-task")
    return max(1, job_cpus // per_task) if per_task else 1


def leaves_tasks_open(options: Options) -> bool:
    """Whether the CPUs of the job decide how many tasks there are."""
    return not (options.get("ntasks") or options.get("ntasks-per-node")) and bool(options.get("cpus-per-task"))


def patience_s(options: Options) -> float:
    """How long -I waits for room, without a number one second."""
    return float(number(options.get("immediate") or "1", "immediate") or 1)


def add_limits(spec: dict[str, Any], options: Options) -> None:
    """Put time, memory and warning signal into the step; BadOption has Slurm's sentence."""
    from aver.model.units import parse_size, parse_time

    time_text, mem_text, per_cpu = options.get("time"), options.get("mem"), options.get("mem-per-cpu")
    if time_text:
        try:
            spec["time_s"] = parse_time(time_text)
        except ValueError:
            raise BadSpecification("error: Invalid --time specification") from None
    for text, option in ((mem_text, "mem"), (per_cpu, "mem-per-cpu")):
        if not text or text == "0":
            continue
        try:
            size = parse_size(text)
        except ValueError:
            raise BadSpecification(f"error: Invalid --{option} specification") from None
        spec["mem_bytes"] = size if option == "mem" else size * spec.get("cpus_per_task", 1) * spec["tasks"]
    signal = options.get("signal")
    if signal:
        spec["warning"] = _warning(signal)


def _warning(text: str) -> dict[str, Any]:
    from aver.model.signals import parse_signal

    name, _, lead = text.rpartition(":")[2].partition("@")
    try:
        signal = parse_signal(name)
    except ValueError:
        raise BadSpecification("error: Invalid --signal specification") from None
    if lead and not (lead.isascii() and lead.isdigit()):
        raise BadSpecification("error: Invalid --signal specification")
    return {"signal": signal, "lead_s": int(lead) if lead else 60, "scope": "script"}


def program_of(options: Options) -> list[str]:
    """The words of the program; one that PATH has not, but this folder, is that one, as with Slurm."""
    name = options.command[0]
    if "/" not in name and "multi-prog" not in options.flags and os.path.isfile(name) and os.access(name, os.X_OK):
        import shutil

        if shutil.which(name) is None:
            return [os.path.abspath(name), *options.command[1:]]
    return options.command


def options_run_scripts(options: Options) -> bool:
    """Whether srun itself runs scripts before and after its step."""
    return bool(options.get("prolog") or options.get("epilog"))


def check_mpi(options: Options) -> bool:
    """False when the types were only to be listed; BadOption for one that there is not.

    There is no process manager for MPI here. One task needs none; several would not find each other.
    """
    kind = options.get("mpi") or ""
    if kind in ("list", "help"):
        show("MPI plugin types are...\n\tnone\n")
        return False
    if kind == "none":
        return True
    if kind not in _MPI_TYPES:
        lines = (
            f"error: Couldn't find the specified plugin name for mpi/{kind} looking at all files",
            f"error: cannot find mpi plugin for mpi/{kind}",
            f"error: MPI: Cannot create context for mpi/{kind}",
            "error: MPI: Unable to load any plugin",
            f"error: Invalid MPI type '{kind}', --mpi=list for acceptable types",
        )
        raise BadOption("\nsrun: ".join(lines))
    if task_count(options) > 1:
        raise BadOption(
            f"error: --mpi={kind} is not supported on one machine: start the ranks with mpirun inside the job"
        )
    return True


def own_limits(names: str | None) -> list[list[int]]:
    """Our soft limits, which the tasks get: those that --propagate names, or all; BadOption has Slurm's sentences."""
    import resource

    chosen: list[str] = []
    for word in (names or "ALL").split(","):
        name = word.upper().removeprefix("RLIMIT_")
        if name == "ALL":
            chosen += _PROPAGATED
        elif name in _PROPAGATED:
            chosen.append(name)
        elif name != "NONE":
            raise BadOption(f"error: Bad rlimit name: {word}\nsrun: error: --propagate={names} is not valid.")
    numbers = sorted({int(getattr(resource, f"RLIMIT_{name}")) for name in chosen})
    return [[one, resource.getrlimit(one)[0]] for one in numbers]


def own_umask() -> int:
    old = os.umask(0o077)
    os.umask(old)
    return old


def _told(options: Options) -> dict[str, str]:
    """What Slurm's srun tells its tasks about itself."""
    found = {
        "SLURM_UMASK": f"{own_umask():04o}",
        "SLURM_LAUNCH_NODE_IPADDR": "127.0.0.1",
        "SLURM_SRUN_COMM_HOST": "127.0.0.1",
    }
    if options.get("job-name"):
        found["SLURM_JOB_NAME"] = options.get("job-name") or ""
    if options.get("cpus-per-task"):
        found["SLURM_CPUS_PER_TASK"] = options.get("cpus-per-task") or ""
    if "overcommit" in options.flags:
        found["SLURM_OVERCOMMIT"] = "1"
    if options.get("distribution"):
        found |= _distribution(options.get("distribution") or "")
    return found


def _distribution(text: str) -> dict[str, str]:
    """How tasks are placed, with the defaults in place of `*`: `*:*` is block:cyclic; the size of a plane by itself."""
    method, equals, size = text.partition("=")
    if equals:
        return {"SLURM_DISTRIBUTION": method, "SLURM_DIST_PLANESIZE": size}
    levels, comma, pack = text.partition(",")
    parts = levels.split(":")
    defaults = ["block", "cyclic", parts[1] if len(parts) > 1 and parts[1] != "*" else "cyclic"]
    parts = [default if part == "*" else part for part, default in zip(parts, defaults, strict=False)]
    return {"SLURM_DISTRIBUTION": ":".join(parts) + comma + pack}


def environment_of(options: Options) -> list[str]:
    """What the tasks inherit: all of ours, or what --export names."""
    export = options.get("export")
    own = {"AVER_KEY", EXPORT_VARIABLE}
    pairs = {name: value for name, value in os.environ.items() if name not in own} | _told(options)
    if export is None or export == "ALL":
        return [f"{name}={value}" for name, value in pairs.items()]
    words = [word for word in export.split(",") if word]
    kept = dict(pairs) if "ALL" in words else {
        name: value for name, value in pairs.items() if name.startswith(("SLURM_", "AVER_"))
    }  # fmt: skip
    for word in words:
        name, equals, value = word.partition("=")
        if equals:
            kept[name] = value
        elif name in pairs:
            kept[name] = pairs[name]
    return [f"{name}={value}" for name, value in kept.items()]
