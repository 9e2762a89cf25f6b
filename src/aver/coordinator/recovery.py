"""Restart: replay the stored events of open runs through `fold.apply`, then ask the engines about their attempts.

A store that has lost commits does not know attempts that witnesses have. Those of jobs that it does know are planned
again under their own keys, so that they are not run twice. The others are left alone: their ends go into the log,
and their numbers are not given again. People are told by `aver status` and `aver doctor` until they remove the file
`lost`: nothing is forgotten in silence.

Used at the start and whenever a settled run is taken up again. Start-up is not special.

A run may have a hundred thousand jobs: of those that are settled the rows stand for their events, and a test holds the
two equal. All events are replayed of jobs that are not settled, and of jobs that were tried again where the run has a
budget of retries.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

from aver.client.unknown_attempts import UnknownAttempt, unknown_attempts
from aver.coordinator.engine_set import Engines
from aver.coordinator.state.attempt import PLANNED_DURABLE, LiveAttempt, Planned
from aver.coordinator.state.dependency import FindPast, Past, Standing
from aver.coordinator.state.fold import apply
from aver.coordinator.state.live import LiveState, boot_of
from aver.coordinator.state.machine import Machine
from aver.coordinator.state.run import LiveRun
from aver.engines.api import CouldNotAsk, Heard, NotListed, ObserveReply, Seen
from aver.home import Home
from aver.log import log
from aver.model.events import AttemptPlanned
from aver.model.evidence import MachineRestarted, NobodySaid, WitnessRecord, WitnessVanished
from aver.model.states import State
from aver.store.losses import LOSSES, read_losses
from aver.store.read.reader import Reader
from aver.store.read.rows import JobRow
from aver.store.write.high_water import Loss


def load_run(
    machine: Machine, reader: Reader, number: int, now: float, unknown: Iterable[UnknownAttempt] = ()
) -> LiveRun | None:  # fmt: skip
    """Make the run again as it was, and do what follows from that; None if there is no such run.

    `unknown`: attempts that witnesses have and the store lacks.
    """
    run = replay_run(machine.live, reader, number)
    if run is None:
        return None
    for one in unknown:
        _plan_unknown(machine, run, one, now)
    specs = [spec for segment in run.segments for spec in segment.flow.jobs]
    machine.dependencies.learn((*specs, *run.altered.values()), past_jobs(reader))
    machine.take_up(run, now)
    machine.want_allocations(number)
    return run


def _plan_unknown(machine: Machine, run: LiveRun, one: UnknownAttempt, now: float) -> None:
    """The next attempt of a job of this run was handed over already: it has its key, and is not made a second time."""
    index = run.index_of(one.job)
    if index is None or run.states[index] is not State.PENDING or one.job in machine.by_job:
        return
    if one.attempt == run.attempts.get(index, 0) + 1 and one.key.startswith(f"{machine.identity.home}."):
        engine, request = run.engine(index), run.request(index)
        machine.emit(AttemptPlanned(now, run.number, one.job, one.attempt, one.key, engine, request))


def load_pools(machine: Machine, reader: Reader) -> None:
    """Give pools the sizes that were set."""
    for event in reader.pools():
        apply(machine.live, event)


def past_jobs(reader: Reader | None) -> FindPast:
    """Look up runs and jobs that are no longer live; without a store there are none."""
    return lambda number: None if reader is None else _past(reader, number)


def _past(reader: Reader, number: int) -> Past | None:
    run = reader.run(number)
    if run is None:
        row = reader.job(number)
        return None if row is None else Past(row.run, row.first_job, (), {row.id: _standing(row)}, is_one_job=True)
    submission = reader.submission(number)
    specs = () if submission is None else submission.flow.jobs
    return Past(run.id, run.first_job, specs, {row.id: _standing(row) for row in reader.jobs(run=number)})


def _standing(row: JobRow) -> Standing:
    settled = row.state if row.state.is_settled else None
    since = row.started_at if row.started_at is not None else row.ended_at
    return Standing(settled, row.started_at is not None, since)


def replay_run(live: LiveState, reader: Reader, number: int) -> LiveRun | None:
    """Apply what is stored of the run, and nothing else; None if there is no such run."""
    row = reader.run(number)
    if row is None:
        return None
    for event in reader.replayed_events(number):
        apply(live, event)
    run = live.runs.get(number)
    if run is None:
        return None
    run.state, run.round = row.state, row.round
    for job, state, attempts in reader.settled_jobs(number):
        index = run.index_of(job)
        if index is not None:
            _take_row(live, run, index, job, state, attempts)
    _note_durable(live, run)
    return run


def _take_row(live: LiveState, run: LiveRun, index: int, job: int, state: State, attempts: int) -> None:
    """What the events of a settled job amount to."""
    run.states[index] = state
    if attempts:
        run.attempts[index] = attempts
    run.note_settled(index)
    live.shown.pop(job, None)


def _note_durable(live: LiveState, run: LiveRun) -> None:
    """All that was replayed is stored."""
    for index, state in enumerate(run.states):
        attempt = None if state.is_settled else live.by_job.get(run.job_number(index))
        if attempt is None:
            continue
        if isinstance(attempt.phase, Planned):
            attempt.phase = PLANNED_DURABLE
        for step in attempt.live_steps():
            step.is_durable = True


def ask_engines(machine: Machine, engines: Engines, now: float) -> None:
    """Ask what became of every live attempt and task, put each where it belongs, and ask again for what was asked.

    Tasks first: the end of their attempt ends those that have not begun, and what is not known of one is not that.
    """
    _ask_of_tasks(machine, engines, now)
    by_engine: dict[str, list[LiveAttempt]] = {}
    for attempt in machine.attempts.values():
        by_engine.setdefault(attempt.engine, []).append(attempt)
    for name, attempts in by_engine.items():
        replies = engines.observe([attempt.key for attempt in attempts], name)
        for attempt, reply in zip(attempts, replies, strict=True):
            if attempt.can.has_scheduler:
                _put_in_scheduler(machine, engines, attempt, reply, now)
            else:
                _put_under_witness(machine, attempt, reply, now)
    for attempt in list(machine.attempts.values()):
        if attempt.is_dispatched:
            machine.ask_for_again(attempt)


def _put_in_scheduler(
    machine: Machine, engines: Engines, attempt: LiveAttempt, reply: ObserveReply, now: float
) -> None:
    """The engine's shelf has all that was ever handed over; what is not on it never was."""
    if isinstance(reply, Seen):
        machine.occupy(attempt)
    elif attempt.goes_on_from and _has(engines, attempt.goes_on_from, attempt.engine):
        machine.occupy(attempt)
        engines.adopt([(attempt.goes_on_from, attempt.key)], machine.engine_of)
    elif isinstance(reply, CouldNotAsk):  # it may have been handed over: never twice
        machine.occupy(attempt)
        unknown = NobodySaid(now, 0.0, "not asked")
        machine.heard(Heard(attempt.key, "coordinator", reply.text, unknown), now)
    elif attempt.state is State.PENDING:
        machine.wait_again(attempt, now)
    else:
        machine.occupy(attempt)
        text = "what was handed to its engine is gone from the home"
        machine.heard(Heard(attempt.key, "coordinator", text, NobodySaid(now, 0.0, "not asked")), now)


def _has(engines: Engines, key: str, name: str) -> bool:
    return isinstance(engines.observe([key], name)[0], Seen)


def _put_under_witness(machine: Machine, attempt: LiveAttempt, reply: ObserveReply, now: float) -> None:
    match reply:
        case Seen() | CouldNotAsk():
            machine.occupy(attempt)
        case NotListed() if machine.is_of_ended_boot(attempt):
            if not machine.plan_again(attempt, now):
                machine.occupy(attempt)
                machine.restarted(attempt, now)
        case NotListed() if attempt.state is State.PENDING:  # no witness ever began it
            machine.wait_again(attempt, now)
        case NotListed():
            machine.occupy(attempt)
            vanished = WitnessVanished(now)
            machine.heard(Heard(attempt.key, "coordinator", "its witness and its journal are gone", vanished), now)


def _ask_of_tasks(machine: Machine, engines: Engines, now: float) -> None:
    """The same for the tasks of live steps. One that never began waits for its srun, which comes back.

    Of tasks that their engine runs itself only their records tell, whatever became of this machine.
    """
    live = [(step, task) for step, task in machine.live.tasks.values() if not step.attempt.can.tells_steps]
    absent = []
    for step, task in [(step, task) for step, task in live if task.verdict is None]:
        (reply,) = engines.observe([task.key], step.attempt.engine)
        if isinstance(reply, NotListed):
            absent.append((step, task))
        else:
            task.is_dispatched = True
    for step, task in absent:  # all that run are known now: who ends a step ends those, and no others
        if task.verdict is not None:
            continue
        if machine.is_of_ended_boot(step.attempt):
            evidence = MachineRestarted(now, boot_of(task.key), machine.identity.boot[:8])
            machine.heard(Heard(task.key, "machine", "the machine was restarted", evidence), now)
        elif step.kill_asked or task.because:
            machine.cancel_step(step, "a request" if step.kill_asked else "the end of another task", now)


class Losses:
    """`find_unknown` is asked before runs are replayed, `note_unknown` after that."""

    def __init__(self, home: Home, machine: Machine) -> None:
        self._home = home
        self._machine = machine
        self._unknown: dict[str, UnknownAttempt] = {}  # by key

    def note_loss(self, loss: Loss | None) -> None:
        if loss is not None and loss.is_all:
            self._say(
                f"the store that was here, with {loss.last} events, is gone: aver.db or aver.db-wal was removed; its "
                f"runs are not known; numbers below {self._machine.next_id} are not given again"
            )
        elif loss is not None:
            self._say(
                f"the store lacks events {loss.first} to {loss.last}, which were committed: aver.db-wal was removed, "
                "or an older copy of aver.db was put back; runs submitted since are not known, and jobs that "
                f"ended since may run again; numbers below {self._machine.next_id} are not given again"
            )

    def find_unknown(self, reader: Reader) -> list[UnknownAttempt]:
        """What witnesses have and the store lacks; none of it gets a namesake."""
        unknown, live = unknown_attempts(self._home, reader), self._machine.live
        for one in unknown:
            live.next_id = max(live.next_id, one.job + 1)
        self._unknown = {one.key: one for one in unknown}
        return unknown

    def note_unknown(self) -> None:
        """Say what became of them: those that are live again are jobs of runs that the store knows."""
        for key, one in list(self._unknown.items()):
            if key in self._machine.attempts:
                del self._unknown[key]
                log(f"attempt {one.attempt} of job {one.job} is not in the store, but its witness has it: taken up")
            elif not one.has_ended:
                where = f"runs under witness {one.witness}" if one.witness else "had begun, and its witness is gone"
                self._say(f"job {one.job} is not in the store: its attempt {key} {where}, and is left alone")

    @property
    def is_any_running(self) -> bool:
        """Whether the end of such an attempt is still to be heard: nobody else would tell of it."""
        return any(one.witness is not None and not one.has_ended for one in self._unknown.values())

    def hear(self, one: Heard) -> None:
        """The end of an attempt that is not the store's: the log has it whole."""
        if not isinstance(one.evidence, (WitnessRecord, WitnessVanished)):
            return
        unknown = self._unknown.pop(one.key, None)
        if unknown is None:
            return
        log(f"an attempt that is not in the store has ended: {one.source} says {one.said}")
        how = one.evidence.exit if isinstance(one.evidence, WitnessRecord) else None
        how_text = "nobody saw how" if how is None else f"its witness says {how}"
        self._keep(f"job {unknown.job} is not in the store: its attempt {one.key} has ended, {how_text}")

    def _say(self, text: str) -> None:
        """Log it, and keep it for people."""
        log(text)
        self._keep(text)

    def _keep(self, text: str) -> None:
        """For `aver status` and `aver doctor`; the same is kept once."""
        if any(text in line for line in read_losses(os.fspath(self._home.path))):
            return
        line = f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n"
        try:
            fd = os.open(
                self._home.path / LOSSES, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC, 0o600
            )
            with open(fd, "w") as file:
                file.write(line)
        except OSError as error:
            log(f"can't write {self._home.path / LOSSES}: {error.strerror}")
