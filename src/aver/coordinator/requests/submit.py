"""`submit` and `own`: new runs are checked, numbered, written to the home and given to the state machine.

A run's number is reserved before the folder of its outputs is made, which happens aside: others are numbered and run
meanwhile. What is refused leaves no file behind, and its number is given again if nobody has a later one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from aver.client import batch_submission, vault
from aver.client.job_files import (
    adopt_stdin,
    needs_outputs,
    prepare_outputs,
    remove_outputs,
    remove_run_files,
    write_env,
    write_scripts,
)
from aver.coordinator.background import Failed, Later
from aver.coordinator.capacity import check_fits, check_text, check_values
from aver.coordinator.known_run import find_known, with_content
from aver.coordinator.order.allocations import check_allocation
from aver.coordinator.recovery import past_jobs
from aver.coordinator.requests.context import Context
from aver.coordinator.requests.dispatch import serves, writes
from aver.coordinator.server import Peer, close_all
from aver.coordinator.state.dependency import PROBLEM
from aver.coordinator.state.succession import LARGEST_RUN
from aver.crashpoint import reached
from aver.engines.api import Registration
from aver.engines.registry import capabilities_of, find_engine
from aver.errors import AverError, CantWriteError, UsageError
from aver.home import Home
from aver.judge.takeover import judge_taken
from aver.model.evidence import TakenOver, Verdict
from aver.model.job import FlowSpec, Submission
from aver.model.reasons import FromRun, parse_from_run
from aver.model.record import replace
from aver.plan.matrix import FlowIndex
from aver.protocol.limits import lower_limits
from aver.protocol.messages import Done, Own, Submit, Submitted
from aver.store.secrets import keep_values


@writes(Submit)
def submit(context: Context, peer: Peer, request: Submit, now: float) -> Submitted | Later:
    if peer.owns is not None and peer.descriptors:
        raise UsageError("a connection can have the standard streams of one run")
    asked = with_content(context.home, request.submission)

    def known() -> Submitted | None:
        return find_known(context.machine, context.open_reader(), asked) if request.is_again else None

    if (before := known()) is not None:
        return before
    number, submission = numbered(context, checked(context, asked))
    env, streams = request.env, peer.take_streams()
    if not needs_outputs(submission.flow.jobs) and not _home_checks(submission):
        return _with_streams(context, peer, streams, lambda: take(context, submission, env, number, now))

    def go_on(refused: AverError | Failed | None, then: float) -> Submitted:
        if (meanwhile := known()) is not None:  # another request with this key was quicker
            give_up()
            return meanwhile
        return _with_streams(
            context, peer, streams, lambda: _take_prepared(context, submission, env, number, refused, then)
        )

    def give_up() -> None:
        close_all(streams)
        take_back(context, number, submission)

    return Later(submission.origin.folder, lambda: _prepare(context, submission, number), go_on, give_up)


@serves(Own)
def own(_: Context, peer: Peer, request: Own, __: float) -> Done:
    """The submitter of a run is back, after we were away."""
    peer.owns = request.run
    return Done()


def _with_streams(context: Context, peer: Peer, streams: tuple[int, ...], take: Callable[[], Submitted]) -> Submitted:
    """A run whose standard streams are its submitter's ends with its submitter."""
    try:
        reply = take()
    except BaseException:
        close_all(streams)
        raise
    if streams:
        context.machine.runs[reply.run].streams = streams
        peer.owns = reply.run
    return reply


def checked(context: Context, submission: Submission) -> Submission:
    """The submission as it can run here; UsageError says why it can't."""
    submission = _fit_cpus(context, submission)
    check_text(submission.origin)
    _engines(submission)
    check(context, submission)
    _check_afters(context, submission.flow)
    return submission


def numbered(context: Context, submission: Submission) -> tuple[int, Submission]:
    """The number of the run, and the submission with its copy of stdin under that number."""
    number = context.machine.reserve(submission.flow)
    try:
        return number, replace(submission, flow=adopt_stdin(context.home, number, submission.flow))
    except AverError:
        context.machine.give_back(number, submission.flow)
        raise


def _prepare(context: Context, submission: Submission, number: int) -> AverError | None:
    """Blocks: for a thread of the background. What is in the way of the run's folders."""
    try:
        for check in _home_checks(submission):
            check(context.home)
        prepare_outputs(submission, number, submission.flow.jobs)
    except AverError as error:
        return error
    return None


def _take_prepared(
    context: Context, submission: Submission, env: Sequence[str], number: int, refused: AverError | Failed | None,
    now: float,
) -> Submitted:  # fmt: skip
    if refused is None:
        return take(context, submission, env, number, now)
    take_back(context, number, submission)
    if isinstance(refused, AverError):
        raise refused
    raise CantWriteError(f"can't prepare the job's output in {submission.origin.folder}: {refused.text}")


def take(context: Context, submission: Submission, env: Sequence[str], number: int, now: float) -> Submitted:
    """Write the run's files, and hold the run under this number."""
    home = context.home
    try:
        secrets = vault.secret_values(submission.flow, submission.origin.secrets)
        sealed, values = vault.seal(home, submission.flow)
        submission = replace(submission, flow=sealed)
        write_env(home, number, env)
        vault.store(home, number, values)
        keep_values(os.fspath(home.path), number, secrets)
        write_scripts(home, number, submission.flow)
        for engine in _engines(submission):
            if engine.note_environment is not None:
                engine.note_environment(home, env)
        reached("submit-files-written")
        run = context.machine.submit(submission, now, number, _taken(context, submission, now))
    except ValueError as error:
        take_back(context, number, submission)
        raise UsageError(f"the flow {submission.flow.name!r} is wrong: {error}") from None
    except BaseException:
        take_back(context, number, submission)
        raise
    return Submitted(run.number, run.job_number(0), run.job_count, _lower_limits(submission))


def _lower_limits(submission: Submission) -> tuple[str, ...]:
    """Of jobs on this machine: a cluster gives its own."""
    engines = {spec.engine or submission.engine for spec in submission.flow.jobs}
    is_here = not all(capabilities_of(engine).has_queue for engine in engines)
    return lower_limits(submission.origin.limits) if is_here else ()


def _taken(context: Context, submission: Submission, now: float) -> dict[int, Verdict]:
    """The verdicts that the run takes over, by place; UsageError unless each is a completion in a settled run."""
    if not submission.taken:
        return {}
    count = FlowIndex(submission.flow).count
    reader = context.open_reader()
    jobs, runs = {}, {}
    if reader is not None:
        with reader:
            jobs = reader.jobs_by_id(job for _, job in submission.taken)
            runs = {number: reader.run(number) for number in {row.run for row in jobs.values()}}
    found = {}
    for index, job in submission.taken:
        row = jobs.get(job)
        run = None if row is None else runs[row.run]
        if row is None or run is None or not run.state.is_settled or not 0 <= index < count:
            raise UsageError(f"job {job} can't be taken over: it is not in a settled run any more; submit again")
        origin = parse_from_run(row.reason) or FromRun(row.run, row.id)
        verdict = None if row.verdict is None else judge_taken(TakenOver(now, origin, row.verdict))
        if verdict is None:
            raise UsageError(f"job {job} can't be taken over: it is {row.state}, not COMPLETED; submit again")
        found[index] = verdict
    return found


def take_back(context: Context, number: int, submission: Submission) -> None:
    """Remove all that a submission wrote that is not accepted, and give its number back."""
    remove_run_files(context.home, number)
    if needs_outputs(submission.flow.jobs):
        lane = submission.origin.folder
        context.background.run(lane, lambda: remove_outputs(submission, number), lambda done: None)
    context.machine.give_back(number, submission.flow)


def _fit_cpus(context: Context, submission: Submission) -> Submission:
    """What jobs of Slurm's commands take of this machine."""
    total = context.machine.packer.total.cpus
    jobs = tuple(
        replace(spec, request=batch_submission.taken(spec.request, spec.slurm, total))
        if spec.slurm is not None and not capabilities_of(spec.engine or submission.engine).has_queue
        else spec
        for spec in submission.flow.jobs
    )
    return replace(submission, flow=replace(submission.flow, jobs=jobs))


def check(context: Context, submission: Submission) -> None:
    """Refuse flows that are no graph, and what could never start here."""
    flow = submission.flow
    if not flow.jobs:
        raise UsageError(f"the flow {flow.name!r} has no jobs")
    try:
        count = FlowIndex(flow).count
    except ValueError as error:
        raise UsageError(f"the flow {flow.name!r} is wrong: {error}") from None
    if not 0 < count <= LARGEST_RUN:
        raise UsageError(f"the flow {flow.name!r} has {count} jobs; 1 to {LARGEST_RUN} are possible")
    check_text(flow)
    check_values(submission)
    check_fits(flow, submission.engine, context.machine.packer.total)
    for spec in flow.jobs:
        for name, _ in spec.pools:
            if name not in context.machine.packer.pools.sizes:
                raise UsageError(f"job {spec.name!r}: there is no pool {name!r}; aver pool set {name} N")
    check_allocation(submission)


def _check_afters(context: Context, flow: FlowSpec) -> None:
    """Refuse jobs that are to run after one that there never was."""
    if all(spec.after is None for spec in flow.jobs):
        return
    reader = context.open_reader()
    try:
        if context.machine.dependencies.learn(flow.jobs, past_jobs(reader)):
            raise UsageError(PROBLEM)
    finally:
        if reader is not None:
            reader.close()


def _engines(submission: Submission) -> list[Registration]:
    """The engines of its jobs, each once; UsageError for one that nobody registered."""
    found = []
    for name in dict.fromkeys(spec.engine or submission.engine for spec in submission.flow.jobs):
        engine = find_engine(name)
        if engine is None:
            raise UsageError(f"there is no engine {name!r}: name it under [engines] in the settings")
        found.append(engine)
    return found


def _home_checks(submission: Submission) -> list[Callable[[Home], None]]:
    """What the engines of jobs that are for no other host want of this home."""
    jobs = submission.flow.jobs
    here = [spec for spec in jobs if not (submission.host if spec.host is None else spec.host)]
    names = {spec.engine or submission.engine for spec in here}
    return [one.check_home for one in _engines(submission) if one.name in names and one.check_home is not None]
