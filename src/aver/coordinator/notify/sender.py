"""Telling the user: a command of theirs gets each verdict that it asked for, as JSON on its stdin.

A thread of its own reads durable verdicts from the store, one after the other, and runs the commands: the loop never
waits. A file in the home says how far it has come; after a crash it goes on from there. So each verdict is told at
least once, and perhaps twice. A command that fails is tried again, each time later, and then given up; that is logged
and `aver doctor` shows it. The document has no environment values, and values of secret names are masked in it; the
command gets a clean environment.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from aver.client.delivery import Told, read_told, told_path, write_told
from aver.client.job_files import read_env
from aver.coordinator.notify import channel
from aver.coordinator.notify.document import Notice, masked, notice_of
from aver.crashpoint import reached
from aver.errors import AverError
from aver.home import Home
from aver.log import log
from aver.model.events import Event, JobMoved, JobsEnded, Observed, RunMoved, Usage
from aver.model.job import NotifyOn, NotifyRule, Origin
from aver.model.notify_target import variable_of
from aver.model.record import replace
from aver.model.states import State
from aver.store.read.reader import Reader
from aver.store.read.rows import StoredEvent
from aver.store.secrets import load_masking

PAGE = 200
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
LONGEST_WORDS = 200
KEPT = frozenset(
    "PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR XDG_RUNTIME_DIR DBUS_SESSION_BUS_ADDRESS DISPLAY "
    "WAYLAND_DISPLAY XAUTHORITY".split()
)
FINE = frozenset({State.COMPLETED, State.SKIPPED})


class Notifier:
    """`note` what is durable; `wake` is called when there is nothing more to do."""

    def __init__(self, home: Home, rules: Sequence[NotifyRule], wake: Callable[[], None]) -> None:
        self._home = home
        self._rules = tuple(rules)
        self._wake = wake
        self._due = threading.Event()
        self._leaving = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._failing: set[NotifyRule] = set()
        self._told = Told(0)
        self.is_busy = False

    def begin(self, last_seq: int) -> None:
        """Go on where it was left. Rules that are new in the settings hold for what comes from now on."""
        digest = hashlib.sha256(repr(self._rules).encode()).hexdigest()[:16]
        before = told = read_told(self._home)
        if told is None:
            told = Told(last_seq, digest, last_seq)
        elif told.rules != digest:
            told = replace(told, rules=digest, since=last_seq, problem="")
        self._told = told
        if told != before:
            self._save()
        if told.done < last_seq:
            self._poke()

    def note(self, events: Sequence[Event], rules_of: Callable[[int], Sequence[NotifyRule]]) -> None:
        """Notify of these durable events; `rules_of` gives the receivers that a run's flow names."""
        rules = {run: (*self._rules, *rules_of(run)) for run in {event.run for event in events}}
        if any(rules.values()) and any(
            rule.on in occasions for event in events if (occasions := occasions_of(event)) for rule in rules[event.run]
        ):
            self._poke()

    def close(self, last_seq: int) -> None:
        """Leave. What is not told yet is told by the next coordinator."""
        self._leaving.set()
        if not self.is_busy and self._told.done < last_seq:
            self._told = replace(self._told, done=last_seq)
            self._save()

    def _poke(self) -> None:
        with self._lock:
            self.is_busy = True
            self._due.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="notifier", daemon=True)
            self._thread.start()

    def _save(self) -> None:
        try:
            write_told(self._home, self._told)
        except OSError as error:
            log(f"can't write {told_path(self._home)}: {error.strerror}; a verdict may be told again")

    # ---- the thread -------------------------------------------------------------------------------

    def _work(self) -> None:
        while not self._leaving.is_set():
            self._due.wait()
            self._due.clear()
            try:
                self._tell_all()
            except AverError as error:
                log(f"can't read what is to be told: {error}")
            with self._lock:
                self.is_busy = self._due.is_set()
            self._wake()

    def _tell_all(self) -> None:
        reader = Reader.open(self._home.database)
        if reader is None:
            return
        with reader:
            facts = lru_cache(maxsize=64)(reader.notify_facts)
            while not self._leaving.is_set():
                last = reader.last_seq()  # before the page: what is committed meanwhile is not passed over
                page = reader.verdicts(self._told.done, PAGE)
                for stored in page:
                    try:
                        self._tell(reader, stored, facts(stored.event.run))
                    except AverError as error:
                        log(f"can't tell of event {stored.seq}: {error}")
                    if self._leaving.is_set():
                        return
                    self._told = replace(self._told, done=stored.seq)
                if len(page) < PAGE:
                    if self._told.done < last:
                        self._told = replace(self._told, done=last)
                    self._save()
                    return

    def _tell(self, reader: Reader, stored: StoredEvent, facts: tuple[tuple[NotifyRule, ...], Origin] | None) -> None:
        occasions = occasions_of(stored.event)
        if facts is None or not occasions:
            return
        flow_rules, origin = facts
        rules = [*(self._rules if stored.seq > self._told.since else ()), *flow_rules]
        for rule in sorted(rules, key=lambda rule: rule.on is not NotifyOn.STARTED):  # an end may tell of the start too
            if rule.on not in occasions:
                continue
            notice = notice_of(self._home, reader, stored.event, rule.on)
            if notice is None:
                return
            masking = load_masking(os.fspath(self._home.path), notice.run, origin.secrets)
            document = masked(notice, masking)
            folder = origin.folder if rule in flow_rules else os.path.expanduser("~")
            self._deliver(rule, document, folder, origin)
            if self._leaving.is_set():
                return
            self._save()

    def _try(self, rule: NotifyRule, notice: Notice, env: Mapping[str, str], folder: str) -> str | None:
        """Tell it once; None if that was done, else what went wrong."""
        if not rule.to:
            return call(rule, notice, env, folder)
        target = rule.to
        if (name := variable_of(rule.to)) is not None:
            try:
                known = os.environ if rule in self._rules else read_env(self._home, notice.run)
            except AverError as error:
                return str(error)
            if not known.get(name):
                return f"there is no variable {name} that has its address"
            target = f"{rule.to.partition(':')[0]}:{known[name]}"
        given = {name: os.environ[name] for name in channel.PROXIES if name in os.environ}
        told = replace(rule, command=(sys.executable, "-m", channel.__name__))
        return call(told, notice, {**env, **given, channel.VARIABLE: target}, folder)

    def _deliver(self, rule: NotifyRule, notice: Notice, folder: str, origin: Origin) -> None:
        """Try as often as the rule says; one that was given up before has one try until it works again."""
        tries = 1 if rule in self._failing else rule.attempts
        pause = FIRST_PAUSE_S
        problem: str | None = None
        env = clean_environment(os.environ, origin.secrets, notice, self._home)
        for number in range(tries):
            reached("notifying")
            problem = self._try(rule, notice, env, folder)
            if problem is None:
                problem = "" if rule in self._failing else self._told.problem
                self._failing.discard(rule)
                self._told = replace(self._told, delivered=self._told.delivered + 1, problem=problem, trying="")
                return
            log(f"notify on {rule.on} of {notice.subject}: try {number + 1} of {tries}: {problem}")
            if number + 1 < tries:
                self._told = replace(self._told, trying=f"{notice.subject}, on {rule.on}: {problem}")
                self._save()
                if self._leaving.wait(pause):
                    return
                pause = min(pause * 2, LONGEST_PAUSE_S)
        self._failing.add(rule)
        what = f"{notice.subject}, on {rule.on}: {problem}"
        log(f"notify given up: {what}")
        self._told = replace(
            self._told, given_up=self._told.given_up + 1, problem=what, problem_at=notice.at, trying=""
        )


def occasions_of(event: Event) -> frozenset[NotifyOn]:
    """For which rules the event is an occasion."""
    match event:
        case RunMoved(state=state):
            if not state.is_settled:
                return frozenset()
            return frozenset({NotifyOn.SETTLED} if state in FINE else {NotifyOn.SETTLED, NotifyOn.RUN_FAILED})
        case Observed(state=State.RUNNING, verdict=None, usage=Usage()):  # it is said once when an attempt began
            return frozenset({NotifyOn.STARTED})
        case Observed():
            state = event.state if event.job_state is None else event.job_state
            began = {NotifyOn.STARTED} if event.is_start else set()
        case JobMoved():
            state, began = event.state, set()
        case JobsEnded():  # of each of them
            state, began = event.verdict.state, set()
        case _:
            return frozenset()
    if event.verdict is None or not state.is_settled:
        return frozenset(began)
    return frozenset(began | ({NotifyOn.EVERY} if state in FINE else {NotifyOn.EVERY, NotifyOn.FAILED}))


def clean_environment(env: Mapping[str, str], secrets: Sequence[str], notice: Notice, home: Home) -> dict[str, str]:
    """What a command needs to find programs, the user and the screen; nothing else of ours."""
    kept = {
        name: value for name, value in env.items() if (name in KEPT or name.startswith("LC_")) and name not in secrets
    }
    return kept | {
        "AVER_HOME": os.fspath(home.path),
        "AVER_ON": notice.on,
        "AVER_RUN": str(notice.run),
        "AVER_JOB": "" if notice.job is None else str(notice.job),
        "AVER_STATE": notice.state,
    }


def call(rule: NotifyRule, notice: Notice, env: Mapping[str, str], folder: str) -> str | None:
    """Run the command once; None if it exited 0, else what went wrong. It never waits longer than the rule says."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as said:
        given.write(notice.text.encode() + b"\n")
        given.seek(0)
        try:
            process = subprocess.Popen(
                list(rule.command),
                stdin=given,
                stdout=subprocess.DEVNULL,
                stderr=said,
                env=dict(env),
                cwd=folder if os.path.isdir(folder) else "/",
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            return f"can't start {rule.command[0]}: {reason}"
        try:
            code = _wait(process, rule.timeout_s)
        except (ChildProcessError, ProcessLookupError):
            return "nobody saw how it ended"
        if code is None:
            return f"it took longer than {rule.timeout_s:g} s"
        if code == 0:
            return None
        said.seek(0, os.SEEK_END)
        said.seek(max(0, said.tell() - LONGEST_WORDS))
        words = said.read().decode("utf-8", "replace").strip().splitlines()
        how = f"exit code {code}" if code > 0 else f"signal {-code}"
        return how + (f": {words[-1]}" if words else "")


def _wait(process: subprocess.Popen[bytes], timeout_s: float) -> int | None:
    """Its exit code, negative for a signal; None: it took too long, and was killed.

    ChildProcessError if somebody else has reaped it: Popen would call that 0.
    """
    process_fd = os.pidfd_open(process.pid)
    try:
        is_over = bool(select.select([process_fd], [], [], timeout_s)[0])
        if not is_over:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        os.waitid(os.P_PIDFD, process_fd, os.WEXITED | os.WNOWAIT)
        code = process.wait()
    except ChildProcessError:
        process.returncode = -signal.SIGKILL  # nothing is left to wait for
        raise
    finally:
        os.close(process_fd)
    return code if is_over else None
