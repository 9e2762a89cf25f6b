"""One thread that polls scontrol and sacct for all jobs and stores the answers.

All cases wait on this thread, so that a hundred cases cost two commands a second, not two hundred. A job that scontrol
no longer lists keeps its last record. sacct's rows are final only after they have not changed for a while: Slurm
rewrites rows that have a final state and an end time up to some seconds later.
"""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from aver.conformance.commands import Commands

SETTLED = frozenset(
    "COMPLETED FAILED TIMEOUT CANCELLED OUT_OF_MEMORY NODE_FAIL BOOT_FAIL PREEMPTED DEADLINE SKIPPED UNVERIFIED".split()
)
COLUMNS = "JobID,JobName,State,ExitCode,DerivedExitCode,End"


@dataclass(frozen=True)
class Record:
    """One job as `scontrol -d -o show job` prints it."""

    key: str
    name: str
    state: str
    exit: str
    derived: str
    reason: str

    @property
    def is_settled(self) -> bool:
        return self.state in SETTLED

    @property
    def row(self) -> str:
        """What is compared. A job that ended before slurmctld cleared the reason of its start keeps that reason."""
        reason = "None" if self.is_settled and self.reason == "Prolog" else self.reason
        return f"{self.state} {self.exit} {self.derived} {reason}"


@dataclass(frozen=True)
class AccountingRow:
    """One row of sacct: of a job, its batch script or one of its steps."""

    key: str
    part: str
    name: str
    state: str
    exit: str
    derived: str
    end: str

    @property
    def is_settled(self) -> bool:
        return self.end != "Unknown" and self.state.split()[0] in SETTLED


class Observer:
    """A context manager: the polling thread runs inside the `with` block."""

    def __init__(self, commands: Commands, folder: Path, quiet_seconds: float) -> None:
        self._quiet_seconds = quiet_seconds
        self._commands = commands
        self._folder = folder
        self._changed = threading.Condition()
        self._records: dict[str, Record] = {}
        self._listed: frozenset[str] = frozenset()
        self._rows: dict[str, tuple[AccountingRow, ...]] = {}
        self._changed_at: dict[str, float] = {}
        self._wanted: set[str] = set()
        self._is_over = False
        self._thread = threading.Thread(target=self._watch, name="observer", daemon=True)

    def __enter__(self) -> Observer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
        self._thread.join()

    def record(self, key: str) -> Record | None:
        """The last record of a job id, or of `id_index` for a member of an array."""
        with self._changed:
            return self._records.get(key)

    def key_of(self, name: str) -> str | None:
        """The id of the job with this name."""
        with self._changed:
            return next((record.key for record in self._records.values() if record.name == name), None)

    def is_listed(self, key: str) -> bool:
        """Whether scontrol's last answer listed the job."""
        with self._changed:
            return key in self._listed

    def want_accounting(self, key: str) -> None:
        """Include this job in the calls of sacct from now on."""
        with self._changed:
            self._wanted.add(key.split("_")[0])

    def accounting(self, key: str) -> tuple[AccountingRow, ...]:
        """The job's rows as sacct last printed them."""
        with self._changed:
            return self._rows.get(key, ())

    def settled(self, key: str, name: str) -> bool:
        """Whether scontrol and sacct show the same final state, and sacct's rows have stopped changing."""
        with self._changed:
            record = self._records.get(key)
            rows = self._rows.get(key, ())
            return (
                record is not None
                and record.is_settled
                and bool(rows)
                and time.monotonic() - self._changed_at[key] >= self._quiet_seconds
                and rows[0].part == ""
                and rows[0].name == name
                and rows[0].state.split()[0] == record.state
                and all(row.is_settled for row in rows)
            )

    def wait(self, seconds: float) -> None:
        """Return after the next answer, or after `seconds`."""
        with self._changed:
            self._changed.wait(seconds)

    def _watch(self) -> None:
        asked = 0.0
        while not self._is_over:
            self._ask_scontrol()
            if time.monotonic() - asked > 1.0:
                self._ask_sacct()
                asked = time.monotonic()
            with self._changed:
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._is_over, 0.3)

    def _ask_scontrol(self) -> None:
        done = self._commands.run(["scontrol", "-d", "-o", "show", "job"], self._folder)
        if done.status != 0:
            return
        seen = [record for line in done.out.splitlines() if (record := read_record(line)) is not None]
        with self._changed:
            self._records.update({record.key: record for record in seen})
            self._listed = frozenset(record.key for record in seen)

    def _ask_sacct(self) -> None:
        with self._changed:
            wanted = sorted(self._wanted)
        if not wanted:
            return
        done = self._commands.run(["sacct", "-nP", "-j", ",".join(wanted), "-o", COLUMNS], self._folder)
        if done.status != 0:
            return
        found: dict[str, list[AccountingRow]] = {}
        for line in done.out.splitlines():
            row = read_accounting_row(line)
            if row is not None:
                found.setdefault(row.key, []).append(row)
        rows = {key: tuple(several) for key, several in found.items()}
        with self._changed:
            now = time.monotonic()
            self._changed_at.update({key: now for key in rows if self._rows.get(key) != rows[key]})
            self._rows = rows


def read_record(line: str) -> Record | None:
    """Parse a line of `scontrol -o`; None for a line that is not a job."""

    def value(key: str) -> str:
        found = re.search(rf"(?:^|\s){key}=(\S*)", line)
        return found[1] if found else "?"

    job_id = value("JobId")
    if job_id == "?":
        return None
    member = value("ArrayTaskId").partition("%")[0]  # 25.11 writes the last one that waits with the limit: `2%1`
    key = job_id if member == "?" else f"{value('ArrayJobId')}_{member}"
    return Record(
        key, value("JobName"), value("JobState"), value("ExitCode"), value("DerivedExitCode"), value("Reason")
    )


def read_accounting_row(line: str) -> AccountingRow | None:
    """Parse a line of `sacct -P -o COLUMNS`; None for any other line."""
    words = line.split("|")
    if len(words) != 6:
        return None
    key, _, part = words[0].partition(".")
    return AccountingRow(key, part, words[1], words[2] or "?", words[3] or "-", words[4] or "-", words[5])
