"""The options of `#SBATCH` lines: which there are, and what they make of a job.

Long names may be cut as long as they stay unique, as getopt does. The last of two lines wins.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from aver.core.model import JobSpec, Request, Scope, Streams, WarningSignal
from aver.core.units import parse_count, parse_size, parse_time
from aver.spec.document import Point
from aver.spec.mistakes import Mistakes, did_you_mean, shown
from aver.spec.moments import parse_moment, parse_warning
from aver.spec.options import clean_name, parse_mem, parse_priority


class Takes(Enum):
    VALUE = "value"
    NOTHING = "nothing"
    MAYBE = "maybe"  # a value only with =


SHORT = {
    "J": "job-name", "o": "output", "e": "error", "i": "input", "D": "chdir", "n": "ntasks", "c": "cpus-per-task",
    "N": "nodes", "t": "time", "G": "gpus", "b": "begin", "H": "hold", "p": "partition", "A": "account", "q": "qos",
    "a": "array", "d": "dependency", "C": "constraint", "w": "nodelist", "x": "exclude", "L": "licenses",
    "Q": "quiet", "v": "verbose", "W": "wait", "k": "no-kill", "m": "distribution", "M": "clusters",
    "s": "oversubscribe", "O": "overcommit", "B": "extra-node-info", "S": "core-spec", "F": "nodefile",
}  # fmt: skip

_IGNORED_VALUES = (
    "nodes partition account qos constraint nodelist exclude licenses distribution clusters extra-node-info core-spec "
    "nodefile mail-type mail-user reservation tmp export-file hint threads-per-core cores-per-socket sockets-per-node "
    "ntasks-per-core ntasks-per-socket switches profile acctg-freq wckey cluster-constraint network power propagate "
    "time-min gpu-bind gpu-freq mem-bind thread-spec bb bbf delay-boot container mcs-label uid gid mincpus "
    "gpus-per-socket cpus-per-gpu mem-per-gpu ntasks-per-gpu kill-on-invalid-dep batch prefer"
).split()
_IGNORED_FLAGS = (
    "requeue no-requeue quiet verbose wait overcommit contiguous parsable spread-job use-min-nodes reboot test-only "
    "ignore-pbs"
).split()
_IGNORED_MAYBE = "exclusive oversubscribe no-kill get-user-env nice".split()
_REFUSED = {
    "array": "write a flow with a matrix instead",
    "dependency": "write a flow with needs instead",
    "wrap": "a script is given already",
}
_GPU = re.compile(r"(?:[A-Za-z][\w.-]*:)*([0-9]{1,6})|gpu|[A-Za-z][\w.-]*")


@dataclass
class _Values:
    name: str | None = None
    output: str | None = None
    error: str | None = None
    stdin: str | None = None
    folder: str | None = None
    tasks: int | None = None
    tasks_per_node: int | None = None
    cpus_per_task: int = 1
    gpus: int = 0
    gpus_per_task: int = 0
    mem: int | None = None
    mem_per_cpu: int | None = None
    time: int | None = None
    warning: WarningSignal | None = None
    append: bool = False
    begin: float | None = None
    deadline: float | None = None
    hold: bool = False
    priority: int = 0
    comment: str | None = None
    env: tuple[tuple[str, str], ...] = ()


class BatchOptions:
    """Collects the options of all `#SBATCH` lines of a script."""

    def __init__(self, mistakes: Mistakes, now: float) -> None:
        self._mistakes = mistakes
        self._now = now
        self._values = _Values()
        self._ignored: dict[str, None] = {}
        self._place = Point(1, 1)

    def read(self, words: list[str], place: Point) -> None:
        """Take in the words of one line; every mistake is noted at `place`."""
        self._place = place
        rest = list(reversed(words))
        while rest:
            word = rest.pop()
            if word.startswith("--") and len(word) > 2:
                self._long(word[2:], rest)
            elif word.startswith("-") and len(word) > 1 and word != "--":
                self._short(word[1:], rest)
            else:
                self._wrong(f"{shown(word)} is no option", "options begin with -")
                return

    def job(self, spec: JobSpec) -> JobSpec:
        """The job with all that the lines say."""
        said = self._values
        cpus = (said.tasks or said.tasks_per_node or 1) * said.cpus_per_task
        mem = said.mem
        if mem is None and said.mem_per_cpu is not None:
            mem = said.mem_per_cpu * cpus
        gpus = said.gpus or said.gpus_per_task * (said.tasks or 1)
        return replace(
            spec,
            name=spec.name if said.name is None else said.name,
            request=Request(cpus, gpus, mem or None, said.time),
            streams=Streams(said.stdin, said.output, said.error, said.append),
            folder=said.folder,
            env=said.env,
            warning=said.warning,
            hold=said.hold,
            begin_at=said.begin,
            deadline_at=said.deadline,
            priority=said.priority,
            comment=said.comment,
            ignored=tuple(self._ignored),
        )

    def _wrong(self, text: str, hint: str = "") -> None:
        self._mistakes.add(self._place, text, hint)

    def _long(self, text: str, rest: list[str]) -> None:
        name, equals, value = text.partition("=")
        full = _full_name(name)
        if full is None:
            self._wrong(f'unknown option "--{name}"', did_you_mean(f"--{name}", [f"--{one}" for one in LONG]))
            rest.clear()
            return
        takes = LONG[full]
        if takes is Takes.NOTHING and equals:
            self._wrong(f"--{full} takes no value")
        elif takes is Takes.VALUE and not equals:
            if not rest:
                self._wrong(f"--{full} needs a value")
                return
            self._use(full, rest.pop())
        else:
            self._use(full, value)

    def _short(self, text: str, rest: list[str]) -> None:
        full = SHORT.get(text[0])
        if full is None:
            self._wrong(f'unknown option "-{text[0]}"')
            rest.clear()
        elif LONG[full] is not Takes.VALUE:
            self._use(full, "")
            if len(text) > 1:
                self._short(text[1:], rest)
        elif len(text) > 1:
            self._use(full, text[1:])
        elif rest:
            self._use(full, rest.pop())
        else:
            self._wrong(f"-{text[0]} needs a value")

    def _use(self, name: str, value: str) -> None:
        if name in _REFUSED:
            self._wrong(f"--{name} in a script is not supported here", _REFUSED[name])
            return
        use = _USES.get(name)
        if use is None:
            self._ignored[f"--{name}: means nothing on this machine"] = None
            return
        if name == "export" and "ALL" not in value.split(","):
            self._ignored["--export: the job has the whole environment of its submitter all the same"] = None
        try:
            use(self._values, value, self._now)
        except ValueError as error:
            self._wrong(f"--{name}: {error}")


def _full_name(name: str) -> str | None:
    if name in LONG:
        return name
    fitting = [full for full in LONG if full.startswith(name)] if name else []
    return fitting[0] if len(fitting) == 1 else None


def _put(field: str, parse: Callable[[str, float], object]) -> Callable[[_Values, str, float], None]:
    def put(values: _Values, text: str, now: float) -> None:
        setattr(values, field, parse(text, now))

    return put


def _text(text: str, now: float) -> str:
    if not text:
        raise ValueError("the value is empty")
    return text


def _count(what: str, least: int = 1) -> Callable[[str, float], int]:
    return lambda text, now: parse_count(text, what, least)


def _gpus(text: str, now: float) -> int:
    """`2`, `a100:2`, `gpu:a100:2`; without a number it is one."""
    total = 0
    for part in text.split(","):
        match = _GPU.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{text!r} is not a number of gpus: give 2 or a100:2")
        total += int(match[1]) if match[1] else 1
    return total


def _gres(values: _Values, text: str, now: float) -> None:
    named = [part for part in text.split(",") if part.strip().split(":")[0] in ("gpu", "gres/gpu")]
    if named:
        values.gpus = _gpus(",".join(named).replace("gres/", ""), now)


def _open_mode(values: _Values, text: str, now: float) -> None:
    if text not in ("append", "truncate", "a", "t"):
        raise ValueError(f"{text!r} is neither append nor truncate")
    values.append = text[0] == "a"


def _hold(values: _Values, text: str, now: float) -> None:
    values.hold = True


def _export(values: _Values, text: str, now: float) -> None:
    """`ALL,NAME=VALUE`: the job has the submitter's environment anyway; values are set."""
    pairs = [part.partition("=") for part in text.split(",") if "=" in part]
    if any(not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) for name, _, _ in pairs):
        raise ValueError(f"{text!r} has a name that can't be a variable's")
    values.env = tuple((name, value) for name, _, value in pairs)


_USES: dict[str, Callable[[_Values, str, float], None]] = {
    "job-name": _put("name", lambda text, now: clean_name(_text(text, now))),
    "output": _put("output", _text),
    "error": _put("error", _text),
    "input": _put("stdin", _text),
    "chdir": _put("folder", _text),
    "ntasks": _put("tasks", _count("tasks")),
    "ntasks-per-node": _put("tasks_per_node", _count("tasks")),
    "cpus-per-task": _put("cpus_per_task", _count("cpus")),
    "time": _put("time", lambda text, now: parse_time(text)),
    "mem": _put("mem", lambda text, now: parse_mem(text)),
    "mem-per-cpu": _put("mem_per_cpu", lambda text, now: parse_size(text)),
    "gpus": _put("gpus", _gpus),
    "gpus-per-node": _put("gpus", _gpus),
    "gpus-per-task": _put("gpus_per_task", _gpus),
    "gres": _gres,
    "signal": _put("warning", lambda text, now: parse_warning(text, Scope.STEPS)),
    "open-mode": _open_mode,
    "begin": _put("begin", parse_moment),
    "deadline": _put("deadline", parse_moment),
    "hold": _hold,
    "priority": _put("priority", lambda text, now: parse_priority(text)),
    "comment": _put("comment", lambda text, now: text),
    "export": _export,
}

LONG: dict[str, Takes] = (
    dict.fromkeys([*_USES, *_REFUSED, *_IGNORED_VALUES], Takes.VALUE)
    | dict.fromkeys(_IGNORED_FLAGS, Takes.NOTHING)
    | dict.fromkeys(_IGNORED_MAYBE, Takes.MAYBE)
    | {"hold": Takes.NOTHING, "kill-on-invalid-dep": Takes.VALUE}
)
