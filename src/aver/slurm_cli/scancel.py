"""`scancel`: cancel jobs, arrays and steps, or send them a signal. Slurm's messages and exit statuses.

A job that is not there, or has ended, is not an error when it is to be cancelled; -v says so.
"""

from __future__ import annotations

import os
import sys
import time

from aver.fast_start import TYPE_CHECKING
from aver.protocol import fast_client
from aver.protocol.place import user_name
from aver.slurm_cli.facts import Book, JobFacts
from aver.slurm_cli.job_names import NamedJob, parse_job, split_jobs
from aver.slurm_cli.output import say, show
from aver.slurm_cli.refusal import Refusal, guarded, tell
from aver.slurm_cli.settings import version_line
from aver.slurm_cli.words import parse_state
from aver.spec.getopt import BadOption, Parsed, Table, parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

TABLE = Table(
    flags="batch:b full:f hurry:H interactive:i me quiet:Q verbose:v version:V help usage ctld cron",
    values="account:A name:n jobname partition:p qos:q reservation:R signal:s state:t user:u nodelist:w wckey "
    "clusters:M sibling",
)
WITHOUT_MEANING = ("clusters", "cron", "ctld", "hurry", "sibling")
VARIABLES = {
    "account": "SCANCEL_ACCOUNT", "batch": "SCANCEL_BATCH", "full": "SCANCEL_FULL",
    "interactive": "SCANCEL_INTERACTIVE", "name": "SCANCEL_NAME", "partition": "SCANCEL_PARTITION",
    "qos": "SCANCEL_QOS", "state": "SCANCEL_STATE", "user": "SCANCEL_USER", "verbose": "SCANCEL_VERBOSE",
    "wckey": "SCANCEL_WCKEY",
}  # fmt: skip
INVALID, NOT_NOW, DONE, CONNECTION = 2017, 2020, 2021, 1007  # Slurm's error numbers; an exit status keeps 8 bits
_WORDS = {
    INVALID: "Invalid job id specified",
    NOT_NOW: "Job can not be altered now, try again later",
    DONE: "Job/step already completing or completed",
}
_STATES = ("PENDING", "RUNNING", "SUSPENDED")
_KILL = 9
FRESH_S = 5  # as long as Slurm's scancel waits before it tries again


def main(words: Sequence[str]) -> int:
    return guarded("scancel", _scancel, words)


def _about(is_page: bool) -> int:
    from aver.slurm_cli import help as texts

    operands = "[job_id[_array_id][.step_id]]"
    if is_page:
        show(texts.page(TABLE, f"scancel [OPTIONS] {operands}", WITHOUT_MEANING, reads=True))
    else:
        show(texts.usage(TABLE, "scancel", operands, reads=True))
    return 0


def _scancel(words: Sequence[str]) -> int:
    try:
        parsed = parse(TABLE, words)
    except BadOption as error:
        raise Refusal(f'scancel: {error}\nTry "scancel --help" for more information') from None
    if parsed.has("help") or parsed.has("usage"):
        return _about(parsed.has("help"))
    if parsed.has("version"):
        tell(version_line())
        return 0
    for name, variable in VARIABLES.items():
        if os.environ.get(variable) and not parsed.has(name):
            parsed.given.append((name, os.environ[variable] if TABLE.takes[name] else None))
    fast_client.outlive_own_job()
    call = _Call(parsed)
    named = [job for word in parsed.operands for job in _named(word)]
    if call.has_filter:
        return call.act_on_matching(named)
    if not named:
        raise Refusal("scancel: error: No job identification provided")
    return call.act_on(named)


def _named(text: str) -> list[NamedJob]:
    found = []
    for word in split_jobs(text):
        job = parse_job(word)
        if job is None:
            raise Refusal(f"scancel: error: Invalid job id {word}")
        found.append(job)
    return found


class _Call:
    def __init__(self, parsed: Parsed) -> None:
        self._parsed = parsed
        self._verbose = parsed.has("verbose") and not parsed.has("quiet")
        self._quiet = parsed.has("quiet")
        self._signal = _signal(parsed.get("signal"))
        self._states = _states(parsed.get("state"))
        self._user = user_name() if parsed.has("me") else _user(parsed.get("user"))
        self._name = parsed.get("name") or parsed.get("jobname")
        self._status = 0
        self._has_waited = False
        self._book = Book.open()
        self._wire: fast_client.Wire | None = None

    @property
    def has_filter(self) -> bool:
        options = (
            "account", "name", "jobname", "partition", "qos", "reservation", "state", "user", "nodelist", "me", "wckey",
        )  # fmt: skip
        return any(self._parsed.has(name) for name in options)

    def act_on(self, named: list[NamedJob]) -> int:
        for job in named:
            if job.step is not None:
                self._act_on_step(job)
                continue
            numbers = job.numbers(self._book)
            if self._parsed.has("interactive"):
                known = self._book.numbered(numbers)
                live = [one for one in known if not one.is_settled]
                if known and not live:
                    self._complain(f"job id {job.text}", DONE, is_always_said=True)
                    continue
                if live and not self._agrees(job.text, live[0]):
                    continue
            self._announce(job.text)
            if not numbers:
                self._complain(f"job id {job.text}", INVALID)
            if self._signal is None and job.indices is not None:
                numbers = _with_whole_arrays(numbers, self._book.numbered([job.number]))
            for number in numbers:
                self._act(job.text, number)
        return self._status

    def act_on_matching(self, named: list[NamedJob]) -> int:
        """Of the named jobs, or of all, those that fit."""
        chosen = {number for job in named for number in job.numbers(self._book)}
        live = self._book.unsettled()
        fitting = [
            job for job in live if (not named or job.row.id in chosen or job.row.run in chosen) and self._fits(job)
        ]
        if not fitting and self._verbose:
            say(f"scancel: error: No active jobs match ALL job filters, including: {self._filters()}")
        agreed: dict[int, str] = {}
        for job in fitting:
            if self._agrees(job.id_text, job):
                self._announce(job.id_text)
                agreed[job.row.id] = job.id_text
        for number in agreed if self._signal is not None else _with_whole_arrays(agreed, live):
            self._act(agreed.get(number, str(number)), number)
        return self._status

    def _filters(self) -> str:
        """What the jobs were to have, in Slurm's words."""
        words = {
            "account": self._parsed.get("account"), "job_name": self._name, "nodelist": self._parsed.get("nodelist"),
            "partition": self._parsed.get("partition"), "qos": self._parsed.get("qos"),
            "reservation": self._parsed.get("reservation"), "state": self._parsed.get("state"),
            "user_name": self._user, "wckey": self._parsed.get("wckey"),
        }  # fmt: skip
        return "".join(f"{name}={text} " for name, text in words.items() if text is not None)

    def _fits(self, job: JobFacts) -> bool:
        get = self._parsed.get
        wanted = (
            (self._user, job.user),
            (self._name, job.name),
            (get("partition"), job.partition),
            (get("account"), job.account),
            (get("qos"), job.qos),
            (get("nodelist"), job.node),
            (get("reservation"), job.named.get("reservation", "")),
            (get("wckey"), job.named.get("wckey", "")),
        )
        return all(want is None or want == have for want, have in wanted) and (
            not self._states or job.state in self._states
        )

    def _agrees(self, text: str, job: JobFacts | None = None, what: str = "job") -> bool:
        if not self._parsed.has("interactive"):
            return True
        about = "" if job is None else f" name={job.name} partition={job.partition}"
        show(f"Cancel {what}_id={text}{about} [y/n]? ")
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    def _announce(self, text: str) -> None:
        if self._verbose:
            whom = "batch job" if self._parsed.has("batch") else "full job" if self._parsed.has("full") else "job"
            word = "Terminating job" if self._signal is None else f"Signal {self._signal} to {whom}"
            say(f"scancel: {word} {text}")

    def _act(self, text: str, number: int) -> None:
        if self._scope() == "steps":
            self._await_step(number)
        did = self._ask("cancel", ids=[number], by=user_name(), signal=self._signal, scope=self._scope())
        code = did["results"][0]["code"]
        if code == "not_found":
            self._complain(f"job id {text}", INVALID)
        elif code in ("already", "settled"):
            self._complain(f"job id {text}", DONE)
        elif code == "not_running":
            self._complain(f"job id {text}", NOT_NOW)

    def _await_step(self, number: int) -> None:
        """Give a job that has just begun, or is about to, time for the step that a signal is for.

        Slurm's scancel does so for a job that has not begun. A program that has just begun may not trap it yet.
        """
        jobs = [] if self._has_waited else [job for job in self._book.numbered([number]) if _is_fresh(job)]
        found = self._book.steps(jobs)
        ages = [
            max(
                (self._book.now - step.started_at for step in found.get((job.row.id, job.row.newest), ())), default=None
            )
            for job in jobs
        ]
        wait_s = FRESH_S if None in ages else 1 if any(age is not None and age < 1 for age in ages) else 0
        if wait_s == 0:
            return
        if self._verbose:
            say("scancel: Job is in transitional state, retrying")
        time.sleep(wait_s)
        self._has_waited = True

    def _act_on_step(self, job: NamedJob) -> None:
        """A step is named by its job's attempt."""
        known = self._book.numbered(job.numbers(self._book))
        jobs = [one for one in known if not one.is_settled]
        if jobs and not self._agrees(job.text, jobs[0], "step"):
            return
        if self._verbose:
            word = "Terminating step" if self._signal is None else f"Signal {self._signal} to step"
            say(f"scancel: {word} {job.text}")
        if not known:
            if not self._quiet:
                say(f"scancel: error: Kill job error on job step id {job.text}: {_WORDS[INVALID]}")
            self._status = 1
            return
        if not jobs:
            self._complain(f"job id {job.text}", INVALID)
            return
        from aver.home import Home
        from aver.store.read.reader import Reader

        reader = Reader.open(Home.find().database)
        assert reader is not None
        with reader:
            attempts = reader.attempts(jobs[0].row.id)
        key = attempts[-1].key if attempts else ""
        reply = self._ask("signal_step", key=key, step=job.step, signal=self._signal, by=user_name())
        if reply["did"] == "not running":
            self._complain(f"job step id {job.number}", INVALID, is_always_said=True)

    def _scope(self) -> str | None:
        """Whom a signal is for: the steps, unless it is said otherwise."""
        if self._signal is None:
            return None
        if self._parsed.has("full"):
            return "all"
        return "script" if self._parsed.has("batch") else "steps"

    def _complain(self, what: str, error: int, is_always_said: bool = False) -> None:
        is_harmless = error in (INVALID, DONE)
        if (self._verbose or not is_harmless or is_always_said) and not self._quiet:
            say(f"scancel: error: Kill job error on {what}: {_WORDS[error]}")
        if not is_harmless or self._signal is not None or is_always_said:
            self._status = error & 255

    def _ask(self, op: str, **arguments: Any) -> dict[str, Any]:
        try:
            if self._wire is None:
                self._wire = fast_client.connect(self._book.home)
            self._wire.send({"op": op, **arguments})
            reply = self._wire.receive()
        except fast_client.Lost as error:
            raise Refusal(f"scancel: error: {error}", CONNECTION & 255) from None
        if reply.get("ok") is not True:
            raise Refusal(f"scancel: error: {reply.get('error')}")
        return reply


def _with_whole_arrays(numbers: Iterable[int], jobs: list[JobFacts]) -> list[int]:
    """The numbers; an array whose tasks are all among them, but for those that have ended, by its own number.

    So it is cancelled as a whole, and squeue and scontrol still know it, as in Slurm.
    """
    chosen = set(numbers)
    left = {job.array_job for job in jobs if job.row.id not in chosen and not job.is_settled}
    arrays = {job.row.id: job.array_job for job in jobs if job.array_job is not None and job.array_job not in left}
    return list(dict.fromkeys(arrays.get(number, number) for number in numbers))


def _is_fresh(job: JobFacts) -> bool:
    """Whether its script has not run long enough that it must have come to its first step."""
    if job.is_pending:
        return job.reason in ("None", "Priority", "Resources") and job.book.now - job.submitted_at < FRESH_S
    since = job.row.started_at
    return job.is_active and job.is_batch and since is not None and job.book.now - since < FRESH_S


def _signal(text: str | None) -> int | None:
    """The signal; None: the job is to be cancelled."""
    if text is None:
        return None
    from aver.model.signals import parse_signal

    try:
        number = parse_signal(text)
    except ValueError:
        raise Refusal(f"Unknown job signal: {text}") from None
    return None if number == _KILL else number


def _states(text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    found = tuple(parse_state(word) or word for word in text.split(","))
    wrong = [word for word in found if word not in _STATES]
    if wrong:
        listed = "Valid job states are PENDING, RUNNING, and SUSPENDED"
        raise Refusal(f"Invalid job state specified: {wrong[0]}\n{listed}")
    return found


def _user(text: str | None) -> str | None:
    if text is None:
        return None
    import pwd

    try:
        return pwd.getpwuid(int(text)).pw_name if text.isdigit() else pwd.getpwnam(text).pw_name
    except (KeyError, OverflowError):
        if text == os.environ.get("USER"):
            return text
        raise Refusal(f"scancel: error: Invalid user name: {text}") from None
