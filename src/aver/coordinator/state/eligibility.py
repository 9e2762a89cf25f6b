"""Jobs whose needs are settled and that have no room yet: held, after other jobs, not due yet, or in the queue."""

from __future__ import annotations

from aver.coordinator.state.dependency import Word
from aver.coordinator.state.end import end_unstarted
from aver.coordinator.state.fold import RULE_WORDS, emit
from aver.coordinator.state.live import LiveState
from aver.coordinator.state.run import LiveRun
from aver.coordinator.state.start import enqueue
from aver.model import reasons
from aver.model.events import JobMoved
from aver.model.evidence import DeadlinePassed, DependencyFailed
from aver.model.states import State


def make_ready(live: LiveState, run: LiveRun, index: int, now: float) -> None:
    """The job's needs are settled: it waits for room, unless it is held, runs after others or is not due yet."""
    job = run.job_number(index)
    attempt = live.by_job.get(job)
    if (attempt is not None and attempt.has_room) or live.packer.is_waiting(job):
        return
    if run.settled_state(index) is not None or (attempt is None and run.is_cancelled(index)):
        return
    spec = run.spec(index)
    wait = run.due.get(index)
    if index in run.held:
        shown = live.shown.get(job)
        show_reason(live, run, job, shown if shown in reasons.REQUEUED_HELD else reasons.JOB_HELD_USER, now)
    elif spec.after is not None and not run.attempts.get(index) and not _is_after(live, run, index, now):
        pass  # it is asked again when those change; once it has been given room, they have done as required
    elif wait is not None and wait.until > now and not live.timers.is_over("again", job):
        since = min(wait.since, now)  # a clock that was ahead when it began has been set back
        live.timers.at(since + wait.until - wait.since, "again", job, since)
        if live.shown.get(job) not in RULE_WORDS:
            show_reason(live, run, job, reasons.BEGIN_TIME, now)
    elif spec.begin_at is not None and spec.begin_at > now:
        live.timers.at(spec.begin_at, "begin", job)
        show_reason(live, run, job, reasons.BEGIN_TIME, now)
    else:
        if spec.needs.all_of or spec.needs.any_of or job in live.shown:
            show_reason(live, run, job, reasons.PRIORITY, now)
        live.timers.drop(job, "again")
        enqueue(live, run, index)


def _is_after(live: LiveState, run: LiveRun, index: int, now: float) -> bool:
    """Whether the jobs that it is to run after have done as required; if not, its reason is shown, or it ends."""
    job = run.job_number(index)
    answer = live.dependencies.ask(run, index, now)
    if answer.word is Word.MET:
        return True
    if answer.due is not None:
        live.timers.at(answer.due, "depend", job)
    never = answer.word is Word.NEVER
    after = run.spec(index).after
    if never and after is not None and after.ends_if_never:
        end_unstarted(live, run, index, DependencyFailed(now), now)
    else:
        show_reason(live, run, job, reasons.DEPENDENCY_NEVER_SATISFIED if never else reasons.DEPENDENCY, now)
    return False


def ask_again(live: LiveState, job: int, now: float) -> None:
    """What the job waits for has changed, or the time that it had to wait has passed."""
    if not live.dependencies.is_waiting(job):
        return
    found = live.roster.find(job)
    index = found[0].index_of(job) if found is not None else None
    if found is None or index is None or found[0].settled_state(index) is not None:
        live.dependencies.leave(job)
    elif found[0].plan.is_started(index) and index not in found[0].held:
        make_ready(live, found[0], index, now)


def look_again(live: LiveState, run: LiveRun, index: int, now: float) -> None:
    """A job that waits is looked at anew: for others, for its time, or for room."""
    job = run.job_number(index)
    if index in run.held or not run.plan.is_started(index):
        return
    live.packer.remove(job)
    live.dependencies.leave(job)
    live.timers.drop(job, "begin")
    make_ready(live, run, index, now)


def deadline_passed(live: LiveState, run: LiveRun, index: int, now: float) -> None:
    """End the job if it has not begun, held or not, as Slurm does since 23.11."""
    attempt = live.by_job.get(run.job_number(index))
    if run.settled_state(index) is not None or (attempt is not None and attempt.is_dispatched):
        return
    if attempt is None and run.is_cancelled(index):
        return
    end_unstarted(live, run, index, DeadlinePassed(now), now)


def show_reason(live: LiveState, run: LiveRun, job: int, reason: str, now: float) -> None:
    """Show why a job is PENDING."""
    if live.shown.get(job) != reason:
        emit(live, JobMoved(now, run.number, job, State.PENDING, reason))
