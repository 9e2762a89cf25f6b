"""Run cases against one set of commands, many at a time, and collect what the commands print.

Each case has a thread that performs its acts in order and then waits until its jobs have settled. Every value comes
from a command or from a job's own output. A case that is late has the values seen so far, and says what it waited for.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen
from typing import assert_never

from aver.conformance.commands import Commands, Done, finish
from aver.conformance.model import ONLY, Act, Alone, Case, Command, Forgotten, Look, Operator, Settled, Submit, When
from aver.conformance.normal_form import Names, echoes, messages, plain_lines
from aver.conformance.observer import Observer, read_record
from aver.errors import UnreachableError

QUIET_SECONDS = 10.0
"""Slurm rewrites a step's row some seconds after the job's own has settled."""


@dataclass(frozen=True)
class Outcome:
    """What the commands printed in one case: values by row. `trouble` says what did not happen in time."""

    case: Case
    values: dict[str, str]
    trouble: str = ""
    skipped: str = ""


class NotInTimeError(Exception):
    """A state that did not come in time, and what was seen last."""


@dataclass
class Stage:
    """One case while it runs."""

    case: Case
    commands: Commands
    observer: Observer
    folder: Path
    deadline: float
    names: Names
    token: str
    keys: dict[str, str] = field(default_factory=dict)
    job_names: dict[str, str] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    alone: dict[str, Popen[str]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def perform(self) -> Outcome:
        """Perform all acts, wait for all jobs, and return the values. A failing command raises nothing."""
        trouble = ""
        try:
            for act in self.case.acts:
                self._do(act)
            self._end_alone()
            for job in self._jobs_to_settle():
                self._settle(job)
        except NotInTimeError as late:
            trouble = "; ".join([str(late), *self.failures])
        finally:
            for process in self.alone.values():
                if process.poll() is None:
                    process.kill()
        self._collect()
        self._cancel_leftovers()
        return Outcome(self.case, self.values, trouble)

    def _cancel_leftovers(self) -> None:
        """Cancel the jobs that the case left in the queue."""
        records = {key: self.observer.record(key) for key in self.keys.values()}
        left = [key for key, record in records.items() if record is None or not record.is_settled]
        if left:
            self.commands.run(["scancel", "-Q", *left], self.folder)

    # ---- acts ----

    def _do(self, act: Act) -> None:
        match act:
            case Submit():
                self._submit(act)
            case Alone(arguments=arguments, job=job):
                self._start_alone(job, [self._fill(word) for word in arguments])
            case When():
                self._await_state(act)
            case Look(name=name, job=job):
                words = ["scontrol", "-d", "-o", "show", "job", self._key(job)]
                record = read_record(self.commands.run(words, self.folder).out)
                self._keep(job, name, record.row if record else "none")
            case Settled(job=job):
                self._settle(job)
            case Forgotten(job=job) if not self.commands.forgets:
                self._settle(job)
            case Forgotten(job=job):
                self.observer.want_accounting(self._key(job))
                self._poll(f"scontrol forgets {job}", lambda: not self.observer.is_listed(self._key(job)))
            case Command(words=words, row=row):
                done = self.commands.run([self._fill(word) for word in words], self.folder)
                if row:
                    self.values[row] = self._ending(done)
                else:
                    self._note_failure(words, done)
            case Operator(words=words):
                done = self.commands.run_as_operator([self._fill(word) for word in words], self.folder)
                self._note_failure(words, done)
            case _:
                assert_never(act)

    def _note_failure(self, words: tuple[str, ...], done: Done) -> None:
        """Remember a failed command that no row shows: it explains why a later wait is in vain."""
        if done.status != 0:
            self.failures.append(f"{' '.join(words)}: {self._ending(done)}")

    def _submit(self, act: Submit) -> None:
        path = self.folder / f"{act.job}.sh"
        text = act.script if act.script.startswith("#!") or not act.script.strip() else f"#!/bin/bash\n{act.script}"
        path.write_text(self._fill(text.removeprefix("#!none\n")) + ("" if text.endswith("\n") else "\n"))
        options = [self._fill(option) for option in act.options]
        self.job_names[act.job] = name = self._job_name(act.job, options)
        words = ["sbatch", "-J", name, "-o", str(self._output(act.job)), *options, str(path)]
        done = self.commands.submit(words, self.folder, {key: self._fill(value) for key, value in act.variables})
        found = re.search(r"Submitted batch job (\d+)", done.out) or re.fullmatch(r"(\d+)\n", done.out)
        if found:
            self._learn(act.job, found[1])
        self._keep(act.job, "sbatch", self._ending(done))

    def _start_alone(self, job: str, arguments: list[str]) -> None:
        self.job_names[job] = name = self._job_name(job, arguments)
        self.alone[job] = self.commands.start(["srun", "-J", name, *arguments], self.folder)

    def _end_alone(self) -> None:
        for job, process in self.alone.items():
            name = self.job_names[job]
            while process.poll() is None and time.monotonic() < self.deadline:
                self._learn_key(job)
                self.observer.wait(0.5)
            if process.poll() is None:
                raise NotInTimeError(f"srun of {job} did not end")
            self._poll(f"a record of {name}", lambda job=job: self._learn_key(job) or not self._wants(job, "scontrol"))  # type: ignore[misc]
            done = finish(process, 10)
            self._keep(job, "srun", f"exit {done.status}")
            self._keep(job, "stdout", " / ".join(sorted(plain_lines(done.out, self.names))) or "none")
            self._keep(job, "messages", " / ".join(messages(done.err, self.names)) or "none")

    def _learn_key(self, job: str) -> bool:
        key = self.observer.key_of(self.job_names[job])
        if key:
            self._learn(job, key)
        return key is not None

    def _learn(self, job: str, key: str) -> None:
        self.keys[job] = key
        self.names.learn_id(key, f"{{{job}}}")
        self.observer.want_accounting(key)

    def _await_state(self, act: When) -> None:
        def holds() -> bool:
            if act.says:
                path = self._output(act.job)
                return path.exists() and act.says in path.read_text(errors="replace")
            if act.job in self.alone and not self._learn_key(act.job):
                return False
            record = self.observer.record(self._key(act.job))
            return record is not None and record.state == act.state and act.reason in ("", record.reason)

        self._poll(f"{act.job} is {act.state} {act.reason}{act.says}".strip(), holds)

    # ---- settling ----

    def _jobs_to_settle(self) -> list[str]:
        """The jobs of which the case has a row that is final only after their end. What was refused has no end."""
        final_rows = ("scontrol", "sacct", "batch", "step0", "derived", "said", "attempts")
        taken = [job for job in self._labels() if job.split("_")[0] in self.keys]
        return sorted({job for job in taken if any(self._wants(job, row) for row in final_rows)})

    def _settle(self, job: str) -> None:
        key, name = self._key(job), self.job_names[job.split("_")[0]]
        self.observer.want_accounting(key)
        self._poll(f"{job} settles", lambda: self.observer.settled(key, name))

    def _poll(self, what: str, holds: Callable[[], bool]) -> None:
        while not holds():
            if time.monotonic() > self.deadline:
                seen = [record.row for key in self.keys.values() if (record := self.observer.record(key))]
                raise NotInTimeError(f"waited in vain: {what}; last seen: {'; '.join(seen) or 'no job'}")
            self.observer.wait(1.0)

    # ---- values ----

    def _collect(self) -> None:
        for job in self._labels():
            record = self.observer.record(self._key(job)) if job.split("_")[0] in self.keys else None
            if record:
                self._keep(job, "scontrol", record.row)
                for row in self.observer.accounting(record.key):
                    self._keep_accounting(job, row.part, row.state, row.exit, row.derived)
            if job not in self.alone and (output := self._output(job)).exists():
                text = output.read_text(errors="replace")
                self._keep(job, "said", " ".join(echoes(text, self.names)) or "none")
                self._keep(job, "messages", " / ".join(messages(text, self.names)) or "none")
            if self._wants(job, "attempts"):
                done = self.commands.run(["sacct", "-nPXD", "-j", self._key(job), "-o", "State,ExitCode"], self.folder)
                self._keep(
                    job, "attempts", " / ".join(self._plain(line.replace("|", " ")) for line in done.out.splitlines())
                )

    def _keep_accounting(self, job: str, part: str, state: str, exit_: str, derived: str) -> None:
        word = self._plain(state)
        match part:
            case "":
                self._keep(job, "sacct", f"{word} {exit_}")
                self._keep(job, "derived", derived)
            case "batch":
                self._keep(job, "batch", f"{word} {exit_}")
            case "extern":
                pass
            case number:
                self._keep(job, f"step{number}", f"{word} {exit_}")

    def _plain(self, state: str) -> str:
        """The state as one word, with the user's uid as `user`."""
        for uid, name in ((self.commands.uid, "user"), (0, "root")):
            state = re.sub(rf"CANCELLED by {uid}\b", f"CANCELLED-by-{name}", state)
        return state

    def _ending(self, done: Done) -> str:
        said = " / ".join(plain_lines(done.err + done.out, self.names))
        return f"exit {done.status}" + (f": {said}" if said else "")

    def _keep(self, job: str, row: str, value: str) -> None:
        self.values[row if job == ONLY else f"{job}:{row}"] = value

    def _wants(self, job: str, row: str) -> bool:
        wanted = row if job == ONLY else f"{job}:{row}"
        return any(expected.name == wanted for expected in self.case.rows)

    def _labels(self) -> list[str]:
        """The case's jobs, and the members of arrays that its rows name."""
        named = {row.name.split(":")[0] for row in self.case.rows if ":" in row.name}
        members = {name for name in named if "_" in name}
        return sorted({*self.job_names, *members})

    # ---- names ----

    def _key(self, job: str) -> str:
        base, _, member = job.partition("_")
        if base not in self.keys:
            raise NotInTimeError(
                f"{base} has no job id: {self.values.get('sbatch') or self.values.get(f'{base}:sbatch')}"
            )
        return f"{self.keys[base]}_{member}" if member else self.keys[base]

    def _job_name(self, job: str, options: list[str]) -> str:
        for before, option in zip(["", *options], options, strict=False):
            if before == "-J":
                return option
        name = f"{self.token}.{self.case.name.replace('/', '.')}.{job}"
        self.names.learn(name, "NAME")
        return name

    def _output(self, job: str) -> Path:
        base, _, member = job.partition("_")
        return self.folder / (f"{base}.{member}.out" if member else f"{base}.out")

    def _fill(self, text: str) -> str:
        for job, key in self.keys.items():
            text = text.replace(f"{{{job}}}", key)
        for name, value in self.commands.times.items():
            text = text.replace(f"{{{name}}}", value)
        return text.replace("{dir}", str(self.folder)).replace("{token}", self.token)


@contextmanager
def scratch_folder(commands: Commands) -> Iterator[Path]:
    """A temporary folder that the user owns."""
    folder = Path(tempfile.mkdtemp(prefix="aver-conformance-"))
    try:
        if commands.user:
            shutil.chown(folder, commands.user)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_cases(
    cases: list[Case], commands: Commands, lacks: dict[str, str], at_once: int, seconds: float
) -> list[Outcome]:
    """Run all cases and return their outcomes in the same order. `lacks` has the needs that are not met, and why."""
    token = f"c{secrets.token_hex(3)}"
    nodes = node_names(commands)
    with (
        scratch_folder(commands) as folder,
        Observer(commands, folder, QUIET_SECONDS if commands.name == "slurm" else 0.0) as observer,
        ThreadPoolExecutor(max_workers=at_once) as pool,
    ):
        deadline = time.monotonic() + seconds

        def perform(case: Case) -> Outcome:
            missing = [lacks[need] for need in sorted(case.needs) if need in lacks]
            if missing:
                return Outcome(case, {}, skipped=", ".join(missing))
            place = folder / case.name.replace("/", ".")
            place.mkdir()
            if commands.user:
                shutil.chown(place, commands.user)
            return Stage(case, commands, observer, place, deadline, Names(nodes, place, token), token).perform()

        # Slow cases first: they determine how long the whole run takes.
        order = sorted(cases, key=lambda case: not case.is_slow)
        futures = {case.name: pool.submit(perform, case) for case in order}
        return [futures[case.name].result() for case in cases]


def node_names(commands: Commands) -> frozenset[str]:
    """The names of the nodes, and of this host. Raises UnreachableError if scontrol does not answer."""
    done = commands.run(["scontrol", "-o", "show", "node"], Path("/"))
    if done.status != 0:
        raise UnreachableError(f"conformance: scontrol show node: {done.err.strip() or done.out.strip()}")
    return frozenset({*re.findall(r"NodeName=(\S+)", done.out), os.uname().nodename})
