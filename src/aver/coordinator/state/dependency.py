"""Jobs that wait for jobs of other runs, by their numbers: Slurm's --dependency.

`ask` is asked when a job's own needs are settled, and `changed` is told of every change; who has to be asked again is
in `dirty`. What has left memory is learned from the store once, by whoever takes a run up or in, so that coming back
after a crash gives the same answers. A term that can no longer be met leaves its job PENDING
(DependencyNeverSatisfied), or ends it where it asks for that; when a correction or a retry changes the past, it is
asked again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from enum import Enum

from aver.coordinator.state.attempt import LiveAttempt
from aver.coordinator.state.run import LiveRun, Roster
from aver.model.job import After, AfterKind, JobSpec
from aver.model.record import Record, field
from aver.model.states import State
from aver.spec.sbatch.array import is_array

PROBLEM = "Job dependency problem"  # Slurm's words


class Word(Enum):
    MET = "met"
    WAITING = "waiting"
    NEVER = "never"


class Answer(Record):
    """`due`: when it is worth asking again, if time alone is missing."""

    word: Word
    due: float | None = None


MET, WAITING, NEVER = Answer(Word.MET), Answer(Word.WAITING), Answer(Word.NEVER)


class Target(Record):
    """The jobs that a term names: of which run, their numbers, and those of an array by their index."""

    run: int
    jobs: tuple[int, ...]
    by_index: dict[int, int] = field(default_factory=dict)


class Standing(Record):
    """How one job stands. `since`: when it started, or was settled without a start."""

    state: State | None  # settled, or None
    is_started: bool
    since: float | None = None


class Past(Record):
    """A run that is not live, or one job of it, as the store has it."""

    run: int
    first_job: int
    specs: tuple[JobSpec, ...]
    standings: dict[int, Standing]  # by job
    is_one_job: bool = False


Named = tuple[int, int | None]
FindPast = Callable[[int], Past | None]  # by the number of a run or of a job


class Dependencies:
    """Which job waits for which, over all live runs. Changes neither the runs nor the attempts that it is given."""

    def __init__(self, roster: Roster, by_job: Mapping[int, LiveAttempt]) -> None:
        self._roster = roster
        self._by_job = by_job
        self._targets: dict[Named, Target] = {}
        self._past: dict[int, Standing] = {}  # jobs that are no longer live
        self._since: dict[int, float] = {}  # when jobs that are named started
        self._waiting: dict[int, dict[int, None]] = {}  # jobs that wait, by the run for which they wait
        self._singletons: dict[tuple[str, str], dict[int, None]] = {}
        self._jobs: set[int] = set()  # all that wait
        self.dirty: deque[int] = deque()  # jobs that are to be asked again

    # ---- learning -----------------------------------------------------------------------------

    def learn(self, specs: Iterable[JobSpec], find_past: FindPast) -> list[Named]:
        """Find all that these jobs name, among the live runs or by `find_past`; return what is nowhere."""
        unknown = []
        for spec in specs:
            for term in spec.after.terms if spec.after is not None else ():
                for named in term.jobs:
                    target = self._find_live(named) or self._find_past(named, find_past)
                    if target is None:
                        unknown.append(named)
                    else:
                        self._targets[named] = target
        return unknown

    def _find_live(self, named: Named) -> Target | None:
        number, index = named
        run = self._roster.runs.get(number)
        if run is None:
            found = self._roster.find(number)
            return None if found is None or index is not None else Target(found[0].number, (number,))
        by_index = _indices(run.submission.flow.jobs, run.job_number(0))
        return _target(run.number, tuple(run.numbers()), by_index, index)

    def _find_past(self, named: Named, find_past: FindPast) -> Target | None:
        number, index = named
        past = find_past(number)
        if past is None or (past.is_one_job and index is not None):
            return None
        self._past.update(past.standings)
        by_index = {} if past.is_one_job else _indices(past.specs, past.first_job)
        return _target(past.run, tuple(past.standings), by_index, index)

    def withdraws(self, run: LiveRun) -> None:
        """The run's submission could not be made durable."""
        for job in run.numbers():
            self.leave(job)

    def forgets(self, run: LiveRun) -> None:
        """The run is let go: keep how its jobs stand if somebody waits for them."""
        if run.number in self._waiting:
            for job in run.numbers():
                self._past[job] = self._standing(run.number, job, 0.0)

    # ---- asking -------------------------------------------------------------------------------

    def ask(self, run: LiveRun, index: int, now: float) -> Answer:
        """Whether the job may go on; while it may not, it waits here."""
        spec = run.spec(index)
        if spec.after is None:
            return MET
        job = run.job_number(index)
        answer = self._answer(run, index, spec, now)
        if answer.word is Word.MET:
            self.leave(job)
        else:
            self._wait(run, job, spec)
        return answer

    def is_waiting(self, job: int) -> bool:
        return job in self._jobs

    def started(self, run: LiveRun, job: int, at: float) -> None:
        """A job has started: who waits for that is told by `changed`."""
        if run.number in self._waiting:
            self._since[job] = at

    def changed(self, run: LiveRun) -> None:
        """Something of this run started, settled or was reopened: those who wait for it are to be asked again."""
        key = self._singleton_key(run)
        if run.number in self._waiting or key in self._singletons:
            self.dirty += self._waiting.get(run.number, ())
            self.dirty += self._singletons.get(key, ())

    # ---- answers ------------------------------------------------------------------------------

    def _answer(self, run: LiveRun, index: int, spec: JobSpec, now: float) -> Answer:
        assert spec.after is not None
        answers = [self._term(run, index, spec, term, now) for term in spec.after.terms]
        if spec.after.is_any:
            return MET if MET in answers else _waits(answers) or NEVER
        return NEVER if NEVER in answers else _waits(answers) or MET

    def _term(self, run: LiveRun, index: int, spec: JobSpec, term: After, now: float) -> Answer:
        if term.kind is AfterKind.SINGLETON:
            return self._singleton(run, index, spec)
        answers = [self._named(run, index, spec, term, named, now) for named in term.jobs]
        return NEVER if NEVER in answers else _waits(answers) or MET

    def _named(self, run: LiveRun, index: int, spec: JobSpec, term: After, named: Named, now: float) -> Answer:
        target = self._targets.get(named)
        if target is None:
            return NEVER  # it was pruned: nobody knows how it ended
        jobs = target.jobs
        if term.kind is AfterKind.AFTERCORR and is_array(spec):
            same = target.by_index.get(int(run.values(index)[0][1]))
            jobs = jobs if same is None else (same,)
        standings = [self._standing(target.run, job, now) for job in jobs]
        match term.kind:
            case AfterKind.AFTER:
                return _after(standings, term.delay_s, now)
            case AfterKind.AFTERANY:
                return MET if all(one.state is not None for one in standings) else WAITING
            case AfterKind.AFTERNOTOK:
                return _after_not_ok(standings)
            case _:
                return _after_ok(standings)

    def _singleton(self, run: LiveRun, index: int, spec: JobSpec) -> Answer:
        """No job of the same name and user that came before it is left."""
        job = run.job_number(index)
        key = self._singleton_key(run)
        for other in self._roster.runs.values():
            if other.number > run.number or self._singleton_key(other) != key:
                continue
            for place, number in enumerate(other.numbers()):
                if number < job and other.settled_state(place) is None and other.spec(place).name == spec.name:
                    return WAITING
        return MET

    def _standing(self, run_number: int, job: int, now: float) -> Standing:
        run = self._roster.runs.get(run_number)
        index = run.index_of(job) if run is not None else None
        if run is None or index is None:
            return self._past.get(job, Standing(State.UNVERIFIED, True))
        state = run.settled_state(index)
        attempt = self._by_job.get(job)
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

    def leave(self, job: int) -> None:
        """Drop the dependencies of a job that no longer waits for them."""
        if job in self._jobs:
            self._jobs.discard(job)
            self._waiting = {run: jobs for run, jobs in self._waiting.items() if _without(jobs, job)}
            self._singletons = {key: jobs for key, jobs in self._singletons.items() if _without(jobs, job)}

    def leave_all(self, jobs: range) -> None:
        """The same of many jobs."""
        for job in [job for job in self._jobs if job in jobs]:
            self.leave(job)

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


def _waits(answers: list[Answer]) -> Answer | None:
    """The first time at which one of those that wait is worth asking again; None: none waits."""
    waiting = [one for one in answers if one.word is Word.WAITING]
    dues = [one.due for one in waiting if one.due is not None]
    return Answer(Word.WAITING, min(dues, default=None)) if waiting else None


def _after(standings: list[Standing], delay_s: int, now: float) -> Answer:
    if not all(one.is_started or one.state is not None for one in standings):
        return WAITING
    due = max((one.since if one.since is not None else now) for one in standings) + delay_s
    return Answer(Word.WAITING, due) if delay_s and due > now else MET


def _after_ok(standings: list[Standing]) -> Answer:
    if any(one.state is not None and one.state is not State.COMPLETED for one in standings):
        return NEVER
    return MET if all(one.state is State.COMPLETED for one in standings) else WAITING


def _after_not_ok(standings: list[Standing]) -> Answer:
    """All are settled, and one of them badly. How an UNVERIFIED one ended nobody knows."""
    if any(one.state is None for one in standings):
        return WAITING
    bad = [one for one in standings if one.state not in (State.COMPLETED, State.UNVERIFIED)]
    return MET if bad else NEVER
