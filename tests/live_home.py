"""A home with a real coordinator, as tests drive it: submit, kill, wait, and look for what is left.

Nothing here knows what a test expects. Waiting is polling with a deadline that prints the last thing seen.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from aver.engines.local.capabilities import find_cgroup
from aver.errors import AverError
from aver.home import Home
from aver.model.codec import encode
from aver.model.events import Observed
from aver.model.job import FlowSpec, JobSpec, Origin, Request, Shell, Submission
from aver.protocol.client import Client
from aver.store.read.reader import Reader
from aver.store.read.rows import AttemptRow, JobRow
from store_replay import replay

DEADLINE_S = 60.0
SH = ("/bin/sh",)

Seen = TypeVar("Seen")


def wait_for(predicate: Callable[[], Seen], what: str, deadline_s: float = DEADLINE_S) -> Seen:
    """Poll until `predicate` gives something true, and return it."""
    end = time.monotonic() + deadline_s
    pause = 0.002
    while not (seen := predicate()):
        if time.monotonic() > end:
            pytest.fail(f"{what}: not so within {deadline_s:g} s; last seen: {seen!r}")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)
    return seen


def shell_job(name: str, text: str, **fields: object) -> JobSpec:
    return JobSpec(name, Shell(text, SH), **fields)  # type: ignore[arg-type]


class LiveHome:
    """One home. `ran` is the file to which each job that is asked to appends its key, `$RAN`."""

    def __init__(self, path: Path, folder: Path) -> None:
        self.home = Home(path)
        self.folder = folder
        self.ran = folder / "ran"

    # ---- asking ---------------------------------------------------------------------------------

    def environment(self, extra: Mapping[str, str] = {}) -> list[str]:
        kept = {"PATH": os.environ["PATH"], "RAN": str(self.ran), **extra}
        return [f"{name}={value}" for name, value in kept.items()]

    def submission(self, flow: FlowSpec) -> Submission:
        host = socket.gethostname()
        return Submission(flow, Origin("tester", os.getuid(), host, str(self.folder), 0o22))

    def submit(self, *jobs: JobSpec, name: str = "flow", env: Mapping[str, str] = {}, **fields: object) -> int:
        """Submit one job as a single run, several as a flow; return the run's number."""
        fields.setdefault("is_single", len(jobs) == 1 and jobs[0].matrix is None)
        flow = FlowSpec(name, jobs, **fields)  # type: ignore[arg-type]
        with self.client() as client:
            reply = client.call("submit", submission=encode(self.submission(flow)), env=self.environment(env))
        return int(reply["run"])

    def run_text(self, text: str, **request: int | None) -> int:
        """Submit one shell text as a single job."""
        return self.submit(shell_job("job", text, request=Request(**request)))  # type: ignore[arg-type]

    @contextlib.contextmanager
    def client(self) -> Iterator[Client]:
        client = Client.connect(self.home)
        try:
            yield client
        finally:
            client.close()

    def connect_again(self, deadline_s: float = DEADLINE_S) -> None:
        """See to it that a coordinator answers, however many die meanwhile."""

        def answers() -> bool:
            try:
                with self.client() as client:
                    client.call("ping")
            except (AverError, TimeoutError):
                return False
            return True

        wait_for(answers, "a coordinator that answers", deadline_s)

    def settle(self, runs: Sequence[int], deadline_s: float = DEADLINE_S) -> None:
        """Wait until all of the runs are settled; a coordinator that dies meanwhile is started again."""
        end = time.monotonic() + deadline_s
        while time.monotonic() < end:
            try:
                with self.client() as client:
                    for _ in client.watch(runs, end - time.monotonic()):
                        pass
                return
            except TimeoutError:
                break
            except AverError:
                continue
        with self.reader() as reader:
            left = [(job.id, job.name, job.state, job.reason) for run in runs for job in reader.jobs(run=run)]
            pytest.fail(f"not settled within {deadline_s} s: {[one for one in left if not one[2].is_settled][:20]}")

    # ---- killing ----------------------------------------------------------------------------------

    def coordinator(self) -> int | None:
        """The pid of this home's coordinator, if it lives."""
        try:
            pid = int(json.loads(self.home.lock.read_bytes())["pid"])
            command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return pid if os.fsencode(self.home.path) in command else None

    def kill_coordinator(self, number: int = signal.SIGKILL) -> bool:
        pid = self.coordinator()
        if pid is None:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        if number == signal.SIGKILL:
            wait_for(lambda: not is_alive(pid) and self._is_free(), "the killed coordinator's end")
        return True

    def _is_free(self) -> bool:
        """Whether the next coordinator may begin, or has: nobody listens, or another one holds the lock."""
        return self.coordinator() is not None or not self._listens()

    def _listens(self) -> bool:
        """Whether somebody listens: the sockets of a killed process close when its last thread is gone."""
        try:
            Client.connect(self.home, start=False).close()
        except AverError:
            return False
        return True

    def wait_until_gone(self) -> None:
        """Wait until the coordinator has left by itself."""
        wait_for(lambda: self.coordinator() is None, "the idle coordinator's leaving")

    def end_everything(self) -> None:
        """Kill what is left of this home: coordinator, witnesses, jobs. For the end of a test, however it went."""
        self.kill_coordinator()
        for pid in [*self.witnesses(), *self.processes()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    # ---- looking ----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def reader(self) -> Iterator[Reader]:
        reader = Reader.open(self.home.database)
        assert reader is not None
        with reader:
            yield reader

    def job(self, number: int) -> JobRow:
        with self.reader() as reader:
            row = reader.job(number)
        assert row is not None
        return row

    def attempt(self, number: int) -> AttemptRow:
        """The newest attempt of a job."""
        with self.reader() as reader:
            return reader.attempts(number)[-1]

    def wait_running(self, number: int) -> JobRow:
        def look() -> JobRow | None:
            with self.reader() as reader:
                job = reader.job(number)
            assert job is None or not job.state.is_settled, f"it has ended: {job}"
            return job if job is not None and job.state == "RUNNING" else None

        found = wait_for(look, f"job {number} runs")
        assert found is not None
        return found

    def of_witness(self, suffix: str) -> Path:
        """A file of the one witness. Its number is not always 1: a cgroup that a home of before left keeps its own."""
        (path,) = (path for path in self.home.witnesses.glob(f"*.{suffix}") if path.stem.isdecimal())
        return path

    def witness_of(self, number: int) -> int:
        """The pid of the witness of a running job, as it said itself."""
        with self.reader() as reader:
            run = self.job(number).run
            said = [one.event.said for one in reader.events(run=run) if isinstance(one.event, Observed)
                    and one.event.job == number and one.event.source == "witness"]  # fmt: skip
        return int(json.loads(said[0])["witness"])

    def keys_run(self) -> Counter[str]:
        try:
            return Counter(self.ran.read_text().split())
        except FileNotFoundError:
            return Counter()

    def witnesses(self) -> list[int]:
        """Witnesses whose journal is in this home."""
        own = os.fsencode(self.home.witnesses) + b"/"
        return [pid for pid in pids() if _link(f"/proc/{pid}/fd/4").startswith(own)]

    def processes(self) -> list[int]:
        """Processes of jobs of this home."""
        needle = b"\0AVER_HOME=" + os.fsencode(self.home.path) + b"\0"
        return [pid for pid in pids() if needle in (env := _environ(pid)) and b"\0AVER_KEY=" in env]

    def cgroups(self) -> list[str]:
        base, _ = find_cgroup()
        if base is None or not self.home.database.exists():
            return []
        with self.reader() as reader:
            prefixes = {
                attempt.key.split(".")[0] for run in reader.runs() for attempt in reader.attempts_of_run(run.id)
            }
        return [name for name in os.listdir(base.folder) if name.split(".")[0] in prefixes]

    def assert_nothing_left(self) -> None:
        """After the coordinator has left: no process, witness or cgroup, no file of a slot or of an unknown run."""
        self.wait_until_gone()
        wait_for(lambda: not self.processes(), "no process of a job is left")
        wait_for(lambda: not self.witnesses(), "no witness is left")
        wait_for(lambda: not self.cgroups(), "no cgroup is left")
        assert sorted(path.name for path in self.home.witnesses.iterdir()) == []
        with self.reader() as reader:
            known = {run.id for run in reader.runs()}
        for folder in ("env", "scripts"):
            files = [path for path in (self.home.path / folder).iterdir() if path.name != "key"]  # of digests, for ever
            numbers = {int(path.name.split(".")[0]) for path in files}
            assert numbers <= known, f"{folder} has files of runs that nobody knows"

    def assert_store_is_whole(self) -> None:
        """Replay gives the same rows, and each attempt has one verdict at most."""
        assert replay(self.home.database) == []
        with self.reader() as reader:
            verdicts = Counter(
                (one.event.job, one.event.attempt)
                for one in reader.events()
                if isinstance(one.event, Observed) and one.event.verdict is not None and one.event.source != "person"
            )
        assert [key for key, count in verdicts.items() if count > 1] == []


def pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def is_alive(pid: int) -> bool:
    """Whether the process lives; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def processes_with(word: str) -> list[int]:
    """Live processes that have this word as an argument: a mark that survives `env -i` and `setsid`."""
    found = []
    for pid in pids():
        with contextlib.suppress(OSError):
            if word.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") and is_alive(pid):
                found.append(pid)
    return found


def _environ(pid: int) -> bytes:
    try:
        return b"\0" + Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def _link(path: str) -> bytes:
    try:
        return os.readlink(os.fsencode(path))
    except OSError:
        return b""
