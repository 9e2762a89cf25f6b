"""Turn an sbatch call into a submission. The sbatch command only parses; this module gives its options a meaning.

Refusals are complete lines in Slurm's wording, so that the client prints them unchanged.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable

from aver.client.output_paths import SBATCH_ARRAY_OUTPUT, SBATCH_OUTPUT
from aver.errors import UsageError
from aver.model.job import FlowSpec, JobSpec, Request, RetryRule, Script, Streams, Submission
from aver.model.record import replace
from aver.model.slurm_names import PARTITION
from aver.model.slurm_options import SlurmOptions
from aver.model.states import State
from aver.model.units import parse_size
from aver.protocol.messages import BatchSubmitted, Sbatch, Submitted
from aver.spec.flags import clean_name
from aver.spec.sbatch.array import matrix_of
from aver.spec.sbatch.call import BatchCall, BatchRefused, failed
from aver.spec.sbatch.environment import environment_of
from aver.spec.sbatch.mail import mail_rules

MOST_RESTARTS = 1000
REQUEUED = RetryRule(MOST_RESTARTS, (State.NODE_FAIL, State.BOOT_FAIL))


def read_call(request: Sbatch, now: float) -> BatchCall:
    """Parse the call's options; raise BatchRefused for those that Slurm would refuse."""
    call = BatchCall(now)
    for name, text in request.options:
        call.take(name, text)
    return call


def submission_of(call: BatchCall, request: Sbatch) -> Submission:
    """One job, or an array of them."""
    call.check_together()
    values = call.values
    if request.script is None or request.origin is None:
        raise UsageError("the request has no script")
    job = values.job(JobSpec(clean_name(request.name), Script(request.script, request.args)))
    command = "" if request.path is None else " ".join([request.path, *request.args])
    job = replace(
        job,
        streams=_streams(job.streams, is_array=call.indices is not None),
        env=(),
        matrix=None if call.indices is None else matrix_of(call.indices),
        after=call.afters,
        retry=REQUEUED if values.requeue else None,
        ignored=tuple(call.without_meaning()),
        slurm=replace(values.slurm(), command=command),
    )
    is_array = call.indices is not None
    try:
        notify = mail_rules(values.said, request.origin.user, is_array)
    except ValueError:
        raise failed("Invalid mail-user specification") from None
    return Submission(FlowSpec(job.name, (job,), is_single=not is_array, notify=notify), request.origin)


def tmp_bytes() -> int:
    """Size of the temporary folder of this machine."""
    return shutil.disk_usage("/tmp").total


def check_node(call: BatchCall, cpus: int, tmp_bytes: Callable[[], int]) -> None:
    """Raise BatchRefused if this machine can never have what the call asks of a node.

    `tmp_bytes` is asked only for a call with --tmp; OSError from it: nobody knows, and nothing is refused.
    """
    said = call.values.said
    if int(said.get("mincpus", 0)) > cpus:
        raise _not_available("CPU count per node")
    tmp = said.get("tmp", "0")
    if tmp == "0":
        return
    try:
        is_too_much = parse_size(tmp) > tmp_bytes()
    except OSError:
        return
    if is_too_much:
        raise _not_available("Temporary disk specification")


def _not_available(what: str) -> BatchRefused:
    why = "Requested node configuration is not available"
    first = f"sbatch: error: {what} can not be satisfied"
    return BatchRefused(f"{first}\nsbatch: error: Batch job submission failed: {why}")


def taken(request: Request, options: SlurmOptions, total: int) -> Request:
    """Return the request of the job on a machine with this many CPUs.

    Many tasks may share them, and one task can't have more than there are. A job that is exclusive takes all of them,
    and memory that was asked for by cpu for each; `--exclusive=user` means nothing on a machine of one user.
    """
    if options.has_whole_machine and request.cpus <= total:
        by_cpu = options.mem_per_cpu
        mem_bytes = request.mem_bytes if by_cpu is None else by_cpu * total or None
        return replace(request, cpus=total, mem_bytes=mem_bytes)
    if request.cpus > total and (options.ntasks or 1) > 1:
        return replace(request, cpus=total)
    return request


def environment(call: BatchCall, request: Sbatch) -> list[str]:
    """Select the part of the caller's environment that the job inherits."""
    return environment_of(call.values, dict(pair.partition("=")[::2] for pair in request.env))


def answer(call: BatchCall, submission: Submission, reply: Submitted) -> BatchSubmitted:
    """Return the data that the client needs for its output."""
    job = submission.flow.jobs[0]
    return BatchSubmitted(
        reply.run,
        reply.first_job,
        reply.jobs,
        cpus=job.request.whole_cpus,
        begin_at=job.begin_at,
        partition=call.values.said.get("partition") or PARTITION,
        clusters=call.values.said.get("clusters"),
        given=tuple(name for name in ("parsable", "quiet", "wait", "test-only", "verbose") if call.has(name)),
        ignored=job.ignored,
        lower_limits=reply.lower_limits,
    )


def refused(error: UsageError) -> BatchRefused:
    """Format the coordinator's refusal as sbatch prints it."""
    if isinstance(error, BatchRefused):
        return error
    if " asks for " in str(error):
        return _not_available("Memory specification" if " of memory" in str(error) else "CPU count per node")
    return failed(str(error))


def _streams(streams: Streams, is_array: bool) -> Streams:
    if streams.stdout is not None:
        return streams
    stdout = SBATCH_ARRAY_OUTPUT if is_array else SBATCH_OUTPUT
    return Streams(streams.stdin, stdout, streams.stderr, streams.append)
