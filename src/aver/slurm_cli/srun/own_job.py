"""srun outside of a job: a job of its own whose script is the same srun, with our standard streams.

Both end together: when we are killed, the job is cancelled; when it ends, we exit as its step ended.
"""

from __future__ import annotations

import os
import select
import signal
import time
from typing import Any

from aver.client.batch_submission import check_node, refused, tmp_bytes
from aver.client.origin import origin_of, user_name
from aver.client.slurm_bin import install
from aver.errors import AverError, UsageError
from aver.home import Home
from aver.model.codec import encode
from aver.model.job import Afters, Argv, FlowSpec, JobSpec, Request, Submission
from aver.model.record import replace
from aver.model.slurm_options import SlurmKind
from aver.model.states import State
from aver.model.units import parse_size, parse_time
from aver.protocol import fast_client
from aver.protocol.limits import limits_sentence
from aver.slurm_cli.output import say
from aver.slurm_cli.settings import node_name, refuses_unknown_names, secret_names, shown_words
from aver.slurm_cli.srun.options import (
    EXPORT_VARIABLE,
    NOT_AVAILABLE,
    TABLE,
    BadSpecification,
    Options,
    leaves_tasks_open,
    more_nodes,
    number,
    patience_s,
    task_count,
)  # fmt: skip
from aver.spec.clock import parse_moment
from aver.spec.getopt import BadOption, parse
from aver.spec.sbatch.call import BatchCall, BatchRefused, check_names
from aver.spec.sbatch.dependency import parse_dependency
from aver.spec.sbatch.options import Values
from aver.store.read.reader import Reader

PENDING_NOTICE_S = 1.0
LOOK_S = 0.2
_OF_THE_JOB = (
    "partition", "account", "qos", "constraint", "reservation", "nodelist", "exclude", "licenses", "wckey", "nice",
    "begin", "distribution", "exclusive", "gpus", "gpus-per-node", "gpus-per-task", "gres", "tres-per-task", "deadline",
    "priority", "time", "time-min", "mem-per-cpu", "mincpus", "tmp",
)  # fmt: skip


def run_alone(arguments: list[str], options: Options) -> int:
    """Submit the job, wait for its verdict, exit as Slurm's srun does."""
    home = Home.find()
    try:
        home.prepare()
        submission = _submission(arguments, options, home)
        environment = [
            f"{name}={value}"
            for name, value in os.environ.items()
            if name not in ("AVER_KEY", "SLURM_NTASKS", EXPORT_VARIABLE)
        ]
        exported = parse(TABLE, arguments, stops_at_operand=True).get("export")
        if exported is not None:
            environment.append(f"{EXPORT_VARIABLE}={exported}")
        return _Alone(home, options).run(submission, environment)
    except AverError as error:
        say(f"srun: error: {error}")
        return 1


def _without_export(arguments: list[str]) -> tuple[list[str], list[str]]:
    """The words for the srun inside, which is given --export by its environment, and those that are shown.

    Command lines and the store can be read by others or for long; an environment can't.
    """
    parsed = parse(TABLE, arguments, stops_at_operand=True)
    if not parsed.has("export"):
        return arguments, arguments
    inside = [(name, text) for name, text in parsed.given if name != "export"]
    within, shown = (shown_words(given) for given in (inside, parsed.given))
    return [*within, "--", *parsed.operands], [*shown, *parsed.operands]


def _submission(arguments: list[str], options: Options, home: Home) -> Submission:
    if more_nodes(options):
        raise BadOption(f"error: Unable to allocate resources: {NOT_AVAILABLE}")
    tasks = task_count(options)
    per_task = number(options.get("cpus-per-task"), "cpus-per-task") or 1
    name = options.get("job-name") or os.path.basename(options.command[0])
    srun = os.path.join(install(home), "srun")
    within, shown = _without_export(arguments)
    values = _values(options)
    slurm = replace(values.slurm(), kind=SlurmKind.SRUN, ntasks=tasks, command=options.command[0])
    if leaves_tasks_open(options):
        slurm = replace(slurm, ntasks=None)  # the srun inside counts them
    gpus = values.gpus or values.gpus_per_task * tasks
    job = JobSpec(
        name=name,
        command=Argv((srun, "--as-job", *within)),
        request=Request(tasks * per_task, gpus, _memory(options, tasks * per_task), _time(options)),
        folder=options.get("chdir"),
        has_streams=True,
        hold="hold" in options.flags,
        comment=options.get("comment"),
        begin_at=_begin(options),
        deadline_at=values.deadline,
        priority=values.priority,
        after=_after(options),
        slurm=slurm,
    )
    return Submission(FlowSpec(name, (job,), is_single=True), origin_of(("srun", *shown), secret_names()))


def _values(options: Options) -> Values:
    """What the job has of sbatch's options beside those of its step; refused in the same words."""
    call = BatchCall(time.time())
    try:
        for name in _OF_THE_JOB:
            if name in options.values or name in options.flags:
                call.take(name, options.get(name) or "")
        call.check_together()
        if refuses_unknown_names():
            check_names(call.values.said, node_name())
        if call.has("mincpus") or call.has("tmp"):
            from aver.slurm_cli.machine import Node

            check_node(call, Node([]).cpus, tmp_bytes)
    except BatchRefused as error:
        raise _in_own_words(error) from None
    return call.values


def _in_own_words(refused: BatchRefused) -> BadOption:
    text = str(refused).removeprefix("sbatch: ").replace("sbatch: ", "srun: ")
    text = text.replace("Batch job submission failed", "Unable to allocate resources")
    return (BadSpecification if refused.exit_status != 1 else BadOption)(text)


def _time(options: Options) -> int | None:
    text = options.get("time")
    try:
        return parse_time(text) if text else None
    except ValueError:
        raise BadSpecification("error: Invalid --time specification") from None


def _begin(options: Options) -> float | None:
    text = options.get("begin")
    try:
        return parse_moment(text, time.time()) if text else None
    except ValueError:
        raise BadSpecification("error: Invalid --begin specification") from None


def _after(options: Options) -> Afters | None:
    try:
        return parse_dependency(options.get("dependency") or "")
    except ValueError:
        raise BadOption("error: Unable to allocate resources: Job dependency problem") from None


def _memory(options: Options, cpus: int) -> int | None:
    text, per_cpu = options.get("mem"), options.get("mem-per-cpu")
    try:
        if text and text != "0":
            return parse_size(text)
        return parse_size(per_cpu) * cpus if per_cpu and per_cpu != "0" else None
    except ValueError:
        raise BadSpecification("error: Invalid --mem specification") from None


def _patience(options: Options) -> float | None:
    """How long it may wait for its turn; None: for ever."""
    if "immediate" not in options.flags:
        return None
    return patience_s(options)


class _Alone:
    def __init__(self, home: Home, options: Options) -> None:
        self._home = home
        self._is_quiet = "quiet" in options.flags
        self._patience_s = _patience(options)
        self._job = 0
        self._wire: fast_client.Wire | None = None

    def run(self, submission: Submission, environment: list[str]) -> int:
        self._wire = fast_client.connect(os.fspath(self._home.path))
        request = {"op": "submit", "submission": encode(submission), "env": environment}
        self._wire.send(request, (0, 1, 2))
        reply = self._reply()
        self._job = reply["run"]
        if reply.get("lower_limits") and not self._is_quiet:
            say(f"srun: warning: {limits_sentence(reply['lower_limits'])}")
        for number_ in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number_, self._forward)
        for number_ in (signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number_, self._forward)
        while True:
            try:
                return self._wait()
            except fast_client.Lost:
                self._wire = fast_client.connect(os.fspath(self._home.path))
                self._wire.send({"op": "own", "run": self._job})
                self._reply()

    def _reply(self) -> dict[str, Any]:
        assert self._wire is not None
        reply = self._wire.receive()
        while "ok" not in reply:
            reply = self._wire.receive()
        if reply["ok"] is not True:
            raise _in_own_words(refused(UsageError(str(reply.get("error")))))
        return reply

    def _wait(self) -> int:
        """Until the job is settled; says so when it has to wait for its turn."""
        assert self._wire is not None
        self._wire.send({"op": "watch", "ids": [self._job]})
        began = time.monotonic()
        told = False
        settled = self._job in self._reply()["settled"]
        while not settled:
            waited = time.monotonic() - began
            is_patient = told and (self._patience_s is None or waited < self._patience_s)
            if not is_patient and waited > PENDING_NOTICE_S and self._state() is State.PENDING:
                if not told and not self._is_quiet:
                    say(f"srun: job {self._job} queued and waiting for resources")
                told = True
                if self._patience_s is not None and waited >= self._patience_s:
                    self._wire.send({"op": "cancel", "ids": [self._job], "by": user_name()})
                    raise BadOption("error: Unable to allocate resources: Requested nodes are busy")
            if self._wire.has_message() or select.select([self._wire.fileno()], [], [], LOOK_S)[0]:
                settled = self._job in self._wire.receive().get("settled", ())
        return self._status()

    def _state(self) -> State | None:
        reader = Reader.open(self._home.database)
        if reader is None:
            return None
        with reader:
            row = reader.job(self._job)
            return row.state if row is not None else None

    def _status(self) -> int:
        reader = Reader.open(self._home.database)
        assert reader is not None
        with reader:
            row = reader.job(self._job)
            steps = reader.steps(self._job)
        if steps and steps[-1].srun_code is not None:
            return steps[-1].srun_code
        if row is not None and row.exit is not None:
            return row.exit.shell_code
        if row is not None and row.state is State.CANCELLED:
            say("srun: Job has been cancelled")
            why = "Job/step already completing or completed"
            say(f"srun: error: Unable to allocate resources: {why}")
        else:
            say(f"srun: error: job {self._job} ended as {row.state if row else 'nobody knows'}")
        return 1

    def _forward(self, number_: int, _: object) -> None:
        """To the srun inside, which knows what to do with it; a job that waits is cancelled."""
        if self._wire is None:
            return
        if self._state() is State.RUNNING:
            self._wire.send(
                {"op": "cancel", "ids": [self._job], "signal": number_, "scope": "script", "by": user_name()}
            )
        else:
            self._wire.send({"op": "cancel", "ids": [self._job], "by": user_name()})
