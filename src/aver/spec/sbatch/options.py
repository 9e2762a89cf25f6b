"""sbatch's options: which there are, and what they make of a job. One table for `#SBATCH` lines, variables and flags.

Values are read with one-sentence errors (ValueError); the last one given wins. Which options there are is
`spec.sbatch.table`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from aver.model.job import JobSpec, Request, Scope, Streams, WarningSignal
from aver.model.record import replace
from aver.model.slurm_options import SlurmOptions
from aver.model.units import parse_count, parse_time
from aver.spec.clock import parse_moment
from aver.spec.flags import clean_name, parse_mem, parse_priority
from aver.spec.times import parse_warning

_SAID_BY_AVER = frozenset(
    "job-name output error input chdir time array dependency begin deadline hold requeue no-requeue open-mode export "
    "export-file comment signal parsable wait test-only quiet verbose priority kill-on-invalid-dep wrap get-user-env "
    "ignore-pbs uid gid".split()
)
_GPU = re.compile(r"(?:[A-Za-z][\w.-]*:)*([0-9]{1,6})|gpu|[A-Za-z][\w.-]*")
_NODES = re.compile(r"([0-9]{1,9})(k|m)?(?:-([0-9]{1,9})(k|m)?)?", re.IGNORECASE)


class Values:
    """What was said so far. `said` has the last text of each option."""

    def __init__(self) -> None:
        self.said: dict[str, str] = {}
        self.name: str | None = None
        self.output: str | None = None
        self.error: str | None = None
        self.stdin: str | None = None
        self.folder: str | None = None
        self.tasks: int | None = None
        self.tasks_per_node: int | None = None
        self.nodes: int | None = None
        self.cpus_per_task: int | None = None
        self.gpus = 0
        self.gpus_per_task = 0
        self.mem: int | None = None
        self.mem_per_cpu: int | None = None
        self.time: int | None = None
        self.warning: WarningSignal | None = None
        self.append = False
        self.begin: float | None = None
        self.deadline: float | None = None
        self.hold = False
        self.priority = 0
        self.comment: str | None = None
        self.requeue: bool | None = None
        self.env: tuple[tuple[str, str], ...] = ()

    @property
    def task_count(self) -> int:
        if self.tasks is not None:
            return self.tasks
        return (self.tasks_per_node or 1) * (self.nodes or 1)

    @property
    def cpus(self) -> int:
        return self.task_count * (self.cpus_per_task or 1)

    def take(self, name: str, text: str, now: float) -> None:
        """Take one option; raise ValueError if its text is wrong."""
        use = USES.get(name)
        if use is not None:
            use(self, text, now)
        self.said[name] = text

    def job(self, spec: JobSpec) -> JobSpec:
        """The job with all that was said."""
        mem = self.mem
        if mem is None and self.mem_per_cpu is not None:
            mem = self.mem_per_cpu * self.cpus
        gpus = self.gpus or self.gpus_per_task * self.task_count
        return replace(
            spec,
            name=spec.name if self.name is None else self.name,
            request=Request(self.cpus, gpus, mem or None, self.time),
            streams=Streams(self.stdin, self.output, self.error, self.append),
            folder=self.folder,
            env=self.env,
            warning=self.warning,
            hold=self.hold,
            begin_at=self.begin,
            deadline_at=self.deadline,
            priority=self.priority,
            comment=self.comment,
            slurm=self.slurm(),
            slurm_options=self.slurm_options(),
            slurm_requeues=bool(self.requeue),
        )

    def slurm_options(self) -> tuple[str, ...]:
        """What was said, for a cluster's sbatch, but for what Aver says itself."""
        passed = [(name, text) for name, text in self.said.items() if name not in _SAID_BY_AVER]
        return tuple(f"--{name}={text}" if text else f"--{name}" for name, text in passed)

    def slurm(self) -> SlurmOptions:
        """What Slurm's commands show of what was said, as that of a batch job.

        A field that is not named below has the text of the option of its name."""
        texts: dict[str, Any] = {name: self.said[name] for name in SlurmOptions.__struct_fields__ if name in self.said}
        has_tasks = self.tasks is not None or self.tasks_per_node is not None or (self.nodes or 1) > 1
        read = {
            "features": self.said.get("constraint"),
            "ntasks": self.task_count if has_tasks else None,
            "ntasks_per_node": self.tasks_per_node,
            "cpus_per_task": self.cpus_per_task,
            "mem_per_cpu": self.mem_per_cpu if self.mem is None else None,
            "time_min_s": parse_time(self.said["time-min"]) if self.said.get("time-min") else None,
            "requeue": self.requeue,
        }
        return SlurmOptions(**texts | read)


def _put(field: str, parse: Callable[[str, float], object]) -> Callable[[Values, str, float], None]:
    def put(values: Values, text: str, now: float) -> None:
        setattr(values, field, parse(text, now))

    return put


def _text(text: str, now: float) -> str:
    if not text:
        raise ValueError("the value is empty")
    return text


def _count(what: str, least: int = 1) -> Callable[[str, float], int]:
    return lambda text, now: parse_count(text, what, least)


def _nodes(text: str, now: float) -> int:
    """`2`, `1-4`: the least of them."""
    match = _NODES.fullmatch(text.strip())
    if match is None or int(match[1]) == 0 or (match[3] and int(match[3]) < int(match[1])):
        raise ValueError(f"{text!r} is not a number of nodes: give 2 or 1-4")
    return int(match[1]) * {"": 1, "k": 1024, "m": 1024**2}[(match[2] or "").lower()]


def _gpus(text: str, now: float) -> int:
    """`2`, `a100:2`, `gpu:a100:2`; without a number it is one."""
    total = 0
    for part in text.split(","):
        match = _GPU.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{text!r} is not a number of gpus: give 2 or a100:2")
        total += int(match[1]) if match[1] else 1
    return total


def _gres(values: Values, text: str, now: float) -> None:
    named = [part for part in text.split(",") if part.strip().split(":")[0] in ("gpu", "gres/gpu")]
    if named:
        values.gpus = _gpus(",".join(named).replace("gres/", ""), now)


def _tres_per_task(values: Values, text: str, now: float) -> None:
    """`cpu:2,gres/gpu:1`, also with `=`; other resources mean nothing on one machine."""
    for part in text.split(","):
        name, _, count = part.replace("=", ":").partition(":")
        if name == "cpu":
            values.cpus_per_task = parse_count(count, "cpus")
        elif name == "gres/gpu":
            values.gpus_per_task = _gpus(count or "1", now)
        elif not name:
            raise ValueError(f"{text!r} is not a list of resources: give cpu:2,gres/gpu:1")


def _open_mode(values: Values, text: str, now: float) -> None:
    if text not in ("append", "truncate", "a", "t"):
        raise ValueError(f"{text!r} is neither append nor truncate")
    values.append = text[0] == "a"


def _flag(field: str, value: bool) -> Callable[[Values, str, float], None]:
    def put(values: Values, text: str, now: float) -> None:
        setattr(values, field, value)

    return put


def _export(values: Values, text: str, now: float) -> None:
    """`ALL,NAME=VALUE`: the values that are set; what else the job inherits is the submitter's to decide."""
    pairs = [part.partition("=") for part in text.split(",") if "=" in part]
    if any(not name or "\0" in name for name, _, _ in pairs):  # Slurm takes names that no shell can read
        raise ValueError(f"{text!r} has a name that can't be a variable's")
    values.env = tuple((name, value) for name, _, value in pairs)


USES: dict[str, Callable[[Values, str, float], None]] = {
    "job-name": _put("name", lambda text, now: clean_name(_text(text, now))),
    "output": _put("output", _text),
    "error": _put("error", _text),
    "input": _put("stdin", _text),
    "chdir": _put("folder", _text),
    "ntasks": _put("tasks", _count("tasks")),
    "ntasks-per-node": _put("tasks_per_node", _count("tasks")),
    "nodes": _put("nodes", _nodes),
    "cpus-per-task": _put("cpus_per_task", _count("cpus")),
    "time": _put("time", lambda text, now: parse_time(text)),
    "mem": _put("mem", lambda text, now: parse_mem(text)),
    "mem-per-cpu": _put("mem_per_cpu", lambda text, now: parse_mem(text)),
    "gpus": _put("gpus", _gpus),
    "gpus-per-node": _put("gpus", _gpus),
    "gpus-per-task": _put("gpus_per_task", _gpus),
    "gres": _gres,
    "tres-per-task": _tres_per_task,
    "signal": _put("warning", lambda text, now: parse_warning(text, Scope.STEPS)),
    "open-mode": _open_mode,
    "begin": _put("begin", parse_moment),
    "deadline": _put("deadline", parse_moment),
    "hold": _flag("hold", True),
    "requeue": _flag("requeue", True),
    "no-requeue": _flag("requeue", False),
    "priority": _put("priority", lambda text, now: parse_priority(text)),
    "comment": _put("comment", lambda text, now: text),
    "export": _export,
    "mail-type": lambda values, text, now: None,  # `spec.sbatch.mail` reads both when all options are known
    "mail-user": lambda values, text, now: None,
    "exclusive": lambda values, text, now: None,  # the cpus of the whole machine are known where it is submitted
}
