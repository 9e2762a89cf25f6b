"""What `import aver` gives: build a flow, run it, and read its verdicts.

The same flow as a YAML file describes, checked by the same code; the same verdict objects as
every other surface shows. Reads go to the store, writes through the coordinator. Nothing is
kept here: two `Run(3)` in two processes say the same.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from aver.client.changes import Cause
from aver.client.job_files import JobFiles, Which, job_files
from aver.client.origin import origin_of, user_name
from aver.client.reinit import compare
from aver.config import load_config
from aver.errors import UnreachableError, UsageError
from aver.home import Home
from aver.model.codec import encode
from aver.model.evidence import Verdict
from aver.model.exit import ExitStatus
from aver.model.job import FlowSpec, JobSpec, Submission
from aver.model.states import State
from aver.plan.address import glob_pattern, parse_address
from aver.plan.matrix import member_at
from aver.protocol.client import Client
from aver.report.results import Result, lines_of, result_of
from aver.report.usage import RunUse, run_use
from aver.spec.flow.file import parse_flow
from aver.spec.load import load
from aver.spec.mistakes import Mistake, SpecError
from aver.store.read.reader import Reader
from aver.store.read.rows import AttemptRow, JobRow, RunRow
from aver.store.read.step_warnings import step_warnings_of_run
from aver.store.secrets import load_masking

__all__ = ["Flow", "FlowJob", "Job", "Run"]

RECONNECTS = 5  # in a row: a coordinator that dies each time is not waited for


class FlowJob:
    """A job of a flow that is being built; give it to `needs`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, values: str) -> str:
        """Some members of a matrix: `train["seed=2"]`."""
        return f"{self.name}[{values}]"

    def __repr__(self) -> str:
        return f"<job {self.name} of a flow>"


Needs = FlowJob | str | Sequence["FlowJob | str"] | Mapping[Any, Any]


class Flow:
    """Jobs, what each needs, and what each may use. `folder` is where they run (the current one without it)."""

    def __init__(
        self,
        name: str = "flow",
        *,
        folder: str | os.PathLike[str] | None = None,
        defaults: Mapping[str, object] | None = None,
        max_parallel: int | None = None,
        retry_budget: int | None = None,
        secrets: Sequence[str] = (),
        engine: str | None = None,
    ) -> None:
        self.name = name
        self._folder = None if folder is None else os.path.abspath(os.fspath(folder))
        self._document: dict[str, object] = {"name": name}
        given = {"defaults": defaults, "max_parallel": max_parallel, "retry_budget": retry_budget, "engine": engine}
        self._document |= {key: value for key, value in given.items() if value is not None}
        self._jobs: list[dict[str, object]] = []
        self._secrets = tuple(secrets)
        self._file: str | None = None

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        folder: str | os.PathLike[str] | None = None,
        secrets: Sequence[str] = (),
    ) -> Flow:
        """A flow (.yaml, .json) or a batch script; raise UsageError with every mistake. It takes no further jobs."""
        file = os.path.abspath(os.fspath(path))
        flow = cls(load(file).name, folder=folder, secrets=secrets)
        flow._file = file
        return flow

    def job(
        self,
        name: str,
        run: str | None = None,
        *,
        argv: Sequence[str] | None = None,
        needs: Needs | None = None,
        if_: str | None = None,
        matrix: Mapping[str, object] | None = None,
        cpus: int | None = None,
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
        inputs: str | Sequence[str] | None = None,
        outputs: str | Sequence[str] | None = None,
        env: Mapping[str, object] | None = None,
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
        engine: str | None = None,
        partition: str | None = None,
        account: str | None = None,
        qos: str | None = None,
        nodes: int | str | None = None,
        tasks: int | None = None,
        gres: str | None = None,
        constraint: str | None = None,
        slurm_options: Sequence[str] | None = None,
        requeue: str | None = None,
        srun_termination_signal: str | None = None,
    ) -> FlowJob:
        """Add a job: `run` is text for a shell, `argv` a command without one; all else as in a flow's file.

        Nothing is checked before `check`, `submit` or `run`, which say all mistakes at once.
        """
        if self._file is not None:
            raise UsageError(f"the flow of {self._file} takes no further jobs; build one with Flow()")
        if run is not None and argv is not None:
            raise UsageError(f"job {name!r} has both run and argv; give one of them")
        given: dict[str, object] = {
            "run": run if argv is None else [str(word) for word in argv],
            "needs": None if needs is None else _needs(needs),
            "if": if_, "matrix": matrix, "cpus": cpus, "gpus": gpus, "mem": mem, "time": time, "signal": signal,
            "kill_wait": kill_wait, "checkpoint": checkpoint, "retry": retry, "oom": oom, "background": background,
            "generates": generates, "inputs": inputs, "outputs": outputs, "env": env, "shell": shell,
            "folder": folder, "stdin": stdin, "output": output, "error": error, "append": append, "hold": hold,
            "begin": begin, "deadline": deadline, "priority": priority, "comment": comment,
            "engine": engine, "partition": partition, "account": account, "qos": qos, "nodes": nodes, "tasks": tasks,
            "gres": gres, "constraint": constraint, "slurm_options": slurm_options, "requeue": requeue,
            "srun_termination_signal": srun_termination_signal,
        }  # fmt: skip
        self._jobs.append({"name": name} | {key: value for key, value in given.items() if value is not None})
        return FlowJob(name)

    def check(self) -> FlowSpec:
        """The flow as it would be submitted; raise UsageError with every mistake. Nothing is run."""
        if self._file is not None:
            return load(self._file)
        try:
            text = json.dumps({**self._document, "jobs": self._jobs}, default=_plain)
        except (TypeError, ValueError) as error:
            raise UsageError(f"flow {self.name!r}: {error}") from None
        try:
            return parse_flow(text, f"flow {self.name!r}", now=time.time(), name=self.name, is_json=True)
        except SpecError as error:  # there is no file: lines and columns would say nothing
            raise SpecError(Mistake(one.file, 0, 0, one.text, one.hint) for one in error.mistakes) from None

    def submit(self) -> Run:
        """Run it in the background; it is durable when this returns."""
        config = load_config()
        origin = origin_of(("python",), (*self._secrets, *config.secrets), self._folder, self._file)
        submission = Submission(self.check(), origin, engine=config.engine, host=config.slurm.host)
        environment = [f"{name}={value}" for name, value in os.environ.items()]
        home = Home.find()
        client = Client.connect(home)
        try:
            reply = client.call("submit", submission=encode(submission), env=environment)
        finally:
            client.close()
        return Run(int(reply["run"]), home)

    def run(self, timeout: float | None = None) -> Run:
        """Submit and wait; TimeoutError after `timeout` seconds, and nothing is cancelled."""
        run = self.submit()
        run.wait(timeout)
        return run


class _Stored:
    """What is read from one home's store."""

    def __init__(self, home: Home | None = None) -> None:
        self._home = home or Home.find()

    def _reader(self) -> Reader:
        self._home.check()
        reader = Reader.open(self._home.database)
        if reader is None:
            raise UsageError(f"there are no jobs in {self._home.path} yet")
        return reader

    def _call(self, op: str, **arguments: object) -> dict[str, Any]:
        client = Client.connect(self._home)
        try:
            return client.call(op, **arguments, by=user_name())
        finally:
            client.close()

    def _wait(self, number: int, timeout: float | None) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        failures = 0
        while True:
            try:
                client = Client.connect(self._home)
                try:
                    remaining = None if deadline is None else max(0.0, deadline - time.monotonic())
                    for _ in client.watch([number], remaining):
                        failures = 0
                    return
                finally:
                    client.close()
            except UnreachableError:  # it ended while this waited: another one takes up where it was
                failures += 1
                if failures > RECONNECTS:
                    raise
            except TimeoutError:
                raise TimeoutError(f"{number} is not settled after {timeout:g} s; it goes on") from None


class Run(_Stored):
    """One execution of a flow; `Run(3)` is the one with that number, whoever submitted it."""

    def __init__(self, number: int, home: Home | None = None) -> None:
        super().__init__(home)
        self.number = number

    @property
    def state(self) -> State:
        return self._row().state

    @property
    def round(self) -> int:
        """1, and one more for each time that it was continued."""
        return self._row().round

    @property
    def jobs(self) -> list[Job]:
        """All of its jobs, generated ones included, by number."""
        with self._reader() as reader:
            return [Job(row.id, self._home) for row in reader.jobs(self.number)]

    def __getitem__(self, name: str) -> Job:
        """The job of that name or address, such as `train[seed=2]`; KeyError if there is none, or more than one."""
        with self._reader() as reader:
            rows = reader.find(name, self.number) or [row for row in reader.jobs(self.number) if _fits(name, row.name)]
        if len(rows) != 1:
            what = f"{len(rows)} jobs" if rows else "no job"
            raise KeyError(f"run {self.number} has {what} called {name!r}")
        return Job(rows[0].id, self._home)

    def __iter__(self) -> Iterator[Job]:
        return iter(self.jobs)

    def __len__(self) -> int:
        return self._row().jobs

    def wait(self, timeout: float | None = None) -> State:
        """Wait until all of it is settled, background jobs too, and return its state; TimeoutError cancels nothing."""
        self._wait(self.number, timeout)
        state = self.state
        return state if state.is_settled else self.wait(timeout)  # somebody ran it again meanwhile

    def cancel(self, *, now: bool = False) -> None:
        """End what runs, and start nothing more but finishers (`if: always`); with `now` not even those."""
        self._call("cancel", ids=[self.number], signal=None, now=now)

    def retry(self, *names: str) -> None:
        """Run failed, lost and skipped jobs again, or those named; finished work is not repeated."""
        jobs = [self[name].number for name in names] or None
        self._call("retry", run=self.number, jobs=jobs)

    def reinit(
        self, flow: Flow | None = None, *, inherit: Sequence[str] = (), dry_run: bool = False
    ) -> tuple[Cause, ...]:
        """Run jobs again whose inputs, command or environment changed or whose outputs are missing, and all below.

        Returns each with its cause; with `dry_run` nothing is run. `flow` is how it is now; without it the file that
        the run came from is read again, if it came from one. `inherit` names variables to take from our environment.
        """
        with self._reader() as reader:
            submission = reader.submission(self.number)
            if submission is None:
                raise UsageError(f"there is no run {self.number}")
            file = submission.origin.file
            now = flow.check() if flow is not None else load(file) if file and os.path.exists(file) else None
            reinit = compare(self._home, reader, self.number, now, inherit, os.environ)
        if reinit.changes.causes and not dry_run:
            self._call("reinit", **reinit.arguments())
        return reinit.changes.causes

    def results(self) -> list[Result]:
        """How each attempt of each job ended and what it used, failed jobs first; None is not known."""
        self._row()
        with self._reader() as reader:
            warned = step_warnings_of_run(reader, self.number)
            return [result_of(line, warned) for line in lines_of(reader.outcomes(self.number))]

    def usage(self) -> RunUse:
        """What was asked for and used, by group and by job, of the newest attempt of each job that has ended."""
        self._row()
        with self._reader() as reader:
            return run_use(reader.outcomes(self.number), reader.request)

    def _row(self) -> RunRow:
        with self._reader() as reader:
            row = reader.run(self.number)
        if row is None:
            raise UsageError(f"there is no run {self.number}")
        return row

    def __repr__(self) -> str:
        return f"<run {self.number}>"


class Job(_Stored):
    """One job of a run. Each property is read when it is asked for."""

    def __init__(self, number: int, home: Home | None = None) -> None:
        super().__init__(home)
        self.number = number

    @property
    def name(self) -> str:
        return self._row().name

    @property
    def state(self) -> State:
        return self._row().state

    @property
    def verdict(self) -> Verdict | None:
        """How it ended and who says so; None until it is settled."""
        return self._row().verdict

    @property
    def exit(self) -> ExitStatus | None:
        """None is unknown, or not ended yet; never 0."""
        return self._row().exit

    @property
    def reason(self) -> str:
        return self._row().reason

    @property
    def attempts(self) -> list[AttemptRow]:
        """All of its attempts, each with its own verdict."""
        with self._reader() as reader:
            return reader.attempts(self.number)

    def log(self, attempt: int | None = None) -> str:
        """What an attempt (the newest) wrote to its output so far, with secrets masked; empty if it never began."""
        path = self._files(attempt).stdout
        with self._reader() as reader:
            run = self._row().run
            origin = reader.origin(run)
        masking = load_masking(os.fspath(self._home.path), run, () if origin is None else origin.secrets)
        try:
            return masking.whole(Path(path).read_bytes()).decode("utf-8", "replace")
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise UsageError(f"can't read {path}: {error.strerror}") from None

    def wait(self, timeout: float | None = None) -> Verdict:
        """Wait until it is settled and return its verdict; TimeoutError cancels nothing."""
        self._wait(self.number, timeout)
        verdict = self.verdict
        return verdict if verdict is not None else self.wait(timeout)

    def cancel(self) -> None:
        """A running job gets TERM and, after its kill wait, KILL; a pending one never starts."""
        self._call("cancel", ids=[self.number], signal=None, now=False)

    def accept(self) -> None:
        """State that an UNVERIFIED job succeeded; who says so is kept."""
        self._call("accept", ids=[self.number])

    def _row(self) -> JobRow:
        with self._reader() as reader:
            row = reader.job(self.number)
        if row is None:
            raise UsageError(f"there is no job {self.number}")
        return row

    def _files(self, attempt: int | None) -> JobFiles:
        with self._reader() as reader:
            row = self._row()
            submission = reader.submission(row.run)
            assert submission is not None
            batches = {batch.first_job: batch.flow for batch in reader.generated(row.run)}
        spec: JobSpec = batches.get(row.first_job, submission.flow).jobs[row.spec]
        values = member_at(spec, row.member).values
        which = Which(row.run, row.id, row.name, attempt or max(1, row.attempt), values)
        return job_files(submission, spec, which, submission.flow.is_single)

    def __repr__(self) -> str:
        return f"<job {self.number}>"


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


def _fits(address: str, name: str) -> bool:
    wanted, found = parse_address(address), parse_address(name)
    values = dict(found.values)
    return glob_pattern(wanted.name).fullmatch(found.name) is not None and all(
        values.get(axis) == value for axis, value in wanted.values
    )
