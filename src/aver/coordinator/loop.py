"""The coordinator's loop: listen, hear, drive, commit, show.

One thread decides; another only commits, unless there is little to commit. Whatever is shown (replies, pushes) and
whatever is done (orders, signals) comes after the commit of the events that it rests on.
"""

from __future__ import annotations

import math
import os
import select
import signal
import time

from aver.client.job_files import numbers_with_files, remove_unknown_files
from aver.coordinator.background import Background
from aver.coordinator.commit import Begun, Commits
from aver.coordinator.commit_thread import Committer
from aver.coordinator.engine_set import Engines
from aver.coordinator.fingerprints import Fingerprinter
from aver.coordinator.guard import LOOK_S, Guard
from aver.coordinator.late_evidence import take_late
from aver.coordinator.order.allocations import allocator_of, asks_of
from aver.coordinator.order.generated import Generated
from aver.coordinator.order.order import order_of, task_order
from aver.coordinator.recovery import Losses, ask_engines, load_pools, load_run
from aver.coordinator.requests.cancel import cancel
from aver.coordinator.requests.context import Context
from aver.coordinator.requests.dispatch import Dispatch
from aver.coordinator.requests.step import forget_env
from aver.coordinator.requests.submit import take_back
from aver.coordinator.sampler import Sampler
from aver.coordinator.schedule import Schedules
from aver.coordinator.server import Server, close_all
from aver.coordinator.state.machine import Machine
from aver.coordinator.stop_note import Questions, StopNote
from aver.coordinator.upkeep import Outcome, Upkeep
from aver.coordinator.watchers import Watchers
from aver.crashpoint import reached
from aver.engines.api import Heard, Order, Rejected
from aver.home import Home
from aver.log import log
from aver.store.read.reader import Reader

FLOOD_TURN_S = 0.016  # between two turns while jobs are so short that their engine has the next ones already
QUIET_S = 0.1  # pending reasons are shown when nothing has started or ended for this long
LEAVING_S = 10.0  # so long it is tried to commit what is decided
CLOCK_SET_S = 1.0  # a clock that moves by more from one turn to the next was set
CLOCK_CHECK_S = 30.0  # begin times follow the wall clock, which may be set


class Loop:
    def __init__(
        self, home: Home, guard: Guard, server: Server, poller: select.epoll, committer: Committer, engines: Engines,
        machine: Machine, kill_wait_s: float, idle_exit_s: float,
    ) -> None:  # fmt: skip
        self._home = home
        self._guard = guard
        self._look_due = time.monotonic() + LOOK_S
        self._server = server
        self._poller = poller
        self._committer = committer
        self._engines = engines
        self._machine = machine
        self._kill_wait_s = kill_wait_s
        self._idle_exit_s = idle_exit_s
        self._background = Background()
        self._generated = Generated(home, self._background, machine.packer.total)
        self._watchers = Watchers(server, machine, self._open_reader)
        self._fingerprints = Fingerprinter(self._background, machine.emit)
        self._upkeep = Upkeep(home, machine, self._background, self._deliver)
        self._schedules = Schedules(home, self._background)
        self._sampler = Sampler(home, machine, self._background)
        self._commits = Commits(committer, machine, server.send, self._give_back)
        self._requests = Context(
            home, machine, self._open_reader, load_run, self._generated, self._background, self._watchers, self._upkeep,
            kill_wait_s, self._commits.check_writable, self._hear, self.stop, self._start_over,
            self._commits.latency, lambda: self._commits.problem,
        )  # fmt: skip
        self._dispatch = Dispatch(self._requests, self._commits.reply, server.send)
        self._wakeups = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)  # a signal that comes just before a wait ends it
        self._difference_s = time.time() - time.monotonic()
        self._unjudged: list[Heard] = []  # of attempts whose verdict is not durable yet
        self._losses = Losses(home, machine)
        self._finished: list[int] = []
        self._is_stopping = False
        self.starts_over = False
        self._is_signalled = False
        self._is_turn_due = False  # something was committed within the last turn
        self._stop_note = StopNote(home.stop_note, machine.identity.boot)
        self._questions = Questions(self._stop_note, self._background)
        self._idle_since: float | None = None
        self._reasons_due: float | None = None
        self._tidy_due: float | None = None
        machine.live.read_generated = self._generated.read

    def stop(self, *_: object) -> None:
        """Leave after this turn. Jobs go on."""
        self._is_stopping = True

    def _start_over(self) -> None:
        """Leave at once: what is in memory is not what happened. Another coordinator follows, from the store."""
        self.starts_over = self._is_stopping = True

    def _end(self, *_: object) -> None:
        """Somebody sent SIGTERM: whoever stops the machine or this user's processes does."""
        self._is_signalled = True
        self.stop()

    def recover(self) -> None:
        """Read the store, observe: from here on all is as if we had never been away."""
        self._stop_note.look_again()
        now = time.time()
        self._losses.note_loss(self._committer.loss)
        self._engines.attach()
        reached("attached")
        known: set[int] = set()
        reader = self._open_reader()
        if reader is not None:
            with reader:
                load_pools(self._machine, reader)
                known = reader.runs_among(numbers_with_files(self._home))
                unknown = self._losses.find_unknown(reader)
                for number in reader.unsettled_runs():
                    load_run(self._machine, reader, number, now, unknown)
        self._losses.note_unknown()
        remove_unknown_files(self._home, known)
        ask_engines(self._machine, self._engines, now)
        self._engines.keep_only(self._machine.runs)
        self._upkeep.begin()
        self._tidy_soon()
        self._hear(now)
        self._begin_commit()
        self._commit_all()  # who reads the store when we are ready reads what became of jobs while we were away
        reached("recovered")
        if self._machine.runs:
            log(f"took up {len(self._machine.runs)} runs, {len(self._machine.attempts)} attempts planned or running")

    def run(self) -> None:
        """Turn until stopped or idle for long enough."""
        signal.set_wakeup_fd(self._wakeups[1], warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._end)
        self._poller.register(self._wakeups[0], select.EPOLLIN)
        self._poller.register(self._committer, select.EPOLLIN)
        self._poller.register(self._background, select.EPOLLIN)
        if self._guard.fileno() >= 0:
            self._poller.register(self._guard, select.EPOLLIN)
        self._turn()
        while not self._is_stopping:
            self._engines.wake_loop(not self._guard.is_store_lost and not self._machine.live.is_flooded)
            try:
                ready = self._poller.poll(0 if self._is_turn_due else self._timeout())
            except InterruptedError:
                continue
            for fd, events in ready:
                if not self.starts_over:
                    self._handle(fd, events)
            if self.starts_over:
                break
            self._is_turn_due = False
            self._turn()
            if self._is_idle_for_long() and self._server.close_if_alone():
                log("idle: leaving")
                break
        self._leave()

    # ---- input ----------------------------------------------------------------------------------

    def _handle(self, fd: int, events: int) -> None:
        if self._engines.has(fd):
            return  # heard in every turn
        if fd == self._committer.fileno():
            self._finish_commit()
        elif fd == self._background.fileno():
            self._background.take()
        elif fd == self._wakeups[0]:
            os.read(fd, 4096)
        elif fd == self._guard.fileno():
            self._guard.look()
        elif fd == self._server.listener.fileno():
            self._server.accept()
        else:
            peer = self._server.peers.get(fd)
            if peer is None:
                return
            if events & select.EPOLLOUT:
                self._server.flush(peer)
            if events & ~select.EPOLLOUT:
                for line in self._server.read(peer):
                    self._dispatch.serve(peer, line)
                if not peer.received:
                    peer.close_descriptors()

    def _deliver(self, outcome: Outcome) -> None:
        """An event of what was done aside becomes durable; a reply comes after it."""
        if outcome.event is not None:
            self._machine.emit(outcome.event)
        if outcome.expired is not None:
            self._upkeep.remove_expired(outcome.expired)
        if outcome.peer is not None and outcome.message is not None:
            if outcome.is_last:
                self._commits.reply(outcome.peer, outcome.message)
            else:
                self._server.send(outcome.peer, outcome.message)

    def _reply_held(self, at_s: float) -> None:
        """Send the replies that have waited for long enough."""
        for held in self._watchers.take_due(at_s):
            self._commits.reply(held.peer, held.reply())

    def _end_orphans(self, now: float) -> None:
        """A run whose standard streams were its owner's ends with it."""
        orphans, self._server.orphans = self._server.orphans, []
        for number in orphans:
            run = self._machine.runs.get(number)
            if run is not None and not run.state.is_settled:
                cancel(self._machine, run, 0, "the end of its srun", now)

    def _drop_lost_steps(self, now: float) -> None:
        """Steps that wait for cpus never begin once their srun is gone.

        Called before ends are judged, which may make room: a task that ended took the sruns inside it with it, and
        these hung up before its witness said so. No request is served here: a signal that srun passes on would come
        before the limit that sent it.
        """
        tokens, self._server.lost_steps = self._server.lost_steps, []
        if self._machine.has_waiting_steps:
            tokens += self._server.hung_up()
        for token in tokens:
            job, attempt, step = (int(word) for word in token.split("."))
            key = self._machine.live.key_of(job, attempt)
            if key is not None:
                close_all(self._machine.abandon_step(key, step, now))

    # ---- the turn -------------------------------------------------------------------------------

    def _turn(self) -> None:
        now = time.time()
        self._follow_clock(now)
        self._hear(now)
        self._machine.tick(now)
        self._schedules.look(now)
        self._sampler.look(now)
        self._end_orphans(now)
        if self._machine.live.cancelling and not self._committer.is_busy and not self._commits.problem:
            self._machine.go_on_cancelling(now)
        if not self._is_signalled and not self._stop_note.is_under_way:
            self._machine.schedule(now)
        self._act(now)
        if self._reasons_due is not None and time.monotonic() >= self._reasons_due:
            self._reasons_due = None
            self._machine.refresh_reasons(now)
        if self._tidy_due is not None and time.monotonic() >= self._tidy_due:
            again = self._engines.tidy()
            self._tidy_due = None if again is None else time.monotonic() + again
        if time.monotonic() >= self._look_due:
            self._look_due = time.monotonic() + LOOK_S
            self._guard.look()
        self._reply_held(time.monotonic())
        self._begin_commit()

    def _hear(self, now: float) -> None:
        """Take what the engines have heard. Without a store nothing can be made of it: it stays with the witnesses."""
        if self._guard.is_store_lost:
            return
        new = [one for one in self._engines.heard() if not self._waits_for_answer(one)]
        heard, self._unjudged = [*self._unjudged, *self._questions.answered(), *new], []
        self._drop_lost_steps(now)
        stale = []
        for one in heard:
            self._hear_of_stop(one, now)
            if self._machine.take(one, now):
                continue
            if self._machine.is_ending(one.key):
                self._unjudged.append(one)
            elif not self._is_late(one, now):
                self._losses.hear(one)
                stale.append(one.key)
        if stale:
            self._engines.settle(stale)
        if heard:
            self._machine.advance(now)
            reached("heard")
            self._reasons_due = time.monotonic() + QUIET_S
            self._tidy_soon()

    def _tidy_soon(self) -> None:
        """The engine has something to look after, or will have."""
        self._tidy_due = self._tidy_due or time.monotonic() + 1.0

    def _hear_of_stop(self, one: Heard, now: float) -> None:
        """An end by a signal is judged with what is known of a shutdown or logout at that time."""
        if self._stop_note.is_any and self._may_be_stopped(one):
            stopping = self._stop_note.evidence_for(one, self._machine.attempts[one.key].started_at)
            if stopping is not None:
                self._machine.heard(stopping, now)

    def _waits_for_answer(self, one: Heard) -> bool:
        return self._stop_note.is_in_question(one) and self._may_be_stopped(one) and self._questions.keep(one)

    def _may_be_stopped(self, one: Heard) -> bool:
        """Whether it is of a live attempt that ends with this machine."""
        attempt = self._machine.attempts.get(one.key)
        return attempt is not None and not attempt.can.outlives_machine

    def _is_late(self, one: Heard, now: float) -> bool:
        """Whether it is of an attempt that is over and still open to evidence."""
        return take_late(self._machine, self._open_reader, self._requests.revive, one, now)

    def _act(self, now: float) -> None:
        """Give the orders and signals that are due."""
        out = self._machine.out
        wanting, out.allocations = dict.fromkeys(out.allocations), []
        for number in wanting:
            run = self._machine.runs.get(number)
            engine = None if run is None else allocator_of(run)
            if run is not None and engine is not None:
                self._engines.allocate(engine, asks_of(self._home, run))
        while out.starts:
            starts, out.starts = out.starts, []
            orders: dict[str, list[Order]] = {}
            has_room_again = False
            for attempt in starts:
                run = self._machine.runs[attempt.run]
                try:
                    order = order_of(self._home, run, attempt, self._kill_wait_s, now)
                    orders.setdefault(attempt.engine, []).append(order)
                except OSError as error:
                    self._machine.rejected(attempt, f"it can't be prepared: {error.strerror}", now)
                    has_room_again = True
                except ValueError as error:
                    self._machine.rejected(attempt, f"can't be started: {error}", now)
                    has_room_again = True
            replies = [reply for engine, some in orders.items() for reply in self._engines.submit(some, engine)]
            for reply in replies:
                if isinstance(reply, Rejected):
                    self._machine.rejected(self._machine.attempts[reply.key], reply.text, now)
                    has_room_again = True
            for attempt in starts:
                close_all(attempt.streams)
                attempt.streams = ()
            if has_room_again:
                self._machine.schedule(now)
            self._reasons_due = time.monotonic() + QUIET_S
            self._tidy_soon()
        while out.task_starts:
            self._start_tasks(now)
            self._tidy_soon()
        if out.controls:
            controls, out.controls = out.controls, []
            self._engines.control(controls, self._machine.engine_of)

    def _start_tasks(self, now: float) -> None:
        out = self._machine.out
        starts, out.task_starts = out.task_starts, []
        runs, host, monotonic_s = self._machine.runs, self._machine.identity.host, time.monotonic()
        orders: dict[str, list[Order]] = {}
        for step, task in starts:
            order = task_order(runs[step.attempt.run], step, task, host, self._kill_wait_s, now, monotonic_s)
            orders.setdefault(step.attempt.engine, []).append(order)
        replies = [reply for engine, some in orders.items() for reply in self._engines.submit(some, engine)]
        refused = {reply.key: reply.text for reply in replies if isinstance(reply, Rejected)}
        for _, task in starts if refused else ():
            if task.key in refused:
                self._machine.task_rejected(task, refused[task.key], now)
        for step in {id(step): step for step, _ in starts}.values():
            close_all(step.streams)
            step.streams = ()

    def _follow_clock(self, now: float) -> None:
        """The wall's clock dates what is stored; time that passes is not told by it."""
        difference_s = now - time.monotonic()
        moved_s, self._difference_s = difference_s - self._difference_s, difference_s
        if abs(moved_s) > CLOCK_SET_S:
            self._machine.timers.shift(moved_s)

    # ---- commits --------------------------------------------------------------------------------

    def _begin_commit(self) -> None:
        out = self._machine.out
        self._commits.add(out.events)
        out.events = []
        for number in out.finished_runs:
            run = self._machine.runs.get(number)
            if run is not None and run.streams:  # its job never started; who reads at the other end must see the end
                close_all(run.streams)
                run.streams = ()
        self._finished += out.finished_runs
        out.finished_runs = []
        match self._commits.begin():
            case Begun.NOTHING:
                self._forget_finished()
            case Begun.DONE:
                self._finish_commit()
                self._is_turn_due = True
            case Begun.LATER:
                pass

    def _finish_commit(self) -> None:
        batch = self._commits.finish()
        if batch is None:
            return
        if self.starts_over:
            for peer, reply in batch.replies:
                self._server.send(peer, reply)
            return
        now = time.time()
        ended = self._machine.committed(batch.events, now)
        adoptions, self._machine.out.adoptions = self._machine.out.adoptions, []
        self._engines.adopt(adoptions, self._machine.engine_of)
        self._engines.settle(ended)
        self._act(now)  # first start what waits, then talk
        reached("acted")
        for peer, reply in batch.replies:
            self._server.send(peer, reply)
        self._watchers.tell(batch.events)
        forget_env(self._requests, batch.events)
        self._fingerprints.note(batch.events, self._machine.runs)
        self._upkeep.note(batch.events)
        reached("told")
        self._forget_finished()

    def _give_back(self, number: int) -> None:
        submission = self._machine.runs[number].submission
        self._machine.withdraw(number)
        take_back(self._requests, number, submission)

    def _forget_finished(self) -> None:
        """Let go of settled runs of which everything is durable."""
        for number in self._finished:
            run = self._machine.runs.get(number)
            if run is not None and run.state.is_settled and not self._has_events_of(number):
                self._machine.forget(number)
                self._engines.release([number])
        self._finished = [number for number in self._finished if self._has_events_of(number)]

    def _has_events_of(self, number: int) -> bool:
        return self._commits.has_events_of(number) or any(event.run == number for event in self._machine.out.events)

    # ---- time ------------------------------------------------------------------------------------

    def _timeout(self) -> float:
        """Seconds until something is due."""
        now = time.monotonic()
        due = [FLOOD_TURN_S if self._machine.live.is_flooded else CLOCK_CHECK_S, self._look_due - now]
        others = (self._sampler.next_due(), self._watchers.next_due())
        for at in (self._reasons_due, self._tidy_due, *others, *self._commits.dues()):
            if at is not None:
                due.append(at - now)
        for timer in (self._machine.next_due(), self._schedules.next_due()):
            if timer is not None:
                due.append(timer - time.time())
        if self._idle_since is not None:
            due.append(self._idle_since + self._idle_exit_s - now)
        return max(0.0, min(due)) + 0.001

    def _is_idle_for_long(self) -> bool:
        is_idle = not (
            self._machine.runs
            or self._server.peers
            or not self._commits.is_idle
            or self._background.is_busy
            or self._upkeep.is_busy
            or self._schedules.is_any
            or self._engines.is_releasing()
            or self._losses.is_any_running
        )
        if not is_idle:
            self._idle_since = None
            return False
        if self._idle_since is None:
            self._idle_since = time.monotonic()
        return time.monotonic() - self._idle_since >= self._idle_exit_s

    def _leave(self) -> None:
        """Commit what is decided, then go. What runs goes on."""
        if self._is_signalled:
            self._stop_note.look()
        self._reply_held(math.inf)
        self._commit_all()
        self._commits.send_replies()
        self._guard.close()
        self._server.close()
        self._engines.close()
        self._upkeep.close()
        self._committer.close()

    def _commit_all(self) -> None:
        """Wait until all that is decided is durable, or the store has not taken it for long."""
        deadline = time.monotonic() + LEAVING_S
        while not self._commits.is_idle and time.monotonic() < deadline:
            if not self._committer.is_busy:
                self._commits.hurry()
                self._begin_commit()
            elif select.select([self._committer], [], [], 1)[0]:
                self._finish_commit()

    def _open_reader(self) -> Reader | None:
        return Reader.open(self._home.database)
