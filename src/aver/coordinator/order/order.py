"""From a planned attempt to the engine's order: command, files, environment."""

from __future__ import annotations

import errno
import math
import os
from functools import lru_cache
from pathlib import Path

from aver.client import vault
from aver.client.job_files import Which, job_files, script_path
from aver.client.output_paths import array_index, synced_folders
from aver.client.startup_files import BASH_ENV
from aver.coordinator.order.share import Share, share_of
from aver.coordinator.order.slurm_environment import on_each_node, slurm_pairs, task_pairs
from aver.coordinator.state.attempt import LiveAttempt, LiveStep, LiveTask
from aver.coordinator.state.run import LiveRun
from aver.coordinator.state.steps import is_shared
from aver.engines.api import Order, ScriptText, Sync
from aver.home import Home
from aver.model.job import CONTAINER, Argv, JobSpec, Request, Scope, Script, Setup, Shell, WarningSignal
from aver.model.record import replace
from aver.model.slurm_options import SlurmKind, SlurmOptions
from aver.model.threads import thread_pairs
from aver.model.units import limit_until
from aver.plan.placeholders import PARAMETER, fill
from aver.plan.plain_command import plain_words
from aver.plan.shell_text import fill_shell
from aver.spec.container_command import in_container
from aver.spec.flow.setup import after_setup, with_setup
from aver.spec.patterns import Facts, expand_pattern
from aver.spec.prologue import interpreter, prologue

MIB = 1 << 20
RLIM_INFINITY = -1
LEAST_MEMORY_BYTES = (
    30 * MIB
)  # what Slurm enforces where --mem is less (MinRAMSpace): a shell alone needs more than 1 MB
_OF_BASH = frozenset({"BASH_ENV", "BASHOPTS", "SHELLOPTS"})  # change what a bash does when it starts
LONGEST_INLINE_TEXT_BYTES = 100_000  # the kernel takes 128 KiB in one argument


def order_of(home: Home, run: LiveRun, attempt: LiveAttempt, kill_wait_s: float, now: float) -> Order:
    """Everything that the witness needs to start this attempt.

    OSError if its script can't be written or its environment can't be read, ValueError if no command can be made.
    """
    spec = run.spec(attempt.index)
    name = run.name(attempt.index)
    values = run.values(attempt.index)
    which = Which(run.number, attempt.job, name, attempt.attempt, values, run.member_number(attempt.index))
    files = job_files(run.submission, spec, which, run.is_single)
    origin = run.submission.origin
    can = attempt.can
    with_options = can.takes_sbatch_options
    share = share_of(spec) if can.uses_allocations else Share()
    return Order(
        key=attempt.key,
        args=_args(home, run, attempt, spec),
        bare=_bare(run, attempt, spec),
        warm=spec.command.warm if isinstance(spec.command, Argv) and spec.setup == Setup() else (),
        folder=files.folder,
        env_file=_env_file(home, run.number),
        env=_env(home, run, attempt, spec, files.folder, now),
        env_defaults=() if spec.slurm is not None or can.has_queue else thread_pairs(attempt.request.whole_cpus),
        umask=origin.umask,
        limits=origin.limits,
        request=_request(attempt, spec, now),
        stdin=files.stdin,
        stdout=None if spec.has_streams else files.stdout,
        stderr=files.stderr,
        append=files.append,
        own_parts=0 if spec.has_streams else files.own_parts,
        warning=_warning(spec, spec.step_warning if can.uses_allocations else None),
        kill_wait_s=run.kill_wait_s(attempt.index, kill_wait_s),
        streams=attempt.streams,
        name=name,
        group=_group(run, attempt) if with_options else "",
        script=_script(run, attempt) if can.needs_script_text else None,
        options=_options(run, attempt) if with_options else (),
        requeues=spec.slurm_requeues,
        deadline_at=spec.deadline_at if with_options or can.uses_allocations else None,
        host=run.host(attempt.index) if with_options or can.uses_allocations else "",
        sync=_sync(run, attempt) if with_options or can.uses_allocations else None,
        run=run.number,
        step=f"wf{run.number}_j{attempt.job}_r{run.round}_a{attempt.attempt}" if can.uses_allocations else "",
        least_s=0 if spec.checkpoint is not None else attempt.request.time_s or 0,
        nodes=share.nodes,
        has_steps=share.has_steps,
        has_tasks=share.tasks is not None,
        exclude=share.exclude,
        files=_files(spec, values),
        clean=_clean(spec),
        is_elsewhere=spec.setup.container is not None and spec.setup.container.is_of_daemon,
        lane="" if run.is_single else f"{run.number}.{run.spec_number(attempt.index)}",
        is_behind=attempt.is_behind,
        is_srun=spec.slurm is not None and spec.slurm.kind is SlurmKind.SRUN,
        stderr_name=_stderr_name(run, attempt, spec),
    )


def _stderr_name(run: LiveRun, attempt: LiveAttempt, spec: JobSpec) -> str:
    """Of a job of sbatch. The output of all others has only what they wrote; srun has lines of its own."""
    slurm = spec.slurm
    if slurm is None or slurm.kind is not SlurmKind.BATCH or slurm.command is None:
        return ""
    return f"JOB {attempt.job} ON {run.submission.origin.host.partition('.')[0]}"


def _request(attempt: LiveAttempt, spec: JobSpec, now: float) -> Request:
    """What the attempt may use; in an allocation, what it may use on each of its nodes."""
    request = _bounded(attempt, None if attempt.can.has_queue else spec.deadline_at, now)
    share = share_of(spec) if attempt.can.uses_allocations else Share()
    if spec.slurm is not None and not attempt.can.has_queue:
        return _enforced(request)
    if share.tasks is None:
        return request  # a flow's job says it for each node
    return on_each_node(request, share.tasks, share.nodes)


def _enforced(request: Request) -> Request:
    """The request of one of Slurm's jobs or steps on this machine, with no less memory than Slurm would enforce."""
    if request.mem_bytes is None or request.mem_bytes >= LEAST_MEMORY_BYTES:
        return request
    return replace(request, mem_bytes=LEAST_MEMORY_BYTES)


def _bounded(attempt: LiveAttempt, deadline_at: float | None, now: float) -> Request:
    """What it asks for, with a time limit that ends no later than its deadline. A cluster sees to that itself."""
    request = attempt.request
    if deadline_at is None:
        return request
    return replace(request, time_s=limit_until(request.time_s, deadline_at, now))


def _files(spec: JobSpec, values: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """What its witness looks at: inputs before the start, outputs then and after the end."""
    if not (spec.inputs or spec.outputs or spec.optional_outputs):
        return ()
    kinds = (("i", spec.inputs), ("o", spec.outputs), ("p", spec.optional_outputs))
    by_name = dict(values)
    return tuple(f"{kind} {fill(pattern, by_name)}" for kind, patterns in kinds for pattern in patterns)


def _clean(spec: JobSpec) -> str:
    """A checkpoint keeps its files, and so does a kill for memory that is not a failure."""
    keeps = ("k" if spec.checkpoint is not None else "") + ("m" if spec.oom_warns else "")
    return keeps or "-" if spec.clean else ""


def _sync(run: LiveRun, attempt: LiveAttempt) -> Sync | None:
    """The flow's folders that its jobs on another host need."""
    flow = run.submission.flow
    if not flow.sync or not run.host(attempt.index):
        return None
    folders = synced_folders(flow.sync, run.submission.origin.folder)
    return Sync(run.number, run.round, folders, flow.sync_exclude)


def _group(run: LiveRun, attempt: LiveAttempt) -> str:
    """Members of one matrix with the same request go to a cluster together."""
    spec = run.spec(attempt.index)
    if spec.matrix is None or spec.slurm_requeues:
        return ""
    return f"{run.number} {run.spec_number(attempt.index)} {attempt.request}"


def _script(run: LiveRun, attempt: LiveAttempt) -> ScriptText | None:
    """The text of a job whose command is a file of this machine."""
    match run.spec(attempt.index).command:
        case Script(text=text, args=args):
            return ScriptText(interpreter(text), text, args)
        case Shell(text=text, shell=shell):
            spec = run.spec(attempt.index)
            if spec.setup.container is not None:
                return None
            filled = with_setup(spec.setup, shell, fill_shell(text, dict(run.values(attempt.index)), shell))
            is_long = len(os.fsencode(filled)) > LONGEST_INLINE_TEXT_BYTES
            return ScriptText(shell, filled) if is_long else None
        case Argv():
            return None


def _options(run: LiveRun, attempt: LiveAttempt) -> tuple[str, ...]:
    """The words of sbatch that ask for resources: the user's, and what the request says that they do not."""
    spec, request = run.spec(attempt.index), attempt.request
    words = spec.slurm_options
    if spec.slurm is not None and request == spec.request:
        return words  # a batch script: its own words ask for all of it
    names = {word.partition("=")[0] for word in words}
    if spec.slurm is not None:
        names = {name for name in names if name not in ("--mem", "--mem-per-cpu")}
        words = tuple(word for word in words if not word.startswith(("--mem=", "--mem-per-cpu=")))
    else:
        if not names & {"--cpus-per-task", "-c"}:
            words = (*words, f"--cpus-per-task={request.whole_cpus}")
        if not names & {"--ntasks", "-n", "--ntasks-per-node", "--nodes", "-N"}:  # one task would be one node
            words = (*words, "--ntasks=1")
        if request.gpus and not names & {"--gres", "--gpus", "-G", "--gpus-per-node", "--gpus-per-task"}:
            words = (*words, f"--gres=gpu:{request.gpus}")
    if request.mem_bytes is not None and not names & {"--mem-per-cpu", "--mem-per-gpu"}:
        words = (*words, f"--mem={-(-request.mem_bytes // MIB)}M")
    return words


def _warning(spec: JobSpec, of_step: WarningSignal | None = None) -> WarningSignal | None:
    """A command with no shell is the program itself: the warning is for it, whether it traps it or not."""
    warning = of_step or spec.warning
    if warning is not None and spec.setup.container is not None:  # for the shell that hands it on
        return WarningSignal(warning.signal, warning.lead_s, Scope.SCRIPT)
    if warning is not None and warning.scope is Scope.PROGRAM and isinstance(spec.command, Argv):
        return WarningSignal(warning.signal, warning.lead_s, Scope.ALL)
    return warning


def task_order(
    run: LiveRun, step: LiveStep, task: LiveTask, host: str, kill_wait_s: float, now: float, monotonic_s: float
) -> Order:
    """Everything that the witness needs to start one task of a step.

    A limit of its own is the step's; its job's is its script's witness's, and this one is told when it passes.
    """
    spec = step.spec
    attempt = step.attempt
    facts = _step_facts(run, step, host, task.number)

    def place(pattern: str | None) -> str | None:
        return None if pattern is None else os.path.join(spec.folder, expand_pattern(pattern, facts))

    def place_output(pattern: str | None) -> str | None:
        return None if is_shared(spec, pattern) else place(pattern)

    return Order(
        key=task.key,
        args=spec.args,
        folder=spec.folder,
        env_file=step.env_file,
        env=task_env(step.number, spec.tasks, task.number, host, spec.cpus_per_task),
        umask=spec.umask,
        limits=_task_limits(run.submission.origin.limits, spec.limits),
        request=_enforced(step.request()),
        stdin=place(spec.stdin),
        stdout=place_output(spec.stdout),
        stderr=place_output(spec.stderr if spec.stderr is not None else spec.stdout),
        append=spec.append,
        warning=_task_warning(run, step, now, monotonic_s),
        kill_wait_s=run.kill_wait_s(attempt.index, kill_wait_s),
        streams=step.streams,
        job_due_s=attempt.due_s,
        job_mem_bytes=_enforced(attempt.request).mem_bytes,
    )


def shared_files(run: LiveRun, step: LiveStep, host: str) -> dict[str, str]:
    """The files that srun is to open for all tasks of the step, by stream."""
    spec = step.spec
    facts = _step_facts(run, step, host, None)
    return {
        name: os.path.join(spec.folder, expand_pattern(pattern, facts))
        for name, pattern in (("stdout", spec.stdout), ("stderr", spec.stderr))
        if pattern is not None and is_shared(spec, pattern)
    }


def _step_facts(run: LiveRun, step: LiveStep, host: str, task: int | None) -> Facts:
    index = step.attempt.index
    job = run.spec(index)
    member = array_index(job, run.values(index))
    name = run.name(index) if member is None else job.name
    user = run.submission.origin.user
    return Facts(step.attempt.job, run.number, name, user, host, member, step.number, task)


def _task_limits(
    of_job: tuple[tuple[int, int, int], ...], of_step: tuple[tuple[int, int], ...]
) -> tuple[tuple[int, int, int], ...]:
    """Soft limits are those of srun, hard ones those that the job began with."""
    soft = dict(of_step)
    kept = tuple((number, soft.pop(number, own), hard) for number, own, hard in of_job)
    return (*kept, *((number, value, RLIM_INFINITY) for number, value in soft.items()))


def _task_warning(run: LiveRun, step: LiveStep, now: float, monotonic_s: float) -> WarningSignal | None:
    """The step's own; or its job's that is not for the script alone, if that is still to come.

    The witness of a task warns it before the earlier of its own limit and its job's. If its own comes first, the lead
    is shorter by the time between the two, so that all processes of the job are warned together.
    """
    job = run.spec(step.attempt.index)
    of_job = job.warning
    if step.spec.warning is not None or of_job is None or of_job.scope is Scope.SCRIPT:
        return step.spec.warning
    attempt, own_s = step.attempt, step.spec.time_s
    # A step may be asked for before the witness has told of its job's start: all of the job's time is left then.
    all_s = _bounded(attempt, job.deadline_at, now).time_s
    left_s = all_s if attempt.due_s is None else attempt.due_s - monotonic_s
    if left_s is None or left_s <= of_job.lead_s:
        return None
    earlier_s = 0.0 if own_s is None else max(0.0, left_s - own_s)
    lead_s = math.ceil(of_job.lead_s - earlier_s)
    return WarningSignal(of_job.signal, lead_s, Scope.SCRIPT) if lead_s > 0 else None


def task_env(step: int, tasks: int, rank: int, host: str, cpus_per_task: int) -> tuple[str, ...]:
    """What Slurm tells a task about itself."""
    ranks = ",".join(str(one) for one in range(tasks)) if tasks <= 1024 else ""
    pairs = [
        f"SLURM_STEP_ID={step}", f"SLURM_STEPID={step}", f"SLURM_PROCID={rank}", f"SLURM_LOCALID={rank}",
        "SLURM_NODEID=0", f"SLURM_NTASKS={tasks}", f"SLURM_NPROCS={tasks}", f"SLURM_STEP_NUM_TASKS={tasks}",
        "SLURM_STEP_NUM_NODES=1", f"SLURM_STEP_TASKS_PER_NODE={tasks}", f"SLURM_TASKS_PER_NODE={tasks}",
        f"SLURM_STEP_NODELIST={host}", f"SLURMD_NODENAME={host}", f"SLURM_GTIDS={ranks}",
    ]  # fmt: skip
    if cpus_per_task > 1:
        pairs.append(f"SLURM_CPUS_PER_TASK={cpus_per_task}")
    return tuple(pairs)


def _args(home: Home, run: LiveRun, attempt: LiveAttempt, spec: JobSpec) -> tuple[str, ...]:
    args = _plain_args(home, run, attempt, spec)
    if spec.setup.container is None:
        return args
    seen = () if run.host(attempt.index) else (run.submission.origin.folder,)
    path = _text_path(home, run, attempt)
    return in_container(spec, run.name(attempt.index), args, (*seen, path) if path in args else seen)


def _plain_args(home: Home, run: LiveRun, attempt: LiveAttempt, spec: JobSpec) -> tuple[str, ...]:
    """Those of a job with no container, and what its container starts."""
    values, name = dict(run.values(attempt.index)), run.name(attempt.index)
    match spec.command:
        case Argv(args=args):
            return after_setup(spec.setup, name, tuple(fill(argument, values) for argument in args) if values else args)
        case Script(text=text, args=args):
            path = os.fspath(script_path(home, run.number, run.spec_number(attempt.index)))
            return (*interpreter(text), path, *args)
        case Shell(text=text, shell=shell):
            filled = fill_shell(text, values, shell) if values else text
            start = "" if spec.setup.container is not None else _prologue(home, shell)
            filled = start + with_setup(spec.setup, shell, filled)
            if len(os.fsencode(filled)) <= LONGEST_INLINE_TEXT_BYTES:
                return after_setup(spec.setup, name, (*shell, "-c", filled, name), shell)
            path = _text_path(home, run, attempt)
            _write_text(path, filled)
            return after_setup(spec.setup, name, (*shell, path), shell)


def _bare(run: LiveRun, attempt: LiveAttempt, spec: JobSpec) -> tuple[str, ...]:
    """The command of a shell's text that needs no shell. A warning is for a program that the shell became."""
    command = spec.command
    if not isinstance(command, Shell) or spec.setup != Setup() or spec.warning is not None or attempt.can.has_queue:
        return ()
    if any(name in _OF_BASH for name, _ in spec.env):
        return ()
    words = plain_words(command.text, command.shell)
    values = dict(run.values(attempt.index)) if words else {}
    return tuple(fill(word, values) for word in words) if values else words


def _text_path(home: Home, run: LiveRun, attempt: LiveAttempt) -> str:
    return os.fspath(home.scripts(run.number) / f"run-{attempt.job}")


def _write_text(path: str, text: str) -> None:
    Path(path).parent.mkdir(mode=0o700, exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as file:
        file.write(os.fsencode(text))


def _opened(home: Home, run: LiveRun, spec: JobSpec) -> list[tuple[str, str]]:
    """The job's own environment with its values, which the flow has only sealed."""
    if any(value not in run.sealed for _, value in spec.env):
        run.sealed = vault.load(home, run.number)
    for name, value in spec.env:
        if value not in run.sealed:
            raise FileNotFoundError(errno.ENOENT, f"the value of {name} is gone from the home")
    return [(name, run.sealed[value]) for name, value in spec.env]


@lru_cache(maxsize=64)
def _prologue(home: Home, shell: tuple[str, ...]) -> str:
    return prologue(shell, os.fspath(home.bin))


@lru_cache(maxsize=8)
def _env_file(home: Home, run: int) -> str:
    return os.fspath(home.env(run))


@lru_cache(maxsize=1)
def _of_home(home: Home) -> tuple[str, str]:
    """What every job has of its home in its environment; the second is for shells of jobs on this machine."""
    return f"AVER_HOME={home.path}", f"BASH_ENV={home.bin / BASH_ENV}"


def _env(home: Home, run: LiveRun, attempt: LiveAttempt, spec: JobSpec, folder: str, now: float) -> tuple[str, ...]:
    values = {} if spec.slurm is not None else dict(run.values(attempt.index))
    of_home, of_shell = _of_home(home)
    pairs = [
        of_home,
        f"AVER_RUN={run.number}",
        f"AVER_JOB={attempt.job}",
        f"AVER_JOB_NAME={run.name(attempt.index)}",
        f"AVER_ATTEMPT={attempt.attempt}",
        f"AVER_CPUS={attempt.request.cpus}",
    ]
    if spec.setup.container is not None:
        pairs.append(f"{CONTAINER}={spec.setup.container.engine}")
    if not attempt.can.tells_steps:
        pairs.append(of_shell)
    if folder != run.submission.origin.folder and not attempt.can.has_queue:
        pairs.append(f"PWD={folder}")
    if attempt.request.gpus and not attempt.can.has_queue:
        pairs.append("CUDA_VISIBLE_DEVICES=" + ",".join(str(gpu) for gpu in attempt.gpus))
    pairs += [f"{PARAMETER}{key}={value}" for key, value in values.items()]
    if spec.env:
        pairs += [f"{key}={fill(value, values) if values else value}" for key, value in _opened(home, run, spec)]
    if spec.slurm is not None and not attempt.can.tells_steps:  # it came from one of Slurm's commands
        pairs += slurm_pairs(run, attempt, _bounded(attempt, spec.deadline_at, now), now)
    elif attempt.can.uses_allocations and ((share := share_of(spec)).has_steps or share.tasks is not None):
        of_flow = SlurmOptions(cpus_per_task=attempt.request.whole_cpus)
        pairs += task_pairs(share.tasks or of_flow, share.nodes)
        if share.tasks is not None and share.tasks.cpus_per_task is not None:
            pairs.append(f"AVER_TASK_CPUS={share.tasks.cpus_per_task}")  # our srun goes by it as Slurm's would
    elif spec.slurm_options and not attempt.can.tells_steps:
        asked = [word.removeprefix("--ntasks=") for word in spec.slurm_options if word.startswith("--ntasks=")]
        pairs += [f"SLURM_NTASKS={tasks}" for tasks in asked]  # how many tasks `srun` starts
    return tuple(pairs)
