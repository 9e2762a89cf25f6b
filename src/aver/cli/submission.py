"""From what was typed to a submission: the flow, who submits it, and what its jobs inherit.

Environment values go to the coordinator beside the submission, never inside it: a submission is
stored, and values lie in one file per run.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from aver.cli.group import Invocation
from aver.cli.options import ADDRESS, EngineChoice
from aver.cli.session import Session
from aver.client.job_files import in_log_folder
from aver.client.origin import origin_of
from aver.client.submit import check_key, submit_once
from aver.config import load_config
from aver.durable_files import sync_file
from aver.errors import CantWriteError, UsageError
from aver.model.host_name import is_host
from aver.model.job import After, AfterKind, Afters, Argv, FlowSpec, NotifyOn, NotifyRule, RetryRule, Submission
from aver.model.notify_target import parse_target, secret_variables
from aver.model.record import Record, replace
from aver.model.units import parse_count
from aver.plan.selection import Selection, select
from aver.protocol.limits import limits_sentence
from aver.spec.command import flow_of_command
from aver.spec.flags import Overrides, parse_overrides
from aver.spec.flow.allocation import allocation_of

Function = TypeVar("Function", bound=Callable[..., Any])
STDIN = "-"
STDIN_COPY = "stdin-"  # the coordinator gives it the name of its run
HIDDEN = {"--env": "=", "--notify": ":"}  # options, and what is before the part of the value that is not stored
FLOW_SUFFIXES = (".yaml", ".yml", ".json")
HERE = "-"  # as --host: this machine has Slurm's commands


class FileCommand(click.Command):
    """A command that takes a file: a flow takes no arguments, so options may follow it; what follows a script is its
    own, as in sbatch."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.allow_interspersed_args = False
        try:
            file = self.make_parser(ctx).parse_args(list(args))[0].get("file")
        except click.UsageError:
            file = None  # it is said when they are parsed in earnest
        ctx.allow_interspersed_args = isinstance(file, str) and file.endswith(FLOW_SUFFIXES)
        return super().parse_args(ctx, args)


class Accepted(Record):
    """What the coordinator made of a submission."""

    run: int
    first_job: int
    jobs: int
    submission: Submission


set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set a param of the flow (default: the flow's value).",
)


SELECTION = (
    click.option("--only", multiple=True, metavar="JOB", help="Run only these jobs of the flow: a name or 'eval*'."),
    click.option("--tag", multiple=True, metavar="TAG", help="Run only jobs with this tag."),
    click.option("--until", multiple=True, metavar="JOB", help="Run only these jobs and what they need."),
    click.option("--from", "start", multiple=True, metavar="JOB", help="Run only these jobs and what needs them."),
    click.option("--skip", multiple=True, metavar="JOB", help="Skip these jobs of the flow."),
)


def selection_options(function: Function) -> Function:
    """The options that choose jobs of a flow."""
    for option in reversed(SELECTION):
        function = option(function)
    return function


def selection_of(options: dict[str, Any]) -> Selection:
    """Take the options of `selection_options` out of these."""
    return Selection(**{name: tuple(options.pop(name)) for name in ("only", "until", "start", "skip", "tag")})


def submission_options(function: Function) -> Function:
    """The options of `run` and `submit` that say what a job may use and how it is run."""
    options = [
        click.option("--time", "-t", metavar="TIME", help="Time limit: 10 (minutes), 90s, 2h, 1-12:00:00."),
        click.option("--mem", metavar="SIZE", help="Memory limit: 512 (MiB), 2G."),
        click.option("--cpus", "-c", metavar="N", help="CPUs (default: 1)."),
        click.option("--gpus", "-G", metavar="N", help="GPUs (default: 0)."),
        click.option("--name", "-J", metavar="NAME", help="Name of the job, or of the run of a flow."),
        click.option(
            "--needs",
            multiple=True,
            metavar="ID",
            type=ADDRESS,
            help="Start only when this job or run has completed (repeatable).",
        ),
        click.option("--retry", metavar="N", help="Retry a failed job up to N times (default: 0)."),
        click.option("--priority", metavar="N", help="Higher numbers start first (default: 0)."),
        click.option(
            "--deadline",
            metavar="WHEN",
            help="Latest end: 16:00, now+2hours. A job that has not ended by then is ended, or never started.",
        ),
        click.option("--comment", metavar="TEXT", help="A note that is kept with the job."),
        click.option(
            "--notify",
            multiple=True,
            metavar="WHO",
            help="Notify when it is settled: desktop, mail:me@example.org, slack:URL or webhook:URL (repeatable).",
        ),
        click.option(
            "--output",
            "-o",
            metavar="FILE",
            help="File for stdout; %j %x %u %N are replaced (default of a command: in AVER_HOME/logs).",
        ),
        click.option("--error", "-e", metavar="FILE", help="File for stderr (default: with stdout)."),
        click.option("--append", is_flag=True, help="Append to the output files instead of truncating them."),
        click.option(
            "--stdin", "-i", metavar="FILE", help="File for stdin; - copies this command's stdin (default: empty)."
        ),
        click.option("--pty", is_flag=True, help="Give the command a terminal; `aver attach` shows it."),
        click.option("--folder", "-D", metavar="FOLDER", help="Working folder (default: the current one)."),
        click.option("--signal", metavar="SIG@TIME", help="Send this signal TIME before the time limit."),
        click.option("--kill-wait", metavar="TIME", help="Time between TERM and KILL (default: 30 s)."),
        click.option(
            "--oom", metavar="WORD", help="warn: a process killed for memory is only a warning (default: fail)."
        ),
        click.option("--env", multiple=True, metavar="NAME=VALUE", help="Set an environment variable."),
        click.option("--secret", multiple=True, metavar="NAME", help="Mask this variable's value in every output."),
        set_option,
        *SELECTION,
        click.option("--resume", is_flag=True, help="Take over what the newest run of this flow has done already."),
        click.option("--since", metavar="RUN", type=ADDRESS, help="Like --resume, from this run."),
        click.option(
            "--jobs", "-j", "max_parallel", type=click.IntRange(1), metavar="N", help="Run at most N jobs at once."
        ),
        click.option("--key", metavar="KEY", help="Submit once: the same KEY is the same run."),
        click.option("--hold", "-H", is_flag=True, help="Hold the job until `aver release`."),
        click.option("--begin", metavar="WHEN", help="Earliest start: 16:00, now+1hour, 2030-01-20T12:00."),
        click.option("--engine", type=EngineChoice(), help="Where to run: local (this machine) or slurm."),
        click.option(
            "--host", metavar="HOST", help="Slurm host to reach over ssh, such as me@login; - is this machine."
        ),
        click.option(
            "--allocation", metavar="WORDS", help="Run all jobs as steps of one Slurm allocation: '-N 4 -t 4:00:00'."
        ),
        click.option("--allocations", metavar="N", help="Number of allocations, one after the other (default: 1)."),
        click.option(
            "--headroom",
            metavar="TIME",
            help="Time at the end of an allocation in which no step runs (default: 120 s).",
        ),
        click.option(
            "--slurm-option",
            multiple=True,
            metavar="OPTION",
            help="Pass an option to sbatch, such as --slurm-option=--partition=gpu.",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def build(
    session: Session,
    invocation: Invocation,
    file: str | None,
    args: Sequence[str],
    options: dict[str, Any],
    folder: str | None = None,
) -> tuple[Submission, list[str]]:
    """Return the submission and its environment; raise UsageError with every mistake.

    `folder` is where its jobs start (default: the current one).
    """
    extra = tuple(options.pop("env"))
    secrets = tuple(options.pop("secret"))
    engine, slurm_options = options.pop("engine"), tuple(options.pop("slurm_option"))
    host, key = options.pop("host"), options.pop("key")
    told = _receivers(options.pop("notify"))
    selection = selection_of(options)
    settings, max_parallel = tuple(options.pop("settings")), options.pop("max_parallel")
    if key is not None:
        check_key(key)
    allocation = allocation_of(*(options.pop(name) for name in ("allocation", "allocations", "headroom")))
    if allocation is not None and (engine or slurm_options):
        raise UsageError("--allocation stands alone: --engine and --slurm-option are for jobs of their own")
    if allocation is not None or (host and not engine):
        from aver.engines.registry import allocation_engine, host_engine  # most jobs run on the usual engine

        engine = host_engine() if allocation is None else allocation_engine()
    stdin = options.get("stdin")
    if stdin == STDIN and file == STDIN:
        raise UsageError("stdin can't be both the flow and what its job reads: give a file for one of them")
    if stdin == STDIN:
        options["stdin"] = None
    needs, retry, has_pty = tuple(options.pop("needs")), options.pop("retry"), options.pop("pty")
    overrides = parse_overrides(now=time.time(), **options)
    environment = environment_of(extra)
    flow = _flow(invocation, file, args, overrides, settings, folder)
    if stdin == STDIN:
        if not flow.is_single:
            raise UsageError("--stdin is for a script or a command: in a flow write stdin in a job")
        kept = parse_overrides(now=time.time(), **{**options, "stdin": _keep_stdin(session)})
        flow = _flow(invocation, file, args, kept, settings)
    if needs or retry is not None:
        flow = _with_rules(session, flow, needs, retry)
    if flow.is_single and not selection.is_all:
        raise UsageError("--only, --until, --from, --skip and --tag are for a flow: a script or a command is one job")
    flow = select(flow, selection)
    _check_secrets(secrets, environment, flow)
    config = load_config()
    hidden = secret_variables(rule.to for rule in (*flow.notify, *told))
    names = dict.fromkeys((*secrets, *config.secrets, *hidden))
    path = None if file in (None, STDIN) or invocation.command is not None else file
    origin = origin_of(redacted(invocation.typed), tuple(names), folder, file=path)
    submission = Submission(
        flow, origin, config.engine, allocation, config.slurm.host, key or "", max_parallel=max_parallel
    )
    submission = on_host(on_engine(submission, engine, slurm_options), host)
    if has_pty:
        submission = _on_terminal(submission, invocation)
    submission = leave_mails(submission)
    submission = replace(submission, flow=replace(submission.flow, notify=(*submission.flow.notify, *told)))
    if invocation.command is not None:
        submission = in_log_folder(submission, session.home, config.slurm.folder, _is_elsewhere(submission.engine))
    return submission, environment


def _on_terminal(submission: Submission, invocation: Invocation) -> Submission:
    from aver.cli.terminal.host import with_terminal  # few need it

    spec = submission.flow.jobs[0]
    if invocation.command is None or not isinstance(spec.command, Argv) or _is_elsewhere(submission.engine):
        raise UsageError("--pty is for a command after -- on this machine")
    if spec.streams.stdin is not None:
        raise UsageError("give --pty or --stdin, not both: a terminal's input is its keys")
    return replace(
        submission, flow=replace(submission.flow, jobs=(replace(spec, command=Argv(with_terminal(spec.command.args))),))
    )


def _receivers(texts: Sequence[str]) -> tuple[NotifyRule, ...]:
    try:
        return tuple(NotifyRule(NotifyOn.SETTLED, (), to=parse_target(text)) for text in texts)
    except ValueError as error:
        raise UsageError(f"--notify: {error}") from None


def _with_rules(session: Session, flow: FlowSpec, needs: Sequence[str], retry: str | None) -> FlowSpec:
    """The flow's only job, which waits for jobs of other runs, and is tried again."""
    if not flow.is_single:
        flag = "--needs" if needs else "--retry"
        raise UsageError(f"{flag} is for a script or a command: in a flow write it in a job or in defaults")
    spec = flow.jobs[0]
    if needs:
        wanted = tuple((job, None) for job in session.job_ids(needs))
        spec = replace(spec, after=Afters((After(AfterKind.AFTEROK, wanted),), ends_if_never=True))
    if retry is not None:
        from aver.spec.flow.retry import DEFAULT_STATES, MAX_ATTEMPTS  # few need it

        try:
            most = parse_count(retry, "retries")
        except ValueError as error:
            raise UsageError(f"--retry: {error}") from None
        if most > MAX_ATTEMPTS:
            raise UsageError(f"--retry {retry}: at most {MAX_ATTEMPTS} retries")
        spec = replace(spec, retry=RetryRule(most, DEFAULT_STATES))
    return replace(flow, jobs=(spec,))


def leave_mails(submission: Submission) -> Submission:
    """The submission without the mails of a batch script that goes to sbatch, which gets its --mail-type.

    In an allocation Slurm does not know of them, and Aver sends them as on this machine."""
    if not (submission.flow.is_single and _takes_sbatch_options(submission.engine)):
        return submission
    return replace(submission, flow=replace(submission.flow, notify=()))


def on_host(submission: Submission, host: str | None) -> Submission:
    """The submission with all its jobs on this host; None: each where the flow or the settings say."""
    if host is None:
        return submission
    chosen = "" if host == HERE else host
    if chosen and not is_host(chosen):
        raise UsageError(f"--host {host}: not the name of a host, such as me@login")
    jobs = tuple(replace(spec, host=None) for spec in submission.flow.jobs)
    return replace(submission, host=chosen, flow=replace(submission.flow, jobs=jobs))


def _check_secrets(secrets: Sequence[str], environment: Sequence[str], flow: FlowSpec) -> None:
    """A name with a slip in it would leave the value of another one unmasked."""
    known = {pair.partition("=")[0] for pair in environment} | {name for job in flow.jobs for name, _ in job.env}
    for name in secrets:
        if name not in known:
            raise UsageError(f"--secret {name}: neither your environment nor the flow has a variable of that name")


def _check_slurm_options(words: tuple[str, ...]) -> None:
    from aver.spec.flow.cluster_keys import OWNED_OPTIONS, own_option  # YAML is paid for only here

    for word in words:
        if (name := own_option(word)) is not None:
            raise UsageError(f"--slurm-option {word}: {name} is Aver's own; {OWNED_OPTIONS[name]}")
        if not word.startswith("-"):
            raise UsageError(f"--slurm-option {word}: not an option of sbatch; write --slurm-option=--name=value")


def on_engine(submission: Submission, engine: str | None, slurm_options: tuple[str, ...] = ()) -> Submission:
    """The submission with all its jobs on this engine; None: each where the flow or the settings say."""
    chosen = engine or submission.engine
    jobs = []
    if slurm_options:
        _check_slurm_options(slurm_options)
    for spec in submission.flow.jobs:
        own = engine or spec.engine
        if slurm_options and not _takes_sbatch_options(own or chosen):
            raise UsageError("--slurm-option is for jobs on Slurm: add --engine slurm")
        jobs.append(
            replace(
                spec,
                engine=None if own == chosen else own,
                ignored=() if spec.ignored and _is_elsewhere(own or chosen) else spec.ignored,
                slurm_options=(*spec.slurm_options, *slurm_options),
            )
        )
    return replace(submission, engine=chosen, flow=replace(submission.flow, jobs=tuple(jobs)))


def _takes_sbatch_options(engine: str) -> bool:
    from aver.engines.registry import capabilities_of  # few need it, and start-up is short

    return capabilities_of(engine).takes_sbatch_options


def _is_elsewhere(engine: str) -> bool:
    from aver.engines.registry import capabilities_of  # few need it, and start-up is short

    return capabilities_of(engine).outlives_machine


_unsubmitted: list[str] = []  # copies of stdin whose job is not accepted yet


def _remove_unsubmitted() -> None:
    for path in _unsubmitted:
        with contextlib.suppress(OSError):
            os.unlink(path)


def submit(session: Session, submission: Submission, environment: list[str]) -> Accepted:
    """Hand it to the coordinator; durable when this returns."""
    reply = submit_once(session.home, submission, environment)
    _unsubmitted.clear()
    accepted = Accepted(reply.run, reply.first_job, reply.jobs, submission)
    session.hide(accepted.run, submission.origin.secrets)
    if reply.lower_limits:
        session.output.note(limits_sentence(reply.lower_limits))
    return accepted


def ignored_options(flow: FlowSpec) -> list[str]:
    """Options of batch scripts that mean nothing here, each once."""
    return list(dict.fromkeys(option for job in flow.jobs for option in job.ignored))


def environment_of(extra: Sequence[str]) -> list[str]:
    """Our environment with the additions, as NAME=VALUE; bytes that are not UTF-8 as surrogates.

    What Python writes is seen when it is written, unless the environment says otherwise: of a killed program the last
    lines would be lost.
    """
    environment = {"PYTHONUNBUFFERED": "1", **os.environ}
    for pair in extra:
        name, equals, value = pair.partition("=")
        if not name or not equals or "\0" in pair:
            raise UsageError(f"--env {name}: write it as NAME=VALUE")
        environment[name] = value
    return [f"{name}={value}" for name, value in environment.items()]


def redacted(typed: Sequence[str]) -> tuple[str, ...]:
    """What was typed without the values of --env and the addresses of --notify: they may be secret."""
    words: list[str] = []
    hides = ""  # the option whose value is the next word
    for at, word in enumerate(typed):
        if word == "--":
            return (*words, *typed[at:])
        option, equals, value = word.partition("=")
        if hides:
            word = _hidden(hides, word)
        elif equals and option in HIDDEN:
            word = f"{option}={_hidden(option, value)}"
        hides = word if word in HIDDEN else ""
        words.append(word)
    return tuple(words)


def _hidden(option: str, value: str) -> str:
    mark = HIDDEN[option]
    begin, found, _ = value.partition(mark)
    return f"{begin}{mark}***" if found or option == "--env" else value


def _flow(
    invocation: Invocation,
    file: str | None,
    args: Sequence[str],
    overrides: Overrides,
    settings: Sequence[str],
    folder: str | None = None,
) -> FlowSpec:
    if invocation.command is not None:
        if file is not None:
            raise UsageError(f"give a file or a command after --, not both: {file!r} is before it")
        if settings:
            raise UsageError("--set is for a flow: a command has no params")
        return flow_of_command(invocation.command, overrides)
    if file is None:
        raise UsageError("nothing to run: give a flow or a batch script, or a command after --")
    from aver.spec.flow.params import ParamValues, parse_settings  # YAML is heavy, and a command does not need it
    from aver.spec.load import load

    return load(file, overrides, args=args, folder=folder, params=ParamValues(parse_settings(settings)))


def _keep_stdin(session: Session) -> str:
    """Copy our stdin into the home, and return the pattern of the copy's name."""
    import atexit
    import shutil  # few need these, and they cost as much as the rest
    import tempfile

    session.home.prepare()
    try:
        handle, path = tempfile.mkstemp(prefix=STDIN_COPY, dir=session.home.stdin)
        _unsubmitted.append(path)
        atexit.register(_remove_unsubmitted)
        with os.fdopen(handle, "wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
            sync_file(copy)
    except OSError as error:
        raise CantWriteError(f"can't copy stdin into {session.home.stdin}: {error.strerror}") from None
    if "\\" in path:
        raise UsageError("--stdin - needs an AVER_HOME without a backslash in its path")
    return path.replace("%", "%%")
