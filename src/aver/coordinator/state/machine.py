"""The state machine of the coordinator: evidence and requests in, events to commit and orders for engines out.

No sockets, no disk, no clock: time is an argument. Law 3 is kept here: an attempt is handed to its engine only after
`committed` saw its intent, and a person's request is acted on only after it is durable. Law 4 as well: every change
goes through `fold.apply`, and `advance` does what follows from the state as it is, so that it does not matter whether
an event was just emitted or was replayed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from aver.coordinator.state import (
    cancellation,
    eligibility,
    fold,
    local_job,
    scheduler_job,
    start,
    steps,
    suspension,
)
from aver.coordinator.state.attempt import LiveAttempt, LiveStep, LiveTask
from aver.coordinator.state.end import (
    cancel_unstarted,
    end_all_unstarted,
    end_unstarted,
    is_ending,
    release,
    stop_reading,
    verdict_is_durable,
)
from aver.coordinator.state.fold import emit
from aver.coordinator.state.live import Ending, Identity, LiveState, Outbox, boot_of
from aver.coordinator.state.packers import Packers
from aver.coordinator.state.run import FindCapabilities, LiveRun
from aver.coordinator.state.succession import NONE, Taken, add_generated, take_over
from aver.engines.api import Control, Heard
from aver.judge.local import NeverRan
from aver.model import reasons
from aver.model.events import (
    AttemptPlanned,
    Event,
    GpusGiven,
    JobMoved,
    Observed,
    PersonAsked,
    RunMoved,
    RunSubmitted,
    StepStarted,
    TaskEnded,
)
from aver.model.evidence import (
    CancelledBefore,
    GeneratedRead,
    MachineRestarted,
    NeedsUnmet,
    Refused,
    Rules,
    WitnessVanished,
)
from aver.model.job import FlowSpec, StepSpec, Submission
from aver.model.states import State
from aver.plan.matrix import FlowIndex
from aver.plan.packing import Packer, Pools, Room
from aver.plan.planner import Cancel, CancelAll, Instruction, RunCancel, Skip, SkipAll, Start, Unskip


class Machine:
    def __init__(
        self, identity: Identity, total: Room, next_id: int, capabilities_of: FindCapabilities,
        max_running: int | None = None, max_submitted: int | None = None, usual: Rules = Rules(),
        requeues_lost: bool = False, pools: Mapping[str, int] = {},
    ) -> None:  # fmt: skip
        packer = Packers(Packer(total, max_running, Pools(pools)), max_submitted)
        self.live = LiveState(identity, packer, next_id, usual, capabilities_of, requeues_lost)
        self.identity = identity
        self.packer = packer
        self.runs = self.live.runs
        self.attempts = self.live.attempts
        self.by_job = self.live.by_job
        self.timers = self.live.timers
        self.dependencies = self.live.dependencies

    @property
    def out(self) -> Outbox:
        return self.live.out

    @property
    def next_id(self) -> int:
        return self.live.next_id

    def emit(self, event: Event) -> None:
        """Apply the event, and have it committed; `advance` does what follows."""
        emit(self.live, event)

    # ---- runs -------------------------------------------------------------------------------

    def reserve(self, flow: FlowSpec) -> int:
        """The number of a run of this flow; its jobs have the numbers after it."""
        number = self.live.next_id
        self.live.next_id = _end_of(number, flow)
        return number

    def give_back(self, number: int, flow: FlowSpec) -> None:
        """The run with this number never came to be; numbers that others have since are not moved."""
        if self.live.next_id == _end_of(number, flow):
            self.live.next_id = number

    def submit(self, submission: Submission, now: float, number: int | None = None, taken: Taken = NONE) -> LiveRun:
        """Take a run under the number that was reserved for it; it is final when its RunSubmitted is durable.

        Raise ValueError if the flow is not a graph.
        """
        if number is None:
            number = self.reserve(submission.flow)
        emit(self.live, RunSubmitted(now, number, _first_job(number, submission.flow), submission))
        run = self.runs[number]
        take_over(self.live, run, taken, now)
        self.take_up(run, now)
        return run

    def take_up(self, run: LiveRun, now: float) -> None:
        """Begin with a run that was submitted or replayed, or go on with it."""
        self._watch_deadlines(run)
        self.advance(now)

    def withdraw(self, number: int) -> None:
        """Forget a run whose submission could not be made durable: nothing of it has been acted on."""
        run = self.runs.pop(number)
        self.dependencies.withdraws(run)
        self.live.touched.pop(number, None)
        self.out.events = [event for event in self.out.events if event.run != number]
        for job in run.numbers():
            attempt = self.by_job.get(job)
            if attempt is not None:
                release(self.live, attempt)
                fold.remove_attempt(self.live, attempt)
            self.packer.remove(job)
            self.live.shown.pop(job, None)

    def find(self, number: int) -> tuple[LiveRun, int | None] | None:
        """The live run with this number (index None), or the live run and index of the job with it."""
        return self.live.roster.find(number)

    def forget(self, number: int) -> None:
        """The run is settled and durable: the store has all of it."""
        run = self.runs.get(number)
        if run is not None:
            self.dependencies.forgets(run)
            self.live.forget(number)

    def want_allocations(self, number: int) -> None:
        """What a run that is not settled wants of a cluster as a whole is durable, and asked for however often."""
        run = self.runs.get(number)
        if run is not None and run.submission.allocation is not None and not run.state.is_settled:
            self.out.allocations.append(number)

    def _watch_deadlines(self, run: LiveRun) -> None:
        if all(spec.deadline_at is None for segment in run.segments for spec in segment.flow.jobs):
            return
        for index in range(run.job_count):
            deadline = run.spec(index).starts_by
            if deadline is not None and run.settled_state(index) is None:
                self.timers.at(deadline, "deadline", run.job_number(index))

    # ---- what follows from the state --------------------------------------------------------------

    def advance(self, now: float) -> None:
        """Do what follows from the state, until nothing more does. Twice is harmless."""
        live = self.live
        while True:
            while live.touched:
                run = self.runs.get(next(iter(live.touched)))
                live.touched.pop(next(iter(live.touched)))
                if run is not None:
                    self._advance_run(run, now)
            if self.dependencies.dirty:
                eligibility.ask_again(self.live, self.dependencies.dirty.popleft(), now)
            elif not (local_job.unpark(live, now) or suspension.show(live, now)):
                return

    def _advance_run(self, run: LiveRun, now: float) -> None:
        """Tell the plan what it does not know, and carry out what it says, until both agree."""
        while True:
            if not run.has_begun:
                instructions: Iterable[Instruction] = self._begin(run)
            elif run.cancelled is not run.told_cancelled:
                run.told_cancelled = run.cancelled
                if run.cancelled is RunCancel.NO:
                    continue  # the plan learns that with what is reopened
                instructions = cancellation.begin(self.live, run)
            elif run.instructions:
                instructions, run.instructions = run.instructions, []
            elif run.moved:
                moved, run.moved = run.moved, []
                instructions = run.tell_plan(moved)
            else:
                break
            self._obey(run, instructions, now)
        self._check_run(run, now)

    def _begin(self, run: LiveRun) -> list[Instruction]:
        """Tell the plan how all jobs stand; attempts that were planned before are left to what their engines say."""
        run.has_begun = True
        run.moved.clear()
        run.told_cancelled = run.cancelled
        begun = cancellation.begun(self.live, run)
        instructions = run.plan.restore(run.states, run.cancelled, begun, cancellation.AT_ONCE)
        cancellation.leave_rest(self.live, run)
        return instructions

    def _obey(self, run: LiveRun, instructions: Iterable[Instruction], now: float) -> None:
        """Carry out what the plan says."""
        for instruction in instructions:
            match instruction:
                case Start(job=index):
                    eligibility.make_ready(self.live, run, index, now)
                case Skip(reason=reason, detail=detail):
                    end_unstarted(self.live, run, instruction.job, NeedsUnmet(now, reason, detail), now)
                case Unskip():
                    job = run.job_number(instruction.job)
                    emit(self.live, JobMoved(now, run.number, job, State.PENDING, reasons.DEPENDENCY))
                case Cancel():
                    end_unstarted(self.live, run, instruction.job, CancelledBefore(now, run.cancelled_by), now)
                case SkipAll(first=first, last=last, reason=reason, detail=detail):
                    end_all_unstarted(self.live, run, first, last, NeedsUnmet(now, reason, detail), now)
                case CancelAll(first=first, last=last):
                    end_all_unstarted(self.live, run, first, last, CancelledBefore(now, run.cancelled_by), now)

    def go_on_cancelling(self, now: float, most: int | None = cancellation.AT_ONCE) -> None:
        """End the next jobs of runs that were cancelled; None: all of them."""
        cancellation.go_on(self.live, most)
        self.advance(now)

    def _check_run(self, run: LiveRun, now: float) -> None:
        """Settle the run when its last job is settled, and ask those again who wait for jobs of it."""
        self.dependencies.changed(run)
        if not run.plan.is_settled or run.state.is_settled:
            return
        state = run.plan.run_state()
        assert state is not None
        emit(self.live, RunMoved(now, run.number, state, run.round))
        self.out.finished_runs.append(run.number)

    # ---- durable ----------------------------------------------------------------------------------

    def schedule(self, now: float) -> None:
        """Start what has room, and make the intents of the next ones durable ahead of time."""
        start.schedule(self.live, now)
        if self.live.touched:
            self.advance(now)

    def committed(self, events: Sequence[Event], now: float) -> list[str]:
        """Start what waited for these events to be durable; return the keys whose ends are durable."""
        ended = []
        live = self.live
        for event in events:
            if isinstance(event, AttemptPlanned):
                start.intent_is_durable(live, event, now)
            elif isinstance(event, GpusGiven):
                start.gpus_are_durable(live, event, now)
            elif isinstance(event, Observed):
                key = None if event.verdict is None else verdict_is_durable(live, event)
                if key is not None:
                    ended.append(key)
            elif isinstance(event, StepStarted):
                steps.intent_is_durable(live, event, now)
            elif isinstance(event, (RunSubmitted, RunMoved, PersonAsked)):
                self.want_allocations(event.run)
            elif isinstance(event, TaskEnded):
                key = live.key_of(event.job, event.attempt)
                if key is not None:
                    ended.append(f"{key}.s{event.step}.t{event.task}")
        if live.after_commit:
            waiting = {id(event) for event in events}
            self.out.controls += [control for event, control in live.after_commit if id(event) in waiting]
            live.after_commit = [pair for pair in live.after_commit if id(pair[0]) not in waiting]
        self.advance(now)
        return ended

    def is_waited_for(self, events: Iterable[Event]) -> bool:
        """Whether something can go on only after the commit of these."""
        return bool(self.live.after_commit) or any(
            isinstance(event, AttemptPlanned)
            and (attempt := self.attempts.get(event.key)) is not None
            and attempt.waits_to_start
            for event in events
        )

    def is_ending(self, key: str) -> bool:
        """Whether this attempt has a verdict that is not durable yet: its engine must not forget it."""
        return is_ending(self.live, key)

    def note_ending(self, job: int, attempt: int, key: str) -> None:
        """A verdict on an attempt that is not live is on its way to the disk."""
        self.live.ending[job, attempt] = Ending(key, False)

    # ---- evidence -----------------------------------------------------------------------------

    def heard(self, one: Heard, now: float) -> bool:
        """Take evidence, and do what follows from it; False as of `take`."""
        is_taken = self.take(one, now)
        self.advance(now)
        return is_taken

    def take(self, one: Heard, now: float) -> bool:
        """Take evidence; `advance` does what follows. False if its attempt is not live: then it changes nothing."""
        suspension.show(self.live, now)  # as evidence before has it: this may be the end
        attempt = self.attempts.get(one.key)
        if attempt is None:
            return scheduler_job.heard_of_task(self.live, one, now) or steps.heard(self.live, one, now)
        if attempt.is_parked:
            return True
        if isinstance(one.evidence, WitnessVanished) and self.is_of_ended_boot(attempt):
            one = self._restarted(attempt, now)
        run = self.runs[attempt.run]
        if attempt.can.has_scheduler:
            scheduler_job.heard(self.live, run, attempt, one, now)
            return True
        local_job.heard(self.live, run, attempt, one, now)
        return True

    def rejected(self, attempt: LiveAttempt, text: str, now: float) -> None:
        """The engine refused it."""
        self.heard(Heard(attempt.key, "engine", text, Refused(now, text)), now)

    def is_of_ended_boot(self, attempt: LiveAttempt) -> bool:
        """Whether its machine, which is this one, was restarted since it was planned."""
        return not attempt.can.outlives_machine and not self.identity.is_of_this_boot(attempt.key)

    def restarted(self, attempt: LiveAttempt, now: float) -> None:
        """Its machine was restarted and there is no record of its end."""
        self.heard(self._restarted(attempt, now), now)

    def _restarted(self, attempt: LiveAttempt, now: float) -> Heard:
        was_seen = attempt.state is not State.PENDING
        evidence = MachineRestarted(now, boot_of(attempt.key), self.identity.boot[:8], was_seen)
        return Heard(attempt.key, "machine", f"boot {evidence.boot_then} then, {evidence.boot_now} now", evidence)

    # ---- after a restart --------------------------------------------------------------------------

    def occupy(self, attempt: LiveAttempt) -> None:
        """The engine has the attempt, or may have it."""
        start.occupy(self.live, attempt)

    def wait_again(self, attempt: LiveAttempt, now: float) -> None:
        """No engine ever got the attempt: it is next, unless it was cancelled meanwhile."""
        start.wait_again(self.live, attempt)
        if attempt.cancel_asked:
            cancel_unstarted(self.live, attempt, now)
            self.advance(now)

    def plan_again(self, attempt: LiveAttempt, now: float) -> bool:
        """Plan an attempt anew that was planned before a restart of the machine; False where that must not be."""
        is_planned = start.plan_again(self.live, attempt, self._restarted(attempt, now).said, now)
        self.advance(now)
        return is_planned

    def ask_for_again(self, attempt: LiveAttempt) -> None:
        """Pass on all that was asked for of an attempt that its engine has: whether it was before nobody knows."""
        keys, number = attempt.running_keys(), steps.KILL if attempt.kill_asked else 0
        ended = keys if attempt.cancel_asked or attempt.requeue else ()
        controls = [Control(key, "cancel", number, is_requeue=not attempt.cancel_asked) for key in ended]
        if attempt.suspend_asked is not None:
            verb = "suspend" if attempt.suspend_asked else "resume"
            controls += [Control(key, verb) for key in keys]
        if attempt.limit_asked:
            controls.append(Control(attempt.key, "limit", time_s=attempt.request.time_s))
        for step in attempt.live_steps():
            controls += steps.kills(step) + steps.limits(step)
            if step.first_end_at is not None:
                steps.watch_wait(self.live, step, step.first_end_at)
        self.out.controls += controls

    # ---- unstarted --------------------------------------------------------------------------------

    def end_unstarted(self, run: LiveRun, index: int, evidence: NeverRan, now: float) -> None:
        """A job that has not started gets its verdict. It never starts."""
        end_unstarted(self.live, run, index, evidence, now)

    # ---- clocks -----------------------------------------------------------------------------------

    def next_due(self) -> float | None:
        return self.timers.next_due()

    def tick(self, now: float) -> None:
        """What is due by now."""
        for kind, job in self.timers.take(now):
            found = self.find(job)
            if found is None:
                continue
            run = found[0]
            index = run.index_of(job)
            assert index is not None
            if kind.startswith(steps.WAIT):
                steps.wait_is_over(self.live, kind.removeprefix(steps.WAIT), now)
            elif kind == "deadline":
                eligibility.deadline_passed(self.live, run, index, now)
            elif kind == "depend":
                eligibility.ask_again(self.live, job, now)
            elif index not in run.held and run.plan.is_started(index):
                eligibility.make_ready(self.live, run, index, now)
        self.advance(now)

    def refresh_reasons(self, now: float) -> None:
        """Say of the first of each lane that it waits for resources; called when things are quiet."""
        for job, reason in self.packer.heads():
            found = self.find(job)
            if found is not None:
                self.show_reason(found[0], job, reason, now)

    # ---- small things -----------------------------------------------------------------------------

    def engine_of(self, key: str) -> str | None:
        """The engine of an attempt, or of a task that it was handed; None: it has none of that key."""
        attempt = self.attempts.get(key)
        if attempt is not None:
            return attempt.engine
        found = self.live.tasks.get(key)
        return None if found is None or found[0].attempt.can.tells_steps else found[0].attempt.engine

    def after(self, event: Event, controls: Iterable[Control]) -> None:
        """Give these controls when the event is durable."""
        self.live.after_commit += [(event, control) for control in controls]

    def show_reason(self, run: LiveRun, job: int, reason: str, now: float) -> None:
        """Show why a job is PENDING."""
        eligibility.show_reason(self.live, run, job, reason, now)

    def deadline_passed(self, run: LiveRun, index: int, now: float) -> None:
        """End the job if it has not begun, held or not."""
        eligibility.deadline_passed(self.live, run, index, now)

    def look_again(self, run: LiveRun, index: int, now: float) -> None:
        """A job that waits is looked at anew: for others, for its time, or for room."""
        eligibility.look_again(self.live, run, index, now)

    def stop_reading(self, attempt: LiveAttempt, by: str, now: float) -> None:
        """A person cancels an attempt whose generated jobs are being read: nothing of them is added."""
        stop_reading(self.live, attempt, by, now)

    def add_generated(self, run: LiveRun, index: int, found: FlowSpec | str, now: float) -> GeneratedRead:
        """Add the jobs that a completion brought, all or none; what there is to say of them to the judge.

        Nothing is done about them before `advance`: their maker's verdict comes first.
        """
        return add_generated(self.live, run, index, found, now)

    # ---- steps --------------------------------------------------------------------------------------

    def begin_step(self, key: str, token: str, spec: StepSpec, streams: tuple[int, ...], now: float) -> LiveStep:
        """Take a step of the attempt with this key; the same token is the same step. UsageError says why not."""
        return steps.begin(self.live, key, token, spec, streams, now)

    def step_by_token(self, token: str) -> LiveStep | None:
        return self.live.steps.get(token)

    def find_step(self, attempt_key: str, number: int) -> LiveStep | None:
        """The step of this attempt, if it has not ended."""
        return steps.find(self.live, attempt_key, number)

    @property
    def has_waiting_steps(self) -> bool:
        return steps.has_waiting(self.live)

    def abandon_step(self, key: str, number: int, now: float) -> tuple[int, ...]:
        unused = steps.abandon(self.live, key, number, now)
        self.advance(now)
        return unused

    def cancel_step(self, step: LiveStep, by: str, now: float) -> None:
        steps.cancel(self.live, step, by, now)
        self.advance(now)

    def kill_step(self, step: LiveStep, by: str, now: float) -> None:
        """A person cancels the step: KILL at once, as Slurm does, after the request is durable."""
        steps.kill(self.live, step, by, now)
        self.advance(now)

    def signal_step(self, step: LiveStep, number: int) -> None:
        steps.signal(self.live, step, number)

    def task_rejected(self, task: LiveTask, text: str, now: float) -> None:
        """The engine refused it."""
        steps.rejected(self.live, task, text, now)
        self.advance(now)


def _first_job(number: int, flow: FlowSpec) -> int:
    """A single job has its run's number."""
    return number if flow.is_single else number + 1


def _end_of(number: int, flow: FlowSpec) -> int:
    """The first number after those of a run's jobs."""
    return _first_job(number, flow) + FlowIndex(flow).count
