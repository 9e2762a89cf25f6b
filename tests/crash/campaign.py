"""A campaign: a mixture of jobs whose ends are known beforehand, and what must be true when all is settled.

Each job appends its attempt's key to a file, so a second start of an attempt shows.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from aver.errors import AverError
from aver.model.exit import ExitStatus
from aver.model.job import JobSpec, Matrix, Need, Needs, Request, RetryRule
from aver.model.states import State
from live_home import LiveHome, shell_job, wait_for

RECORD = 'echo "$AVER_KEY" >> "$RAN"; '


@dataclass(frozen=True)
class Expected:
    """How a job must end. exit None: unknown or none."""

    state: State
    exit: ExitStatus | None
    attempts: int
    may_not_have_run: bool = False


@dataclass
class Campaign:
    live: LiveHome
    runs: dict[int, dict[str, Expected]] = field(default_factory=dict)  # by run: by job name without its member
    cancelled: set[int] = field(default_factory=set)
    to_cancel: list[int] = field(default_factory=list)
    kills: int = 0

    def submit_mixture(self, size: int) -> None:
        """A flow of short jobs, one with needs, retries and limits, and single ones, one of them to be cancelled."""
        self._submit(_wide(size))
        self._submit(_deep(size // 4 or 1))
        self._submit((_LIMITED, Expected(State.TIMEOUT, ExitStatus(0, 15), 1)), single=True)
        self._submit((_LONG, Expected(State.COMPLETED, ExitStatus(), 1)), single=True)
        run = self._submit((_ENDLESS, Expected(State.CANCELLED, None, 1, may_not_have_run=True)), single=True)
        self.to_cancel.append(run)

    def _submit(self, *jobs: tuple[JobSpec, Expected] | list[tuple[JobSpec, Expected]], single: bool = False) -> int:
        pairs = [pair for one in jobs for pair in (one if isinstance(one, list) else [one])]
        run = self.live.submit(*(spec for spec, _ in pairs), is_single=single)
        self.runs[run] = {spec.name: expected for spec, expected in pairs}
        return run

    def cancel_some(self) -> None:
        """Cancel what is to be cancelled, until a coordinator has said that it took it."""
        for run in self.to_cancel:
            with self.live.client() as client:
                client.call("cancel", ids=[run], by="tester", signal=None, now=False)
            self.cancelled.add(run)
        self.to_cancel.clear()

    def verify(self) -> None:
        """Every job has the one verdict that it must have, every attempt ran once, nothing is left."""
        live = self.live
        ran = live.keys_run()
        twice = [key for key, count in ran.items() if count > 1]
        assert not twice, f"run twice: {twice}"
        wrong = []
        with live.reader() as reader:
            known = {attempt.key for run in reader.runs() for attempt in reader.attempts_of_run(run.id)}
            for run, expected_by_name in self.runs.items():
                attempts = reader.attempts_of_run(run)
                numbers: dict[int, list[int]] = {}
                for attempt in attempts:
                    numbers.setdefault(attempt.job, []).append(attempt.attempt)
                    if not attempt.state.is_settled:
                        wrong.append(f"attempt {attempt.key} has no verdict: {attempt.state}")
                for job in reader.jobs(run=run):
                    expected = expected_by_name[job.name.split("[")[0]]
                    wrong += _differences(job, expected, numbers.get(job.id, []))
                    if not expected.may_not_have_run:
                        wrong += [f"{a.key} never ran" for a in attempts if a.job == job.id and a.key not in ran]
        assert not wrong, "\n".join(wrong[:20])
        assert set(ran) <= known, f"keys that no store knows: {set(ran) - known}"
        live.assert_store_is_whole()
        live.assert_nothing_left()


def _differences(job: object, expected: Expected, numbers: list[int]) -> list[str]:
    state, exit_status = job.state, job.exit  # type: ignore[attr-defined]
    found = []
    if state is not expected.state:
        found.append(f"{job}: not {expected.state}")
    if expected.exit is not None and exit_status != expected.exit:
        found.append(f"{job}: not {expected.exit}")
    is_early = expected.may_not_have_run and numbers in ([], [1])
    if numbers != list(range(1, expected.attempts + 1)) and not is_early:
        found.append(f"{job}: attempts {numbers}, not {expected.attempts}")
    return found


def _wide(size: int) -> list[tuple[JobSpec, Expected]]:
    """Short jobs with every kind of end. Each exit code is a JobSpec of its own, so its name says what is right."""
    members = tuple(str(number) for number in range(size // 6 or 1))
    ends = [(f"exit-{code}", f"exit {code}", _exited(code)) for code in (0, 1, 137, 255)]
    ends += [("killed", "kill -KILL $$", Expected(State.FAILED, ExitStatus(0, 9), 1))]
    jobs = [
        (shell_job(name, f"{RECORD}sleep 0.0$(({{n}} % 10)); {text}", matrix=Matrix((("n", members),))), expected)
        for name, text, expected in ends
    ]
    cgroup = shell_job(
        "limited-memory", RECORD + "exit 7", request=Request(mem_bytes=64 << 20), matrix=Matrix((("n", members),))
    )
    return [*jobs, (cgroup, _exited(7))]


def _deep(size: int) -> list[tuple[JobSpec, Expected]]:
    """Needs, skips and retries."""
    members = tuple(str(number) for number in range(size))
    matrix = Matrix((("n", members),))
    rule = RetryRule(max=3, codes=(9,), backoff_s=0.01)
    return [
        (shell_job("first", RECORD + "exit 0"), _exited(0)),
        (shell_job("second", RECORD + "sleep 0.05", needs=Needs((Need("first"),)), matrix=matrix), _exited(0)),
        (
            shell_job("again", RECORD + '[ "$AVER_ATTEMPT" -ge 3 ] || exit 9', retry=rule, matrix=matrix),
            Expected(State.COMPLETED, ExitStatus(), 3),
        ),
        (shell_job("fails", RECORD + "exit 3", needs=Needs((Need("second"),))), _exited(3)),
        (shell_job("skipped", RECORD + "exit 0", needs=Needs((Need("fails"),))), Expected(State.SKIPPED, None, 0)),
        (shell_job("last", RECORD + "exit 0", needs=Needs((Need("again"),))), _exited(0)),
    ]


def _exited(code: int) -> Expected:
    return Expected(State.FAILED if code else State.COMPLETED, ExitStatus(code), 1)


_LIMITED = shell_job("limited", RECORD + "exec sleep 600", request=Request(time_s=1))
_LONG = shell_job("long", RECORD + "setsid sleep 600 & sleep 2")
_ENDLESS = shell_job("endless", RECORD + "exec sleep 600")


@contextmanager
def crash_at(point: str) -> Iterator[None]:
    """Coordinators that are started in here die at this point."""
    os.environ["AVER_CRASH_AT"] = point
    try:
        yield
    finally:
        del os.environ["AVER_CRASH_AT"]


def pause(chance: random.Random, longest_s: float) -> None:
    """Let a random instant pass: a kill must come anywhere. Most are short, as most of the work is."""
    time.sleep(chance.choice((0.0, 0.02, 0.1, 1.0)) * chance.random() * longest_s)


def fork_client(live: LiveHome, work: str) -> int:
    """Start a client process that submits jobs, or watches a run, until it is killed; return its pid."""
    pid = os.fork()
    if pid:
        return pid
    try:
        number = 0
        while True:
            number += 1
            time.sleep(0.05)
            try:
                if work == "submit":
                    live.submit(shell_job("extra", RECORD + f"exit {number % 3}"), name=f"extra-{number % 3}")
                else:
                    with live.client() as client:
                        for _ in client.watch([int(work)]):
                            pass
                        os._exit(0)
            except (AverError, TimeoutError):
                continue
    finally:
        os._exit(1)


def end_client(pid: int) -> None:
    """Kill a client of ours and reap it."""
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: os.waitpid(pid, os.WNOHANG)[0] == pid, "the killed client's end")
