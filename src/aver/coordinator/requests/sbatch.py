"""`sbatch`: a call of sbatch becomes a run. Refusals are whole lines of sbatch, with its exit status."""

from __future__ import annotations

from aver.client import batch_submission
from aver.coordinator.known_run import find_known, with_call
from aver.coordinator.requests.context import Context
from aver.coordinator.requests.dispatch import writes
from aver.coordinator.requests.submit import checked, numbered, take
from aver.coordinator.server import Peer
from aver.errors import UsageError
from aver.plan.matrix import FlowIndex
from aver.protocol.messages import BatchSubmitted, Done, Sbatch, Submitted


@writes(Sbatch)
def sbatch(context: Context, _: Peer, request: Sbatch, now: float) -> BatchSubmitted | Done:
    try:
        call = batch_submission.read_call(request, now)
        if request.script is None:
            return Done()  # only its options were to be checked
        asked = with_call(context.home, batch_submission.submission_of(call, request), request)
        known = find_known(context.machine, context.open_reader(), asked) if request.is_again else None
        if known is not None:
            return batch_submission.answer(call, asked, known)
        submission = checked(context, asked)
        batch_submission.check_node(call, context.machine.packer.total.cpus, batch_submission.tmp_bytes)
        env = batch_submission.environment(call, request)
        if call.has("test-only"):
            number = context.machine.next_id
            reply = Submitted(number, number, FlowIndex(submission.flow).count, lower_limits=())
        else:  # its outputs have names: nothing is to be prepared for them
            number, submission = numbered(context, submission)
            reply = take(context, submission, env, number, now)
    except UsageError as error:
        raise batch_submission.refused(error) from None
    return batch_submission.answer(call, submission, reply)
