"""squeue: what waits and runs, from the store. Writes nothing but its output.

Settled jobs are listed only where their states are asked for, and unless they are named only for a while, as Slurm
forgets them after MinJobAge.
"""

from __future__ import annotations

import os
import time

from aver.fast_start import TYPE_CHECKING
from aver.model.slurm_names import STEP_UPDATE, number_of_sluid
from aver.slurm_cli import words
from aver.slurm_cli.facts import Book, JobFacts, gathered, node_name, remembered, say_warnings
from aver.slurm_cli.output import say, show
from aver.slurm_cli.refusal import Refusal, guarded
from aver.slurm_cli.squeue import fields as squeue_fields
from aver.slurm_cli.start import opened, options_in_words
from aver.slurm_cli.table.formats import Format, parse_letters, parse_names
from aver.spec.getopt import Parsed, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aver.slurm_cli.squeue.fields import StepFacts

OPTIONS = Table(
    flags="all:a array:r array-unique federation help helpFormat helpformat helpstate hide local long:l me noconvert "
    "noheader:h notme only-job-state priority:P sibling start usage verbose:v version:V",
    values="account:A clusters:M format:o Format:O iterate:i licenses:L name:n nodelist:w partition:p qos:q "
    "reservation:R sort:S states:t user:u",
    maybe="jobs:j json steps:s yaml",
    aliases="accounts=account cluster=clusters job=jobs license=licenses names=name partitions=partition users=user "
    "nodes=nodelist",
)
WITHOUT_MEANING = (
    "all", "clusters", "federation", "hide", "local", "priority", "sibling",
)  # fmt: skip
DEFAULT = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
LONG = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
STATES_ALONE = "%.18i %.2t"
START = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"
STEPS = "%.15i %.8j %.9P %.8u %.9M %N"
_BY_OPTION = {
    "account": "SQUEUE_ACCOUNT", "licenses": "SQUEUE_LICENSES", "name": "SQUEUE_NAMES", "partition": "SQUEUE_PARTITION",
    "qos": "SQUEUE_QOS", "sort": "SQUEUE_SORT", "states": "SQUEUE_STATES", "user": "SQUEUE_USERS",
}  # fmt: skip
_WITH_ONLY_STATE = (
    "only-job-state", "jobs", "states", "format", "Format", "noheader", "sort", "iterate", "clusters", "federation",
    "local", "sibling", "all", "array", "verbose", "json", "yaml",
)  # fmt: skip
_ONLY_STATE = (
    "Option --only-job-state only works alone, with -j (--jobs) and/or -t (--states) parameters, parameters for "
    "cluster/federation selection, and the printing options."
)
VARIABLES = (*_BY_OPTION.values(), "SQUEUE_ARRAY", "SQUEUE_FORMAT", "SQUEUE_FORMAT2")


def main(argv: Sequence[str]) -> int:
    return guarded("squeue", _squeue, argv)


def _help() -> str:
    from aver.slurm_cli.help import page

    return page(OPTIONS, "squeue [OPTIONS]", WITHOUT_MEANING, reads=True)


def _usage() -> str:
    from aver.slurm_cli.help import usage

    return usage(OPTIONS, "squeue", reads=True)


def _squeue(argv: Sequence[str]) -> int:
    parsed = opened(
        "squeue", OPTIONS, argv, help=_help, usage=_usage, helpstate=_help_states, helpformat=_help_letters,
        helpFormat=_help_names,
    )  # fmt: skip
    if parsed is None:
        return 0
    others = [name for name, _ in parsed.given if name not in _WITH_ONLY_STATE]
    if parsed.has("only-job-state") and others:
        raise Refusal(f"squeue: fatal: {_ONLY_STATE}")
    return _show(parsed, argv)


def _help_states() -> str:
    return "".join(f"{word}\n" for word in words.SHORT)


def _help_letters() -> str:
    return _in_lines([f"%{letter:<5}" for letter in squeue_fields.LETTERS], 8)


def _help_names() -> str:
    return _in_lines([f"{name:<20}" for name in squeue_fields.NAMES], 4)


def _in_lines(cells: list[str], count: int) -> str:
    return "".join("".join(cells[at : at + count]) + "\n" for at in range(0, len(cells), count))


def _show(parsed: Parsed, argv: Sequence[str]) -> int:
    operands = list(parsed.operands)
    wanted, steps = parsed.get("jobs"), parsed.get("steps")
    if operands and parsed.has("jobs") and wanted is None:
        wanted = operands.pop(0)
    elif operands and parsed.has("steps") and steps is None:
        steps = operands.pop(0)
    if operands:
        raise Refusal(f"squeue: error: Unrecognized option: {operands[0]}\n{_usage().rstrip()}")
    every = _seconds(parsed)
    ids = _parse_ids(wanted)
    chosen = _Filter(parsed)
    if parsed.has("json") or parsed.has("yaml"):
        return _publish(parsed, ids, chosen, argv)
    if parsed.has("verbose"):
        show(options_in_words(OPTIONS, parsed))
    while True:
        if every is not None or parsed.has("long"):
            show(time.strftime("%a %b %d %H:%M:%S %Y\n"))
        if parsed.has("steps"):
            _print_steps(parsed, ids, _parse_steps(steps), chosen)
        else:
            _print_jobs(parsed, ids, chosen)
        if every is None:
            return 0
        show("")
        time.sleep(every)


def _print_jobs(parsed: Parsed, ids: list[tuple[int, str | None]], chosen: _Filter) -> None:
    book = Book.open()
    jobs = [job for job in _find(book, ids, chosen) if chosen.keeps(job)]
    for job in jobs:
        job.book.converts = not parsed.has("noconvert")
    if parsed.has("start"):
        jobs = [job for job in jobs if job.is_pending]
    if not (parsed.has("array") or parsed.has("array-unique") or "SQUEUE_ARRAY" in os.environ or _names_tasks(ids)):
        jobs = gathered(jobs)
    form = _format(parsed)
    for text in form.unknown:
        say(f"squeue: error: Invalid job format specification: {text}")
    if not parsed.has("noheader"):
        show(form.header())
    show(form.lines(_sorted(jobs, chosen.sort or ("S" if parsed.has("start") else "P,t,-p"))))
    say_warnings("squeue", jobs)


def _publish(parsed: Parsed, ids: list[tuple[int, str | None]], chosen: _Filter, argv: Sequence[str]) -> int:
    """As one document; unless states are asked for, with what has ended within MinJobAge, as in Slurm."""
    from aver.slurm_cli.documents import form_of, publish
    from aver.slurm_cli.squeue.document import queue_document

    form = form_of(parsed, "squeue")
    assert form is not None
    if parsed.has("steps"):
        raise Refusal(f"squeue: error: --steps with --{form.name} is not supported by aver")
    if chosen.states is None:
        chosen.states = set()
    book = Book.open()
    jobs = [job for job in _find(book, ids, chosen) if chosen.keeps(job)]
    if not (parsed.has("array") or _names_tasks(ids)):
        jobs = gathered(jobs)
    publish(form, queue_document(jobs, book.now, form.shape), list(argv), "squeue")
    return 0


def _find(book: Book, ids: list[tuple[int, str | None]], chosen: _Filter) -> list[JobFacts]:
    if book.reader is None:
        jobs: list[JobFacts] = []
    elif ids:
        jobs = book.numbered(number for number, _ in ids)
    elif chosen.states is None:
        jobs = book.unsettled()
    else:
        jobs = book.recent()
    if any(not job.is_settled for job in jobs) and book.refresh():
        return _find(Book.open(), ids, chosen)
    if len(ids) == 1 and not jobs:
        raise Refusal("slurm_load_jobs error: Invalid job id specified")
    if not ids:
        return remembered(book, jobs)
    return [
        job
        for job in remembered(book, jobs)
        if any(
            number in (job.row.id, job.row.run) and (index is None or index == job.array_index) for number, index in ids
        )
    ]


def _print_steps(parsed: Parsed, ids: list[tuple[int, str | None]], labels: list[str], chosen: _Filter) -> None:
    book = Book.open()
    jobs = [job for job in _find(book, ids, chosen) if chosen.keeps(job) and job.is_active and job.has_run]
    rows = [step for step in running_steps(book, jobs) if not labels or step.id_text in labels]
    form = _format(parsed, of_steps=True)
    for text in form.unknown:
        say(f"squeue: error: Invalid job step format specification: {text}")
    if not parsed.has("noheader"):
        show(form.header())
    show(form.lines(rows))


def running_steps(book: Book, jobs: Sequence[JobFacts]) -> list[StepFacts]:
    """The steps that run, job by job: those with numbers, then the batch script."""
    from aver.protocol.fast_client import loads
    from aver.slurm_cli.squeue.fields import StepFacts
    from aver.store.read.light import UNSETTLED

    found = book.steps(jobs)
    rows: list[StepFacts] = []
    for job in jobs:
        for step in found.get((job.row.id, job.row.newest), ()):
            if step.state in UNSETTLED:
                limit = loads(step.spec.encode()).get("time_s")
                for at, asked in book.asked(job.row.run, job.row.id):
                    if asked.get("what") == STEP_UPDATE and at >= step.started_at:
                        change = loads(str(asked.get("detail", "")).encode("ascii", "replace"))
                        limit = change["time_s"] if change.get("step") == step.step else limit
                rows.append(StepFacts(job, str(step.step), step.name, step.tasks, step.started_at, limit))
        if job.is_batch and job.row.started_at is not None:
            rows.append(StepFacts(job, "batch", "batch", 1, job.row.started_at, None))
    return rows


def _format(parsed: Parsed, *, of_steps: bool = False) -> Format:
    letters = squeue_fields.STEP_LETTERS if of_steps else squeue_fields.LETTERS
    names = squeue_fields.STEP_NAMES if of_steps else squeue_fields.NAMES
    asked = next(((name, value) for name, value in reversed(parsed.given) if name in ("format", "Format")), None)
    if asked is None and not parsed.has("long") and not parsed.has("start"):
        if os.environ.get("SQUEUE_FORMAT"):
            asked = ("format", os.environ["SQUEUE_FORMAT"])
        elif os.environ.get("SQUEUE_FORMAT2"):
            asked = ("Format", os.environ["SQUEUE_FORMAT2"])
    if asked is not None and asked[0] == "Format":
        return parse_names(asked[1] or "", names)
    usual = STEPS if of_steps else START if parsed.has("start") else LONG if parsed.has("long") else DEFAULT
    if parsed.has("only-job-state"):
        usual = STATES_ALONE
    return parse_letters(usual if asked is None else asked[1] or "", letters, squeue_fields.ALL_LETTERS)


_UNSORTED = "os"  # fields by which Slurm does not sort


class _Filter:
    """Which jobs are asked for. None: all, or for states the live ones."""

    def __init__(self, parsed: Parsed) -> None:
        def asked(name: str) -> list[str] | None:
            value = parsed.get(name)
            if value is None and name in _BY_OPTION:
                value = os.environ.get(_BY_OPTION[name])
            return None if value is None else [part.strip() for part in value.split(",") if part.strip()]

        self.sort = ",".join(asked("sort") or [])
        self.states = _states(asked("states") or (["all"] if parsed.has("only-job-state") else None))
        self.uids = _uids(asked("user"))
        if parsed.has("me"):
            self.uids = {os.getuid()}
        self.is_not_me = parsed.has("notme")
        self.texts = {name: asked(name) for name in ("account", "partition", "qos", "name", "licenses", "reservation")}
        nodes = asked("nodelist")
        self.nodes = None if nodes is None else _known_nodes(nodes)

    def keeps(self, job: JobFacts) -> bool:
        if self.states is None:
            if job.queue_state not in words.LIVE:
                return False
        elif self.states and job.queue_state not in self.states:
            return False
        if self.uids is not None and job.uid not in self.uids:
            return False
        if self.nodes is not None and job.node not in self.nodes:
            return False
        if self.is_not_me and job.uid == os.getuid():
            return False
        values = {
            "account": job.account, "partition": job.partition, "qos": job.qos, "name": job.name,
            "licenses": job.named.get("licenses", ""), "reservation": job.named.get("reservation", ""),
        }  # fmt: skip
        return all(asked is None or values[name] in asked for name, asked in self.texts.items())


def _states(asked: list[str] | None) -> set[str] | None:
    """None: not asked; empty: all of them."""
    if asked is None:
        return None
    if any(text.lower() == "all" for text in asked):
        return set()
    found = set()
    for text in asked:
        state = words.parse_state(text)
        if state is None:
            valid = ",".join(words.SHORT)
            raise Refusal(
                f"squeue: error: Invalid job state specified: {text}\n"
                f"squeue: error: Valid job states include: {valid}\n"
            )
        found.add(state)
    return found


def _uids(asked: list[str] | None) -> set[int] | None:
    if asked is None:
        return None
    import pwd

    found = set()
    for text in asked:
        try:
            is_number = text.isascii() and text.isdigit() and len(text) < 10
            found.add(pwd.getpwuid(int(text)).pw_uid if is_number else pwd.getpwnam(text).pw_uid)
        except (KeyError, ValueError):
            say(f"squeue: error: Invalid user: {text}\n")
    return found


def _known_nodes(asked: list[str]) -> set[str]:
    here = node_name()
    for text in asked:
        if text not in (here, "localhost", os.uname().nodename):
            raise Refusal(f"squeue: error: Invalid node name {text}")
    return {here}


def _seconds(parsed: Parsed) -> int | None:
    text = parsed.get("iterate")
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 9 and int(text) > 0):
        raise Refusal(f"squeue: error: --iterate={text}\n")
    return int(text)


def _parse_ids(text: str | None) -> list[tuple[int, str | None]]:
    """`7`, `7_3`: numbers, each with an index or None."""
    found: list[tuple[int, str | None]] = []
    for part in (text or "").split(","):
        if not part.strip():
            continue
        number, bar, index = part.strip().partition("_")
        number = str(number_of_sluid(number) or number)
        if not (number.isascii() and number.isdigit() and len(number) < 19):
            raise Refusal(f"squeue: error: Invalid job id: {part}")
        found.append((int(number), index if bar else None))
    return found


def _names_tasks(ids: list[tuple[int, str | None]]) -> bool:
    return any(index is not None for _, index in ids)


def _parse_steps(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _sorted(jobs: list[JobFacts], fields: str) -> list[JobFacts]:
    """By several letters, each with its sign, the last first: sorting keeps what is equal in its order."""
    at = len(fields) - 1
    while at >= 0:
        letter = fields[at]
        is_down = fields[at - 1 : at] == "-"
        at -= 2 if fields[at - 1 : at] in ("-", "+") else 1
        if letter == ",":
            continue
        if letter not in squeue_fields.LETTERS or letter in _UNSORTED:
            raise Refusal(f"squeue: error: Invalid sort specification: {letter}")
        jobs = sorted(jobs, key=lambda job, letter=letter: _sort_key(job, letter), reverse=is_down)  # type: ignore[misc]
    return jobs


def _sort_key(job: JobFacts, letter: str) -> tuple[float, str]:
    """A number where the field is one, else its text."""
    number = _sort_number(job, letter)
    return (number, "") if number is not None else (0.0, str(squeue_fields.LETTERS[letter][1](job)))


def _sort_number(job: JobFacts, letter: str) -> float | None:
    match letter:
        case "i" | "A" | "F":
            index = int(job.array_index) if job.array_index.isdigit() else 0
            return job.array_job_id + index / 1e9 if letter != "A" else float(job.number)
        case "t" | "T":
            return float(words.state_number(job.ours))
        case "p" | "Q":
            return float(job.priority)
        case "M":
            return job.elapsed_s
        case "l":
            return float("inf") if job.limit_s is None else float(job.limit_s)
        case "L":
            return float("inf") if job.limit_s is None else job.limit_s - job.elapsed_s
        case "S":
            return float("inf") if job.started_at is None else job.started_at
        case "e":
            return float("inf") if job.ended_at is None else job.ended_at
        case "V":
            return job.submitted_at
        case "c" | "C" | "G" | "U":
            return float({"c": job.cpus_per_task, "C": job.cpus, "G": job.gid, "U": job.uid}[letter])
        case "m":
            return float(job.mem_mib)
        case _:
            return None
