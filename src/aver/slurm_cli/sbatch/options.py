"""The options of one call of sbatch in the order in which they count: #SBATCH lines, SBATCH_* variables, flags.

Only read here; what they mean, and whether they are right, the coordinator says. Imports nothing to speak of.
"""

from __future__ import annotations

from aver.slurm_cli.options import BadOption, Parsed, Table, parse
from aver.slurm_cli.refusal import Refusal
from aver.slurm_cli.sbatch.script import BatchScript, split_line
from aver.spec.sbatch.names import (
    FLAGS,
    FLAGS_WITHOUT_MEANING,
    MAYBE,
    MAYBE_WITHOUT_MEANING,
    SHORT,
    VALUES,
    VALUES_WITHOUT_MEANING,
    magic_lines,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

USAGE_STATUS = 255
ABOUT = ("help", "usage", "version")
NOT_SERVED = ("container", "export-file", "gid", "uid")  # to leave it out would change what runs, or as whom

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


def table() -> Table:
    """sbatch's options for the reader of command lines."""
    letters = {name: letter for letter, name in SHORT.items()}

    def words(*names: list[str]) -> str:
        return " ".join(f"{one}:{letters[one]}" if one in letters else one for some in names for one in some)

    found = Table(
        words(FLAGS, FLAGS_WITHOUT_MEANING) + " help:h usage version:V",
        words(VALUES, VALUES_WITHOUT_MEANING),
        words(MAYBE, MAYBE_WITHOUT_MEANING),
        "workdir=chdir share=oversubscribe cluster=clusters",
    )
    found.names = dict(sorted(found.names.items()))  # as messages list them
    return found


def read_flags(words: Sequence[str], options: Table) -> Parsed:
    """The flags, and behind them the script with its arguments; raise Refusal as getopt complains."""
    try:
        return parse(options, words, stops_at_operand=True)
    except BadOption as error:
        raise _usage(error) from None


def in_order(parsed: Parsed, script: BatchScript, environ: Mapping[str, str], options: Table) -> list[list[str]]:
    """All options as [name, text]; of two the later one counts."""
    found: list[tuple[str, str | None]] = []
    for number, line in magic_lines(script.text):
        try:
            said = parse(options, split_line(line, number, script.shown))
        except BadOption as error:
            raise _usage(error) from None
        if said.operands:
            text = f"sbatch: error: Invalid directive found in batch script: {said.operands[0]}"
            raise Refusal(text, USAGE_STATUS)
        found += said.given
    for variable, name in VARIABLES.items():
        if variable in environ:
            found.append((name, environ[variable] if options.takes[name] else None))
    found += parsed.given
    for name, _ in found:
        if name in NOT_SERVED:
            raise Refusal(f"sbatch: error: --{name} is not served by aver")
    return [[name, text or ""] for name, text in found if name not in ABOUT]


def _usage(error: BadOption) -> Refusal:
    return Refusal(f'sbatch: {error}\nTry "sbatch --help" for more information', USAGE_STATUS)
