"""A job while it is read: what the defaults said, then what it says itself, and how a key's value gets there.

A value that is wrong is noted and left out, and reading goes on: nothing of it is in the draft.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from aver.model.job import (
    CheckpointRule,
    Command,
    Condition,
    Container,
    JobSpec,
    Matrix,
    PoolShares,
    Request,
    RetryRule,
    Setup,
    Shell,
    Streams,
    WarningSignal,
)
from aver.model.record import replace
from aver.spec.document import Entry
from aver.spec.flow.needs import NO_NEEDS, ReadNeeds
from aver.spec.values import Reader

DEFAULT_SHELL = ("bash", "-eo", "pipefail")

T = TypeVar("T")


class Draft:
    """What has been read of a job so far."""

    run: str | tuple[str, ...] | None = None
    read_needs: ReadNeeds = NO_NEEDS
    condition: Condition = Condition.NEEDS
    matrix: Matrix | None = None
    cpus: int | float = 1
    gpus: int = 0
    mem: int | None = None
    time: int | None = None
    signal: WarningSignal | None = None
    kill_wait: float | None = None
    checkpoint: CheckpointRule | None = None
    retry: RetryRule | None = None
    oom_warns: bool = False
    background: bool = False
    generates: str | None = None
    inputs: tuple[str, ...] = ()
    optional_inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    optional_outputs: tuple[str, ...] = ()
    clean: bool = False
    env: tuple[tuple[str, str], ...] = ()
    shell: tuple[str, ...] = DEFAULT_SHELL
    folder: str | None = None
    stdin: str | None = None
    output: str | None = None
    error: str | None = None
    append: bool = False
    hold: bool = False
    begin: float | None = None
    deadline: float | None = None
    priority: int = 0
    comment: str | None = None
    ignored: tuple[str, ...] = ()
    engine: str | None = None
    slurm_options: tuple[str, ...] = ()
    slurm_requeues: bool = False
    requeue: bool | None = None
    step_warning: WarningSignal | None = None
    host: str | None = None
    tasks: int | None = None
    params: tuple[tuple[str, str], ...] = ()
    tags: tuple[str, ...] = ()
    pools: PoolShares = ()
    file_env: tuple[tuple[str, str], ...] = ()  # of env_file
    module: tuple[str, ...] = ()
    conda: str | None = None
    venv: str | None = None
    container: Container | None = None

    def template(self) -> JobSpec | None:
        """What jobs that are generated later have by default; where they run is said by the job that makes them."""
        spec = replace(self.spec("", Shell("", self.shell)), engine=None, host=None)
        return None if spec == EMPTY else spec

    @classmethod
    def of(cls, template: JobSpec | None) -> Draft:
        """The draft that has this template."""
        draft = cls()
        if template is None:
            return draft
        assert isinstance(template.command, Shell)
        words = template.slurm_options
        tasks = [int(word.removeprefix("--ntasks=")) for word in words if word.startswith("--ntasks=")]
        request, streams = template.request, template.streams
        draft.tasks = tasks[-1] if tasks else None
        draft.cpus = request.cpus // tasks[-1] if tasks else request.cpus
        draft.slurm_options = words[:-2] if tasks else words
        draft.gpus, draft.mem, draft.time = request.gpus, request.mem_bytes, request.time_s
        draft.stdin, draft.output, draft.error, draft.append = (
            streams.stdin, streams.stdout, streams.stderr, streams.append
        )  # fmt: skip
        draft.shell, draft.signal, draft.kill_wait = template.command.shell, template.warning, template.kill_wait_s
        setup = template.setup
        draft.module, draft.conda, draft.venv = setup.modules, setup.conda, setup.venv
        draft.container = setup.container
        draft.begin, draft.deadline = template.begin_at, template.deadline_at
        for name in _SAME:
            setattr(draft, name, getattr(template, name))
        return draft

    def spec(self, name: str, command: Command) -> JobSpec:
        each = Request(self.cpus, self.gpus, self.mem, self.time)
        tasks = () if self.tasks is None else (f"--ntasks={self.tasks}", f"--cpus-per-task={each.whole_cpus}")
        return JobSpec(
            name=name,
            command=command,
            request=each if self.tasks is None else replace(each, cpus=each.whole_cpus * self.tasks),
            needs=self.read_needs.needs,
            condition=self.condition,
            matrix=self.matrix,
            folder=self.folder,
            streams=Streams(self.stdin, self.output, self.error, self.append),
            env=tuple({**dict(self.file_env), **dict(self.env)}.items()),
            warning=self.signal,
            kill_wait_s=self.kill_wait,
            retry=self.retry,
            checkpoint=self.checkpoint,
            oom_warns=self.oom_warns,
            background=self.background,
            generates=self.generates,
            inputs=self.inputs,
            optional_inputs=self.optional_inputs,
            outputs=self.outputs,
            optional_outputs=self.optional_outputs,
            clean=self.clean,
            hold=self.hold,
            begin_at=self.begin,
            deadline_at=self.deadline,
            priority=self.priority,
            comment=self.comment,
            ignored=self.ignored,
            engine=self.engine,
            slurm_options=(*self.slurm_options, *tasks),
            slurm_requeues=self.slurm_requeues,
            requeue=self.requeue,
            step_warning=self.step_warning,
            host=self.host,
            params=self.params,
            tags=self.tags,
            pools=self.pools,
            setup=Setup(self.module, self.conda, self.venv, self.container),
        )


_SAME = (
    "checkpoint", "comment", "env", "folder", "hold", "ignored", "oom_warns", "priority", "requeue", "retry",
    "slurm_requeues", "pools", "step_warning", "tags",
)  # fmt: skip
EMPTY = replace(Draft().spec("", Shell("", DEFAULT_SHELL)), engine=None, host=None)

Put = Callable[[Draft, Entry, Reader], None]  # reads one key's value into the draft


def simple(name: str, read: Callable[[Reader, Entry], Any]) -> Put:
    """A key whose value goes to the draft's attribute of the same name; the default stays after a mistake."""

    def put(draft: Draft, entry: Entry, reader: Reader) -> None:
        before = len(reader.mistakes)
        value = read(reader, entry)
        if len(reader.mistakes) == before:
            setattr(draft, name, value)

    return put


def parsed(entry: Entry, reader: Reader, parse: Callable[[str], T]) -> T | None:
    """The value, or None where it is noted what is wrong with it."""
    text = reader.text(entry)
    if text is None:
        return None
    try:
        return parse(text)
    except ValueError as error:
        reader.wrong(entry, f"is wrong: {error}")
        return None
