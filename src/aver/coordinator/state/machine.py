"""The coordinator's mind: what was heard and asked comes in; events to commit and orders to give come out.

No sockets, no disk, no clock: time is an argument. Law 3 is kept here: an attempt is handed
to its engine only after `committed` saw its intent, and a person's request is acted on only after it is durable.
Packing, planning, judging and retrying are `core`'s; this ties them together: runs, what the plan says, evidence and
clocks are here, `starting` and `ending` are the two ends of an attempt.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from aver.coordinator.state.dependency import Depending
from aver.coordinator.state.end import Ending
from aver.coordinator.state.live import LiveAttempt, LiveRun
from aver.coordinator.state.packers import Packers
from aver.coordinator.state.roster import Roster
from aver.coordinator.state.scheduler_job import Clustering
from aver.coordinator.state.start import Starting
from aver.coordinator.state.steps import Steps
from aver.coordinator.state.succession import Following
from aver.coordinator.state.timers import Timers
from aver.engines.api import LOCAL, Control, Heard
from aver.judge.local import judge, judge_unstarted
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
    TaskEnded,
    Usage,
)
from aver.model.evidence import (
    CancelledBefore,
    DeadlinePassed,
    LimitMoved,
    LimitPassed,
    MachineRestarted,
    NeedsUnmet,
    Refused,
    Verdict,
    WitnessStart,
    WitnessVanished,
)
from aver.model.job import FlowSpec, Submission
from aver.model.states import State
from aver.plan.matrix import FlowIndex
from aver.plan.packing import Packer, Room
from aver.plan.planner import Cancel, Instruction, Skip, Start, Unskip


@dataclass(frozen=True, slots=True)
class Identity:
    """Who we are: the prefix of keys, this boot, this host."""

    home: str
    boot: str
    host: str

    def key(self, job: int, attempt: int) -> str:
        return f"{self.home}.{job}.{attempt}.{self.boot[:8]}"

    def is_of_this_boot(self, key: str) -> bool:
        return key.split(".")[3:4] == [self.boot[:8]]


@dataclass(slots=True)
class Outbox:
    """What the loop has to carry out."""

    events: list[Event] = field(default_factory=list)
    starts: list[LiveAttempt] = field(default_factory=list)
    controls: list[Control] = field(default_factory=list)
    finished_runs: list[int] = field(default_factory=list)
    adoptions: list[tuple[str, str]] = field(default_factory=list)
    allocations: list[int] = field(default_factory=list)  # runs whose wishes for these are durable


class Driver:
    def __init__(
        self, identity: Identity, total: Room, next_id: int, max_running: int | None = None,
        max_submitted: int | None = None, fallback_completes: bool = False,
    ) -> None:  # fmt: skip
        self.identity = identity
        self.packer = Packers(Packer(total, max_running), max_submitted)
        self._fallback_completes = fallback_completes
        self.out = Outbox()
        self.roster = Roster()
        self.runs = self.roster.runs
        self.attempts: dict[str, LiveAttempt] = {}  # by key
        self.by_job: dict[int, LiveAttempt] = {}
        self.next_id = next_id
        self.timers = Timers()
        self.after_commit: list[tuple[Event, Control]] = []
        self._shown_reasons: dict[int, str] = {}
        self.starting = Starting(self, self.packer, total.gpus)
        self.ending = Ending(self)
        self.steps = Steps(self)
        self.depending = Depending(self)
        self.clustering = Clustering(self)
        self.following = Following(self)

    # ---- runs -------------------------------------------------------------------------------

    def reserve(self, flow: FlowSpec) -> int:
        """The number of a run of this flow; its jobs have the numbers after it."""
        number = self.next_id
        self.next_id = _end_of(number, flow)
        return number

    def give_back(self, number: int, flow: FlowSpec) -> None:
        """The run with this number never came to be; numbers that others have since are not moved."""
        if self.next_id == _end_of(number, flow):
            self.next_id = number

    def submit(self, submission: Submission, now: float, number: int | None = None) -> LiveRun:
        """Take a run under the number that was reserved for it; it is final when its RunSubmitted is durable."""
        if number is None:
            number = self.reserve(submission.flow)
        first_job = _first_job(number, submission.flow)
        run = LiveRun(number, first_job, submission)
        self.adopt(run)
        self.emit(RunSubmitted(now, number, first_job, submission))
        run.held = {index for index in range(run.job_count) if run.spec(index).hold} if run.has_holds else set()
        self.start_clocks(run)
        self.obey(run, run.plan.begin(), now)
        self.check_run(run, now)
        return run

    def withdraw(self, number: int) -> None:
        """Forget a run whose submission could not be made durable: nothing of it has been acted on."""
        run = self.runs.pop(number)
        self.depending.withdraws(run)
        self.out.events = [event for event in self.out.events if event.run != number]
        for job in run.numbers():
            attempt = self.by_job.get(job)
            if attempt is not None:
                self.ending.let_go(attempt)
            self.packer.remove(job)

    def adopt(self, run: LiveRun) -> None:
        """Hold this run from now on."""
        run.fallback_completes = self._fallback_completes
        self.roster.add(run)

    def find(self, number: int) -> tuple[LiveRun, int | None] | None:
        """The live run with this number (index None), or the live run and index of the job with it."""
        return self.roster.find(number)

    def forget(self, number: int) -> None:
        """The run is settled and durable: the store has all of it."""
        run = self.runs.get(number)
        if run is not None:
            self.depending.forgets(run)
            self.roster.remove(number)

    def want_allocations(self, number: int) -> None:
        """What a run that is not settled wants of a cluster as a whole is durable, and asked for however often."""
        run = self.runs.get(number)
        if run is not None and run.submission.allocation is not None and not run.state.is_settled:
            self.out.allocations.append(number)

    def start_clocks(self, run: LiveRun) -> None:
        """Watch the deadlines of jobs that are not settled."""
        if all(spec.deadline_at is None for segment in run.segments for spec in segment.flow.jobs):
            return
        for index in range(run.job_count):
            deadline = run.spec(index).deadline_at
            if deadline is not None:
                self.at(deadline, "deadline", run.job_number(index))

    def take_up(self, run: LiveRun, instructions: Iterable[Instruction], due: dict[int, float], now: float) -> None:
        """Go on with a run that was made again from the store; `due` are jobs that wait for another attempt.

        Jobs with a live attempt are left to `starting`.
        """
        self.start_clocks(run)
        for instruction in instructions:
            job = run.job_number(instruction.job)
            if isinstance(instruction, Start) and job in self.by_job:
                continue
            if isinstance(instruction, Start) and instruction.job in due:
                self.at(due[instruction.job], "again", job)
                continue
            self.obey(run, [instruction], now)
        self.check_run(run, now)

    # ---- the plan's instructions --------------------------------------------------------------

    def obey(self, run: LiveRun, instructions: Iterable[Instruction], now: float) -> None:
        """Carry out what the plan says, and what follows from it."""
        for instruction in instructions:
            match instruction:
                case Start(job=index):
                    self.make_ready(run, index, now)
                case Skip(reason=reason, detail=detail):
                    verdict = judge_unstarted(NeedsUnmet(now, reason, detail))
                    self.move(run, instruction.job, verdict.state, verdict.reason, now, verdict)
                case Unskip():
                    self.move(run, instruction.job, State.PENDING, reasons.DEPENDENCY, now)
                case Cancel():
                    self.ending.end_unstarted(run, instruction.job, CancelledBefore(now, "its run's cancellation"), now)

    def make_ready(self, run: LiveRun, index: int, now: float) -> None:
        """Its needs are settled: it waits for room, unless it is held, runs after others or its time has not come."""
        job = run.job_number(index)
        spec = run.spec(index)
        if index in run.held:
            self.show_reason(run, job, reasons.JOB_HELD_USER, now)
        elif not self.depending.is_met(run, index, now):
            pass  # it is asked again when those change
        elif spec.begin_at is not None and spec.begin_at > now:
            self.at(spec.begin_at, "begin", job)
            self.show_reason(run, job, reasons.BEGIN_TIME, now)
        else:
            if spec.needs.all_of or spec.needs.any_of or job in self._shown_reasons:
                self.show_reason(run, job, reasons.PRIORITY, now)
            self.starting.enqueue(run, index)

    def engine_of(self, key: str) -> str:
        attempt = self.attempts.get(key)
        return LOCAL if attempt is None else attempt.engine

    def committed(self, events: Sequence[Event], now: float) -> list[str]:
        """These are durable: start what waited for it. Returns the keys whose ends are durable."""
        ended = []
        self.steps.committed(events, now)
        for event in events:
            if isinstance(event, AttemptPlanned):
                self.starting.planned(event, now)
            elif isinstance(event, GpusGiven):
                self.starting.given(event, now)
            elif isinstance(event, Observed) and event.verdict is not None:
                key = self.ending.committed(event)
                if key is not None:
                    ended.append(key)
            elif isinstance(event, (RunSubmitted, RunMoved, PersonAsked)):
                self.want_allocations(event.run)
            elif isinstance(event, TaskEnded):
                ended.append(f"{self.identity.key(event.job, event.attempt)}.s{event.step}.t{event.task}")
        if self.after_commit:
            waiting = {id(event) for event in events}
            self.out.controls += [control for event, control in self.after_commit if id(event) in waiting]
            self.after_commit = [pair for pair in self.after_commit if id(pair[0]) not in waiting]
        return ended

    # ---- evidence -----------------------------------------------------------------------------

    def heard(self, one: Heard, now: float) -> bool:
        """Take evidence; False if it is of an attempt that is not live, which changes nothing."""
        attempt = self.attempts.get(one.key)
        if attempt is None:
            return self.clustering.heard_of_task(one, now) or self.steps.heard(one, now)
        if attempt.parked is not None:
            return True
        if isinstance(one.evidence, WitnessVanished) and not self.identity.is_of_this_boot(attempt.key):
            self.restarted(attempt, now)
            return True
        run = self.runs[attempt.run]
        if attempt.engine != LOCAL:
            self.clustering.heard(run, attempt, one, now)
            return True
        if isinstance(one.evidence, (LimitMoved, LimitPassed)):
            self._limited(attempt, one.evidence, now)
            return True
        attempt.evidence.append(one.evidence)
        if isinstance(one.evidence, WitnessStart):
            self._limited(attempt, LimitMoved(one.evidence.due_s), now)
            self._started(run, attempt, one, now)
            return True
        verdict = judge(attempt.evidence, run.rules(attempt.index))
        if verdict is None:
            return True
        if self.steps.is_busy(attempt.key):
            self.ending.park(run, attempt, one, verdict, now)
        else:
            self.ending.settle(run, attempt, one.source, one.said, one.evidence, verdict, now)
        return True

    def rejected(self, attempt: LiveAttempt, text: str, now: float) -> None:
        """The engine refused it."""
        self.heard(Heard(attempt.key, "engine", text, Refused(now, text)), now)

    def restarted(self, attempt: LiveAttempt, now: float) -> None:
        """Its machine was restarted and there is no record of its end."""
        was_seen = attempt.state is not State.PENDING
        evidence = MachineRestarted(now, attempt.key.rpartition(".")[2], self.identity.boot[:8], was_seen)
        said = f"boot {evidence.boot_then} then, {evidence.boot_now} now"
        self.heard(Heard(attempt.key, "machine", said, evidence), now)

    def _limited(self, attempt: LiveAttempt, said: LimitMoved | LimitPassed, now: float) -> None:
        """Its witness owns the time limit; its steps go by what that says."""
        if isinstance(said, LimitMoved):
            self.steps.move_limit(attempt, said.due_s)
        else:
            attempt.is_over_time = True
            self.steps.end_begun(attempt, now)

    def _started(self, run: LiveRun, attempt: LiveAttempt, one: Heard, now: float) -> None:
        assert isinstance(one.evidence, WitnessStart)
        if attempt.state is not State.PENDING:
            return
        attempt.state = State.RUNNING
        attempt.started_at = one.evidence.at
        usage = Usage(started_at=one.evidence.at, node=self.identity.host)
        self.emit(
            Observed(
                now,
                run.number,
                attempt.job,
                attempt.attempt,
                one.source,
                one.said,
                State.RUNNING,
                reasons.NONE,
                None,
                usage,
            )
        )
        self._shown_reasons.pop(attempt.job, None)
        if run.state is State.PENDING:
            run.state = State.RUNNING
            self.emit(RunMoved(now, run.number, State.RUNNING, run.round))
        self.depending.started(run, attempt.job, one.evidence.at)
        self.depending.changed(run, now)

    def end(self, run: LiveRun, index: int, verdict: Verdict, now: float) -> None:
        """The job has this verdict, and what follows from it follows."""
        self.obey(run, run.plan.settle(index, verdict.state), now)
        self.check_run(run, now)

    def check_run(self, run: LiveRun, now: float) -> None:
        """Settle the run when its last job is settled, and ask those again who wait for jobs of it."""
        self.depending.changed(run, now)
        if not run.plan.is_settled or run.state.is_settled:
            return
        state = run.plan.run_state()
        assert state is not None
        run.state = state
        self.emit(RunMoved(now, run.number, state, run.round))
        self.out.finished_runs.append(run.number)

    def allowed_cpus(self, attempt: LiveAttempt) -> int:
        """The cpus that the job asked for; the machine may have fewer, and then its tasks share them."""
        facts = dict(self.runs[attempt.run].spec(attempt.index).facts)
        tasks, per_task = facts.get("ntasks", ""), facts.get("cpus_per_task", "1")
        asked = int(tasks) * int(per_task) if tasks.isdecimal() and per_task.isdecimal() else 0
        return max(asked, attempt.request.cpus)

    def running_keys(self, attempt: LiveAttempt) -> list[str]:
        """The keys of the attempt and of its steps' tasks: all that is to be reached when the job is meant."""
        return [attempt.key, *self.steps.running_keys(attempt.key)]

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
            if kind.startswith("wait "):
                self.steps.wait_is_over(kind)
            elif kind == "deadline":
                self.deadline_passed(run, index, now)
            elif kind == "depend":
                self.depending.due(job, now)
            elif run.plan.state(index) is None and index not in run.held and job not in self.by_job:
                self.show_reason(run, job, reasons.PRIORITY, now)
                self.starting.enqueue(run, index)

    def deadline_passed(self, run: LiveRun, index: int, now: float) -> None:
        """End the job if it has not begun; one that is held is looked at when it is released, as in Slurm."""
        job = run.job_number(index)
        attempt = self.by_job.get(job)
        state = run.plan.state(index)
        if (state is not None and state.is_settled) or (attempt is not None and attempt.is_dispatched):
            return
        if index in run.held:
            return
        self.ending.end_unstarted(run, index, DeadlinePassed(now), now)
        self.obey(run, run.plan.settle(index, State.DEADLINE), now)
        self.check_run(run, now)

    def refresh_reasons(self, now: float) -> None:
        """Say of the first of each lane that it waits for resources; called when things are quiet."""
        for job, reason in self.packer.heads():
            found = self.find(job)
            if found is not None:
                self.show_reason(found[0], job, reason, now)

    def note_reason(self, job: int, reason: str) -> None:
        """The store shows this pending reason already."""
        self._shown_reasons[job] = reason

    def forget_reason(self, job: int) -> None:
        """It is pending no more, or for another reason."""
        self._shown_reasons.pop(job, None)

    def shown_reason(self, job: int) -> str | None:
        return self._shown_reasons.get(job)

    # ---- small things -------------------------------------------------------------------------------

    def emit(self, event: Event) -> None:
        self.out.events.append(event)

    def at(self, when: float, kind: str, job: int) -> None:
        self.timers.at(when, kind, job)

    def forget_begin(self, job: int) -> None:
        """The time that a job waited for counts no more."""
        self.timers.drop(job, "begin")

    def move(
        self, run: LiveRun, index: int, state: State, reason: str, now: float, verdict: Verdict | None = None
    ) -> None:
        job = run.job_number(index)
        self._shown_reasons.pop(job, None)
        self.emit(JobMoved(now, run.number, job, state, reason, verdict))

    def show_reason(self, run: LiveRun, job: int, reason: str, now: float) -> None:
        if self._shown_reasons.get(job) != reason:
            self._shown_reasons[job] = reason
            self.emit(JobMoved(now, run.number, job, State.PENDING, reason))


def _first_job(number: int, flow: FlowSpec) -> int:
    """A single job has its run's number."""
    return number if flow.is_single else number + 1


def _end_of(number: int, flow: FlowSpec) -> int:
    """The first number after those of a run's jobs."""
    return _first_job(number, flow) + FlowIndex(flow).count
