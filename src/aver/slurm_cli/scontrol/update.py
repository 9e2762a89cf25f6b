"""`scontrol update JobId=…` and `StepId=…`: which words there are, and what each changes. Slurm's messages."""

from __future__ import annotations

from aver.fast_start import TYPE_CHECKING
from aver.model.units import parse_time
from aver.slurm_cli.job_names import split_jobs
from aver.slurm_cli.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

# word, the fewest letters that name it, the change
_WORDS = (
    ("TimeLimit", 5, "time"),
    ("ArrayTaskThrottle", 10, "throttle"),
    ("JobName", 4, "name"),
    ("Name", 2, "name"),
    ("Priority", 4, "priority"),
    ("Comment", 3, "comment"),
    ("Partition", 2, "partition"),
    ("Account", 1, "account"),
    ("QOS", 3, "qos"),
    ("Nice", 2, "nice"),
    ("Dependency", 1, "dependency"),
    ("StartTime", 2, "begin"),
    ("EligibleTime", 2, "begin"),
    ("MinMemoryNode", 10, "memory"),
    ("NumCPUs", 6, "cpus"),
    ("ReservationName", 3, "reservation"),
    ("WCKey", 1, "wckey"),
    ("Licenses", 1, "licenses"),
    ("Features", 1, "features"),
)
WORDS = tuple(name for name, _, _ in _WORDS)
_NO_ENTITY = """\
No valid entity in update command
Input line must include "NodeName", "PartitionName", "Reservation", "JobId", or "SlurmctldDebug\""""
_ENTITIES = ("jobid", "job")
HIGHEST_PRIORITY = 2**31 - 1
MIB = 1 << 20


class Update:
    """The jobs that are named, as texts, and the changes, as the coordinator takes them."""

    def __init__(self) -> None:
        self.jobs: list[str] = []
        self.name = ""  # of the jobs, where no number names them
        self.user = ""  # of the jobs that are named so: name or number
        self.changes: dict[str, Any] = {}
        self.is_held: bool | None = None
        self.minutes_more: int = 0
        self.step = ""  # instead of jobs: a running step (`7.0`), or all steps of a job (`7`)

    def step_limit(self, before_s: int | None) -> int | None:
        """The limit of a step that had this one; Refusal if there would be less than none left of it."""
        if not self.minutes_more:
            limit: int | None = self.changes.get("time_s", before_s)
            return limit
        if before_s is None:
            return None
        if -self.minutes_more > before_s // 60:
            sizes = f"({-self.minutes_more} > {before_s // 60})"
            raise Refusal(f"scontrol: error: TimeLimit decrement larger than current time limit {sizes}")
        return before_s + self.minutes_more * 60


def parse_update(words: Sequence[str]) -> Update:
    """Read the words behind `update`; raise Refusal as Slurm refuses."""
    if any(_names(word.partition("=")[0], "StepId", 4) for word in words):
        return _parse_step(words)
    update = Update()
    said = _pairs(words)
    for tag, value in said:
        if tag.lower() in _ENTITIES:
            update.jobs += split_jobs(value)
    if not update.jobs and said and _names(said[0][0], "JobName", 4):
        update.name = said.pop(0)[1]
        update.user = next((value for tag, value in said if tag.lower() == "userid"), "")
        said = [pair for pair in said if pair[0].lower() != "userid"]
    if not update.jobs and not update.name:
        raise Refusal(_NO_ENTITY)
    for tag, value in said:
        if tag.lower() not in _ENTITIES:
            _take(update, tag, value, f"{tag}={value}")
    if not update.changes and update.is_held is None and not update.minutes_more:
        raise Refusal("No changes specified")
    return update


def _parse_step(words: Sequence[str]) -> Update:
    """`StepId=7.0 TimeLimit=…`: nothing else of a step can be changed. A limit of 0 changes nothing."""
    update = Update()
    has_limit = False
    for word in words:
        tag, equals, value = word.partition("=")
        if not equals:
            raise Refusal(f"Invalid input: {word}\nRequest aborted\nslurm_update error: No error")
        if _names(tag, "StepId", 4):
            if not (value.partition(".")[0].isdigit() and value.isascii()):
                raise Refusal(f"Invalid StepID parameter: {word}\nRequest aborted")
            update.step = value
        elif _names(tag, "TimeLimit", 2):
            has_limit = True
            if value != "0":
                _take_time(update, value, unlimited="")
        else:
            raise Refusal(f"Update of this parameter is not supported: {word}\nRequest aborted")
    if not has_limit:
        raise Refusal("No changes specified")
    return update


def _pairs(words: Sequence[str]) -> list[tuple[str, str]]:
    """`TAG=VALUE` or `TAG VALUE`."""
    left, pairs = list(words), []
    while left:
        tag, equals, value = left.pop(0).partition("=")
        if not equals:
            if not left:
                raise Refusal(f"Invalid input: {tag}\nRequest aborted")
            value = left.pop(0)
        pairs.append((tag, value))
    return pairs


def _take(update: Update, tag: str, value: str, word: str) -> None:
    kind = next((kind for name, least, kind in _WORDS if _names(tag, name, least)), None)
    if kind is None:
        raise Refusal(f"Update of this parameter is not supported: {word}\nRequest aborted")
    match kind:
        case "time":
            _take_time(update, value)
        case "priority":
            _take_priority(update, value)
        case "begin":
            _take_moment(update, value)
        case "throttle" | "cpus" | "memory":
            _take_number(update, kind, value)
        case "dependency":
            _take_dependency(update, value)
        case _:
            update.changes[kind] = value


def _names(tag: str, name: str, least: int) -> bool:
    return len(tag) >= least and name.lower().startswith(tag.lower())


def _take_time(update: Update, value: str, unlimited: str = "-1") -> None:
    try:
        if value[:1] in ("+", "-") and value != unlimited:
            seconds = parse_time(value[1:])
            if seconds is None:
                raise ValueError
            update.minutes_more = seconds // 60 * (1 if value[0] == "+" else -1)
        else:
            update.changes["time_s"] = parse_time(value)
    except ValueError:
        raise Refusal("scontrol: error: Invalid TimeLimit value") from None


def _take_moment(update: Update, value: str) -> None:
    """A time as sbatch takes it; an empty one, or `now`, is none."""
    import time

    from aver.spec.clock import parse_moment

    try:
        moment = None if not value or value.lower() == "now" else parse_moment(value, time.time())
    except ValueError:
        raise Refusal(f"Invalid time specification (pos=0): {value}\nRequest aborted") from None
    update.changes["begin_at"] = moment


def _take_number(update: Update, kind: str, value: str) -> None:
    if not (value.isascii() and value.isdigit() and len(value) < 10) or (kind == "cpus" and int(value) == 0):
        word = {"throttle": "ArrayTaskThrottle", "cpus": "NumCPUs", "memory": "MinMemoryNode"}[kind]
        raise Refusal(f'Invalid {word} value: "{value}"')
    update.changes["mem_bytes" if kind == "memory" else kind] = int(value) * (MIB if kind == "memory" else 1)


def _take_dependency(update: Update, value: str) -> None:
    from aver.spec.sbatch.dependency import parse_dependency

    try:
        parse_dependency(value)
    except ValueError:
        raise Refusal("scontrol: error: Job dependency problem") from None
    update.changes["dependency"] = value


def _take_priority(update: Update, value: str) -> None:
    """0 holds the job, as in Slurm."""
    if not (value.isascii() and value.isdigit() and len(value) < 11 and int(value) <= HIGHEST_PRIORITY):
        raise Refusal(f'Invalid Priority value: "{value}"')
    if int(value) == 0:
        update.is_held = True
    else:
        update.changes["priority"] = int(value)
        update.is_held = False
