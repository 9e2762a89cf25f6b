"""Attempts as steps of allocations: a run takes one or several from Slurm, and executors on the nodes share its orders.

One worker thread writes orders, reads ends, calls sbatch for allocations and asks Slurm: one squeue for all of them,
and at most one sacct. All that must not be lost is files (`allocation_folder`): after a restart they are read again.
It decides no outcome: `allocation_tracking` makes evidence, core judges it.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from aver.core.evidence import CancelledBefore, Evidence, HeldBack, Refused
from aver.core.judge_cluster import ENDS, plain_word
from aver.engines.api import (
    AllocationAsk,
    Control,
    CouldNotAsk,
    Heard,
    NotListed,
    ObserveReply,
    Order,
    Rejected,
    Seen,
    SubmitReply,
    Totals,
    Unsure,
)
from aver.engines.slurm.allocating import Taker, reason_for
from aver.engines.slurm.allocation_folder import Allocation, Asked, Listing, RunFolder, Size, size_of
from aver.engines.slurm.allocation_steps import (
    account_text,
    ask_steps,
    claim_text,
    order_lines,
    which_of,
    which_step,
)
from aver.engines.slurm.allocation_tracking import StepTrack
from aver.engines.slurm.asking import Questions
from aver.engines.slurm.commands import Commands
from aver.engines.slurm.engine import ACCOUNTING_MARGIN_S, CALM, GROWTH, RECENT_S, UNLIMITED, Pace
from aver.engines.slurm.exit_records import Records, in_order
from aver.engines.slurm.handing import member_of
from aver.engines.slurm.rows import AccountRow, Accounts, Disabled, NoAnswer, QueueRow
from aver.engines.slurm.scontrol import Facts, ask_facts
from aver.engines.slurm.script import batch_script
from aver.engines.slurm.tracking import Settle
from aver.engines.slurm.worker import Worker

FOLDER = "shared folder"
QUEUE = "squeue"
ACCOUNTING = "sacct"
WITNESS = "witness"
SBATCH = "sbatch"
LOOK_S = 0.25  # between two looks at the folder while things change …
LOOK_MOST_S = 2.0  # … and while they do not
ENDING = "COMPLETING"  # its steps' rows have its own word meanwhile
MIB = 1 << 20


@dataclass(slots=True)
class Work:
    """What the loop has given to the thread."""

    asks: list[AllocationAsk] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)
    controls: list[Control] = field(default_factory=list)
    settled: list[str] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.asks or self.orders or self.controls or self.settled or self.closed)


@dataclass(slots=True)
class LiveFolder:
    """One run's."""

    folder: RunFolder
    asks: list[Asked] = field(default_factory=list)
    listing: Listing = field(default_factory=Listing)

    def allocations(self) -> Iterable[Allocation]:
        return (one for asked in self.asks for one in asked.allocations)


class AllocationEngine(Worker):
    """See `aver.engines.api.Engine`; `allocate` and `release` are its own."""

    name = "allocation"
    totals: Totals = UNLIMITED

    def __init__(
        self, path: Path, commands: Commands, taker: Taker, records: Records, settle: Settle, pace: Pace,
        kill_wait_s: float, log: Callable[[str], None], reached: Callable[[str], None] = lambda name: None,
    ) -> None:  # fmt: skip
        super().__init__("allocation")
        self._path = path
        self._commands = commands
        self._taker = taker
        self._records = records
        self._settle = settle
        self._pace = pace
        self._kill_wait_s = kill_wait_s
        self._log = log
        self._reached = reached  # names of moments, at which tests end us
        self._questions = Questions(commands, pace.timeout_s)
        self.calls: Counter[str] = self._questions.calls
        self._runs: dict[int, LiveFolder] = {}
        self._tracks: dict[str, StepTrack] = {}
        self._known: set[str] = set()  # the loop's side
        self._cancels: dict[
            str, tuple[float | None, int]
        ] = {}  # by key: when it was sent TERM, and whether KILL is due
        self._sequence = 0
        self._facts: Facts | None = None
        self._work = Work()
        self._next_look = self._next_poll = 0.0
        self._look_s, self._pause_s = LOOK_S, pace.least_s
        self._changed_at = 0.0
        self._last_queue: float | None = None
        self._last_account: float | None = None
        self._polls = 0
        self._trouble = ""
        self._unread = ""  # why a folder could not be read when we came

    # ---- the loop's side ------------------------------------------------------------------------

    def attach(self) -> None:
        """What is in the folders was handed over, whatever became of it since."""
        for path in sorted(self._path.glob("[0-9]*")):
            folder = RunFolder(path)
            if folder.is_closed:
                continue
            live = self._live(folder.run)
            try:
                live.listing = folder.read()
                handed_over = folder.handed_over()
            except OSError as error:
                self._unread = f"can't read {path}: {error.strerror}"
                self._log(self._unread)
                continue
            for key in {*handed_over, *live.listing.waiting, *live.listing.started, *live.listing.cancelled}:
                self._known.add(key)
                self._tracks[key] = self._track(key, folder.run, live.listing.waiting.get(key, ""))
        if self._runs:
            self._start()

    def allocate(self, asks: Sequence[AllocationAsk]) -> None:
        """Take these allocations, each once however often it is asked for by the same name."""
        self._give(Work(asks=list(asks)))

    def release(self, runs: Sequence[int]) -> None:
        """These runs are settled: their allocations leave. Durable when this returns, where the disk allows it."""
        for run in runs:
            path = self._path / str(run)
            if path.is_dir():
                try:
                    RunFolder(path).close()
                except OSError as error:
                    self._log(f"can't close {path}: {error.strerror}")
        self._give(Work(closed=list(runs)))

    def open_runs(self) -> list[int]:
        """Runs whose allocations have not been let go."""
        return [int(path.name) for path in self._path.glob("[0-9]*") if not RunFolder(path).is_closed]

    def submit(self, orders: Sequence[Order]) -> list[SubmitReply]:
        replies: list[SubmitReply] = []
        taken = []
        for order in orders:
            if order.streams:
                replies.append(Rejected(order.key, "descriptors can't be handed to a cluster's node"))
            else:
                taken.append(order)
                replies.append(Unsure(order.key, "being put in the folder of its allocations"))
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
                self._ask(ask)
            self._put_orders(work.orders)
            self._control(work.controls)
            self._take_allocations()
            now = time.monotonic()
            if now >= self._next_look:
                self._look()
            if now >= self._next_poll:
                self._poll()

    def _idle_s(self) -> float | None:
        if not self._runs:
            return None
        due = [self._next_look, self._next_poll]
        due += [asked.due for live in self._runs.values() for asked in live.asks if not asked.is_complete and asked.due]
        return max(0.01, min(due) - time.monotonic())

    def _is_due(self) -> bool:
        return bool(self._runs) and self._idle_s() == 0.01

    def _live(self, run: int) -> LiveFolder:
        live = self._runs.get(run)
        if live is None:
            folder = RunFolder(self._path / str(run))
            live = LiveFolder(folder, folder.load_asks())
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

    def _ask(self, ask: AllocationAsk) -> None:
        live = self._live(ask.run)
        try:
            live.folder.open()
            if not live.folder.has_asked(ask.name):
                has_some = any(not one.is_over for one in live.allocations())
                asked = Asked(replace(ask, count=0) if has_some and not ask.is_extra else ask)
                live.folder.keep(asked)
                live.asks.append(asked)
        except OSError as error:
            self._log(f"can't keep what run {ask.run} asked for: {error.strerror}")
        self._hurry()

    def _put_orders(self, orders: Sequence[Order]) -> None:
        for order in orders:
            live = self._live(order.run)
            track = self._tracks[order.key] = StepTrack(order.key, order.run, which_of(order.key))
            if order.key in self._cancels:
                del self._cancels[order.key]
                by = "a request before an allocation took it"
                self._tell(order.key, "engine", by, [CancelledBefore(time.time(), by)])
                continue
            self._sequence = max(self._sequence + 1, time.time_ns() // 1000)
            mib = 0 if order.request.mem_bytes is None else -(-order.request.mem_bytes // MIB)
            track.size = Size(order.request.cpus, mib, order.request.gpus, order.least_s)
            try:
                live.folder.make()
                script = self._script(order)
                track.name = live.folder.put_order(self._sequence, order.key, track.size, order_lines(order), script)
            except (OSError, ValueError) as error:
                text = f"it can't be put in the folder of its allocations: {error}"
                self._tell(order.key, "engine", text, [Refused(time.time(), text)])
                continue
            live.listing.waiting[order.key] = track.name
            self._reached("allocation-order-put")
        if orders:
            for live in self._runs.values():
                self._refuse_waiting(live)
            self._show_reasons()
            self._look_s, self._next_look = LOOK_S, min(self._next_look, time.monotonic() + LOOK_S)

    def _script(self, order: Order) -> bytes:
        pairs = tuple((name, value) for name, _, value in (pair.partition("=") for pair in order.env))
        member = replace(member_of(order, pairs, is_array=True), time_ms=None, warn=None, has_step_limits=True)
        records = os.fspath(self._records.folder)
        return batch_script([member], witness=self._taker.witness, records=records, shim=self._taker.shim)

    def _control(self, controls: Sequence[Control]) -> None:
        signals: dict[int, list[str]] = {}
        for control in controls:
            track = self._tracks.get(control.key)
            if control.verb == "cancel":
                self._cancel(control, track)
            elif control.verb == "signal" and track is not None and track.claim is not None and not track.is_over:
                signals.setdefault(control.signal, []).append(control.key)
        for number, keys in signals.items():
            self._scancel([f"--signal={number}"], list(self._step_ids(keys).values()))

    def _cancel(self, control: Control, track: StepTrack | None) -> None:
        if track is not None and track.claim is None and track.name:
            folder = self._runs[track.run].folder
            if folder.take_back(track.name):
                self._reached("allocation-taken-back")
                by = "a request before an allocation took it"
                track.name = ""
                track.told.add("cancelled")
                self._tell(track.key, FOLDER, by, [CancelledBefore(time.time(), by)])
                return
        self._cancels.setdefault(control.key, (None, control.signal))
        self._hurry()

    def _forget(self, keys: Sequence[str]) -> None:
        for key in keys:
            self._cancels.pop(key, None)
            track = self._tracks.pop(key, None)
            live = self._runs.get(track.run) if track is not None else None
            if live is not None:
                self._reached("allocation-before-forget")
                live.folder.forget(key, live.listing)
                self._records.remove([key])

    def _let_go(self, runs: Sequence[int]) -> None:
        """Those that wait in the queue would only leave again."""
        for run in runs:
            live = self._runs.pop(run, None)
            if live is None:
                continue
            ids = [str(one.id) for one in live.allocations() if one.id is not None and not one.is_over]
            for asked in live.asks:
                for one in asked.allocations:
                    one.is_over = True
                self._keep(live, asked)
            self._tracks = {key: track for key, track in self._tracks.items() if track.run != run}
            self._scancel(["--state=PENDING"], ids)

    # ---- allocations ------------------------------------------------------------------------------------

    def _take_allocations(self) -> None:
        for live in self._runs.values():
            for asked in live.asks:
                while not asked.is_complete and asked.due <= time.monotonic():
                    asked.due = 0.0
                    if not self._take_one(live, asked):
                        break

    def _take_one(self, live: LiveFolder, asked: Asked) -> bool:
        """Call sbatch for the next one of a row; False: not now."""
        last = asked.allocations[-1] if asked.allocations else None
        if last is not None and last.id is None:
            return False  # until it is found: the next one comes after it
        self.calls[SBATCH] += 1
        name = self._taker.name(asked.ask, len(asked.allocations))
        one = Allocation(name, time.time())
        asked.allocations.append(one)
        self._keep(live, asked)
        self._reached("allocation-before-sbatch")
        return self._hand_over(live, asked, one, last)

    def _hand_over(self, live: LiveFolder, asked: Asked, one: Allocation, last: Allocation | None) -> bool:
        answer = self._taker.take(asked.ask, one.name, None if last is None else last.id, live.folder)
        self._reached("allocation-after-sbatch")
        outcome = self._taker.outcome(answer)
        one.id, one.made_at, one.unseen_s = outcome.id, time.time(), 0.0
        if outcome.is_not_taken:
            asked.allocations.remove(one)
            asked.held_back, asked.due = outcome.reason, time.monotonic() + self._pace.retry_least_s
        asked.refused = outcome.refused
        self._keep(live, asked)
        if outcome.refused:
            self._log(f"run {asked.ask.run}: sbatch refused its allocation: {outcome.refused}")
            self._refuse_waiting(live)
        self._hurry()
        self._show_reasons()
        return outcome.id is not None

    def _refuse_waiting(self, live: LiveFolder) -> None:
        """What the run itself asked for will never come: neither will its jobs. A further wish leaves them be."""
        of_round = [asked for asked in live.asks if not asked.ask.is_extra]
        refused = of_round[-1].refused if of_round else ""
        if not refused or any(not asked.is_complete for asked in live.asks):
            return
        if any(not one.is_over for one in live.allocations()):
            return
        for track in self._tracks.values():
            if track.run == live.folder.run and track.name and live.folder.take_back(track.name):
                track.name = ""
                track.told.add("cancelled")
                self._tell(track.key, SBATCH, refused, [Refused(time.time(), refused)])

    def _keep(self, live: LiveFolder, asked: Asked) -> None:
        """Without its id on disk an allocation is found by its name after a restart."""
        try:
            live.folder.keep(asked)
        except OSError as error:
            self._log(f"can't keep what run {asked.ask.run} asked for: {error.strerror}")

    def _show_reasons(self) -> None:
        now = time.time()
        reasons = {run: reason_for(live.folder, live.asks) for run, live in self._runs.items()}
        for track in self._tracks.values():
            if track.name and track.run in reasons:
                reason, text = reasons[track.run](track.size)
                if reason != track.shown_reason:
                    track.shown_reason = reason
                    self._tell(track.key, FOLDER, text, [HeldBack(now, reason, text)])

    # ---- looking into the folders -----------------------------------------------------------------------

    def _look(self) -> None:
        at = time.time()
        for live in list(self._runs.values()):
            try:
                live.listing = live.folder.read()
            except OSError as error:
                self._note_trouble(f"{live.folder.path}: {error.strerror}")
                continue
            self._hear_files(live, at)
        self._hear_records()
        self._reached("allocation-looked")
        is_quiet = time.monotonic() - self._changed_at > RECENT_S
        self._look_s = min(self._look_s * GROWTH, LOOK_MOST_S) if is_quiet else LOOK_S
        self._next_look = time.monotonic() + self._look_s

    def _hear_files(self, live: LiveFolder, at: float) -> None:
        over = {one.id for one in live.allocations() if one.is_over}
        for key, claim in live.listing.started.items():
            track = self._tracks.get(key)
            if track is None:
                continue
            self._tell(key, FOLDER, claim_text(claim), track.hear_claim(claim, at))
            if key in live.listing.done and not track.is_done and live.folder.status_of(key) is not None:
                track.is_done = True
                said = f"srun exit status {live.folder.status_of(key)}"
                self._tell(key, FOLDER, said, track.hear_over(at))
                self._hurry()
            elif claim.job in over:
                self._tell(key, QUEUE, f"its allocation {claim.job} is over", track.hear_over(at))
        for key in live.listing.cancelled:
            track = self._tracks.get(key)
            if track is not None and "cancelled" not in track.told:  # by an earlier coordinator
                track.told.add("cancelled")
                by = "a request before an allocation took it"
                self._tell(key, FOLDER, by, [CancelledBefore(at, by)])

    def _hear_records(self) -> None:
        names = {f"{key}.r0": key for key, track in self._tracks.items() if track.claim is not None}
        for name, task, text, record in in_order(self._records, names):
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
        answered = self._ask_queue()
        if answered:
            self._ask_accounting()
            self._send_cancels()
            self._show_reasons()
        if not answered:
            self._pause_s = min(max(self._pause_s, self._pace.least_s) * 2, self._pace.trouble_most_s)
        elif self._is_awaited():
            self._pause_s = self._pace.least_s
        else:
            self._pause_s = min(self._pause_s * GROWTH, self._pace.most_s)
        took = time.monotonic() - began
        self._next_poll = time.monotonic() + max(self._pause_s, min(took * CALM, self._pace.most_s))

    def _is_awaited(self) -> bool:
        if self._cancels or any(track.asks_accounting for track in self._tracks.values()):
            return True
        return time.monotonic() - self._changed_at < RECENT_S

    def _ask_queue(self) -> bool:
        mine = [one for live in self._runs.values() for one in live.allocations() if not one.is_over]
        ids = [one.id for one in mine if one.id is not None]
        names = [one.name for one in mine if one.id is None]
        if not mine:
            self._last_queue = None
            return True
        answer = self._questions.queue(ids, names)
        if isinstance(answer, NoAnswer):
            self._last_queue = None
            self._note_trouble(answer.text)
            return False
        self._note_trouble("")
        now = time.monotonic()
        since = 0.0 if self._last_queue is None else now - self._last_queue
        self._last_queue = now
        by_name = {row.name: row for row in answer.rows}
        for live in self._runs.values():
            for asked in live.asks:
                for one in list(asked.allocations):
                    if not one.is_over:
                        self._hear_row(live, asked, one, by_name.get(one.name), answer.is_whole, since)
        return True

    def _hear_row(
        self, live: LiveFolder, asked: Asked, one: Allocation, row: QueueRow | None, is_whole: bool, since: float
    ) -> None:
        before = (one.id, one.is_over, bool(one.word))
        if row is not None:
            one.id = row.job if one.id is None else one.id
            one.word, one.reason = row.word, row.reason
            one.is_over = plain_word(row.word) in ENDS  # a word that nobody knows ends nothing
        elif is_whole and one.id is not None and one.word:
            one.is_over = True
        elif is_whole and one.id is not None:  # taken and never seen: absence says nothing yet
            one.unseen_s += since
            one.is_over = one.unseen_s >= self._settle.never_seen_s
        elif is_whole:
            one.unseen_s += since
            if one.unseen_s >= self._settle.unsure_s:
                one.unseen_s = 0.0
                self._again(live, asked, one)
        if (one.id, one.is_over, bool(one.word)) != before:
            self._keep(live, asked)
        if one.is_over:
            self._next_look = time.monotonic()

    def _again(self, live: LiveFolder, asked: Asked, one: Allocation) -> None:
        """sbatch's answer was lost, and nobody lists it. One too many would do no harm: orders are taken once."""
        place = asked.allocations.index(one)
        self.calls[SBATCH] += 1
        self._hand_over(live, asked, one, asked.allocations[place - 1] if place else None)

    def _ask_accounting(self) -> None:
        asked = [track for track in self._tracks.values() if track.asks_accounting]
        ids = sorted({track.claim.job for track in asked if track.claim is not None})
        if not ids:
            self._last_account = None
            return
        since_when = min(track.claim.at for track in asked if track.claim is not None)
        made = [one.made_at for live in self._runs.values() for one in live.allocations() if one.id in ids]
        answer = self._questions.accounting(ids, (), min([since_when, *made]) - ACCOUNTING_MARGIN_S)
        if isinstance(answer, NoAnswer):
            self._last_account = None
            self._note_trouble(answer.text)
            return
        now = time.monotonic()
        since = 0.0 if self._last_account is None else now - self._last_account
        self._last_account = now
        self._hear_accounts(asked, answer, since)

    def _hear_accounts(self, asked: Sequence[StepTrack], answer: Accounts | Disabled, since: float) -> None:
        at = time.time()
        if isinstance(answer, Disabled):
            for track in asked:
                self._tell(track.key, ACCOUNTING, answer.text, track.hear_disabled(since, at, self._settle))
            return
        whole = self._facts_now().has_whole_codes
        steps: dict[tuple[int, tuple[int, int]], list[AccountRow]] = {}
        jobs: dict[int, AccountRow] = {}
        for row in answer.rows:
            if row.step == "":
                jobs[row.job] = row
            else:
                steps.setdefault((row.job, which_step(row.name)), []).append(row)
        over = {one.id for live in self._runs.values() for one in live.allocations() if one.is_over}
        ending = {one.id for live in self._runs.values() for one in live.allocations() if one.word == ENDING}
        for track in asked:
            assert track.claim is not None
            number = track.claim.job
            if number in ending - over:
                continue
            rows, job = steps.get((number, track.which), []), jobs.get(number)
            said = self._runs[track.run].folder.said(track.key) if track.run in self._runs else ""
            evidence = track.hear_accounting(rows, job, number in over, said, since, at, self._settle, whole)
            self._tell(track.key, ACCOUNTING, account_text(rows, job if number in over else None), evidence)

    def _facts_now(self) -> Facts:
        if self._facts is None:
            self.calls["scontrol"] += 1
            facts = ask_facts(self._commands, self._pace.timeout_s)
            if not isinstance(facts, Facts):
                return Facts()
            self._facts = facts
        return self._facts

    # ---- cancelling steps -----------------------------------------------------------------------------------

    def _send_cancels(self) -> None:
        """TERM first, KILL after the kill wait; again until srun has ended."""
        now = time.monotonic()
        due: dict[bool, list[str]] = {False: [], True: []}
        for key, (sent_at, number) in list(self._cancels.items()):
            track = self._tracks.get(key)
            if track is None or track.is_over:
                continue
            if track.claim is None:
                if track.name:
                    self._cancel(Control(key, "cancel", number), track)
                continue
            kills = number == 9 or (sent_at is not None and now - sent_at >= self._kill_wait_s)
            if kills or sent_at is None:
                due[kills].append(key)
        found = self._step_ids([*due[False], *due[True]])
        for kills, keys in due.items():
            there = [key for key in keys if key in found]
            self._scancel([] if kills else ["--signal=TERM"], [found[key] for key in there])
            for key in there:
                self._tracks[key].is_cancelled = True
                self._cancels[key] = (self._cancels[key][0] or now, self._cancels[key][1])

    def _step_ids(self, keys: Sequence[str]) -> dict[str, str]:
        """By key, the ids of the steps that squeue lists."""
        claims = {key: (track.claim.job, track.which) for key in keys if (track := self._tracks[key]).claim is not None}
        if not claims:
            return {}
        self.calls[QUEUE] += 1
        found = ask_steps(self._commands, {job for job, _ in claims.values()}, self._pace.timeout_s)
        return {key: found[claim] for key, claim in claims.items() if claim in found}

    def _scancel(self, words: Sequence[str], ids: Sequence[str]) -> None:
        for first in range(0, len(ids), 500):
            self.calls["scancel"] += 1
            self._commands.call(["scancel", *words, *ids[first : first + 500]], timeout_s=self._pace.timeout_s)

    def _note_trouble(self, text: str) -> None:
        if text != self._trouble:
            self._trouble = text
            self._log(f"allocations can't be asked for: {text}" if text else "slurm answers again")
