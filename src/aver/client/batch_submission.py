"""From a call of sbatch to a submission. sbatch only reads; what its options mean is worked out here.

Everything that is refused is refused in Slurm's words, whole lines, so that the client has nothing to decide.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from aver.client.output_paths import SBATCH_ARRAY_OUTPUT, SBATCH_OUTPUT
from aver.errors import UsageError
from aver.model.codec import decode
from aver.model.job import FlowSpec, JobSpec, Origin, Request, RetryRule, Script, Streams, Submission
from aver.model.slurm_names import PARTITION
from aver.model.slurm_options import SlurmOptions
from aver.model.states import State
from aver.spec.flags import clean_name
from aver.spec.sbatch.array import matrix_of
from aver.spec.sbatch.call import BatchCall, BatchRefused, failed
from aver.spec.sbatch.environment import environment_of

MOST_RESTARTS = 1000
REQUEUED = RetryRule(MOST_RESTARTS, (State.NODE_FAIL, State.BOOT_FAIL))


def read_call(request: dict[str, Any], now: float) -> BatchCall:
    """The call's options; BatchRefused says which Slurm would refuse."""
    options = request.get("options")
    if not isinstance(options, list):
        raise UsageError("the request has no options")
    call = BatchCall(now)
    for pair in options:
        if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(one, str) for one in pair)):
            raise UsageError("the request's options can't be read")
        call.take(pair[0], pair[1])
    return call


def submission_of(call: BatchCall, request: dict[str, Any], now: float) -> Submission:
    """One job, or an array of them."""
    values = call.values
    if values.deadline is not None and values.deadline <= now:
        raise failed("Requested time limit is invalid (missing or exceeds some limit)")
    text, name, args = request.get("script"), request.get("name"), request.get("args")
    path = request.get("path")
    is_read = isinstance(text, str) and isinstance(name, str) and isinstance(args, list)
    if not is_read or not all(isinstance(word, str) for word in args or ()):
        raise UsageError("the request has no script")
    try:
        origin = decode(Origin, request.get("origin"))
    except ValueError as error:
        raise UsageError(f"the request's origin can't be read: {error}") from None
    words = tuple(str(word) for word in args or ())
    job = values.job(JobSpec(clean_name(str(name)), Script(str(text), words)))
    job = replace(
        job,
        streams=_streams(job.streams, is_array=call.indices is not None),
        env=(),
        matrix=None if call.indices is None else matrix_of(call.indices),
        after=call.afters,
        retry=REQUEUED if values.requeue else None,
        ignored=tuple(call.without_meaning()),
        slurm=replace(values.slurm(), command=" ".join([path, *words]) if isinstance(path, str) else ""),
    )
    return Submission(FlowSpec(job.name, (job,), is_single=call.indices is None), origin)


def taken(request: Request, options: SlurmOptions, total: int) -> Request:
    """What the job takes of a machine with so many cpus.

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


def environment(call: BatchCall, request: dict[str, Any]) -> list[str]:
    """What the job inherits of the caller's environment."""
    pairs = request.get("env")
    if not isinstance(pairs, list) or not all(isinstance(pair, str) and "\0" not in pair for pair in pairs):
        raise UsageError("the request's environment can't be read")
    return environment_of(call.values, dict(pair.partition("=")[::2] for pair in pairs))


def answer(call: BatchCall, submission: Submission, reply: dict[str, Any]) -> dict[str, Any]:
    """What the client needs to answer its user."""
    job = submission.flow.jobs[0]
    return {
        **reply,
        "cpus": job.request.cpus,
        "begin_at": job.begin_at,
        "partition": call.values.said.get("partition") or PARTITION,
        "clusters": call.values.said.get("clusters"),
        "given": [name for name in ("parsable", "quiet", "wait", "test-only", "verbose") if call.has(name)],
        "ignored": list(job.ignored),
    }


def refused(error: UsageError) -> BatchRefused:
    """The lines of sbatch for what the coordinator refuses."""
    if isinstance(error, BatchRefused):
        return error
    if " asks for " in str(error):
        what = "Memory specification" if " of memory" in str(error) else "CPU count per node"
        why = "Requested node configuration is not available"
        first = f"sbatch: error: {what} can not be satisfied"
        return BatchRefused(f"{first}\nsbatch: error: Batch job submission failed: {why}")
    return failed(str(error))


def _streams(streams: Streams, is_array: bool) -> Streams:
    if streams.stdout is not None:
        return streams
    stdout = SBATCH_ARRAY_OUTPUT if is_array else SBATCH_OUTPUT
    return Streams(streams.stdin, stdout, streams.stderr, streams.append)
