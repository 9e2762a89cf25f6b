"""`accept`: a person's evidence for a job of which nobody knows how it ended."""

from __future__ import annotations

from aver.coordinator.background import Failed, Later
from aver.coordinator.order.generated import Sealed
from aver.coordinator.requests.context import Context, Said
from aver.coordinator.requests.dispatch import writes
from aver.coordinator.requests.retry import reopen_run
from aver.coordinator.server import Peer
from aver.coordinator.state.machine import Machine
from aver.coordinator.state.run import LiveRun
from aver.judge.local import judge_acceptance
from aver.judge.scheduler import judge_cluster_acceptance
from aver.model.events import Observed, PersonAsked
from aver.model.evidence import Accepted, GeneratedRead, Verdict
from aver.model.states import State
from aver.protocol.messages import Accept, ResultCode, Results

UNSEEN = (State.UNVERIFIED, State.NODE_FAIL)  # in these nobody may have seen the end; the judge knows for sure


@writes(Accept)
def accept(context: Context, _: Peer, request: Accept, now: float) -> Results | Later:
    """What a job has generated is read first: whether it completed depends on that."""
    questions = []
    for number in request.ids:
        found = context.machine.find(number)
        if found is None and context.settled_state(number) in UNSEEN:
            context.revive(number, now)
            found = context.machine.find(number)
        run, index = found or (None, None)
        if run is None or index is None or run.plan.state(index) not in UNSEEN:
            continue
        if run.spec(index).generates is not None:
            questions.append((number, context.generated.question(run, index)))
    if not questions:
        return _accept(context, request, {}, now)

    def read() -> dict[int, Sealed | str]:
        return {number: context.generated.ask(question) for number, question in questions}

    def then(found: dict[int, Sealed | str] | Failed, then: float) -> Results:
        return _accept(context, request, found, then)

    return Later(f"generated {questions[0][1].path}", read, then)


def _accept(context: Context, request: Accept, generated: dict[int, Sealed | str] | Failed, now: float) -> Results:
    by, machine = request.by, context.machine

    def act(run: LiveRun, index: int | None) -> Said:
        if index is None:
            return Said("a run: name the job", ResultCode.REFUSED)
        state = run.plan.state(index)
        stored = None if state is None else _stored_verdict(context, run.job_number(index))
        if stored is None:
            return Said("not settled yet", ResultCode.REFUSED)
        accepts = judge_cluster_acceptance if run.can(index).has_scheduler else judge_acceptance
        accepted, read = Accepted(now, by), GeneratedRead(now)
        if accepts(stored, accepted, read) is None:
            if state is State.COMPLETED:
                return Said("already COMPLETED", ResultCode.ALREADY)
            only = "only a job whose end nobody saw (UNVERIFIED, NODE_FAIL) can be accepted"
            return Said(f"already {state}: {only}", ResultCode.SETTLED)
        if run.spec(index).generates is not None:
            found = generated if isinstance(generated, Failed) else generated.get(run.job_number(index))
            if found is None:
                return Said("not accepted: it generates jobs, which were not read; ask again", ResultCode.REFUSED)
            reopen_run(machine, run, now)
            batch = context.generated.keep(run.number, found)
            read = machine.add_generated(run, index, batch, now)
        verdict = accepts(stored, accepted, read)
        assert verdict is not None
        _correct(machine, run, index, verdict, f"accepted by {by}", request, now)
        _let_go(context, run.job_number(index))
        return Said(f"accepted as {verdict.state}")

    return context.each(request.ids, now, act, revive=True)


def _let_go(context: Context, job: int) -> None:
    """The attempt's engine may forget it once the word is durable."""
    reader = context.open_reader()
    if reader is not None:
        with reader:
            for row in reader.attempts(job)[-1:]:
                context.machine.note_ending(job, row.attempt, row.key)


def _stored_verdict(context: Context, job: int) -> Verdict | None:
    reader = context.open_reader()
    if reader is None:
        return None
    with reader:
        row = reader.job(job)
    return None if row is None else row.verdict


def _correct(
    machine: Machine, run: LiveRun, index: int, verdict: Verdict, said: str, request: Accept, now: float
) -> None:
    """A person's evidence changed a settled job's verdict; its skipped dependents come back.

    What a completion generated was added before: it is part of the verdict.
    """
    job = run.job_number(index)
    machine.emit(PersonAsked(now, run.number, job, request.by, "accept", said, request.reason))
    attempt = max(1, run.attempts.get(index, 1))
    machine.emit(Observed(now, run.number, job, attempt, "person", said, verdict.state, verdict.reason, verdict))
    reopen_run(machine, run, now)
    machine.advance(now)
