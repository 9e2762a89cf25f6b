"""`scontrol`: hold, release, suspend, resume, requeue and change jobs. What it shows is `show`'s.

Words may be cut as Slurm lets them be cut. Every job that something could not be done to has its line on stderr, and
makes the exit status 1.
"""

from __future__ import annotations

import shlex
import sys

from aver.fast_start import TYPE_CHECKING
from aver.protocol import fast_client
from aver.protocol.place import user_name
from aver.slurm_cli.facts import Book
from aver.slurm_cli.job_names import parse_job, split_jobs
from aver.slurm_cli.output import say
from aver.slurm_cli.output import show as prompt
from aver.slurm_cli.refusal import Refusal, guarded, tell
from aver.slurm_cli.scontrol.update import HIGHEST_PRIORITY, Update, parse_update
from aver.slurm_cli.settings import version_line
from aver.spec.getopt import BadOption, Table, parse

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

TABLE = Table(
    flags="all:a details:d future:F help:h hide local oneliner:o quiet:Q sibling verbose:v version:V federation",
    values="clusters:M uid:u",
    maybe="json yaml",
)
INVALID = "Invalid job id specified"
NO_STEP = f"slurm_update error: {INVALID}"
COMPLETED = "Job/step already completing or completed"
PENDING = "Job is pending execution"
DISABLED = "Requested operation is presently disabled"

# word and the fewest letters that name it
_VERBS = (
    ("hold", 4), ("uhold", 2), ("release", 3), ("suspend", 2), ("resume", 3), ("requeue", 3), ("requeuehold", 8),
    ("update", 1), ("show", 2), ("write", 2), ("ping", 3), ("version", 4), ("help", 2), ("exit", 1), ("quit", 4),
    ("cancel", 1), ("listpids", 1), ("wait_job", 2), ("notify", 1), ("holdu", 5), ("top", 3), ("pidinfo", 3),
)  # fmt: skip
VERBS = (
    "hold", "uhold", "release", "suspend", "resume", "requeue", "requeuehold", "update", "show", "write batch_script",
    "top", "listpids", "pidinfo", "notify", "ping", "version", "help", "exit", "quit",
)  # fmt: skip
NOT_SERVED = (
    "abort", "cancel_reboot", "cluster", "completing", "create", "delete", "errnumstr", "fsdampeningfactor", "getent",
    "gethost", "power", "reboot", "reboot_nodes", "reconfigure", "schedloglevel",
    "setdebug", "setdebugflags", "shutdown", "takeover", "token", "wait_job",
)  # fmt: skip
WITHOUT_MEANING = ("all", "clusters", "federation", "future", "hide", "local", "sibling", "uid")
_SHOWN = frozenset({"show", "write", "ping"})
_HELP = """\
scontrol [<OPTION>] [<COMMAND>]
    Valid <OPTION> values are:
     -a, --all, -d, --details, -o, --oneliner, -Q, --quiet, -v, --verbose, -V, --version
     --json, --yaml
    Valid <COMMAND> values are:
     hold <job_list>          keep jobs from starting
     uhold <job_list>         the same
     release <job_list>       let held jobs go
     suspend <job_list>       stop running jobs; their time limit stands still
     resume <job_list>        let suspended jobs go on
     requeue <job_list>       begin jobs again
     requeue incomplete <job_list>
                              begin those again that have not ended
     requeuehold <job_list>   begin jobs again when they are released
     update JobId=<id> <SPECIFICATIONS>
                              TimeLimit, JobName, Priority, Comment, Partition, Account, QOS
     listpids [<id>[.<step>]] processes of running jobs
     pidinfo <pid>            the job of a process
     notify <id> <message>    write a line to a job's standard error
     top <job_list>           let waiting jobs go before all others
     show <ENTITY> [<ID>]     job, step, node, partition, config, hostnames, hostlist
     write batch_script <id> [<file>]
     ping                     whether the coordinator answers
     help                     show this page
     exit, quit               leave scontrol
     !!                       the last command again
"""


def main(words: Sequence[str]) -> int:
    return guarded("scontrol", _scontrol, words)


def _help() -> str:
    others = "".join(f"     {name:<24} not supported on one machine\n" for name in NOT_SERVED)
    return f"{_HELP}{others}     version                  show the version"


def _scontrol(words: Sequence[str]) -> int:
    try:
        parsed = parse(TABLE, words, stops_at_operand=True)
    except BadOption as error:
        raise Refusal(f'scontrol: {error}\nTry "scontrol --help" for more information') from None
    if parsed.has("help"):
        tell(_help())
        return 0
    if parsed.has("version"):
        tell(version_line())
        return 0
    options = list(words[: len(words) - len(parsed.operands)])
    if parsed.operands:
        return _run(options, parsed.operands)
    return _converse(options)


def _converse(options: list[str]) -> int:
    """Commands from stdin, one a line, until `quit`."""
    status = 0
    last: list[str] = []
    is_terminal = sys.stdin.isatty()
    while True:
        if is_terminal:
            prompt("scontrol: ")
        line = sys.stdin.readline()
        try:
            words = shlex.split(line)
        except ValueError:
            say(f"invalid keyword: {line.strip()}")
            continue
        if not line or (words and _verb(words[0]) in ("quit", "exit")):
            return status
        if words == ["!!"]:
            words = last
        if words:
            last = words
            try:
                status = _run(options, words) or status
            except Refusal as refusal:
                say(refusal.text)
                status = refusal.status


def _run(options: list[str], words: Sequence[str]) -> int:
    if words[0].lower() in NOT_SERVED:
        raise Refusal(f"scontrol: error: {words[0].lower()} is not supported by aver")
    verb = _verb(words[0])
    if verb is None:
        raise Refusal(f"invalid keyword: {words[0]}")
    if verb in _SHOWN:
        from aver.slurm_cli.scontrol import show

        return show.main([*options, verb, *words[1:]])
    match verb:
        case "version":
            tell(version_line())
            return 0
        case "help":
            tell(_help())
            return 0
        case "update":
            update = parse_update(words[1:])
            return _Acting(options).update_steps(update) if update.step else _Acting(options).update(update)
        case "listpids" | "pidinfo" | "notify":
            return _of_processes(verb, words)
        case "cancel" | "wait_job":
            raise Refusal(f"scontrol: error: {verb} is not supported on one machine")
        case "quit" | "exit":
            return 0
        case _:
            if len(words) < 2:
                raise Refusal(f"too few arguments for keyword:{words[0]}")
            fast_client.outlive_own_job()
            acting = _Acting(options)
            return acting.top(words[1:]) if verb == "top" else acting.act(verb, words[1:])


def _of_processes(verb: str, words: Sequence[str]) -> int:
    from aver.slurm_cli.scontrol import processes

    if len(words) < {"listpids": 1, "pidinfo": 2, "notify": 3}[verb]:
        raise Refusal(f"too few arguments for keyword:{words[0]}")
    act = {"listpids": processes.list_pids, "pidinfo": processes.pid_info, "notify": processes.notify}[verb]
    return act(words[1:])


def _verb(word: str) -> str | None:
    wanted = word.lower()
    exact = next((name for name, _ in _VERBS if name == wanted), None)
    if exact is not None:
        return exact
    return next((name for name, least in _VERBS if len(wanted) >= least and name.startswith(wanted)), None)


class _Acting:
    def __init__(self, options: Sequence[str]) -> None:
        self._is_quiet = "-Q" in options or "--quiet" in options
        self._book = Book.open()
        self._wire: fast_client.Wire | None = None
        self._status = 0

    def act(self, verb: str, words: Sequence[str]) -> int:
        op = {"uhold": "hold", "holdu": "hold", "requeuehold": "requeue"}.get(verb, verb)
        extra: dict[str, bool] = {"hold": verb == "requeuehold"} if op == "requeue" else {}
        if verb == "requeuehold" and len(words) > 1 and words[0].lower() == "state=specialexit":
            extra["special"] = True
            words = words[1:]
        only_running = op == "requeue" and words[0].lower() == "incomplete"
        for word in words[1:] if only_running else words:
            for text in _job_texts(word):
                numbers = self._numbers(text, op)
                for number in self._running(numbers) if only_running else numbers:
                    self._take(text, op, self._ask(op, ids=[number], **extra))
        return self._status

    def update(self, update: Update) -> int:
        for text in update.jobs or self._named(update):
            for number in self._numbers(text, "update"):
                changes = dict(update.changes)
                if update.minutes_more:
                    changes["time_s"] = self._longer(number, update.minutes_more)
                if changes:
                    given = {name: value for name, value in changes.items() if value is not None}
                    clear = [name for name, value in changes.items() if value is None]
                    self._take(text, "update", self._ask("update", ids=[number], changes=given, clear=clear))
                if update.is_held is not None and not self._status:
                    self._ask("hold" if update.is_held else "release", ids=[number])
        return self._status

    def update_steps(self, update: Update) -> int:
        """Of one step, or of all steps of a job that run. An ended job has none, which is no error, as in Slurm."""
        from aver.slurm_cli.squeue.command import running_steps

        named = parse_job(update.step)
        jobs = [] if named is None else self._book.numbered(named.numbers(self._book))
        if named is None or not jobs:
            raise Refusal(NO_STEP)
        running = running_steps(self._book, [job for job in jobs if job.is_active and job.has_run])
        wanted = None if named.step is None else str(named.step)
        chosen = [step for step in running if step.label.isdigit() and wanted in (None, step.label)]
        if wanted is not None and not chosen:
            raise Refusal(NO_STEP)
        for step in chosen:
            limit = update.step_limit(step.limit_s)
            if limit != step.limit_s:
                changes, clear = ({}, ["time_s"]) if limit is None else ({"time_s": limit}, [])
                number, ids = int(step.label), [step.job.row.id]
                result = self._ask("update", ids=ids, changes=changes, clear=clear, steps=[number])
                if result["code"] != "done":
                    raise Refusal(NO_STEP if result["code"] == "not_found" else f"slurm_update error: {result['did']}")
        return 0

    def _named(self, update: Update) -> list[str]:
        """The jobs of this name and user that have not ended; Refusal in Slurm's words if there is none."""
        found = [
            str(job.row.id)
            for job in self._book.unsettled()
            if job.name == update.name and update.user in ("", job.user, str(job.uid))
        ]
        if not found:
            whose = f"user ID {update.user} and " if update.user else ""
            raise Refusal(f"scontrol: error: No jobs with {whose}name '{update.name}'")
        return found

    def top(self, words: Sequence[str]) -> int:
        """Give each job a priority above all that wait; the first that is named goes first."""
        waiting = [job for job in self._book.unsettled() if job.is_pending]
        highest = max((job.priority for job in waiting), default=0)
        texts = [text for word in words for text in _job_texts(word)]
        for place, text in enumerate(reversed(texts), 1):
            for number in self._numbers(text, "top"):
                priority = min(highest + place, HIGHEST_PRIORITY)
                self._take(text, "top", self._ask("update", ids=[number], changes={"priority": priority}, clear=[]))
        return self._status

    def _running(self, numbers: Sequence[int]) -> list[int]:
        """Those of the jobs, and of the tasks of arrays, that neither wait nor have ended; and numbers of no job."""
        found = self._book.numbered(numbers)
        return [job.row.id for job in found if job.is_active] or ([] if found else list(numbers))

    def _longer(self, number: int, minutes: int) -> int | None:
        jobs = self._book.numbered([number])
        limit = jobs[0].limit_s if jobs else None
        return None if limit is None else max(60, limit + minutes * 60)

    def _numbers(self, text: str, op: str) -> list[int]:
        named = parse_job(text)
        numbers = [] if named is None or named.step is not None else named.numbers(self._book)
        if not numbers:
            self._complain(text, op, INVALID)
        return numbers

    def _take(self, text: str, op: str, result: dict[str, Any]) -> None:
        is_suspend = op in ("suspend", "resume")
        match result["code"]:
            case "not_found":
                self._complain(text, op, INVALID)
            case "done" | "asked":
                return  # of an array one is enough; Slurm does not wait until its jobs are stopped either
            case "running" if op == "hold":
                return  # a job that runs is not held back, and Slurm does not complain either
            case "already":
                if is_suspend:
                    self._complain(text, op, DISABLED)
            case "settled":
                self._complain(text, op, COMPLETED)
            case "not_running" if is_suspend:
                settled = [job for job in self._book.numbered([int(text.partition("_")[0])]) if job.is_settled]
                self._complain(text, op, COMPLETED if settled else PENDING)
            case _:
                self._complain(text, op, str(result["did"]))

    def _complain(self, text: str, op: str, why: str) -> None:
        self._status = 1
        if self._is_quiet:
            return
        say(f"{why} for job {text}")
        if op in ("hold", "release"):
            say(f"slurm_suspend error: {why}")

    def _ask(self, op: str, **arguments: Any) -> dict[str, Any]:
        """What became of the one job that is named."""
        try:
            if self._wire is None:
                self._wire = fast_client.connect(self._book.home)
            self._wire.send({"op": op, "by": user_name(), **arguments})
            reply = self._wire.receive()
        except fast_client.Lost as error:
            raise Refusal(f"scontrol: error: {error}") from None
        if reply.get("ok") is not True:
            raise Refusal(f"scontrol: error: {reply.get('error')}")
        result: dict[str, Any] = reply["results"][0]
        return result


def _job_texts(word: str) -> list[str]:
    """`7,8`, `jobid=7`, `7_[1-3,5]`."""
    tag, equals, value = word.partition("=")
    return split_jobs(value if equals and tag.lower() in ("jobid", "job") else word)
