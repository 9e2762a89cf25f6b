"""A Slurm of its own for tests that break it, and a home whose jobs run there.

The lab is the real one of `scripts/slurm-lab`, in another folder and on other ports, so that the lab of the other tests
is left alone. `ClusterHome.check` is what must hold after every fault: one right verdict for each job, nothing
submitted or run twice, and no job ever shown COMPLETED that was not.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from aver.model.events import JobMoved, Observed
from aver.model.exit import ExitStatus
from aver.model.job import FlowSpec, JobSpec, Submission
from aver.model.record import replace
from aver.model.states import State
from live_home import LiveHome, is_alive, shell_job, wait_for

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "slurm-lab"
FOLDER = Path(tempfile.gettempdir()) / "aver-fault-lab"
PORT = os.environ.get("AVER_FAULT_LAB_PORT", "17800")  # another one: beside a lab of another Slurm
RECORD = 'echo "$AVER_JOB.$AVER_ATTEMPT" >> "$RAN"; '
WRAPPED = ("squeue", "sacct", "sbatch")
QUICK = {"record": 1, "stable": 1, "long": 60, "unsure": 3, "ask_accounting": 1, "never_seen": 4}  # [settle]
BLOCK = 'mkdir "$AVER_RECORDS/$AVER_RECORD_KEY"; '  # its witness can't put the record there
OK, ONE, SEVEN = ExitStatus(), ExitStatus(1), ExitStatus(7)


@dataclass(frozen=True)
class FaultLab:
    """The daemons, by the names of their pid files."""

    folder: Path
    environment: dict[str, str]

    @property
    def node(self) -> str:
        return f"p{PORT}n"

    @property
    def has_whole_codes(self) -> bool:
        """Whether accounting has exit codes of 128 and more as they were: from 25.11 on."""
        year, month = self.call("sbatch", "--version").split()[1].split(".")[:2]
        return (int(year), int(month)) >= (25, 11)

    def pid(self, name: str) -> int:
        return int((self.folder / "run" / f"{name}.pid").read_text())

    def stop(self, name: str, number: int = signal.SIGTERM) -> None:
        """End one daemon, by its pid."""
        pid = self.pid(name)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        wait_for(lambda: not is_alive(pid), f"the end of {name}")

    def heal(self) -> None:
        """Start what does not run, and wait until all of it answers."""
        wait_for(self._starts, "the lab starts", 120)

    def _starts(self) -> bool:
        return subprocess.run([SCRIPT, "start"], env=self.environment, capture_output=True, check=False).returncode == 0

    def call(self, *words: str) -> str:
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def can_ask(self, *words: str) -> bool:
        try:
            return (
                subprocess.run(words, env=self.environment, capture_output=True, timeout=30, check=False).returncode
                == 0
            )
        except subprocess.TimeoutExpired:
            return False

    def queue(self) -> dict[str, str]:
        """By the job's name: its state, of all jobs that slurmctld remembers."""
        lines = self.call("squeue", "-h", "-a", "-t", "all", "-r", "-O", "Name:200,State:30").splitlines()
        return {line[:200].strip(): line[200:].strip() for line in lines}

    def rows(self, prefix: str) -> Counter[str]:
        """How many jobs accounting has of each name with this home's key in it; an array counts once."""
        words = ("sacct", "-D", "-X", "-n", "-P", "-S", "now-1hour", "--format=JobID,JobName")
        seen = {tuple(line.split("|", 1)) for line in self.call(*words).splitlines() if f".{prefix}." in line}
        return Counter(name for _, name in {(number.partition("_")[0], name) for number, name in seen})

    def steps_of(self, number: str) -> list[int]:
        """The slurmstepd of a job."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = path.read_bytes().split(b"\0")
                if words[0].startswith(b"slurmstepd: [") and f"[{number}.".encode() in words[0]:
                    found.append(int(path.parent.name))
        return found

    def set_min_job_age(self, seconds: int) -> None:
        """How long slurmctld remembers a job that has ended; it forgets in rounds of ten seconds."""
        path = self.folder / "etc" / "slurm.conf"
        text = re.sub("MinJobAge=[0-9]+", f"MinJobAge={seconds}", path.read_text())
        if text != path.read_text():
            path.write_text(text)
            self.call("scontrol", "reconfigure")

    def clear(self) -> None:
        """As it was at first: all runs, no limits, no jobs."""
        self.heal()
        self.set_min_job_age(20)
        self.can_ask("sacctmgr", "-iQ", "modify", "user", "root", "set", "MaxSubmitJobs=-1")
        nodes = f"nodename={self.node}[1-7]"
        self.can_ask("scontrol", "update", nodes, "state=resume")
        jobs = self.call("squeue", "-h", "-a", "-o", "%A").split()
        if jobs:
            self.can_ask("scancel", "--full", *jobs)
        if not self._is_empty_within(10):  # a job whose slurmstepd was killed stays for minutes
            self.can_ask("scontrol", "update", nodes, "state=down", "reason=cleared")
            self._is_empty_within(30)
            self.can_ask("scontrol", "update", nodes, "state=resume")

    def _is_empty_within(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while self.call("squeue", "-h", "-a", "-o", "%A").split():
            if time.monotonic() > end:
                return False
            time.sleep(0.2)
        return True


class ClusterHome(LiveHome):
    """A home whose flows run on the lab, with settings for settling that suit a test."""

    def __init__(self, path: Path, folder: Path, lab: FaultLab) -> None:
        super().__init__(path, folder)
        self.lab = lab
        self.config = folder / "config.toml"
        self.configure()

    def configure(self, commands: Mapping[str, Path] = {}, timeout: float = 20, **settle: float) -> None:
        """Settings for coordinators that start from now on. Commands are programs that stand for Slurm's."""
        plain = {name: self.wrapper(name, 'exec $real "$@"') for name in WRAPPED if name not in commands}
        lines = ["idle_exit = 1", "kill_wait = 1", "[slurm]", "poll = 0.3", "poll_max = 1", f"timeout = {timeout}"]
        lines += ["[slurm.commands]", *(f'{name} = "{path}"' for name, path in {**plain, **commands}.items())]
        lines += ["[settle]", *(f"{name} = {value}" for name, value in {**QUICK, **settle}.items())]
        self.config.write_text("\n".join(lines) + "\n")
        os.environ["AVER_CONFIG"] = str(self.config)

    def wrapper(self, name: str, text: str) -> Path:
        """A program of sh that stands for one of Slurm's and notes each call; `$real` is the real one."""
        path = self.folder / f"fake-{name}"
        note = f'echo "$*" >> {self.folder}/calls-{name}'
        path.write_text(f"#!/bin/bash\nreal={shutil.which(name)}\n{note}\n{text}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def environment(self, extra: Mapping[str, str] = {}) -> list[str]:
        return super().environment({"SLURM_CONF": self.lab.environment["SLURM_CONF"], **extra})

    def submission(self, flow: FlowSpec) -> Submission:
        return replace(super().submission(flow), engine="slurm")

    @property
    def records(self) -> Path:
        return self.home.path / "slurm" / "records"

    def states(self, run: int) -> dict[str, str]:
        with self.reader() as reader:
            return {job.name: job.state.name for job in reader.jobs(run=run)}

    def wait_state(self, run: int, name: str, *states: State, deadline_s: float = 60) -> None:
        names = {state.name for state in states}
        wait_for(lambda: self.states(run)[name] in names or None, f"{name} is {' or '.join(names)}", deadline_s)

    def slurm_id(self, job: int) -> str:
        """The id that sbatch gave to the newest attempt of a job."""
        key = self.attempt(job).key
        ids = self.lab.call("squeue", "-h", "-a", "-t", "all", "-O", "JobID:20,Name:300").splitlines()
        return next(line.split()[0] for line in ids if line.split()[1].endswith(key))

    def key(self, run: int, name: str) -> str:
        with self.reader() as reader:
            job = next(job for job in reader.jobs(run=run) if job.name == name)
        return self.attempt(job.id).key

    def record_of(self, run: int, name: str) -> Path:
        """The file of the record that the witness of a job's script leaves."""
        return self.records / f"{self.key(run, name)}.r0"

    def shown(self, run: int) -> dict[str, list[str]]:
        """Every state that each job ever had, in order: whoever looked could have seen these and no others."""
        found: dict[int, list[str]] = {}
        with self.reader() as reader:
            names = {job.id: job.name for job in reader.jobs(run=run)}
            for one in reader.events(run=run):
                event = one.event
                if isinstance(event, Observed | JobMoved):
                    found.setdefault(event.job, []).append(event.state.name)
        return {names[job]: states for job, states in found.items()}

    def check(
        self, run: int, expected: dict[str, tuple[State, ExitStatus | None]], attempts: Mapping[str, int] = {}
    ) -> None:
        """What must hold after every fault. `attempts`: of jobs that have more than one."""
        with self.reader() as reader:
            jobs = {job.name: job for job in reader.jobs(run=run)}
            rows = [row for one in reader.runs() for row in reader.attempts_of_run(one.id)]
        keys = {f"{row.job}.{row.attempt}": row.key for row in rows}
        assert {name: (job.state, job.exit) for name, job in jobs.items()} == expected
        assert {name: job.attempt for name, job in jobs.items()} == {
            name: attempts.get(name, 0 if state is State.SKIPPED else 1) for name, (state, _) in expected.items()
        }
        wrongly = [name for name, states in self.shown(run).items()
                   if "COMPLETED" in states and expected[name][0] is not State.COMPLETED]  # fmt: skip
        assert wrongly == [], self.shown(run)
        self.assert_store_is_whole()
        assert {mark: count for mark, count in self.keys_run().items() if count > 1} == {}, "run twice"
        assert set(self.keys_run()) <= set(keys)
        if keys:
            prefix = next(iter(keys.values())).split(".")[0]
            twice = {name: count for name, count in self.lab.rows(prefix).items() if count > 1}
            assert twice == {}, "submitted twice"

    def verdict_text(self, run: int, name: str) -> str:
        """Detail and warnings of a job's verdict, as one text."""
        with self.reader() as reader:
            job = next(job for job in reader.jobs(run=run) if job.name == name)
            verdict = reader.attempts(job.id)[-1].verdict
        assert verdict is not None
        return f"{verdict.source}: {verdict.detail}; {'; '.join(verdict.warnings)}"

    def attempt_states(self, run: int, name: str) -> list[State]:
        with self.reader() as reader:
            job = next(job for job in reader.jobs(run=run) if job.name == name)
            return [row.state for row in reader.attempts(job.id)]

    def keys(self, run: int) -> list[str]:
        with self.reader() as reader:
            return [row.key for row in reader.attempts_of_run(run)]

    def wait_ended(self, run: int) -> None:
        """Wait until Slurm itself calls all jobs of the run ended."""
        unsettled = {"PENDING", "RUNNING", "COMPLETING", "CONFIGURING"}

        def ended() -> bool:
            queue = self.lab.queue()
            return all(states and not unsettled.intersection(states) for states in self._of(queue, run))

        wait_for(ended, "the jobs have ended in Slurm")

    def wait_forgotten(self, run: int) -> None:
        """Wait until slurmctld knows none of the run's jobs any more."""
        wait_for(lambda: not any(self._of(self.lab.queue(), run)), "slurmctld has forgotten the jobs", 90)

    def _of(self, queue: dict[str, str], run: int) -> list[list[str]]:
        return [[state for name, state in queue.items() if name.endswith(key)] for key in self.keys(run)]

    def cancel_jobs(self) -> None:
        """End what Slurm still has of this home."""
        slurm = self.home.path / "slurm"
        names = [path.name.removesuffix(".json") for path in (slurm / "batches").glob("*.json")]
        for ask in slurm.glob("alloc/*/asks/*.json"):
            names += re.findall(r'"name": "(aver\.[^"]+)"', ask.read_text())
        if names:
            lines = self.lab.call("squeue", "-h", "-a", "-O", "JobID:20,Name:300").splitlines()
            ids = [line.split()[0] for line in lines if any(name in line for name in names)]
            if ids:
                self.lab.can_ask("scancel", "--full", *ids)

    def count_calls(self, name: str) -> int:
        """How often the program that stands for this command was called."""
        path = self.folder / f"calls-{name}"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def log(self) -> str:
        return "".join(path.read_text() for path in self.home.path.glob("*.log"))


def job(name: str, text: str, **fields: object) -> JobSpec:
    """A job that says that it ran."""
    return shell_job(name, RECORD + text, **fields)


class Watcher:
    """Polls `aver jobs --json` and keeps every state that it ever printed, by job."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._is_over = threading.Event()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch meanwhile."""
        thread = threading.Thread(target=self._poll)
        thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            thread.join()

    def _poll(self) -> None:
        words = [sys.executable, "-m", "aver", "jobs", "--json"]
        while not self._is_over.is_set():
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                self.texts.append(done.stdout)


def until(path: Path) -> str:
    """Words of sh that wait until the file is there."""
    return f"while [ ! -e {path} ]; do sleep 0.1; done; "
