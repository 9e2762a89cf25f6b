"""The options of one call of sbatch: flag, else SBATCH_* variable, else #SBATCH line. Slurm's words for what is wrong.

What an option means is `aver.spec.batch`'s; this decides which text counts and what Slurm would refuse.
"""

from __future__ import annotations

import re

from aver.core.model import Afters
from aver.slurm_cli.batch_script import BatchScript, split_line
from aver.slurm_cli.options import BadOption, Parsed, Table, parse
from aver.slurm_cli.refusal import Refusal
from aver.spec.afters import parse_dependency
from aver.spec.arrays import Indices, parse_array
from aver.spec.batch import LONG, SHORT, USES, Takes, Values, magic_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

USAGE_STATUS = 255

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

_OWN_FLAGS = "help:h usage version:V"
_COUNTS = frozenset({"ntasks", "ntasks-per-node", "cpus-per-task"})
_GENERIC = frozenset({"gpus", "gpus-per-node", "gpus-per-task", "gres"})
_GRES = re.compile(
    r"(none|((gres/)?gpu(:[A-Za-z][\w.-]*)?(:[0-9]{1,6})?)(,(gres/)?gpu(:[A-Za-z][\w.-]*)?(:[0-9]{1,6})?)*)"
)
_NUMBER_OF_GPUS = re.compile(r"([A-Za-z][\w.-]*:)?[0-9]{1,6}(,([A-Za-z][\w.-]*:)?[0-9]{1,6})*")
_STRICT = {
    "time": re.compile(r"([0-9]{1,9}-)?[0-9]{1,9}(:[0-9]{1,9}){0,2}|-1|unlimited|infinite", re.IGNORECASE),
    "signal": re.compile(r"([BR]{1,2}:)?[A-Za-z0-9]+(@[0-9]{1,5})?"),
    "exclusive": re.compile(r"|user|mcs", re.IGNORECASE),
    "kill-on-invalid-dep": re.compile(r"yes|no", re.IGNORECASE),
    "gres": _GRES,
    "gpus": _NUMBER_OF_GPUS,
    "gpus-per-node": _NUMBER_OF_GPUS,
    "gpus-per-task": _NUMBER_OF_GPUS,
}
_LONGEST_LEAD_S = 65535
_SILENT = frozenset(
    "quiet verbose wait parsable test-only array dependency wrap kill-on-invalid-dep ignore-pbs help usage version "
    "nodes export".split()
)


def table() -> Table:
    """sbatch's options for the reader of command lines."""
    letters = {name: letter for letter, name in SHORT.items()}

    def words(takes: Takes) -> str:
        return " ".join(f"{name}:{letters[name]}" if name in letters else name for name in LONG if LONG[name] is takes)

    flags = f"{words(Takes.NOTHING)} {_OWN_FLAGS}"
    return Table(flags, words(Takes.VALUE), words(Takes.MAYBE), "workdir=chdir share=oversubscribe cluster=clusters")


class BatchCall:
    """What a call of sbatch asks for. `given` says for each option where its text came from last."""

    def __init__(self, now: float) -> None:
        self.values = Values()
        self.verbose = 0
        self.indices: Indices | None = None
        self._now = now

    def has(self, name: str) -> bool:
        return name in self.values.said

    def take(self, name: str, text: str) -> None:
        """Take one option; raise Refusal in Slurm's words."""
        if name == "verbose":
            self.verbose += 1
        if name in ("requeue", "no-requeue"):
            self.values.said.pop("requeue", None)
            self.values.said.pop("no-requeue", None)
        if name in ("mem", "mem-per-cpu"):  # they exclude each other; the later one counts
            self.values.mem = self.values.mem_per_cpu = None
        try:
            self._check(name, text)
            self.values.take(name, text, self._now)
        except ValueError:
            raise refusal_of(name, text) from None

    def _check(self, name: str, text: str) -> None:
        strict = _STRICT.get(name)
        if strict is not None and strict.fullmatch(text) is None:
            raise ValueError
        if name == "signal" and "@" in text and int(text.rpartition("@")[2]) > _LONGEST_LEAD_S:
            raise ValueError
        if name == "array":
            self.indices = parse_array(text) if text else None
        if name == "dependency":
            parse_dependency(text)
        if name == "time" and text == "-1":
            raise ValueError

    @property
    def afters(self) -> Afters | None:
        ends = self.values.said.get("kill-on-invalid-dep", "no").lower() == "yes"
        return parse_dependency(self.values.said.get("dependency", ""), ends)

    def without_meaning(self) -> list[str]:
        """The options that were given and mean nothing on this machine."""
        return [f"--{name}" for name in self.values.said if name not in USES and name not in _SILENT]


def read_call(words: Sequence[str], options: Table, now: float) -> tuple[BatchCall, Parsed]:
    """The flags alone: enough to find the script. The rest is `complete`'s."""
    try:
        parsed = parse(options, words, stops_at_operand=True)
    except BadOption as error:
        raise usage(error) from None
    return BatchCall(now), parsed


def complete(call: BatchCall, parsed: Parsed, script: BatchScript, environ: Mapping[str, str], options: Table) -> None:
    """Take the script's lines, then the variables, then the flags: the last one counts."""
    for number, line in magic_lines(script.text):
        try:
            found = parse(options, split_line(line, number, script.shown))
        except BadOption as error:
            raise usage(error) from None
        if found.operands:
            text = f"sbatch: error: Invalid directive found in batch script: {found.operands[0]}"
            raise Refusal(text, USAGE_STATUS)
        for name, value in found.given:
            if name not in ("help", "usage", "version"):
                call.take(name, value or "")
    for variable, name in VARIABLES.items():
        value = environ.get(variable)
        if value is not None:
            call.take(name, value if LONG[name] is not Takes.NOTHING else "")
    for name, value in parsed.given:
        call.take(name, value or "")


def usage(error: BadOption) -> Refusal:
    return Refusal(f'sbatch: {error}\nTry "sbatch --help" for more information', USAGE_STATUS)


def refusal_of(name: str, text: str) -> Refusal:
    """How Slurm refuses this text of this option."""
    if name in _COUNTS:
        return Refusal(f'sbatch: error: Invalid numeric value "{text}" for --{name}.')
    if name in _GENERIC:
        return Refusal("sbatch: error: Invalid generic resource (gres) specification")
    match name:
        case "nodes":
            return Refusal(f'sbatch: error: "{text}" is not a valid node count', USAGE_STATUS)
        case "array":
            return failed("Invalid job array specification")
        case "dependency":
            return failed("Job dependency problem")
        case "begin" | "deadline":
            first = f"Invalid time specification (pos=0): {text}\n"
            return Refusal(f"{first}sbatch: error: Invalid --{name} specification", USAGE_STATUS)
        case _:
            return Refusal(f"sbatch: error: Invalid --{name} specification", USAGE_STATUS)


def failed(why: str) -> Refusal:
    return Refusal(f"sbatch: error: Batch job submission failed: {why}")
