"""What one call of sbatch asks for, checked as strictly as Slurm checks it, and refused in Slurm's words. Pure.

What an option means is `aver.spec.sbatch.options`'s; which texts count, in which order, is sbatch's own business.
"""

from __future__ import annotations

import re

from aver.errors import UsageError
from aver.fast_start import TYPE_CHECKING
from aver.model.job import Afters
from aver.model.slurm_names import PARTITION
from aver.model.units import parse_count, parse_size, parse_time
from aver.spec.sbatch.array import Indices, parse_array
from aver.spec.sbatch.dependency import parse_dependency
from aver.spec.sbatch.options import USES, Values
from aver.spec.sbatch.table import ABOUT, NOT_SERVED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aver.spec.getopt import Table

USAGE_STATUS = 255

_COUNTS = frozenset({"ntasks", "ntasks-per-node", "cpus-per-task", "mincpus"})
_GENERIC = frozenset({"gpus", "gpus-per-node", "gpus-per-task", "gres"})
_GRES_PART = r"((gres/)?gpu(:[A-Za-z][\w.-]*)?(:[0-9]{1,6})?|[A-Za-z][\w.-]*:0+)"  # none of anything is there
_GRES = re.compile(rf"(none|{_GRES_PART}(,{_GRES_PART})*)")
_NUMBER_OF_GPUS = re.compile(r"([A-Za-z][\w.-]*:)?[0-9]{1,6}(,([A-Za-z][\w.-]*:)?[0-9]{1,6})*")
_MAIL = "(NONE|BEGIN|END|FAIL|REQUEUE|ALL|INVALID_DEPEND|STAGE_OUT|ARRAY_TASKS|TIME_LIMIT(_90|_80|_50)?)"
_NODES = re.compile(r"[^\[\]]*(\[[0-9,-]+\][^\[\]]*)*")
_STRICT = {
    "time": re.compile(r"([0-9]{1,9}-)?[0-9]{1,9}(:[0-9]{1,9}){0,2}|-[0-9]{1,9}|unlimited|infinite", re.IGNORECASE),
    "nodelist": _NODES,
    "exclude": _NODES,
    "signal": re.compile(r"([BR]{1,2}:)?[A-Za-z0-9]+(@[0-9]{1,5})?"),
    "exclusive": re.compile(r"|user|mcs", re.IGNORECASE),
    "mail-type": re.compile(f"{_MAIL}(,{_MAIL})*", re.IGNORECASE),
    "kill-on-invalid-dep": re.compile(r"yes|no", re.IGNORECASE),
    "gres": _GRES,
    "gpus": _NUMBER_OF_GPUS,
    "gpus-per-node": _NUMBER_OF_GPUS,
    "gpus-per-task": _NUMBER_OF_GPUS,
}
_LEVEL = r"(\*|block|cyclic|fcyclic)"
_STRICT["distribution"] = re.compile(
    rf"((\*|block|cyclic)(:{_LEVEL}){{0,2}}|plane=[1-9][0-9]{{0,8}}|arbitrary|(no)?pack)(,(no)?pack)?", re.IGNORECASE
)
_REVERSED = re.compile(r"([1-9][0-9]{0,8})-([1-9][0-9]{0,8})")
_DATE = re.compile(r"[0-9]{4}-([0-9]{2})-([0-9]{2})", re.ASCII)
_LONGEST_LEAD_S = 65535
SILENT = frozenset(
    "quiet verbose wait parsable test-only array dependency wrap kill-on-invalid-dep ignore-pbs nodes export "
    "bbf".split()
)


def idle_options(table: Table) -> tuple[str, ...]:
    """The options of sbatch or salloc that mean nothing on one machine."""
    known = {*USES, *SILENT, *ABOUT, *NOT_SERVED}
    return tuple(name for name in table.takes if name not in known)


class BatchRefused(UsageError):
    """The lines that sbatch prints, and its exit status."""

    def __init__(self, text: str, status: int = 1) -> None:
        super().__init__(text)
        self.exit_status = status


class BatchCall:
    """The options of the call so far; the last text of each counts."""

    def __init__(self, now: float) -> None:
        self.values = Values()
        self.indices: Indices | None = None
        self._now = now

    def has(self, name: str) -> bool:
        return name in self.values.said

    def take(self, name: str, text: str) -> None:
        """Take one option; raise BatchRefused in Slurm's words."""
        if name in ("requeue", "no-requeue"):
            self.values.said.pop("requeue", None)
            self.values.said.pop("no-requeue", None)
        if name in ("mem", "mem-per-cpu"):  # they exclude each other; the later one counts
            self.values.mem = self.values.mem_per_cpu = None
        try:
            self._check(name, text)
            is_negative = name == "time" and text.startswith("-")  # Slurm takes it, and there is no limit then
            self.values.take(name, "UNLIMITED" if is_negative else text, self._now)
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
        if name == "mincpus":
            parse_count(text, "cpus")
        if name == "time" and text == "-1":
            raise ValueError
        if name == "time-min":
            parse_time(text)
        if name == "tmp" and text != "0":
            parse_size(text)

    @property
    def afters(self) -> Afters | None:
        ends = self.values.said.get("kill-on-invalid-dep", "no").lower() == "yes"
        return parse_dependency(self.values.said.get("dependency", ""), ends)

    def check_together(self) -> None:
        """What each option alone does not show; raise BatchRefused in Slurm's words."""
        values = self.values
        if values.deadline is not None and values.deadline <= self._now:
            raise failed("Requested time limit is invalid (missing or exceeds some limit)")
        if values.deadline is not None and values.begin is not None and values.deadline < values.begin:
            raise BatchRefused("sbatch: error: Incompatible begin and deadline time specification")
        least = values.said.get("time-min")
        if least and values.deadline is not None and values.deadline < self._now + (parse_time(least) or 0):
            raise failed("Invalid time-min specification (exceeds job's time or other limits)")
        if least and values.time is not None and (parse_time(least) or 0) > values.time:
            raise failed("Invalid time-min specification (exceeds job's time or other limits)")

    def without_meaning(self) -> list[str]:
        """The options that were given and mean nothing on this machine."""
        return [f"--{name}" for name in self.values.said if name not in USES and name not in SILENT]


def check_names(said: Mapping[str, str], node: str) -> None:
    """Raise BatchRefused, in Slurm's words, for a name of a partition, node, feature or license that is not here."""
    for name in said.get("partition", "").split(","):
        if name not in ("", PARTITION):
            first = f"sbatch: error: invalid partition specified: {name}"
            raise BatchRefused(f"{first}\n{failed('Invalid partition name specified')}")
    for option in ("nodelist", "exclude"):
        if any(name not in (node, "localhost") for name in _nodes_of(said.get(option, ""))):
            raise failed("Invalid node name specified")
    if said.get("constraint"):
        raise failed("Invalid feature specification")
    if said.get("licenses"):
        raise failed("Invalid license specification")


def _nodes_of(text: str) -> list[str]:
    from aver.model.hostlists import expand  # few need it

    try:
        return [] if "/" in text else expand(text)
    except ValueError:
        raise failed("Invalid node name specified") from None


def refusal_of(name: str, text: str) -> BatchRefused:
    """How Slurm refuses this text of this option."""
    if name in _COUNTS:
        return BatchRefused(f'sbatch: error: Invalid numeric value "{text}" for --{name}.')
    if name in _GENERIC:
        return BatchRefused("sbatch: error: Invalid generic resource (gres) specification")
    match name:
        case "nodes" if (found := _REVERSED.fullmatch(text)) is not None and int(found[2]) < int(found[1]):
            least = f"less than minimum node count {found[1]}"
            return BatchRefused(f"sbatch: error: Maximum node count {found[2]} is {least}", USAGE_STATUS)
        case "nodes":
            return BatchRefused(f'sbatch: error: "{text}" is not a valid node count', USAGE_STATUS)
        case "array":
            return failed("Invalid job array specification")
        case "dependency":
            return failed("Job dependency problem")
        case "nodelist" | "exclude":
            return failed("Invalid node name specified")
        case "distribution" if text.lower().startswith("plane"):
            return BatchRefused("sbatch: error: Invalid plane size or size not specified", USAGE_STATUS)
        case "begin" | "deadline":
            first = f"Invalid time specification (pos={_place_of_mistake(text)}): {text}\n"
            return BatchRefused(f"{first}sbatch: error: Invalid --{name} specification", USAGE_STATUS)
        case _:
            return BatchRefused(f"sbatch: error: Invalid --{name} specification", USAGE_STATUS)


def failed(why: str) -> BatchRefused:
    return BatchRefused(f"sbatch: error: Batch job submission failed: {why}")


def _place_of_mistake(text: str) -> int:
    """Where Slurm stops reading a time."""
    date = _DATE.match(text)
    if date is None:
        return 0
    return 5 if not 1 <= int(date[1]) <= 12 else 8 if not 1 <= int(date[2]) <= 31 else 0
