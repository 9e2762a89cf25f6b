"""The batch of jobs that a job has generated: its file is read by a process of its own, not in the loop.

Nothing of it is in the store before the maker's verdict is; values that are secrets are put in the vault here, so that
the store never has them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping

from aver.client import vault
from aver.client.job_files import Which, job_files
from aver.coordinator.background import Background, Failed
from aver.coordinator.order.generated_question import CPU_S, Answer, Question
from aver.coordinator.state.live import TakeGenerated
from aver.coordinator.state.run import LiveRun
from aver.crashpoint import reached
from aver.errors import AverError
from aver.home import Home
from aver.model.codec import decode, dumps
from aver.model.job import FlowSpec
from aver.model.record import Record
from aver.model.signals import signal_name
from aver.plan.packing import Room
from aver.plan.placeholders import fill
from aver.store.secrets import keep_values

TRIES = 3  # of a process that somebody else killed
LONGEST_READ_S = 600.0


class Sealed(Record):
    """A batch without its values, those values by their digests, and which of them are secrets."""

    flow: FlowSpec
    values: Mapping[str, str]
    secrets: frozenset[str]


class Generated:
    """Reads batches; `read` gives the batch or what is wrong with it, later and in the loop's thread."""

    def __init__(self, home: Home, background: Background, total: Room) -> None:
        self._home = home
        self._background = background
        self._total = total

    def read(self, run: LiveRun, index: int, then: TakeGenerated) -> None:
        question = self.question(run, index)
        reached("generated-asked")

        def take(found: Sealed | str | Failed) -> None:
            then(self.keep(run.number, found), time.time())
            reached("generated-added")

        lane = f"generated {os.path.dirname(question.path)}"
        self._background.run(lane, lambda: self.ask(question), take)

    def question(self, run: LiveRun, index: int) -> Question:
        """Which file the job was to generate; only names are worked out here."""
        spec = run.spec(index)
        assert spec.generates is not None
        job, values = run.job_number(index), run.values(index)
        which = Which(run.number, job, run.name(index), run.attempts.get(index, 1), values)
        folder = job_files(run.submission, spec, which, run.is_single).folder
        path = os.path.join(folder, fill(spec.generates, dict(values)))
        database = os.fspath(self._home.database)
        secrets = tuple(run.submission.origin.secrets)
        return Question(path, database, run.number, job, spec.engine, spec.host, self._total, secrets)

    def ask(self, question: Question) -> Sealed | str:
        """Blocks: for a thread of the background."""
        answer = ask_reader(question)
        if answer.flow is None:
            return answer.problem
        try:
            secrets = vault.secret_values(answer.flow, question.secrets)
            return Sealed(*vault.seal(self._home, answer.flow), frozenset(secrets))
        except AverError as error:
            return str(error)

    def keep(self, run: int, found: Sealed | str | Failed) -> FlowSpec | str:
        """Put the batch's secrets where its jobs will find them."""
        if isinstance(found, Failed):
            return f"the jobs that it generated can't be read: {found.text}"
        if isinstance(found, str):
            return found
        try:
            vault.store(self._home, run, found.values)
            keep_values(os.fspath(self._home.path), run, found.secrets)
        except AverError as error:
            return str(error)
        reached("generated-read")
        return found.flow


def ask_reader(question: Question) -> Answer:
    """What a process of its own says of the file; how it ended, where it could not say."""
    text = dumps(question).encode() + b"\n"
    problem = ""
    for _ in range(TRIES):
        try:
            done = subprocess.run(
                [sys.executable, "-P", "-m", "aver.coordinator.order.generated_reader"],
                input=text, capture_output=True, cwd="/", start_new_session=True, timeout=LONGEST_READ_S, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Answer(None, f"{question.path} could not be read within {LONGEST_READ_S:g} s")
        except OSError as error:
            problem = f"can't start the process that reads {question.path}: {error.strerror}"
            continue
        try:
            return decode(Answer, json.loads(done.stdout))
        except (ValueError, RecursionError):
            problem = _how_it_ended(question.path, done.returncode, done.stderr)
        if done.returncode not in (0, -signal.SIGKILL):
            break
    return Answer(None, problem)


def _how_it_ended(path: str, code: int, said: bytes) -> str:
    if code == -signal.SIGXCPU:
        return f"{path} takes more than {CPU_S} s of cpu time to read"
    if code < 0:
        return f"the process that read {path} was ended by {signal_name(-code)}"
    lines = said.decode("utf-8", "replace").strip().splitlines()
    return f"the process that read {path} ended without an answer" + (f": {lines[-1]}" if lines else "")
