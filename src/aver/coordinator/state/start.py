"""From a job that is ready to an attempt that its engine is given: room, the intent, GPUs.

No sockets, no disk, no clock. An attempt is handed over only after its intent is durable, and after it is durable
which GPUs it has. What it takes (room, a place among the intents that were made ahead) it takes once and gives back
once.
"""

from __future__ import annotations

from collections.abc import Sequence

from aver.coordinator.state.attempt import (
    DISPATCHED,
    PLANNED_DURABLE,
    READY,
    READY_DURABLE,
    LiveAttempt,
    Planned,
    Ready,
    Running,
)
from aver.coordinator.state.end import cancel_unstarted
from aver.coordinator.state.fold import BEGUN, emit
from aver.coordinator.state.live import LiveState
from aver.coordinator.state.run import LiveRun
from aver.judge.local import MACHINE
from aver.model import reasons
from aver.model.events import AttemptPlanned, GpusGiven, Observed
from aver.model.states import State
from aver.plan.packing import Cap, LaneKey, room_of
from aver.plan.retry import requeue_wish

SHORT_S = 0.05  # an attempt that takes less may have others behind it
BEHIND_S = 0.05  # of work that an engine then has for each attempt that runs
MOST_BEHIND = 64  # attempts; a witness keeps no more
FORGETS = 0.9  # of a long attempt's pace is left after each short one
LOOK_AHEAD = 256  # intents that are made durable before there is room for them
LOST_STREAMS = "it began, which lost the streams of its srun"

# ---- room ---------------------------------------------------------------------------------------


def enqueue(live: LiveState, run: LiveRun, index: int) -> None:
    """The job waits for room."""
    live.packer.add(run.job_number(index), _lane(run, index), _priority(run, index), run.can(index))


def occupy(live: LiveState, attempt: LiveAttempt) -> None:
    """The engine has the attempt, or may have it: it holds its room."""
    run = live.runs[attempt.run]
    attempt.phase = Running(attempt.started_at) if attempt.state in BEGUN else DISPATCHED
    live.packer.occupy(attempt.job, _lane(run, attempt.index), attempt.can)


def wait_again(live: LiveState, attempt: LiveAttempt) -> None:
    """The attempt was planned and never began: it was next, and is."""
    run, index = live.runs[attempt.run], attempt.index
    live.ahead += 1
    attempt.phase = PLANNED_DURABLE
    attempt.gpus, attempt.has_gpus = (), False  # it is given some anew
    if index not in run.held:
        live.packer.add_ahead(attempt.job, _lane(run, index), _priority(run, index), attempt.can)


def plan_again(live: LiveState, attempt: LiveAttempt, said: str, now: float) -> bool:
    """The machine was restarted, and nothing shows that the attempt began: it has a key of this boot, and is next.

    Where a power cut took its journal's last lines it may have begun: False for a job that must not run twice, which
    says `requeue: false`.
    """
    run, job, index = live.runs[attempt.run], attempt.job, attempt.index
    if attempt.state is not State.PENDING or requeue_wish(run.spec(index)) is False:
        return False
    if attempt.cancel_asked:
        wait_again(live, attempt)
        cancel_unstarted(live, attempt, now)
        return True
    said = f"{said}; nothing shows that it began: it is planned again"
    emit(live, Observed(now, run.number, job, attempt.attempt, MACHINE, said, State.PENDING, reasons.REQUEUE))
    key = live.identity.new_key(job, attempt.attempt)
    emit(live, AttemptPlanned(now, run.number, job, attempt.attempt, key, attempt.engine, run.request(index)))
    live.ahead += 1
    if index not in run.held:
        live.packer.add_ahead(job, _lane(run, index), _priority(run, index), attempt.can)
    return True


# ---- intents ------------------------------------------------------------------------------------


def schedule(live: LiveState, now: float) -> None:
    """Start what has room, and make the intents of the next ones durable ahead of time."""
    by_job = live.by_job
    packer = live.packer
    while (job := packer.start_next()) is not None:
        attempt = by_job.get(job)
        if attempt is None:
            attempt = _plan(live, job, now)
        else:
            live.ahead -= 1
        if attempt.phase is PLANNED_DURABLE:
            attempt.phase = READY_DURABLE
            start(live, attempt, now)
        else:
            attempt.phase = READY
    _put_behind(live, now)
    waiting = packer.packed
    if live.ahead < LOOK_AHEAD // 2 and len(waiting) > live.ahead:
        for job in waiting.upcoming(LOOK_AHEAD):
            if job not in by_job and _may_plan_ahead(live, job):
                _plan(live, job, now)
                live.ahead += 1


def _put_behind(live: LiveState, now: float) -> None:
    """Where attempts take less time than a turn of the coordinator, their engine has the next ones already."""
    if not live.paces or not live.ahead:
        return
    packer = live.packer.packed
    for job in packer.behind(_room_behind(live, packer.behind(1))):
        attempt = live.by_job.get(job)
        if attempt is None or attempt.phase is not PLANNED_DURABLE or not _may_be_behind(live, attempt):
            return
        packer.put_behind(job)
        live.ahead -= 1
        attempt.phase, attempt.is_behind = READY_DURABLE, True
        live.behind.add(attempt.key)
        start(live, attempt, now)


def _room_behind(live: LiveState, next_jobs: Sequence[int]) -> int:
    """How many attempts like the next one may be given ahead: as many as are done in a short time."""
    attempt = live.by_job.get(next_jobs[0]) if next_jobs else None
    if attempt is None:
        return 0
    run = live.runs[attempt.run]
    pace_s = live.paces.get((run.number, run.spec_number(attempt.index)), SHORT_S)
    each = min(MOST_BEHIND, int(BEHIND_S / max(pace_s, BEHIND_S / MOST_BEHIND)))
    return max(0, each * live.packer.packed.running_count - len(live.behind))


def _may_be_behind(live: LiveState, attempt: LiveAttempt) -> bool:
    """Whether it is one of many that are short. One with a deadline is not: it may pass while the attempt waits."""
    run = live.runs[attempt.run]
    if (
        attempt.request.gpus
        or attempt.can.has_queue
        or run.is_single
        or run.spec(attempt.index).deadline_at is not None
    ):
        return False
    return live.paces.get((run.number, run.spec_number(attempt.index)), SHORT_S) < SHORT_S


def take_room(live: LiveState, attempt: LiveAttempt) -> None:
    """The one before it has ended: it begins."""
    attempt.is_behind = False
    live.behind.discard(attempt.key)
    live.packer.packed.take_room(attempt.job)


def not_taken(live: LiveState, attempt: LiveAttempt, now: float) -> None:
    """The engine gives an attempt back that was to begin after another: it never began, and waits for room."""
    run = live.runs[attempt.run]
    attempt.is_behind = False
    live.behind.discard(attempt.key)
    live.paces.pop((run.number, run.spec_number(attempt.index)), None)  # until the next has ended
    live.packer.finish(attempt.job)
    wait_again(live, attempt)
    if attempt.cancel_asked:
        cancel_unstarted(live, attempt, now)


def note_pace(live: LiveState, attempt: LiveAttempt, elapsed_s: float) -> None:
    """Of a run with many jobs: how long attempts of this kind take. A long one counts for a while."""
    run = live.runs[attempt.run]
    if not run.is_single and not attempt.can.has_queue:
        kind = run.number, run.spec_number(attempt.index)
        live.paces[kind] = max(elapsed_s, FORGETS * live.paces.get(kind, 0.0))


def _may_plan_ahead(live: LiveState, job: int) -> bool:
    """Not of a job that must not run twice: after a power cut nobody could tell its intent from a beginning."""
    found = live.roster.find(job)
    assert found is not None
    index = found[0].index_of(job)
    return index is not None and requeue_wish(found[0].spec(index)) is not False


def _plan(live: LiveState, job: int, now: float, goes_on_from: str = "") -> LiveAttempt:
    found = live.roster.find(job)
    assert found is not None
    run = found[0]
    index = run.index_of(job)
    assert index is not None
    number = run.attempts.get(index, 0) + 1
    key = live.identity.new_key(job, number)
    emit(
        live,
        AttemptPlanned(now, run.number, job, number, key, run.engine(index), run.request(index), goes_on_from),
    )
    return live.by_job[job]


def go_on(live: LiveState, before: LiveAttempt, now: float) -> None:
    """The cluster has started the job again by itself: that is the next attempt, and nothing is handed over."""
    attempt = _plan(live, before.job, now, before.key)
    occupy(live, attempt)


def intent_is_durable(live: LiveState, event: AttemptPlanned, now: float) -> None:
    attempt = live.attempts.get(event.key)
    if attempt is None:
        return
    if attempt.goes_on_from:
        live.out.adoptions.append((attempt.goes_on_from, attempt.key))
    match attempt.phase:
        case Planned():
            attempt.phase = PLANNED_DURABLE
        case Ready():
            attempt.phase = READY_DURABLE
            start(live, attempt, now)
        case _:
            pass


def gpus_are_durable(live: LiveState, event: GpusGiven, now: float) -> None:
    attempt = live.by_job.get(event.job)
    if attempt is not None and attempt.attempt == event.attempt and attempt.waits_to_start:
        start(live, attempt, now)


# ---- handing over -------------------------------------------------------------------------------


def start(live: LiveState, attempt: LiveAttempt, now: float) -> None:
    """Hand the attempt over if nothing is missing; it is asked again when what is missing has come."""
    run = live.runs[attempt.run]
    if attempt.request.gpus and not attempt.has_gpus and not attempt.can.has_queue:
        _give_gpus(live, attempt, now)
        return  # until that is durable
    if run.spec(attempt.index).has_streams:
        attempt.streams, run.streams = run.streams, ()
        if not attempt.streams:
            cancel_unstarted(live, attempt, now, "a restart of the coordinator", LOST_STREAMS)
            return
    attempt.phase = DISPATCHED
    live.out.starts.append(attempt)


def start_again(live: LiveState, attempt: LiveAttempt, now: float) -> None:
    """Its engine had it and could not pass it on: it never began."""
    if attempt.cancel_asked:
        cancel_unstarted(live, attempt, now)
    else:
        attempt.phase = READY_DURABLE
        start(live, attempt, now)


def _give_gpus(live: LiveState, attempt: LiveAttempt, now: float) -> None:
    taken = {gpu for other in live.attempts.values() for gpu in other.gpus}
    free = [gpu for gpu in range(live.packer.total.gpus) if gpu not in taken]
    gpus = tuple(free[: attempt.request.gpus])
    emit(live, GpusGiven(now, attempt.run, attempt.job, attempt.attempt, gpus))


def _priority(run: LiveRun, index: int) -> int:
    return run.priorities.get(index, run.spec(index).priority)


def _lane(run: LiveRun, index: int) -> LaneKey:
    spec = run.spec(index)
    caps = []
    limits = (run.submission.max_parallel, run.submission.flow.max_parallel)
    if known := [limit for limit in limits if limit is not None]:
        caps.append(Cap(("run", run.number, 0), min(known)))
    if spec.matrix is not None and spec.matrix.max_parallel is not None:
        caps.append(Cap(("matrix", run.number, run.spec_number(index)), spec.matrix.max_parallel))
    return LaneKey(0 if run.is_single else run.number, room_of(run.request(index)), tuple(caps), spec.pools)
