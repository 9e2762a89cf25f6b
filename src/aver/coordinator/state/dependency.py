"""Jobs that wait for jobs of other runs, by their numbers: Slurm's --dependency.

The driver asks `is_met` when a job's own needs are settled, and tells of every change. What has left the driver's
memory is learned from the store once, by whoever takes a run up or in, so that coming back after a crash
gives the same answers. A term that can no longer be met leaves its job PENDING (DependencyNeverSatisfied), or ends
it where it asks for that; when a correction or a retry changes the past, it is asked again.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from aver.coordinator.state.live import LiveRun
from aver.judge.local import judge_unstarted
from aver.model import reasons
from aver.model.evidence import DependencyFailed
from aver.model.job import After, AfterKind, JobSpec
from aver.model.states import State
from aver.spec.sbatch.array import is_array
from aver.store.read.reader import Reader

if TYPE_CHECKING:
    from aver.coordinator.state.machine import Driver

PROBLEM = "Job dependency problem"  # Slurm's words


class Answer(Enum):
    MET = "met"
    WAITING = "waiting"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Target:
    """The jobs that a term names: of which run, their numbers, and those of an array by their index."""

    run: int
    jobs: tuple[int, ...]
    by_index: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Standing:
    """How one job stands. `since`: when it started, or was settled without a start."""

    state: State | None  # settled, or None
    is_started: bool
    since: float | None = None


Named = tuple[int, int | None]


class Depending:
    """Who waits for whom, over all live runs."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._targets: dict[Named, Target] = {}
        self._past: dict[int, Standing] = {}  # jobs that the driver no longer holds
        self._since: dict[int, float] = {}  # when jobs that are named started
        self._waiting: dict[int, dict[int, None]] = {}  # jobs that wait, by the run for which they wait
        self._singletons: dict[tuple[str, str], dict[int, None]] = {}
        self._jobs: set[int] = set()  # all that wait
        self._dirty: deque[int] = deque()
        self._is_busy = False

    # ---- learning -----------------------------------------------------------------------------

    def learn(self, specs: tuple[JobSpec, ...], reader: Reader | None) -> list[Named]:
        """Find all that these jobs name, in memory or in the store; return what is nowhere."""
        unknown = []
        for spec in specs:
            for term in spec.after.terms if spec.after is not None else ():
                for named in term.jobs:
                    target = self._find_live(named) or self._find_stored(named, reader)
                    if target is None:
                        unknown.append(named)
                    else:
                        self._targets[named] = target
        return unknown

    def _find_live(self, named: Named) -> Target | None:
        number, index = named
        run = self._driver.runs.get(number)
        if run is None:
            found = self._driver.find(number)
            return None if found is None or index is not None else Target(found[0].number, (number,))
        by_index = _indices(run.submission.flow.jobs, run.job_number(0))
        return _target(run.number, tuple(run.numbers()), by_index, index)

    def _find_stored(self, named: Named, reader: Reader | None) -> Target | None:
        number, index = named
        if reader is None:
            return None
        run = reader.run(number)
        if run is None:
            row = reader.job(number)
            rows = [] if row is None or index is not None else [row]
            target = None if not rows else Target(rows[0].run, (number,))
        else:
            rows = reader.jobs(run=number)
            submission = reader.submission(number)
            by_index = _indices(submission.flow.jobs, run.first_job) if submission is not None else {}
            target = _target(run.id, tuple(row.id for row in rows), by_index, index)
        for row in rows:
            settled = row.state if row.state.is_settled else None
            since = row.started_at if row.started_at is not None else row.ended_at
            self._past[row.id] = Standing(settled, row.started_at is not None, since)
        return target

    def withdraws(self, run: LiveRun) -> None:
        """The run's submission could not be made durable."""
        for job in run.numbers():
            self._leave(job)

    def forgets(self, run: LiveRun) -> None:
        """The driver lets this run go: keep how its jobs stand if somebody waits for them."""
        if run.number in self._waiting:
            for job in run.numbers():
                self._past[job] = self._standing(run.number, job, 0.0)

    # ---- asking -------------------------------------------------------------------------------

    def is_met(self, run: LiveRun, index: int, now: float) -> bool:
        """Whether the job may go on; if not, it waits here and its reason is shown."""
        spec = run.spec(index)
        if spec.after is None:
            return True
        job = run.job_number(index)
        answer = self._answer(run, index, spec, now)
        if answer is Answer.MET:
            self._leave(job)
            return True
        self._wait(run, job, spec)
        if answer is Answer.NEVER and spec.after.ends_if_never:
            self._end(run, index, now)
        else:
            never = answer is Answer.NEVER
            word = reasons.DEPENDENCY_NEVER_SATISFIED if never else reasons.DEPENDENCY
            self._driver.show_reason(run, job, word, now)
        return False

    def leave(self, job: int) -> None:
        """It no longer waits for what it waited for."""
        self._leave(job)

    def due(self, job: int, now: float) -> None:
        """The time that it had to wait after a start has passed."""
        self._ask_again(job, now)

    def started(self, run: LiveRun, job: int, at: float) -> None:
        """A job has started: who waits for that is told by `changed`."""
        if run.number in self._waiting:
            self._since[job] = at

    def changed(self, run: LiveRun, now: float) -> None:
        """Something of this run started, settled or was reopened: ask those who wait for it again."""
        key = self._singleton_key(run)
        if run.number not in self._waiting and key not in self._singletons:
            return
        self._dirty += self._waiting.get(run.number, ())
        self._dirty += self._singletons.get(key, ())
        if self._is_busy:
            return  # the call that is under way takes them too
        self._is_busy = True
        try:
            while self._dirty:
                self._ask_again(self._dirty.popleft(), now)
        finally:
            self._is_busy = False

    def _ask_again(self, job: int, now: float) -> None:
        if job not in self._jobs:
            return
        found = self._driver.find(job)
        index = found[0].index_of(job) if found is not None else None
        if found is None or index is None or found[0].plan.state(index) is not None:
            self._leave(job)
        elif found[0].plan.is_started(index) and index not in found[0].held:
            self._driver.make_ready(found[0], index, now)

    # ---- answers ------------------------------------------------------------------------------

    def _answer(self, run: LiveRun, index: int, spec: JobSpec, now: float) -> Answer:
        assert spec.after is not None
        answers = [self._term(run, index, spec, term, now) for term in spec.after.terms]
        if spec.after.is_any:
            if Answer.MET in answers:
                return Answer.MET
            return Answer.WAITING if Answer.WAITING in answers else Answer.NEVER
        if Answer.NEVER in answers:
            return Answer.NEVER
        return Answer.WAITING if Answer.WAITING in answers else Answer.MET

    def _term(self, run: LiveRun, index: int, spec: JobSpec, term: After, now: float) -> Answer:
        if term.kind is AfterKind.SINGLETON:
            return self._singleton(run, index, spec)
        answers = [self._named(run, index, spec, term, named, now) for named in term.jobs]
        if Answer.NEVER in answers:
            return Answer.NEVER
        return Answer.WAITING if Answer.WAITING in answers else Answer.MET

    def _named(self, run: LiveRun, index: int, spec: JobSpec, term: After, named: Named, now: float) -> Answer:
        target = self._targets.get(named)
        if target is None:
            return Answer.NEVER  # it was pruned: nobody knows how it ended
        jobs = target.jobs
        if term.kind is AfterKind.AFTERCORR and is_array(spec):
            same = target.by_index.get(int(run.values(index)[0][1]))
            jobs = jobs if same is None else (same,)
        standings = [self._standing(target.run, job, now) for job in jobs]
        match term.kind:
            case AfterKind.AFTER:
                return self._after(run.job_number(index), standings, term.delay_s, now)
            case AfterKind.AFTERANY:
                return Answer.MET if all(one.state is not None for one in standings) else Answer.WAITING
            case AfterKind.AFTERNOTOK:
                return _after_not_ok(standings)
            case _:
                return _after_ok(standings)

    def _after(self, job: int, standings: list[Standing], delay_s: int, now: float) -> Answer:
        if not all(one.is_started or one.state is not None for one in standings):
            return Answer.WAITING
        due = max((one.since if one.since is not None else now) for one in standings) + delay_s
        if delay_s and due > now:
            self._driver.at(due, "depend", job)
            return Answer.WAITING
        return Answer.MET

    def _singleton(self, run: LiveRun, index: int, spec: JobSpec) -> Answer:
        """No job of the same name and user that came before it is left."""
        job = run.job_number(index)
        key = self._singleton_key(run)
        for other in self._driver.runs.values():
            if other.number > run.number or self._singleton_key(other) != key:
                continue
            for place, number in enumerate(other.numbers()):
                if number < job and other.plan.state(place) is None and other.spec(place).name == spec.name:
                    return Answer.WAITING
        return Answer.MET

    def _standing(self, run_number: int, job: int, now: float) -> Standing:
        run = self._driver.runs.get(run_number)
        index = run.index_of(job) if run is not None else None
        if run is None or index is None:
            return self._past.get(job, Standing(State.UNVERIFIED, True))
        state = run.plan.state(index)
        attempt = self._driver.by_job.get(job)
        is_started = attempt is not None and attempt.state is not State.PENDING
        known = self._past.get(job)
        since = attempt.started_at if attempt is not None else None
        since = since or self._since.get(job) or (known.since if known is not None else None)
        if since is None and (is_started or state is not None):
            since = self._since[job] = now
        return Standing(state, is_started, since)

    # ---- keeping --------------------------------------------------------------------------------

    def _wait(self, run: LiveRun, job: int, spec: JobSpec) -> None:
        assert spec.after is not None
        self._jobs.add(job)
        for term in spec.after.terms:
            if term.kind is AfterKind.SINGLETON:
                self._singletons.setdefault(self._singleton_key(run), {})[job] = None
            for named in term.jobs:
                target = self._targets.get(named)
                if target is not None:
                    self._waiting.setdefault(target.run, {})[job] = None

    def _leave(self, job: int) -> None:
        if job in self._jobs:
            self._jobs.discard(job)
            self._waiting = {run: jobs for run, jobs in self._waiting.items() if _without(jobs, job)}
            self._singletons = {key: jobs for key, jobs in self._singletons.items() if _without(jobs, job)}

    def _end(self, run: LiveRun, index: int, now: float) -> None:
        self._leave(run.job_number(index))
        verdict = judge_unstarted(DependencyFailed(now))
        self._driver.move(run, index, verdict.state, verdict.reason, now, verdict)
        self._driver.obey(run, run.plan.settle(index, verdict.state), now)
        self._driver.check_run(run, now)

    @staticmethod
    def _singleton_key(run: LiveRun) -> tuple[str, str]:
        return (run.submission.origin.user, run.submission.flow.name)


def _without(jobs: dict[int, None], job: int) -> bool:
    """Take the job out; say whether any are left."""
    jobs.pop(job, None)
    return bool(jobs)


def _target(run: int, jobs: tuple[int, ...], by_index: dict[int, int], index: int | None) -> Target | None:
    if index is None:
        return Target(run, jobs, by_index)
    return Target(run, (by_index[index],), by_index) if index in by_index else None


def _indices(specs: tuple[JobSpec, ...], first_job: int) -> dict[int, int]:
    """The members of an array by their index."""
    if len(specs) != 1 or not is_array(specs[0]) or specs[0].matrix is None:
        return {}
    return {int(value): first_job + place for place, value in enumerate(specs[0].matrix.axes[0][1])}


def _after_ok(standings: list[Standing]) -> Answer:
    if any(one.state is not None and one.state is not State.COMPLETED for one in standings):
        return Answer.NEVER
    return Answer.MET if all(one.state is State.COMPLETED for one in standings) else Answer.WAITING


def _after_not_ok(standings: list[Standing]) -> Answer:
    """All are settled, and one of them badly. How an UNVERIFIED one ended nobody knows."""
    if any(one.state is None for one in standings):
        return Answer.WAITING
    bad = [one for one in standings if one.state not in (State.COMPLETED, State.UNVERIFIED)]
    return Answer.MET if bad else Answer.NEVER
