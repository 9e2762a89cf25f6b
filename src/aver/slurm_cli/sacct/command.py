"""sacct: what was, with its exits and what it used, from the store. Writes nothing but its output.

Exit codes are whole (137:0, where Slurm up to 25.05 prints 9:0), and a job's own row has the exit that scontrol shows.
"""

from __future__ import annotations

import os

from aver.fast_start import TYPE_CHECKING
from aver.model.slurm_names import number_of_sluid
from aver.slurm_cli import words
from aver.slurm_cli.facts import Book, JobFacts, gathered, say_warnings
from aver.slurm_cli.output import say, show
from aver.slurm_cli.refusal import Refusal, guarded
from aver.slurm_cli.sacct import fields as sacct_fields
from aver.slurm_cli.sacct.fields import Row, Units
from aver.slurm_cli.start import opened
from aver.slurm_cli.table.columns import Column, Layout
from aver.spec.clock import midnight, parse_past
from aver.spec.getopt import Parsed, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

OPTIONS = Table(
    flags="allclusters:L allocations:X allusers:a array batch-script:B brief:b completion:c duplicates:D env-vars "
    "expand-patterns federation help:h helpformat:e local long:l noconvert noheader:n parsable:p parsable2:P "
    "truncate:T usage:U use-local-uid verbose:v version:V",
    values="accounts:A associations:x clusters:M constraints:C delimiter endtime:E file:f flags:F format:o gid:g "
    "jobs:j name ncpus:I nnodes:i nodelist:N partition:r qos:q reason:R starttime:S state:s timelimit-max:K "
    "timelimit-min:k uid:u units wckeys:W",
    maybe="json whole-hetjob yaml",
    aliases="accounts=accounts group=gid user=uid node=nodelist cluster=clusters helpformat=helpformat",
)
USAGE = "Usage: sacct [options]\n\tUse --help for help\n"
NOT_SERVED = ("associations", "completion", "env-vars", "file", "flags")
WITHOUT_MEANING = (
    "allclusters", "clusters", "federation", "local", "use-local-uid", "verbose", "whole-hetjob",
)  # fmt: skip
_TIMES = """\
    valid start/end time formats are...
                   HH:MM[:SS] [AM|PM], MMDD[YY] or MM/DD[/YY], YYYY-MM-DD[THH:MM[:SS]],
                   now[{+|-}count[seconds(default)|minutes|hours|days|weeks]]
"""
_RULE = "-" * 80
_REQUEUES = ("requeue", "requeuehold", "requeuespecial")


def main(argv: Sequence[str]) -> int:
    return guarded("sacct", _sacct, argv)


def _help() -> str:
    from aver.slurm_cli.help import listing

    return listing(OPTIONS, "sacct [<OPTION>]", WITHOUT_MEANING, NOT_SERVED) + _TIMES


def _sacct(argv: Sequence[str]) -> int:
    parsed = opened("sacct", OPTIONS, argv, "", help=_help, usage=USAGE, helpformat=sacct_fields.help_text)
    if parsed is None:
        return 0
    for name in NOT_SERVED:
        if parsed.has(name):
            raise Refusal(f"sacct: error: --{name} is not supported by aver")
    if parsed.operands:
        raise Refusal(
            "sacct: error: Unknown arguments:" + "".join(f"\nsacct: error:  {one}" for one in parsed.operands)
        )
    return _list(parsed, argv)


def _list(parsed: Parsed, argv: Sequence[str]) -> int:
    form = None
    if parsed.has("json") or parsed.has("yaml"):
        from aver.slurm_cli.documents import form_of

        form = form_of(parsed, "sacct")
    fields = _fields(parsed)
    units = _units(parsed)
    asked = _Asked(parsed)
    book = Book.open()
    window = _Window(parsed, book.now, bool(asked.ids), asked.states is not None)
    jobs = asked.find(book, window)
    for job in jobs:
        job.book.expands = parsed.has("expand-patterns")
    if parsed.has("batch-script"):
        show("".join(f"Batch Script for {job.id_text}\n{_RULE}\n{book.masked(job.script or 'NONE')}\n" for job in jobs))
        return 0
    rows = _rows(book, jobs, asked, units, has_steps=not parsed.has("allocations"))
    if parsed.has("truncate"):
        for row in rows:
            row.earliest, row.latest = window.start, window.end
    if form is not None:
        from aver.slurm_cli.documents import publish
        from aver.slurm_cli.sacct.document import accounts_document

        publish(form, accounts_document(rows, form.shape), list(argv), "sacct")
        return 0
    layout = Layout(parsed)
    show(layout.header(fields) + layout.lines(fields, rows))
    say_warnings("sacct", jobs)
    return 0


def _rows(book: Book, jobs: list[JobFacts], asked: _Asked, units: Units, *, has_steps: bool) -> list[Row]:
    book.read_steps(jobs)
    rows: list[Row] = []
    for job in jobs:
        steps = job.steps or []
        own = Row(job, "", None, units)
        own.steps = steps
        candidates = [own]
        if has_steps and job.has_run:
            candidates += [Row(job, "batch", None, units)] if job.is_batch else []
            candidates += [Row(job, str(step.step), step, units) for step in steps]
        if job.is_earlier:
            shares = [step.derived for step in steps if step.ended_at is not None]
            job.derived = None if None in shares else max([0, *(share for share in shares if share is not None)])
        rows += [row for row in candidates if asked.wants(job, row.label)]
    return rows


class _Window:
    """The time that is looked at. Without a start: midnight, or all with -j, or now with -s."""

    def __init__(self, parsed: Parsed, now: float, has_jobs: bool, has_states: bool) -> None:
        start, end = parsed.get("starttime"), parsed.get("endtime")
        usual = 0.0 if has_jobs else now if has_states else midnight(now)
        self.start = usual if start is None else _time(start, now)
        self.end = now if end is None else _time(end, now)
        if self.start > self.end:
            from aver.slurm_cli.texts import moment

            raise Refusal(
                f"sacct: error: Start time ({moment(self.start)}) requested is after end time ({moment(self.end)})."
            )


def _time(text: str, now: float) -> float:
    try:
        return parse_past(text, now)
    except ValueError as error:
        raise Refusal(str(error)) from None


class _Asked:
    """Which jobs and rows are asked for."""

    def __init__(self, parsed: Parsed) -> None:
        def listed(name: str) -> list[str] | None:
            values = parsed.all(name)
            return [part.strip() for part in ",".join(values).split(",") if part.strip()] if values else None

        self.ids = _parse_ids(listed("jobs") or [])
        self.states = _states(listed("state"))
        self.uids = None if parsed.has("allusers") else _uids(listed("uid"))
        self.gids = _gids(listed("gid"))
        self.duplicates = parsed.has("duplicates")
        names = ("accounts", "partition", "qos", "name", "constraints", "reason", "wckeys")
        self.texts = {name: listed(name) for name in names}
        self.nodes = listed("nodelist")
        self.is_spread = parsed.has("array")
        self.limits = (_limit(parsed, "timelimit-min"), _limit(parsed, "timelimit-max"))
        self.cpus = _range(parsed.get("ncpus"), "ncpus")
        self.node_count = _range(parsed.get("nnodes"), "nnodes")

    def find(self, book: Book, window: _Window) -> list[JobFacts]:
        if self.ids:
            jobs = book.numbered({number for number, _, _ in self.ids})
            jobs = [job for job in jobs if any(_is_named(job, one) for one in self.ids)]
        else:
            jobs = [job for job in book.between(window.start, window.end) if _is_eligible(job, window)]
        if any(not job.is_settled for job in jobs) and book.refresh():
            return self.find(Book.open(), window)
        if self.duplicates:
            jobs = _with_attempts(book, jobs)
        jobs = [job for job in jobs if self._keeps(job) and self._was(job, window)]
        jobs.sort(key=_order)
        listed = jobs if self.is_spread or any(index for _, index, _ in self.ids) else gathered(jobs)
        _number_arrays(jobs)
        return listed

    def wants(self, job: JobFacts, label: str) -> bool:
        """Whether a row is asked for: all of a job's, or of the steps that were named."""
        if not self.ids:
            return True
        return any(_is_named(job, one) and one[2] in ("", label) for one in self.ids)

    def _keeps(self, job: JobFacts) -> bool:
        if self.uids is not None and job.uid not in self.uids:
            return False
        if self.gids is not None and job.gid not in self.gids:
            return False
        if self.nodes is not None and not ({job.node, "localhost" if job.node else ""} & set(self.nodes) - {""}):
            return False
        if not self._has_limit(job):
            return False
        if not self.cpus[0] <= job.cpus <= self.cpus[1] or not self.node_count[0] <= 1 <= self.node_count[1]:
            return False
        values = {
            "accounts": job.account, "partition": job.partition, "qos": job.qos, "name": job.name,
            "constraints": job.named.get("features", ""), "reason": job.reason, "wckeys": job.named.get("wckey", ""),
        }  # fmt: skip
        return all(asked is None or values[name] in asked for name, asked in self.texts.items())

    def _has_limit(self, job: JobFacts) -> bool:
        """-k alone is that very time limit; with -K it is a range."""
        least, most = self.limits
        if least is None:
            return True
        limit = float("inf") if job.limit_s is None else float(job.limit_s)
        return limit == least if most is None else least <= limit <= most

    def _was(self, job: JobFacts, window: _Window) -> bool:
        """Whether it was in one of the states during the window."""
        if self.states is None:
            return True
        started, ended = job.row.started_at, job.row.ended_at if job.is_settled else None
        for state in self.states:
            if state == "PENDING":
                eligible = job.eligible_at
                until = job.book.now if job.is_pending else started or ended
                if eligible is not None and eligible <= window.end and (until is None or until >= window.start):
                    return True
            elif state in ("RUNNING", "SUSPENDED"):
                is_it = job.state == state if state == "SUSPENDED" else job.has_run
                if is_it and started is not None and started <= window.end and (ended is None or ended >= window.start):
                    return True
            elif job.state == state and (ended is None or window.start <= ended <= window.end):
                return True
        return False


def _number_arrays(jobs: list[JobFacts]) -> None:
    """Let a task of each array that is listed whole have the array's own number, as one has in Slurm.

    Clients that know only this number take that task's state for the array's. So it is one that is not settled, or
    else the one that ended worst; in Slurm it is the last that starts.
    """
    arrays: dict[int, list[JobFacts]] = {}
    for job in jobs:
        if job.array_job is not None and not job.is_earlier:
            arrays.setdefault(job.array_job, []).append(job)
    for tasks in arrays.values():
        if len(tasks) == tasks[0].array_size and not any(one.rest for one in tasks):
            from aver.judge.run import WORST_FIRST  # few ask for arrays

            badness = {state.name: len(WORST_FIRST) - place for place, state in enumerate(WORST_FIRST)}
            max(tasks, key=lambda one: (not one.is_settled, badness.get(one.ours, 0))).stands_for_array = True


def _is_eligible(job: JobFacts, window: _Window) -> bool:
    return job.eligible_at is not None and job.eligible_at <= window.end


def _with_attempts(book: Book, jobs: list[JobFacts]) -> list[JobFacts]:
    """Each job with its earlier attempts before it."""
    found = list(jobs)
    begun_again = {job.row.id: job for job in jobs if job.row.newest > 1 or job.restarts or _requeues(job)}
    attempts = book.attempts(begun_again)
    for place, old in enumerate(attempts):
        now = begun_again[old.row.id]
        after = attempts[place + 1] if place + 1 < len(attempts) else None
        until = after.row.planned_at if after is not None and after.row.id == old.row.id else None
        old.is_requeued = _was_requeued(old, until)
        if (old.row.attempt or 0) < now.row.newest or (now.is_pending and old.is_settled) or old.is_requeued:
            found.append(old)
    return found


def _requeues(job: JobFacts) -> list[float]:
    """When people asked that it begins again."""
    return [at for at, asked in job.book.asked(job.row.run, job.row.id) if asked.get("what") in _REQUEUES]


def _was_requeued(old: JobFacts, until: float | None) -> bool:
    """Whether a requeue was asked for between this attempt and the next, and no cancel while it was being ended."""
    planned, ended = old.row.planned_at, old.row.ended_at
    if planned is None or ended is None:
        return False
    asked = [at for at in _requeues(old) if planned <= at and (until is None or at <= until)]
    everything = old.book.asked(old.row.run, old.row.id)
    return bool(asked) and not any(one.get("what") == "cancel" and planned <= at <= ended for at, one in everything)


def _order(job: JobFacts) -> tuple[int, int, bool, float]:
    index = int(job.array_index) if job.array_index.isdigit() else 0
    return (job.array_job_id, index, not job.is_earlier, float(job.row.attempt or 0))


def _is_named(job: JobFacts, one: tuple[int, str, str]) -> bool:
    number, index, _ = one
    return number in (job.row.id, job.row.run) and index in ("", job.array_index)


def _parse_ids(parts: list[str]) -> list[tuple[int, str, str]]:
    """`7`, `7_3`, `7.0`, `7_3.batch`: number, index and step; empty is all of them."""
    found = []
    for part in parts:
        job, dot, step = part.partition(".")
        number, bar, index = job.partition("_")
        number = str(number_of_sluid(number) or number)
        if not _is_number(number):
            raise Refusal(f"sacct: fatal: Bad job/step specified: {part}")
        if bar and not _is_number(index):
            raise Refusal(f"sacct: fatal: Bad job array element specified: {number}")
        if dot and step not in ("batch", "extern", "interactive") and not _is_number(step):
            raise Refusal(f"sacct: fatal: Bad step specified: {job}")
        found.append((int(number), str(int(index)) if bar else "", step))
    return found


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19


def _states(parts: list[str] | None) -> set[str] | None:
    if parts is None:
        return None
    found = set()
    for text in parts:
        state = words.parse_state(text)
        if state is None:
            raise Refusal(f"sacct: fatal: unrecognized job state value '{text}'")
        found.add(state)
    return found


def _uids(parts: list[str] | None) -> set[int] | None:
    if parts is None:
        return None
    import pwd

    found = set()
    for text in parts:
        try:
            found.add(int(text) if _is_number(text) else pwd.getpwnam(text).pw_uid)
        except (KeyError, ValueError):
            raise Refusal(f"sacct: error: Invalid user id: {text}") from None
    return found


def _gids(parts: list[str] | None) -> set[int] | None:
    if parts is None:
        return None
    import grp

    found = set()
    for text in parts:
        try:
            found.add(int(text) if _is_number(text) else grp.getgrnam(text).gr_gid)
        except (KeyError, ValueError):
            raise Refusal(f"sacct: error: Invalid group id: {text}") from None
    return found


def _range(text: str | None, name: str) -> tuple[int, int]:
    if text is None:
        return (0, 1 << 30)
    least, dash, most = text.partition("-")
    if not _is_number(least) or (dash and not _is_number(most)):
        raise Refusal(f"sacct: error: Invalid {name} range: {text}")
    return (int(least), int(most) if dash else int(least))


def _limit(parsed: Parsed, name: str) -> float | None:
    """Seconds, in the forms of a time limit."""
    text = parsed.get(name)
    if text is None:
        return None
    from aver.model.units import parse_time

    try:
        seconds = parse_time(text)
    except ValueError:
        raise Refusal(f"sacct: fatal: Invalid time limit specified: {text}") from None
    return float("inf") if seconds is None else float(seconds)


def _fields(parsed: Parsed) -> list[Column]:
    asked: list[str] = []
    for name, value in parsed.given:
        asked += {"format": [value or ""], "brief": [sacct_fields.BRIEF], "long": [sacct_fields.LONG]}.get(name, [])
    try:
        return sacct_fields.parse_fields(
            ",".join(asked) if asked else os.environ.get("SACCT_FORMAT") or sacct_fields.DEFAULT
        )
    except ValueError as error:
        raise Refusal(f'sacct: error: Invalid field requested: "{error}"') from None


def _units(parsed: Parsed) -> Units:
    wanted = parsed.get("units")
    if wanted is not None and wanted.upper() not in tuple("KMGTP"):
        say(f"sacct: error: Invalid unit type '{wanted}'. Possible options are 'KMGTP'")
        raise Refusal("sacct: fatal: Invalid unit type")
    return Units(None if wanted is None else wanted.upper(), exact=not parsed.has("noconvert"))
