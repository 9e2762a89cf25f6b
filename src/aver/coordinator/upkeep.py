"""Background work of the coordinator: notifications, in a thread of their own, and the retention of old logs.

It also finds the settled runs whose environments are to be removed; the loop removes them, which alone knows for sure
that nobody runs them again at this moment.

The loop hands over what is durable and what was asked for, and gets events and replies back through `deliver`.
Neither can hold the loop up; while there is something to do the coordinator does not leave.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

from aver.client.job_files import private_files, remove_private_files, remove_stray_copies, runs_with_files
from aver.config import Retention, load_config
from aver.coordinator.background import Background, Failed
from aver.coordinator.notify.sender import Notifier
from aver.coordinator.prune import choose, cut_run
from aver.coordinator.server import Peer
from aver.coordinator.state.machine import Machine
from aver.errors import AverError, UsageError
from aver.home import Home
from aver.log import log
from aver.model.events import Event, PersonAsked, RunMoved
from aver.model.job import NotifyRule
from aver.model.record import Record
from aver.protocol.messages import Message, Pruned, Refusal, RunPruned
from aver.render import verdict
from aver.store.read.reader import Reader

AUTOMATIC = "retention"
ENVIRONMENTS_EVERY_S = 86400.0
PRUNE_LOOK_S = 1.0  # between two looks at when it was done last


class Prune(Record):
    """What was asked for; no peer: it is time for it by the settings. No rules: environments alone, by their age."""

    rules: Retention | None
    by: str
    is_dry_run: bool = False
    peer: Peer | None = None


class Outcome(Record):
    """An event to be made durable, and a message to whoever asked; `is_last`: it is the reply.

    `expired`: a run, with the names of its secrets, whose environment, scripts and copy of stdin are to be removed.
    """

    event: Event | None = None
    peer: Peer | None = None
    message: Message | None = None
    is_last: bool = False
    expired: tuple[int, tuple[str, ...]] | None = None


class Upkeep:
    """`deliver` is called in the loop's thread."""

    def __init__(
        self, home: Home, machine: Machine, background: Background, deliver: Callable[[Outcome], None]
    ) -> None:
        config = load_config()
        self._home = home
        self._machine = machine
        self._background = background
        self._deliver = deliver
        self._retention = config.retention
        self._keep_environments_s = config.keep_environments_s
        self._notifier = Notifier(home, config.notify, lambda: background.hand_over(lambda: None))
        self._prunes = 0
        self._prune_at = 0.0  # not before that

    @property
    def is_busy(self) -> bool:
        return self._notifier.is_busy or self._prunes > 0

    def begin(self) -> None:
        """After recovery: go on with what was left."""
        self._notifier.begin(self._last_seq())
        self._prune_if_due()

    def note(self, events: Sequence[Event]) -> None:
        """Notify of these durable events, and prune if a run is settled."""
        self._notifier.note(events, self._rules_of)
        if any(isinstance(event, RunMoved) and event.state.is_settled for event in events):
            self._prune_if_due()

    def prune(self, peer: Peer, rules: Retention | None, by: str, is_dry_run: bool) -> None:
        """Cut logs by these rules, or by the settings'; the reply is delivered."""
        rules = rules or self._retention
        if rules is None:
            raise UsageError("prune: give --older-than, --keep-last or --max-size")
        self._ask(Prune(rules, by, is_dry_run, peer))

    def remove_expired(self, expired: tuple[int, tuple[str, ...]]) -> None:
        """Remove what a settled run would need to run again, unless it does. In the loop's own thread."""
        number, secrets = expired
        if self._is_live(number):
            return
        try:
            remove_private_files(self._home, number, secrets)
        except (AverError, OSError) as error:
            log(f"run {number}: its environment can't be removed: {error}")

    def close(self) -> None:
        self._notifier.close(self._last_seq())

    def _rules_of(self, number: int) -> tuple[NotifyRule, ...]:
        run = self._machine.runs.get(number)
        return () if run is None else run.submission.flow.notify

    def _last_seq(self) -> int:
        """The last event that can be read; 0 if none can be."""
        try:
            reader = Reader.open(self._home.database)
            if reader is None:
                return 0
            with reader:
                return reader.last_seq()
        except AverError as error:
            log(str(error))
            return 0

    # ---- pruning ----------------------------------------------------------------------------------

    def _prune_if_due(self) -> None:
        """By the settings, and not more often than they say; a file's time remembers the last one."""
        if self._prunes or time.monotonic() < self._prune_at:
            return
        every_s = ENVIRONMENTS_EVERY_S if self._retention is None else self._retention.every_s
        stamp = self._home.path / "pruned"
        try:
            age = time.time() - stamp.stat().st_mtime
        except OSError:
            age = None
        if age is not None and 0 <= age < every_s:
            self._prune_at = time.monotonic() + min(every_s - age, PRUNE_LOOK_S)
            return
        try:
            stamp.touch(0o600)
        except OSError as error:
            log(f"can't write {stamp}: {error.strerror}; old logs and environments stay")
            return
        self._ask(Prune(self._retention, AUTOMATIC))

    def _ask(self, wanted: Prune) -> None:
        self._prunes += 1
        self._background.run("prune", partial(self._work, wanted), partial(self._finish, wanted))

    def _finish(self, wanted: Prune, reply: Pruned | Refusal | Failed) -> None:
        self._prunes -= 1
        if isinstance(reply, Failed):
            reply = Refusal(f"can't cut old logs: {reply.text}", AverError.exit_status)
        self._deliver(Outcome(None, wanted.peer, reply, is_last=True))

    def _work(self, wanted: Prune) -> Pruned | Refusal:
        """In a thread: the reply."""
        try:
            return self._prune(wanted)
        except AverError as error:
            log(f"can't cut old logs: {error}")
            return Refusal(str(error), error.exit_status)

    def _prune(self, wanted: Prune) -> Pruned:
        now = time.time()
        reader = Reader.open(self._home.database)
        if reader is None:
            return Pruned((), 0)
        cuts = []
        with reader:
            chosen, total = ([], 0) if wanted.rules is None else choose(reader, wanted.rules, now, self._is_live)
            secrets = {found.run.id: self._secrets(reader, found.run.id) for found, _ in chosen}
            if wanted.peer is None:
                self._expire_old_runs(reader, now)
        for found, why in chosen:
            if self._is_live(found.run.id):
                continue
            cut = cut_run(found, why, now, for_real=not wanted.is_dry_run)
            cut.private_files = len(private_files(self._home, cut.run))
            if not cut.files and not cut.problems and not cut.private_files:
                continue
            cuts.append(cut)
            event = None
            if not wanted.is_dry_run:
                logs = f"{cut.files} log{'s' if cut.files != 1 else ''}"
                what = f"{why}; {logs} cut, {verdict.bytes_words(cut.size_bytes)} freed"
                what += "; environment removed" if cut.private_files else ""
                event = PersonAsked(now, cut.run, None, wanted.by, "prune", what) if cut.files else None
                log(f"run {cut.run}: {what}")
            expired = None if wanted.is_dry_run else (cut.run, secrets[cut.run])
            self._give(Outcome(event, wanted.peer, RunPruned(cut.run), expired=expired))
        left = total - sum(cut.size_bytes for cut in cuts)
        return Pruned(tuple(cut.document() for cut in cuts), left)

    def _expire_old_runs(self, reader: Reader, now: float) -> None:
        before = now - self._keep_environments_s
        for number in runs_with_files(self._home):
            run = reader.run(number)
            if run is None or not run.state.is_settled:
                continue
            ended_at = run.ended_at or run.submitted_at
            if ended_at > before:
                continue
            log(f"run {number}: environment removed, {verdict.duration_words(now - ended_at)} after its end")
            self._give(Outcome(expired=(number, self._secrets(reader, number))))
        remove_stray_copies(self._home, before)

    def _secrets(self, reader: Reader, number: int) -> tuple[str, ...]:
        origin = reader.origin(number)
        return () if origin is None else origin.secrets

    def _is_live(self, number: int) -> bool:
        return number in self._machine.runs

    def _give(self, outcome: Outcome) -> None:
        self._background.hand_over(lambda: self._deliver(outcome))
