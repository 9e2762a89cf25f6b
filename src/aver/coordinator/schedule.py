"""Submit what is scheduled when its time has come. While there is a schedule the coordinator does not leave.

A submission is the command `aver submit` with a key that names the schedule and the time: after a crash it is made
again, and is the same run. Of several times that were missed, when no coordinator was there or the machine slept, the
last one counts, and is made up for once. Where the last run is not settled, the time is passed over.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from functools import partial

from aver.client import schedules
from aver.client.schedules import Progress, Schedule
from aver.coordinator.background import Background, Failed
from aver.errors import AverError
from aver.home import Home
from aver.log import log
from aver.spec.cron import Cron, last_time, next_time, parse_cron
from aver.store.read.reader import Reader

SUBMIT_S = 600
LOOK_S = 0.25  # a turn takes less than a millisecond
LONGEST_WORDS = 200


class Schedules:
    """`look` is called in every turn of the loop; what blocks is done aside."""

    def __init__(self, home: Home, background: Background) -> None:
        self._home = home
        self._path = os.fspath(home.schedules)
        self._background = background
        self._look_at = 0.0
        self._is_passed_over = False  # a look, since the last one
        self._changed_ns = -1
        self._known: dict[int, tuple[Schedule, Cron]] = {}
        self._due: dict[int, float] = {}
        self._busy: set[int] = set()

    @property
    def is_any(self) -> bool:
        return bool(self._known)

    def next_due(self) -> float | None:
        """Unix time."""
        if not self._due:
            return self._look_at if self._is_passed_over else None
        dues = [due for number, due in self._due.items() if number not in self._busy]
        return min([*dues, self._look_at] if self._is_passed_over else dues, default=None)

    def look(self, now: float) -> None:
        """Read schedules that were added or removed, and submit those whose time has come."""
        self._is_passed_over = 0 < self._look_at - now <= LOOK_S  # more: the clock was set back
        if not self._is_passed_over:
            self._look_at = now + LOOK_S
            self._read_changes()
        for number, due in list(self._due.items()):
            if due <= now and number not in self._busy:
                self._busy.add(number)
                schedule, cron = self._known[number]
                self._background.run(
                    f"schedule {number}", partial(self._submit, schedule, cron, now), partial(self._finish, number)
                )

    def _read_changes(self) -> None:
        try:
            changed_ns = os.stat(self._path).st_mtime_ns
        except OSError:
            changed_ns = 0
        if changed_ns == self._changed_ns:
            return
        self._changed_ns = changed_ns
        self._known = {}
        for schedule in schedules.read_schedules(self._home):
            try:
                self._known[schedule.id] = (schedule, parse_cron(schedule.cron))
            except ValueError as error:
                log(f"schedule {schedule.id}: {error}")
        self._due = {number: due for number in self._known if (due := self._next(number)) is not None}

    def _next(self, number: int) -> float | None:
        schedule, cron = self._known[number]
        return next_time(cron, schedules.read_progress(self._home, schedule).due)

    def _finish(self, number: int, done: Progress | Failed) -> None:
        self._busy.discard(number)
        if number not in self._known:
            return
        cron = self._known[number][1]
        if isinstance(done, Failed):
            log(f"schedule {number}: {done.text}")
        after = time.time() if isinstance(done, Failed) else done.due
        due = next_time(cron, after)
        if due is None:
            self._due.pop(number, None)
        else:
            self._due[number] = due

    def _submit(self, schedule: Schedule, cron: Cron, now: float) -> Progress:
        """In a thread: make up for the last time that has come, and note what became of it."""
        before = schedules.read_progress(self._home, schedule)
        due = last_time(cron, before.due, now)
        if due is None:
            return before
        if not schedule.overlaps and before.run is not None and not self._is_settled(before.run):
            done = Progress(due, before.run, f"skipped: run {before.run} was not settled")
        else:
            done = self._call(schedule, due, before.run)
        log(f"schedule {schedule.id}: {done.note or f'submitted run {done.run}'}")
        schedules.write_progress(self._home, schedule, done)
        return done

    def _is_settled(self, run: int) -> bool:
        try:
            reader = Reader.open(self._home.database)
            if reader is None:
                return True
            with reader:
                row = reader.run(run)
        except AverError:
            return False
        return row is None or row.state.is_settled

    def _call(self, schedule: Schedule, due: float, before: int | None) -> Progress:
        key = f"schedule-{schedule.id}-{schedule.created_at:.0f}-{due:.0f}"
        words = [sys.executable, "-m", "aver", "submit", "--quiet", "--key", key, schedule.file]
        try:
            env = schedules.read_environment(self._home, schedule) | {"AVER_HOME": os.fspath(self._home.path)}
            done = subprocess.run(
                words, env=env, cwd=schedule.folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=SUBMIT_S,
                check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            return Progress(due, before, f"not submitted: {error}")
        said = done.stdout.decode("utf-8", "replace").strip()
        if done.returncode == 0 and said.isdigit():
            return Progress(due, int(said))
        words_of = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return Progress(due, before, f"not submitted: {words_of[-1][:LONGEST_WORDS] if words_of else done.returncode}")
