"""Wait, by push, until things are settled, and say on the way what changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from aver.cli.attach.step_news import StepNews
from aver.cli.facts import jobs_facts
from aver.cli.output.documents import Ended, JobFacts, RunFacts
from aver.cli.output.progress import LiveLine, bar, change_line, foreground_summary, job_summary, run_summary
from aver.cli.session import Session, not_found
from aver.cli.steps import warnings_of_steps
from aver.client.documents import job_facts, run_facts
from aver.errors import InternalError
from aver.judge.run import fold_run
from aver.model.reasons import parse_from_run
from aver.model.states import SETTLED, State
from aver.protocol.client import Client
from aver.render.verdict import believed_text
from aver.store.read.rows import JobRow, RunRow

MOST_RETURNS = 100
NEW_ROUND = ("retry", "reinit")


class Watched:
    """The runs and jobs that a command waits for."""

    def __init__(self, session: Session, ids: Sequence[int], foreground_only: bool = False) -> None:
        self.session = session
        self.ids = list(ids)
        self._foreground_only = foreground_only
        reader = session.found_reader(str(self.ids[0]))
        self._runs = [number for number in self.ids if (row := reader.run(number)) is not None and not row.is_single]
        self._jobs = [number for number in self.ids if number not in self._runs]
        session.mask([*self._runs, *(row.run for row in self.jobs())])

    def runs(self) -> list[RunRow]:
        return [self.session.run_row(number) for number in self._runs]

    def jobs(self) -> list[JobRow]:
        """The jobs that are waited for by themselves."""
        rows = self.session.found_reader("").jobs_by_id(self._jobs)
        missing = [number for number in self._jobs if number not in rows]
        if missing:
            raise not_found(str(missing[0]))
        return [rows[number] for number in self._jobs]

    def state(self) -> State:
        """The state of all together; of one alone, its own."""
        pairs = [(job.state, job.reason) for job in self.jobs()]
        reader = self.session.found_reader("")
        for run in self.runs():
            if self._foreground_only:
                jobs = [(job.state, job.reason) for job in self._foreground(reader.jobs(run.id))]
                pairs.append((fold_run(jobs) if jobs else State.COMPLETED, ""))
            else:
                pairs.append((run.state, ""))
        return pairs[0][0] if len(pairs) == 1 else fold_run(pairs)

    def _foreground(self, jobs: list[JobRow]) -> list[JobRow]:
        """Without background jobs, but for those that a foreground job needs."""
        if not any(job.background for job in jobs):
            return jobs
        from aver.cli.attach.promotion import promoted_jobs  # planning is paid for only here

        run = jobs[0].run
        batches = [batch.flow for batch in self.session.found_reader("").generated(run)]
        promoted = promoted_jobs(self.session.submission(run).flow, *batches)
        return [job for job in jobs if not job.background or job.name.partition("[")[0] in promoted]

    def run_state(self, run: RunRow) -> State:
        return self.state() if self._foreground_only else run.state

    def facts(self) -> tuple[tuple[RunFacts, ...], tuple[JobFacts, ...]]:
        reader = self.session.found_reader("")
        runs = tuple(run_facts(run, reader.counts(run.id)) for run in self.runs())
        return runs, jobs_facts(self.session, self.jobs())

    def settled(self) -> list[int]:
        """The numbers that are settled."""
        rows: list[RunRow | JobRow] = [*self.runs(), *self.jobs()]
        return [row.id for row in rows if row.state.is_settled]

    def ended(self, exit_status: int, others: Sequence[int] = ()) -> Ended:
        """The document at the end of waiting; `others` are numbers that are still waited for."""
        runs, jobs = self.facts()
        settled = self.settled()
        waiting = (*(number for number in self.ids if number not in settled), *others)
        return Ended(runs, jobs, self.state().is_settled, exit_status, waiting)

    def summaries(self) -> list[str]:
        runs, jobs = self.facts()
        states = [self.run_state(run) for run in self.runs()]
        return [self._run_summary(run, state) for run, state in zip(runs, states, strict=True)] + [
            job_summary(job) for job in jobs
        ]

    def _run_summary(self, run: RunFacts, state: State) -> str:
        if run.state != state:
            return foreground_summary(run, state)
        return run_summary(run, state, *self._told(run.id), self._round_began(run))

    def _round_began(self, run: RunFacts) -> float:
        """When its newest round began: what was between the rounds is nobody's time."""
        if run.round == 1:
            return run.submitted_at
        asked = self.session.found_reader("").asked(run.id)
        return max((one.at for one in asked if one.what in NEW_ROUND), default=run.submitted_at)

    def _told(self, run: int) -> tuple[tuple[JobFacts, ...], int, int]:
        """The run's jobs that have warnings, how many are believed and not verified, and how many were taken over."""
        settled = self.session.found_reader("").jobs(run, SETTLED)
        believed = sum(believed_text(job.state, job.verified) != job.state for job in settled)
        taken = sum(parse_from_run(job.reason) is not None for job in settled)
        rows = [job for job in settled if job.warnings or job.derived != 0]
        return tuple(job for job in jobs_facts(self.session, rows) if job.warnings), believed, taken


def wait(
    watched: Watched,
    client: Client,
    seen: Callable[[tuple[int, ...]], None],
    timeout_s: float | None = None,
    foreground_only: bool = False,
) -> State:
    """Return the state of all together when they are settled: what follows may be late, and find them run again.

    `seen` is told the numbers of jobs that changed. Raise TimeoutError.
    """
    for _ in range(MOST_RETURNS):
        for change in client.watch(watched.ids, timeout_s, foreground=foreground_only):
            seen(change.changed)
        state = watched.state()
        if state.is_settled:
            return state
        # Somebody retried or accepted between the push and our reading: it is waited for again.
    raise InternalError("the coordinator calls something settled that the store does not")


def wait_any(
    watched: Watched, client: Client, seen: Callable[[tuple[int, ...]], None], timeout_s: float | None = None
) -> list[int]:
    """Return the numbers that are settled, as soon as there is one. `seen` as for `wait`. Raise TimeoutError."""
    for _ in range(MOST_RETURNS):
        for change in client.watch(watched.ids, timeout_s):
            seen(change.changed)
            if change.settled and (settled := watched.settled()):
                return settled
        # All that was settled is being run again: it is waited for again.
    raise InternalError("the coordinator calls something settled that the store does not")


class Shown(Protocol):
    """What somebody who waits is shown."""

    says_waits: bool  # whether it says for what pending jobs wait

    def begin(self) -> None:
        """Take the present state as known, so that only later changes are shown."""

    def __call__(self, changed: tuple[int, ...]) -> None:
        """Show what changed; the first call, with nothing, catches up."""

    def end(self) -> None:
        """Everything is settled."""

    def clear(self) -> None:
        """Take away what is drawn over: something else is to be written."""


def shown_for(watched: Watched) -> Shown:
    """A live tree where whole runs are watched on a terminal that can draw, lines of changes elsewhere."""
    runs = watched.runs()
    if runs and not watched.jobs() and watched.session.output.can_draw:
        from aver.cli.attach.live import LiveTree  # only here

        return LiveTree(watched.session, [run.id for run in runs])
    return ChangeLines(watched)


class ChangeLines:
    """Writes one line for each change of a job's state, and keeps the live line below them."""

    says_waits = False

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._session = watched.session
        self._shown: dict[int, str] = {}
        self._live = LiveLine(watched.session.output)
        self._named = {job.id for job in watched.jobs()}
        self._single = {run.id for run in watched.runs() if run.is_single}
        self._news = StepNews(watched.session)

    def begin(self) -> None:
        """Say how the jobs stand that were named; of a run, only what changes from now on is said."""
        for job in self._jobs_of_runs():
            self._shown[job.id] = _line_key(job)
        for job in self._watched.jobs():
            self._show(job)
        self._draw()

    def __call__(self, changed: tuple[int, ...]) -> None:
        """Say what changed; the first call, with nothing, catches up with what happened before it."""
        if changed:
            rows = self._session.found_reader("").jobs_by_id(changed)
            for number in changed:
                if number in rows:
                    self._tell_steps(rows[number])
                    self._show(rows[number])
        else:
            for job in self._jobs_of_runs():
                self._show(job)
        if self._live.is_due:
            self._draw()

    def end(self) -> None:
        self._live.clear()

    clear = end

    def _show(self, job: JobRow) -> None:
        if self._shown.get(job.id) == _line_key(job):
            return
        self._shown[job.id] = _line_key(job)
        if job.state is State.PENDING and not job.attempt and job.id not in self._named:
            return  # that it may start now is no news; that it starts is
        self._live.clear()
        output = self._session.output
        warned = warnings_of_steps(self._session, [job]).get(job.id, ())
        output.line(change_line(output, job_facts(job, job.run in self._single, warned), self._last_attempt(job)))

    def _tell_steps(self, job: JobRow) -> None:
        for text in self._news.of([job]):
            self._live.clear()
            self._session.output.line(text)

    def _last_attempt(self, job: JobRow) -> str:
        """How the attempt ended after which the job waits again."""
        if job.state is not State.PENDING or not job.attempt:
            return ""
        over = [row for row in self._session.found_reader("").attempts(job.id) if row.state.is_settled]
        return f"attempt {over[-1].attempt} was {over[-1].state}" if over else ""

    def _jobs_of_runs(self) -> list[JobRow]:
        """Those that have begun or are settled."""
        reader = self._session.found_reader("")
        begun = frozenset(State) - {State.PENDING}
        return [job for run in self._watched.runs() for job in reader.jobs(run.id, begun)]

    def _draw(self) -> None:
        runs, jobs = self._watched.facts()
        parts = [bar(run) for run in runs] + [f"job {job.id} {job.state}" for job in jobs if not job.is_settled]
        if parts:
            self._live.draw("   ".join(parts))


def _line_key(job: JobRow) -> str:
    return f"{job.state} {job.attempt}"
