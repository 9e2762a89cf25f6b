"""`--resume`, `--since RUN` and `--dry-run`: what a new run takes over from an earlier one, and what it would do."""

from __future__ import annotations

from collections.abc import Sequence

from aver.cli.output.documents import Planned, PlannedJob
from aver.cli.session import Session
from aver.client import vault
from aver.client.job_files import Which, job_files
from aver.client.takeover import Takeover, find_takeover, newest_run
from aver.errors import UsageError
from aver.model.job import Argv, FlowSpec, JobSpec, Script, Shell, Submission
from aver.model.record import replace
from aver.plan.matrix import FlowIndex
from aver.plan.placeholders import PARAMETER, fill
from aver.plan.shell_text import fill_shell
from aver.render.masking import Masking, to_bytes, values_of
from aver.spec.container_command import in_container
from aver.spec.flow.setup import after_setup, with_setup
from aver.store.read.rows import RunRow

Values = dict[str, str]


def takeover_of(
    session: Session, submission: Submission, environment: Sequence[str], resume: bool, since: str | None
) -> Takeover | None:
    """What is taken over; None without these options, and, with a word, if there is no earlier run."""
    if resume and since is not None:
        raise UsageError("--resume means the newest run of this flow, --since names one: give one of them")
    if since is not None:
        found = session.find(since)
        number = found.id if isinstance(found, RunRow) else found[0].run
        return find_takeover(session.home, session.found_reader(since), submission, number, environment)
    if not resume:
        return None
    reader = session.reader
    newest = None if reader is None else newest_run(reader, submission)
    if reader is None or newest is None:
        session.output.note(f"no earlier run of {submission.flow.name} from this folder: all of it runs")
        return None
    return find_takeover(session.home, reader, submission, newest, environment)


def resumed(session: Session, submission: Submission, takeover: Takeover | None, quiet: bool) -> Submission:
    """The submission with what it takes over, which is said."""
    if takeover is None:
        return submission
    taken = takeover.taken
    if not quiet:
        session.output.note(f"taken over from run {takeover.since}: {len(taken)} of {len(takeover.choices)} jobs")
    return replace(submission, since=takeover.since, taken=taken)


def planned(session: Session, submission: Submission, environment: Sequence[str], takeover: Takeover | None) -> Planned:
    """What would run, and as what. Values of secrets are masked in all that is written from here on."""
    flow, secrets = submission.flow, submission.origin.secrets
    own = {to_bytes(value) for value in vault.secret_values(flow, secrets)}
    session.output.masking |= Masking({*own, *values_of([to_bytes(pair) for pair in environment], secrets)})
    index = FlowIndex(flow)
    jobs = [
        _job(submission, index.spec(number), name, _values(index, number), takeover, number)
        for number, name in enumerate(index.names())
    ]
    return Planned(flow.name, None if takeover is None else takeover.since, tuple(jobs), len(environment))


def _values(index: FlowIndex, number: int) -> tuple[tuple[str, str], ...]:
    spec = index.spec(number)
    return spec.params if spec.matrix is None else index.member(number).values + spec.params


def _job(
    submission: Submission, spec: JobSpec, name: str, values: tuple[tuple[str, str], ...],
    takeover: Takeover | None, number: int,
) -> PlannedJob:  # fmt: skip
    choice = None if takeover is None else takeover.choices[number]
    origin = None if choice is None else choice.origin
    files = job_files(submission, spec, Which(0, 0, name, 1, values), submission.flow.is_single)
    filled = dict(values)
    return PlannedJob(
        name=name,
        runs=origin is None,
        why=_why(submission.flow, spec) if choice is None else choice.why or None,
        from_run=None if origin is None else origin.run,
        from_job=None if origin is None else origin.job,
        command=in_container(spec, name, _command(spec, name, filled), (submission.origin.folder,)),
        script=_script(spec, filled),
        folder=files.folder,
        env=_env(spec, filled),
    )


def _why(flow: FlowSpec, spec: JobSpec) -> str | None:
    """Without an earlier run: what it waits for."""
    names = [need.job for need in spec.needs.all_of] + [one.job for some in spec.needs.any_of for one in some]
    return f"after {', '.join(dict.fromkeys(names))}" if names else None


def _command(spec: JobSpec, name: str, values: Values) -> tuple[str, ...]:
    """The program and its arguments; of a script, what is before and behind the script's file."""
    match spec.command:
        case Argv(args=args):
            return after_setup(spec.setup, name, tuple(fill(argument, values) for argument in args))
        case Script(args=args):
            return args
        case Shell(shell=shell):
            return after_setup(spec.setup, name, shell, shell)


def _script(spec: JobSpec, values: Values) -> str | None:
    match spec.command:
        case Argv():
            return None
        case Script(text=text):
            return text
        case Shell(text=text, shell=shell):
            return with_setup(spec.setup, shell, fill_shell(text, values, shell) if values else text)


def _env(spec: JobSpec, values: Values) -> Values:
    """What the job has beside what it inherits, and beside its numbers, which are not known yet."""
    given = {} if spec.slurm is not None else {f"{PARAMETER}{key}": value for key, value in values.items()}
    return given | {key: fill(value, values) if values else value for key, value in spec.env}
