"""Attempts as steps of allocations: a run takes one or several from Slurm, and executors on the nodes share its orders.

One worker thread writes orders, reads ends, takes allocations (`allocation_queue`) and asks Slurm: one squeue for all
of them, and at most one sacct. All that must not be lost is files (`allocation_folder`): after a restart they are read
again. It decides no outcome: `allocation_tracking` makes evidence, core judges it. Of what nobody told, it goes on
asking: the folder of a run that is over is kept for that.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from aver.engines.api import (
    UNLIMITED,
    AllocationAsk,
    Control,
    CouldNotAsk,
    Heard,
    NotListed,
    ObserveReply,
    Order,
    Seen,
    SubmitReply,
    Totals,
)
from aver.engines.slurm.allocation.accounting import StepAccounts
from aver.engines.slurm.allocation.cancels import Cancels
from aver.engines.slurm.allocation.evidence import StepTrack
from aver.engines.slurm.allocation.folder import Bounds, RunFolder, folders_in, size_of
from aver.engines.slurm.allocation.mirror import HostAway, Mirror, SharedFolder
from aver.engines.slurm.allocation.queue import SBATCH, AllocationQueue, LiveFolder
from aver.engines.slurm.allocation.request import AnyTaker, reason_for
from aver.engines.slurm.allocation.steps import claim_text, order_lines, size_for, which_of
from aver.engines.slurm.allocation.work import Work
from aver.engines.slurm.commands.call import Commands
from aver.engines.slurm.commands.questions import Questions
from aver.engines.slurm.commands.rows import NoAnswer
from aver.engines.slurm.track.evidence import Settle
from aver.engines.slurm.track.exit_records import RecordsFolder, in_order
from aver.engines.slurm.track.pace import CALM, GROWTH, LATE_S, RECENT_S, Pace
from aver.engines.slurm.worker import Worker
from aver.model.evidence import CancelledBefore, DeadlinePassed, Evidence, HeldBack, Refused
from aver.model.record import replace

FOLDER = "shared folder"
QUEUE = "squeue"
ACCOUNTING = "sacct"
WITNESS = "witness"
TAKEN_BACK = "a request before an allocation took it"
TOO_LATE = "no allocation took it by its deadline"
LOOK_S = 0.25  # between two looks at the folder while things change …
LOOK_MOST_S = 2.0  # … and while they do not
TOLD_AGAIN = 100  # so many waiting jobs of a run hear a new sentence with the same reason


class AllocationEngine(Worker):
    """See `aver.engines.api.Engine`; `allocate` and `release` are its own."""

    name = "allocation"
    totals: Totals = UNLIMITED

    def __init__(
        self, path: Path, commands: Commands, taker: AnyTaker, records: RecordsFolder, settle: Settle, pace: Pace,
        kill_wait_s: float, log: Callable[[str], None], reached: Callable[[str], None] = lambda name: None,
        mirror: Mirror = SharedFolder(),
    ) -> None:  # fmt: skip
        super().__init__("allocation")
        self._path = path
        self._mirror = mirror
        self._taker = taker
        self._records = records
        self._pace = pace
        self._log = log
        self._reached = reached  # names of moments, at which tests end us
        self._questions = Questions(commands, pace.timeout_s)
        self.calls: Counter[str] = self._questions.calls
        self._runs: dict[int, LiveFolder] = {}
        self._queue = AllocationQueue(self._runs, taker, self._questions, settle, pace.retry_least_s, log, reached)
        self._accounts = StepAccounts(self._questions, settle, taker.home, pace.trouble_most_s)
        self._cancels = Cancels(commands, self.calls, kill_wait_s, pace.timeout_s)
        self._tracks: dict[str, StepTrack] = {}
        self._later: list[Order] = []  # until their host answers
        self._known: set[str] = set()  # the loop's side
        self._releasing: set[int] = set()  # runs whose end the thread has not heard of
        self._sequence = 0
        self._work = Work()
        self._next_look = self._next_poll = 0.0
        self._look_s, self._pause_s = LOOK_S, pace.least_s
        self._changed_at = 0.0
        self._polls = 0
        self._trouble = ""
        self._unread = ""  # why a folder could not be read when we came

    # ---- the loop's side ------------------------------------------------------------------------

    def attach(self) -> None:
        """What is in the folders was handed over, whatever became of it since."""
        for folder in folders_in(self._path):
            self._mirror.attach(folder)
            is_let_go = folder.is_closed
            try:
                listing = folder.read()
                keys = {*listing.started} if is_let_go else {*folder.handed_over(), *listing.started}
            except OSError as error:
                if not is_let_go:
                    self._unread = f"can't read {folder.path}: {error.strerror}"
                    self._log(self._unread)
                continue
            if is_let_go and not keys:
                self._mirror.drop(folder)
                continue
            live = self._live(folder.run)
            live.listing, live.is_let_go = listing, is_let_go
            for key in keys if is_let_go else {*keys, *listing.waiting, *listing.cancelled}:
                self._known.add(key)
                track = self._tracks[key] = self._track(key, folder.run, listing.waiting.get(key, ""))
                bounds = folder.bounds_of(track.name) if track.name else Bounds()
                track.deadline_at = bounds.deadline_at
                track.size = track.size and replace(track.size, exclude=bounds.exclude)
        if self._runs or self._mirror.is_behind:
            self._start()

    def allocate(self, asks: Sequence[AllocationAsk]) -> None:
        """Take these allocations, each once however often it is asked for by the same name."""
        self._give(Work(asks=list(asks)))

    def release(self, runs: Sequence[int]) -> None:
        """Give back the allocations of settled runs. Durable when this returns, where the disk allows it."""
        for run in runs:
            path = self._path / str(run)
            if path.is_dir():
                self._releasing.add(run)
                try:
                    RunFolder(path).close()
                except OSError as error:
                    self._log(f"can't close {path}: {error.strerror}")
        self._give(Work(closed=list(runs)))

    def open_runs(self) -> list[int]:
        """Runs whose allocations have not been let go."""
        return [folder.run for folder in folders_in(self._path) if not folder.is_closed]

    def is_releasing(self) -> bool:
        return bool(self._releasing) or self._mirror.is_behind

    def submit(self, orders: Sequence[Order]) -> list[SubmitReply]:
        taken, replies = self._accept(orders, "being put in the folder of its allocations")
        self._known.update(order.key for order in taken)
        self._give(Work(orders=taken))
        return replies

    def observe(self, keys: Sequence[str]) -> list[ObserveReply]:
        return [Seen(key) if key in self._known else self._unknown(key) for key in keys]

    def _unknown(self, key: str) -> ObserveReply:
        """In a folder that can't be read it may be, and may have run."""
        return CouldNotAsk(key, self._unread) if self._unread else NotListed(key)

    def control(self, controls: Sequence[Control]) -> None:
        self._give(Work(controls=list(controls)))

    def settle(self, keys: Sequence[str]) -> None:
        mine = [key for key in keys if key in self._known]
        if mine:
            self._known.difference_update(mine)
            self._give(Work(settled=mine))

    def adopt(self, before: str, key: str) -> None:
        """No executor starts anything again."""

    def close(self) -> None:
        self._stop()
        if self.calls:
            counts = ", ".join(f"{count} {name}" for name, count in sorted(self.calls.items()))
            self._log(f"allocations: asked {self._polls} times; calls: {counts}")

    def _give(self, work: Work) -> None:
        if not work:
            return
        with self._lock:
            mine = self._work
            mine.asks += work.asks
            mine.orders += work.orders
            mine.controls += work.controls
            mine.settled += work.settled
            mine.closed += work.closed
            self._lock.notify()
        self._start()

    # ---- the thread's side ------------------------------------------------------------------------

    def _turn_until_closed(self) -> None:
        while True:
            with self._lock:
                while not (self._is_closing or self._work):
                    self._lock.wait(self._idle_s())
                    if self._is_due():
                        break
                if self._is_closing:
                    return
                work, self._work = self._work, Work()
            self._forget(work.settled)
            self._let_go(work.closed)
            for ask in work.asks:
                live = self._live(ask.run)
                live.is_let_go = False
                self._queue.ask(live, ask)
                self._hurry()
            self._put_orders(work.orders)
            self._control(work.controls)
            if self._queue.take_due():
                self._refuse_waiting()
                self._show_reasons()
                self._hurry()
            now = time.monotonic()
            if now >= self._next_look:
                self._look()
            if now >= self._next_poll:
                self._poll()

    def _idle_s(self) -> float | None:
        if not self._is_at_work:
            return None
        return max(0.01, min(self._next_look, self._next_poll, *self._queue.due()) - time.monotonic())

    def _is_due(self) -> bool:
        return self._is_at_work and self._idle_s() == 0.01

    @property
    def _is_at_work(self) -> bool:
        return bool(self._runs) or self._mirror.is_behind

    def _live(self, run: int) -> LiveFolder:
        live = self._runs.get(run)
        if live is None:
            folder = RunFolder(self._path / str(run))
            live = LiveFolder(folder, folder.load_asks(self._log))
            self._runs[run] = live
        return live

    def _track(self, key: str, run: int, name: str) -> StepTrack:
        return StepTrack(key, run, which_of(key), size_of(name), name)

    def _tell(self, key: str, source: str, said: str, evidence: Iterable[Evidence]) -> None:
        found = [Heard(key, source, said, one) for one in evidence]
        if not found:
            return
        self._changed_at = time.monotonic()
        self._look_s = LOOK_S
        self._put(found)

    # ---- what the loop asks for -----------------------------------------------------------------------

    def _put_orders(self, orders: Sequence[Order]) -> None:
        for order in orders:
            live = self._live(order.run)
            track = self._tracks[order.key] = StepTrack(order.key, order.run, which_of(order.key))
            track.deadline_at = order.deadline_at
            if self._cancels.drop(order.key):
                self._tell(order.key, "engine", TAKEN_BACK, [_taken_back(time.time())])
                continue
            self._sequence = max(self._sequence + 1, time.time_ns() // 1000)
            track.size = size_for(order)
            try:
                live.folder.make()
                script = self._taker.script(order)
                track.name = live.folder.put_order(self._sequence, order.key, track.size, order_lines(order), script)
            except HostAway as error:
                self._later.append(order)
                self._tell(order.key, "engine", str(error), [HeldBack(time.time(), error.reason, str(error))])
                continue
            except (OSError, ValueError) as error:
                text = f"it can't be put in the folder of its allocations: {error}"
                self._tell(order.key, "engine", text, [Refused(time.time(), text)])
                continue
            live.listing.waiting[order.key] = track.name
            self._reached("allocation-order-put")
        if orders:
            self._refuse_waiting()
            self._show_reasons()
            self._look_s, self._next_look = LOOK_S, min(self._next_look, time.monotonic() + LOOK_S)

    def _control(self, controls: Sequence[Control]) -> None:
        signals: dict[int, list[str]] = {}
        for control in controls:
            if control.verb == "cancel":
                self._cancels.add(control.key, control.signal)
                self._hurry()
            elif control.verb == "signal":
                signals.setdefault(control.signal, []).append(control.key)
        self._take_back()
        for number, keys in signals.items():
            self._cancels.signal(self._tracks, keys, number)

    def _take_back(self) -> None:
        """What was cancelled and nobody has taken."""
        asked = [track for key in self._cancels.asked() if (track := self._tracks.get(key)) is not None and track.name]
        for track in self._taken_back(asked):
            self._reached("allocation-taken-back")
            self._cancels.drop(track.key)
            self._tell(track.key, FOLDER, TAKEN_BACK, [_taken_back(time.time())])

    def _take_back_late(self, at: float) -> None:
        """What nobody has taken by its deadline."""
        waiting = [track for track in self._tracks.values() if track.name and track.deadline_at is not None]
        for track in self._taken_back([track for track in waiting if (track.deadline_at or at) <= at]):
            self._tell(track.key, FOLDER, TOO_LATE, [DeadlinePassed(at)])

    def _taken_back(self, tracks: Sequence[StepTrack]) -> list[StepTrack]:
        """Those of them that no allocation will take."""
        taken: list[StepTrack] = []
        for run in dict.fromkeys(track.run for track in tracks):
            names = [track.name for track in tracks if track.run == run]
            back = self._mirror.take_back(self._runs[run].folder, names)
            taken += [track for track in tracks if track.run == run and track.name in back]
        for track in taken:
            track.name = ""
            track.told.add("cancelled")
        return taken

    def _forget(self, keys: Sequence[str]) -> None:
        forgotten: dict[int, list[str]] = {}
        for key in keys:
            self._cancels.drop(key)
            track = self._tracks.pop(key, None)
            live = self._runs.get(track.run) if track is not None else None
            if live is not None:
                self._reached("allocation-before-forget")
                live.folder.forget(key, live.listing)
                forgotten.setdefault(live.folder.run, []).append(key)
        for run, mine in forgotten.items():
            self._mirror.forget(self._runs[run].folder, mine)
        self._records.remove(keys)
        self._drop_folders()

    def _let_go(self, runs: Sequence[int]) -> None:
        """Those that wait in the queue would only leave again. What is not settled stays to be heard of."""
        for run in runs:
            live = self._runs.get(run)
            if live is None:
                continue
            live.is_let_go = True
            self._mirror.close(live.folder)
            self._cancels.scancel(["--state=PENDING"], self._queue.let_go(live))
        if runs:
            self._drop_folders()
            self._releasing.difference_update(runs)

    def _drop_folders(self) -> None:
        if any(live.is_let_go for live in self._runs.values()):
            in_use = {track.run for track in self._tracks.values()}
            for run in [run for run, live in self._runs.items() if live.is_let_go and run not in in_use]:
                self._mirror.drop(self._runs.pop(run).folder)

    def _refuse_waiting(self) -> None:
        """What the run itself asked for will never come: neither will its jobs. A further wish leaves them be."""
        refused = {run: live.refused for run, live in self._runs.items() if live.refused}
        waiting = [track for track in self._tracks.values() if track.name and track.run in refused] if refused else []
        for track in self._taken_back(waiting):
            text = refused[track.run]
            self._tell(track.key, SBATCH, text, [Refused(time.time(), text)])

    def _show_reasons(self) -> None:
        now = time.time()
        reasons = {run: reason_for(live.folder, live.asks) for run, live in self._runs.items()}
        waiting: Counter[int] = Counter()
        for track in self._tracks.values():
            if track.name and track.run in reasons:
                waiting[track.run] += 1
                reason, text = reasons[track.run](track.size)
                is_told_again = waiting[track.run] <= TOLD_AGAIN and text != track.shown_text
                if reason != track.shown_reason or is_told_again:
                    track.shown_reason, track.shown_text = reason, text
                    self._tell(track.key, FOLDER, text, [HeldBack(now, reason, text)])

    # ---- looking into the folders -----------------------------------------------------------------------

    def _look(self) -> None:
        later, self._later = self._later, []
        self._put_orders(later)
        if trouble := self._mirror.sync([live.folder for live in self._runs.values()]):
            self._note_trouble(trouble)
        at = time.time()
        for live in list(self._runs.values()):
            try:
                live.listing = live.folder.read()
            except OSError as error:
                self._note_trouble(f"{live.folder.path}: {error.strerror}")
                continue
            self._hear_files(live, at)
        self._hear_records()
        self._take_back_late(at)
        self._reached("allocation-looked")
        is_quiet = time.monotonic() - self._changed_at > RECENT_S
        self._look_s = min(self._look_s * GROWTH, LOOK_MOST_S) if is_quiet else LOOK_S
        self._look_s = max(self._look_s, self._mirror.look_s)
        self._next_look = time.monotonic() + self._look_s

    def _hear_files(self, live: LiveFolder, at: float) -> None:
        over = self._queue.standing().over
        for key, claim in live.listing.started.items():
            track = self._tracks.get(key)
            if track is None:
                continue
            if (started_at := self._mirror.started_at(key)) is not None:
                claim = replace(claim, at=started_at)
            self._tell(key, FOLDER, claim_text(claim), track.hear_claim(claim, at))
            if track.status is None and key in live.listing.done:
                track.status = live.folder.status_of(key)
                if track.status is not None:
                    self._tell(key, FOLDER, f"srun exit status {track.status}", track.hear_over(at))
                    self._hurry()
            elif claim.job in over:
                self._tell(key, QUEUE, f"its allocation {claim.job} is over", track.hear_over(at))
        for key in live.listing.cancelled:
            track = self._tracks.get(key)
            if track is not None and "cancelled" not in track.told:  # by an earlier coordinator
                track.told.add("cancelled")
                self._tell(key, FOLDER, TAKEN_BACK, [_taken_back(at)])

    def _hear_records(self) -> None:
        names = {f"{key}.r0": key for key, track in self._tracks.items() if track.claim is not None}
        for name, task, text, record in in_order(self._records, names) if names else ():
            track = self._tracks[names[name]]
            if task:
                self._tell(track.key + task, WITNESS, text, [record])
            else:
                self._tell(track.key, WITNESS, text, track.hear_record(record))

    # ---- asking Slurm -------------------------------------------------------------------------------------

    def _hurry(self) -> None:
        self._pause_s = self._pace.least_s
        self._next_poll = min(self._next_poll, time.monotonic() + self._pace.least_s / 4)

    def _poll(self) -> None:
        began = time.monotonic()
        if not self._runs:
            self._next_poll = began + self._pace.most_s
            return
        self._polls += 1
        heard = self._queue.hear()
        answered = not isinstance(heard, NoAnswer)
        self._note_trouble(heard.text if isinstance(heard, NoAnswer) else "")
        if answered:
            self._ask_accounting()
            self._take_back()
            self._cancels.send(self._tracks)
            self._refuse_waiting()
            self._show_reasons()
            self._drop_old()
        if heard is True:
            self._next_look = time.monotonic()
        if not answered:
            self._pause_s = min(max(self._pause_s, self._pace.least_s) * 2, self._pace.trouble_most_s)
        elif self._is_awaited():
            self._pause_s = self._pace.least_s
        else:
            self._pause_s = min(self._pause_s * GROWTH, self._pace.most_s)
        took = time.monotonic() - began
        self._next_poll = time.monotonic() + max(self._pause_s, min(took * CALM, self._pace.most_s))

    def _is_awaited(self) -> bool:
        if self._cancels or any(track.asks_accounting and track.given_up_at is None for track in self._tracks.values()):
            return True
        return time.monotonic() - self._changed_at < RECENT_S

    def _drop_old(self) -> None:
        """What nobody has said for a week nobody will say."""
        oldest = time.time() - LATE_S
        old = [key for key, track in self._tracks.items() if (track.given_up_at or oldest) < oldest]
        if old:
            self._forget(old)

    def _ask_accounting(self) -> None:
        heard = self._accounts.ask(self._tracks.values(), self._queue.standing(), self._said)
        if isinstance(heard, str):
            self._note_trouble(heard)
            return
        for track, text, evidence in heard:
            self._tell(track.key, ACCOUNTING, text, evidence)

    def _said(self, track: StepTrack) -> str:
        return self._runs[track.run].folder.said(track.key)

    def _note_trouble(self, text: str) -> None:
        if text != self._trouble:
            self._trouble = text
            self._log(f"allocations can't be asked for: {text}" if text else "slurm answers again")


def _taken_back(at: float) -> CancelledBefore:
    return CancelledBefore(at, "a request", "an allocation took it")
