"""A flow that is built in Python: the same jobs as a YAML file describes, checked by the same code."""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from aver.api.function_call import calls_folder, command_words, fingerprint, pickled_call
from aver.api.run import Run
from aver.calls.files import SAME_FILE, Reference, call_name, write_calls
from aver.client.origin import origin_of
from aver.client.submit import check_key, submit_once
from aver.client.takeover import find_takeover, newest_run
from aver.config import load_config
from aver.durable_files import naming_failures
from aver.errors import UsageError
from aver.home import Home
from aver.model.job import FlowSpec, Submission
from aver.model.notify_target import secret_variables
from aver.model.record import replace
from aver.plan.selection import Selection, select
from aver.protocol.limits import limits_sentence
from aver.spec.files import FolderFiles
from aver.spec.flow.file import parse_flow
from aver.spec.flow.params import ParamValues
from aver.spec.load import load
from aver.spec.mistakes import Mistake, SpecError
from aver.store.read.reader import Reader

FLOWS = "flows"  # whose calls lie together


class _Call(NamedTuple):
    """A function that a job calls, pickled with its arguments."""

    place: int  # of the job in the flow
    job: str
    data: bytes
    fingerprint: str


class FlowJob:
    """A job of a flow that is being built; give it to `needs`."""

    def __init__(self, name: str, flow: Flow | None = None, call: int | None = None) -> None:
        self.name = name
        self._flow = flow
        self._call = call  # of a function: its number in the flow's file of calls

    def __getitem__(self, values: str) -> str:
        """Some members of a matrix: `train["seed=2"]`."""
        return f"{self.name}[{values}]"

    def __repr__(self) -> str:
        return f"<job {self.name} of a flow>"


Needs = FlowJob | str | Sequence["FlowJob | str"] | Mapping[Any, Any]


class Flow:
    """Jobs, what each needs, and what each may use. `folder` is where they run (default: the current one).

    >>> flow = Flow("example")
    >>> prep = flow.job("prep", run="echo prepared")
    >>> total = flow.job("total", fn=sum, args=([1, 2, 3],), needs=prep)
    >>> run = flow.run()
    >>> str(run.state), run.result("total")
    ('COMPLETED', 6)
    """

    def __init__(
        self,
        name: str = "flow",
        *,
        folder: str | os.PathLike[str] | None = None,
        defaults: Mapping[str, object] | None = None,
        max_parallel: int | None = None,
        retry_budget: int | None = None,
        axes: Mapping[str, object] | None = None,
        params: Mapping[str, object] | None = None,
        secrets: Sequence[str] = (),
        engine: str | None = None,
    ) -> None:
        self.name = name
        self._folder = None if folder is None else os.path.abspath(os.fspath(folder))
        self._document: dict[str, object] = {"name": name}
        given = {"defaults": defaults, "max_parallel": max_parallel, "retry_budget": retry_budget, "engine": engine}
        given |= {"axes": axes, "params": params}
        self._document |= {key: value for key, value in given.items() if value is not None}
        self._jobs: list[dict[str, object]] = []
        self._calls: list[_Call] = []
        self._calls_folder = ""
        self._batch = os.urandom(8).hex()  # the name of its file of calls
        self._secrets = tuple(secrets)
        self._file: str | None = None
        self._values = ParamValues()

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        folder: str | os.PathLike[str] | None = None,
        params: Mapping[str, object] | None = None,
        secrets: Sequence[str] = (),
    ) -> Flow:
        """A flow (.yaml, .json) or a batch script; raise UsageError with every mistake. It takes no further jobs.

        `params` sets params of the flow, as `--set` does.
        """
        file = os.path.abspath(os.fspath(path))
        values = ParamValues({name: str(value) for name, value in (params or {}).items()})
        read = load(file, folder=None if folder is None else os.fspath(folder), params=values)
        flow = cls(read.name, folder=folder, secrets=secrets)
        flow._file, flow._values = file, values
        return flow

    def job(
        self,
        name: str,
        run: str | None = None,
        *,
        argv: Sequence[str] | None = None,
        fn: Callable[..., object] | None = None,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
        needs: Needs | None = None,
        if_: str | None = None,
        matrix: Mapping[str, object] | Sequence[str] | None = None,
        cpus: float | None = None,
        gpus: int | None = None,
        mem: str | int | None = None,
        time: str | int | None = None,
        signal: str | None = None,
        kill_wait: str | float | None = None,
        checkpoint: bool | Mapping[str, object] | None = None,
        retry: int | Mapping[str, object] | None = None,
        oom: str | None = None,
        background: bool | None = None,
        generates: str | None = None,
        inputs: str | Sequence[object] | Mapping[str, object] | None = None,
        outputs: str | Sequence[object] | Mapping[str, object] | None = None,
        env: Mapping[str, object] | None = None,
        env_file: str | Sequence[str] | None = None,
        venv: str | None = None,
        conda: str | None = None,
        module: str | Sequence[str] | None = None,
        container: str | Mapping[str, object] | None = None,
        shell: str | Sequence[str] | None = None,
        folder: str | None = None,
        stdin: str | None = None,
        output: str | None = None,
        error: str | None = None,
        append: bool | None = None,
        hold: bool | None = None,
        begin: str | None = None,
        deadline: str | None = None,
        priority: int | None = None,
        comment: str | None = None,
        tags: str | Sequence[str] | None = None,
        pools: str | Sequence[str] | Mapping[str, int] | None = None,
        engine: str | None = None,
        partition: str | None = None,
        account: str | None = None,
        qos: str | None = None,
        nodes: int | str | None = None,
        tasks: int | None = None,
        gres: str | None = None,
        constraint: str | None = None,
        slurm_options: Sequence[str] | None = None,
        requeue: str | bool | None = None,
        srun_termination_signal: str | None = None,
    ) -> FlowJob:
        """Add a job: `run` is text for a shell, `argv` a command without one; all else as in a flow's file.

        `fn` with `args` and `kwargs` is a function that is called instead. Handles of other such jobs among the
        arguments are needs, and stand for what those return. `run.result(name)` is what it returned.

        Nothing else is checked before `check`, `submit` or `run`, which say all mistakes at once.
        """
        if self._file is not None:
            raise UsageError(f"the flow of {self._file} takes no further jobs; build one with Flow()")
        if sum(one is not None for one in (run, argv, fn)) > 1:
            raise UsageError(f"job {name!r} has two of run, argv and fn; give one of them")
        call: int | None = None
        if fn is not None:
            used = self._add_call(name, fn, args, kwargs or {}, engine)
            call = len(self._calls)
            needs = _with_needs(needs, used)
        given: dict[str, object] = {
            "run": run if argv is None else [str(word) for word in argv],
            "needs": None if needs is None else _needs(needs),
            "if": if_, "matrix": matrix, "cpus": cpus, "gpus": gpus, "mem": mem, "time": time, "signal": signal,
            "kill_wait": kill_wait, "checkpoint": checkpoint, "retry": retry, "oom": oom, "background": background,
            "generates": generates, "inputs": inputs, "outputs": outputs, "env": env, "shell": shell,
            "folder": folder, "stdin": stdin, "output": output, "error": error, "append": append, "hold": hold,
            "begin": begin, "deadline": deadline, "priority": priority, "comment": comment,
            "tags": tags, "pools": pools, "env_file": env_file, "venv": venv, "conda": conda, "module": module,
            "container": container,
            "engine": engine, "partition": partition, "account": account, "qos": qos, "nodes": nodes, "tasks": tasks,
            "gres": gres, "constraint": constraint, "slurm_options": slurm_options, "requeue": requeue,
            "srun_termination_signal": srun_termination_signal,
        }  # fmt: skip
        self._jobs.append({"name": name} | {key: value for key, value in given.items() if value is not None})
        return FlowJob(name, self, call)

    def _add_call(
        self,
        name: str,
        fn: Callable[..., object],
        args: Sequence[object],
        kwargs: Mapping[str, object],
        engine: str | None,
    ) -> list[FlowJob]:
        """Keep a call until the flow is submitted; return whose results it uses."""
        used: dict[str, FlowJob] = {}

        def refer(value: object) -> Reference | None:
            if not isinstance(value, FlowJob):
                return None
            if value._call is None or value._flow is not self:
                raise UsageError(f"{value!r} is not a function of this flow: as an argument it has no result")
            used[value.name] = value
            return SAME_FILE, str(value._call)

        data = pickled_call(fn, args, kwargs, refer)
        if not self._calls_folder:
            chosen = engine or str(self._document.get("engine") or load_config().engine)
            self._calls_folder = calls_folder(Home.find(), chosen, FLOWS)
        self._calls.append(_Call(len(self._jobs), name, data, fingerprint(fn, args, kwargs, refer)))
        return list(used.values())

    @property
    def _calls_path(self) -> str:
        return os.path.join(self._calls_folder, f"{self._batch}.calls")

    def _write_calls(self, key: str | None) -> None:
        """The calls are durable in their file when this returns. With a key it is the file of all such submissions."""
        if key is not None:
            parts = (key, [(call.job, call.fingerprint) for call in self._calls])
            self._batch = hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
        if os.path.exists(self._calls_path):
            if key is not None:
                return
            raise UsageError(f"flow {self.name!r} calls functions and was submitted: build it again")
        self.check()
        with naming_failures(self._calls_path):
            write_calls(
                self._calls_path,
                {call_name(self._calls_path, number): call.data for number, call in enumerate(self._calls, 1)},
            )

    def _job_documents(self) -> list[dict[str, object]]:
        """The jobs, those of calls with the commands that make them."""
        jobs = list(self._jobs)
        path = self._calls_path
        for number, call in enumerate(self._calls, 1):
            jobs[call.place] = {**jobs[call.place], "run": command_words(path, call_name(path, number))}
        return jobs

    def check(self) -> FlowSpec:
        """The flow as it would be submitted; raise UsageError with every mistake. Nothing is run."""
        if self._file is not None:
            return load(self._file, folder=self._folder, params=self._values)
        try:
            text = json.dumps({**self._document, "jobs": self._job_documents()}, default=_plain)
        except (TypeError, ValueError) as error:
            raise UsageError(f"flow {self.name!r}: {error}") from None
        try:
            return parse_flow(
                text,
                f"flow {self.name!r}",
                now=time.time(),
                name=self.name,
                is_json=True,
                files=FolderFiles(self._folder),
            )
        except SpecError as error:  # there is no file: lines and columns would say nothing
            raise SpecError(Mistake(one.file, 0, 0, one.text, one.hint) for one in error.mistakes) from None

    def submit(
        self,
        *,
        max_parallel: int | None = None,
        only: Sequence[str] = (),
        tag: Sequence[str] = (),
        until: Sequence[str] = (),
        from_: Sequence[str] = (),
        skip: Sequence[str] = (),
        resume: bool = False,
        since: int | None = None,
        key: str | None = None,
    ) -> Run:
        """Run it in the background; it is durable when this returns.

        The same `key` with the same flow is the same run, however often it is submitted; another flow is refused.
        `max_parallel` is how many of its jobs may be active at once. `only`, `until`, `from_` and `skip` choose jobs,
        as the options of `aver run` do. With `resume`, what the newest run of this flow has done already is taken
        over, with `since`, from the run of that number.
        """
        if max_parallel is not None and max_parallel < 1:
            raise UsageError(f"max_parallel is {max_parallel}; the least is 1")
        if key is not None:
            check_key(key)
        if self._calls:
            self._write_calls(key)
        selection = Selection(tuple(only), tuple(until), tuple(from_), tuple(skip), tuple(tag))
        config = load_config()
        flow = select(self.check(), selection)
        hidden = secret_variables(rule.to for rule in flow.notify)
        origin = origin_of(("python",), (*self._secrets, *config.secrets, *hidden), self._folder, self._file)
        submission = Submission(
            flow,
            origin,
            engine=config.engine,
            host=config.slurm.host,
            max_parallel=max_parallel,
            key=key or "",
        )
        environment = [f"{name}={value}" for name, value in os.environ.items()]
        home = Home.find()
        if resume or since is not None:
            submission = _resumed(home, submission, since, environment)
        reply = submit_once(home, submission, environment)
        if reply.lower_limits:
            warnings.warn(limits_sentence(reply.lower_limits), stacklevel=2)
        return Run(reply.run, home)

    def run(
        self,
        timeout: float | None = None,
        *,
        max_parallel: int | None = None,
        only: Sequence[str] = (),
        tag: Sequence[str] = (),
        until: Sequence[str] = (),
        from_: Sequence[str] = (),
        skip: Sequence[str] = (),
        resume: bool = False,
        since: int | None = None,
        key: str | None = None,
    ) -> Run:
        """Submit and wait; TimeoutError after `timeout` seconds, and nothing is cancelled."""
        run = self.submit(
            max_parallel=max_parallel,
            only=only,
            tag=tag,
            until=until,
            from_=from_,
            skip=skip,
            resume=resume,
            since=since,
            key=key,
        )
        run.wait(timeout)
        return run


def _resumed(home: Home, submission: Submission, since: int | None, environment: Sequence[str]) -> Submission:
    """The submission with what it takes over from this run; None: from the newest of its flow, if there is one."""
    reader = Reader.open(home.database)
    if reader is None:
        if since is not None:
            raise UsageError(f"run {since} does not exist")
        return submission
    with reader:
        number = newest_run(reader, submission) if since is None else since
        if number is None:
            return submission
        takeover = find_takeover(home, reader, submission, number, environment)
    return replace(submission, since=takeover.since, taken=takeover.taken)


def _with_needs(needs: Needs | None, more: Sequence[FlowJob]) -> Needs | None:
    """The needs that were given, and these."""
    if not more:
        return needs
    match needs:
        case None:
            return list(more)
        case Mapping():
            return {**dict.fromkeys(more, "success"), **needs}
        case FlowJob() | str():
            return [needs, *more]
        case _:
            return [*needs, *more]


def _needs(needs: Needs) -> object:
    match needs:
        case FlowJob(name=name):
            return name
        case str():
            return needs
        case Mapping():
            return {_key(key): _needs(value) if isinstance(value, (list, tuple)) else _outcome(value)
                    for key, value in needs.items()}  # fmt: skip
        case _:
            return [_needs(one) for one in needs]


def _key(key: object) -> str:
    return key.name if isinstance(key, FlowJob) else str(key)


def _outcome(value: object) -> object:
    return value.name if isinstance(value, FlowJob) else value


def _plain(value: object) -> object:
    """What JSON has no word for: ranges and other sequences are lists, paths are text."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (range, set, frozenset)):
        return list(value)
    raise TypeError(f"{value!r} can't stand in a flow")
