"""The flags that ask for resources and the like, shared by `run`, `submit` and `#SBATCH` lines.

What a flag does not say is None and leaves the job as it is. A limit of 0 lifts the limit.
Texts are read with one-sentence errors that name the flag.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from aver.errors import UsageError
from aver.model.job import JobSpec, Request, Scope, Streams, WarningSignal
from aver.model.record import Record, replace
from aver.model.units import parse_count, parse_cpus, parse_size, parse_time
from aver.printable import printable
from aver.spec.clock import parse_moment
from aver.spec.times import parse_kill_wait, parse_warning

MAX_NAME = 255
T = TypeVar("T")


class Overrides(Record):
    cpus: int | float | None = None
    gpus: int | None = None
    mem_bytes: int | None = None  # 0: no limit
    time_s: int | None = None  # 0: no limit
    warning: WarningSignal | None = None
    kill_wait_s: float | None = None
    name: str | None = None
    output: str | None = None
    error: str | None = None
    stdin: str | None = None
    folder: str | None = None
    append: bool | None = None
    hold: bool | None = None
    begin_at: float | None = None
    deadline_at: float | None = None
    priority: int | None = None
    comment: str | None = None
    oom_warns: bool | None = None

    def given(self) -> tuple[str, ...]:
        """The names of the fields that say something."""
        return tuple(name for name in self.__struct_fields__ if getattr(self, name) is not None)


FLAGS = {
    "mem_bytes": "--mem",
    "time_s": "--time",
    "warning": "--signal",
    "kill_wait_s": "--kill-wait",
    "begin_at": "--begin",
    "deadline_at": "--deadline",
    "oom_warns": "--oom",
}


def flag_of(field_name: str) -> str:
    """The flag that sets a field of Overrides."""
    return FLAGS.get(field_name, f"--{field_name}")


def parse_overrides(
    *,
    now: float,
    cpus: str | None = None,
    gpus: str | None = None,
    mem: str | None = None,
    time: str | None = None,
    signal: str | None = None,
    kill_wait: str | None = None,
    name: str | None = None,
    output: str | None = None,
    error: str | None = None,
    stdin: str | None = None,
    folder: str | None = None,
    append: bool | None = None,
    hold: bool | None = None,
    begin: str | None = None,
    deadline: str | None = None,
    priority: str | None = None,
    comment: str | None = None,
    oom: str | None = None,
) -> Overrides:
    """Read the texts of the flags; raise UsageError in one sentence that names the flag."""
    return Overrides(
        cpus=_read("--cpus", cpus, parse_cpus),
        gpus=_read("--gpus", gpus, lambda text: parse_count(text, "gpus")),
        mem_bytes=_read("--mem", mem, parse_mem),
        time_s=_read("--time", time, lambda text: parse_time(text) or 0),
        warning=_read("--signal", signal, lambda text: parse_warning(text, Scope.PROGRAM)),
        kill_wait_s=_read("--kill-wait", kill_wait, parse_kill_wait),
        name=_read("--name", name, _name),
        output=_read("--output", output, _path),
        error=_read("--error", error, _path),
        stdin=_read("--stdin", stdin, _path),
        folder=_read("--folder", folder, _path),
        append=append or None,
        hold=hold or None,
        begin_at=_read("--begin", begin, lambda text: parse_moment(text, now)),
        deadline_at=_read("--deadline", deadline, lambda text: _future(text, now)),
        priority=_read("--priority", priority, parse_priority),
        comment=comment,
        oom_warns=_read("--oom", oom, _oom),
    )


def apply(spec: JobSpec, overrides: Overrides) -> JobSpec:
    """The job as the flags want it."""
    if overrides == Overrides():
        return spec
    request, streams = spec.request, spec.streams
    return replace(
        spec,
        name=_or(overrides.name, spec.name),
        request=Request(
            cpus=_or(overrides.cpus, request.cpus),
            gpus=_or(overrides.gpus, request.gpus),
            mem_bytes=request.mem_bytes if overrides.mem_bytes is None else overrides.mem_bytes or None,
            time_s=request.time_s if overrides.time_s is None else overrides.time_s or None,
        ),
        streams=Streams(
            stdin=_or(overrides.stdin, streams.stdin),
            stdout=_or(overrides.output, streams.stdout),
            stderr=_or(overrides.error, streams.stderr),
            append=_or(overrides.append, streams.append),
        ),
        folder=_or(overrides.folder, spec.folder),
        warning=_or(overrides.warning, spec.warning),
        kill_wait_s=_or(overrides.kill_wait_s, spec.kill_wait_s),
        hold=_or(overrides.hold, spec.hold),
        begin_at=_or(overrides.begin_at, spec.begin_at),
        deadline_at=_or(overrides.deadline_at, spec.deadline_at),
        priority=_or(overrides.priority, spec.priority),
        comment=_or(overrides.comment, spec.comment),
        oom_warns=_or(overrides.oom_warns, spec.oom_warns),
    )


def clean_name(text: str) -> str:
    """A job's name made fit for every output: control characters and non-UTF-8 bytes escaped, cut at 255."""
    return printable(text)[:MAX_NAME]


def parse_mem(text: str) -> int:
    """Bytes; 0 is no limit, as `--mem=0` in Slurm."""
    return 0 if text.strip() == "0" else parse_size(text)


def parse_priority(text: str) -> int:
    word = text.strip()
    digits = word.lstrip("-+")
    if not (digits.isascii() and digits.isdigit() and len(word) <= 10 and abs(int(word)) < 2**31):
        raise ValueError(f"{text!r} is not a priority: give a whole number, such as 10 or -5")
    return int(word)


def _read(flag: str, text: str | None, parse: Callable[[str], T]) -> T | None:
    if text is None:
        return None
    try:
        return parse(text)
    except ValueError as error:
        raise UsageError(f"{flag}: {error}") from None


def _name(text: str) -> str:
    if not text.strip():
        raise ValueError("a name can't be empty")
    return clean_name(text)


def _path(text: str) -> str:
    if not text or "\0" in text:
        raise ValueError("a file name can't be empty or contain a NUL")
    return text


def _future(text: str, now: float) -> float:
    moment = parse_moment(text, now)
    if moment <= now:
        raise ValueError(f"{text!r} is in the past")
    return moment


def _oom(text: str) -> bool:
    if text not in ("warn", "fail"):
        raise ValueError(f"{text!r} is neither warn nor fail")
    return text == "warn"


def _or(said: T | None, otherwise: T) -> T:
    return otherwise if said is None else said
