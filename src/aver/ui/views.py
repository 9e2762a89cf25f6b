"""The views: what each shows, read by the same code as the commands, in few rows however many there are."""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Sequence
from functools import cache

from starlette.datastructures import QueryParams

from aver.cli.commands.look.show import environment, job_shown
from aver.cli.commands.look.status import nobody, read_status
from aver.cli.commands.look.why import causes_of
from aver.cli.explanation import MachineUse, explain, waiting_words
from aver.cli.facts import files_of, jobs_facts
from aver.cli.output.documents import CoordinatorFacts
from aver.cli.output.report_documents import CauseList, UsageList
from aver.cli.session import Session
from aver.client.documents import run_facts
from aver.client.use.now import Meter, UseNow
from aver.config import load_config
from aver.engines.api import Capabilities
from aver.engines.local.capabilities import room_here
from aver.engines.registry import capabilities_of
from aver.errors import AverError, UnreachableError, UsageError
from aver.model import reasons
from aver.model.states import SETTLED, UNSETTLED, State
from aver.plan.packing import NOTHING, room_of
from aver.protocol.client import Client
from aver.render import verdict as render
from aver.report.causes import hint_of
from aver.report.measure import Rules
from aver.report.usage import run_use
from aver.spec.flow.file import collector_paused
from aver.store.read.job_list import Wanted, find_jobs
from aver.store.read.pages import ORDERS, JobQuery, RunQuery, job_page, run_page
from aver.store.read.reader import Reader
from aver.store.read.rows import JobRow, RunRow
from aver.ui import documents as doc
from aver.ui import query
from aver.ui.tallies import Memory, Tally, tally_of

WAITING = frozenset({State.PENDING, State.SUBMITTED})
SETTLING = frozenset({State.SETTLING})
ACTIVE = UNSETTLED - WAITING - SETTLING
BAD = SETTLED - {State.COMPLETED, State.SKIPPED}
MOST_ITEMS = 100  # of each list of the first view
MOST_EXPLAINED = 20  # waiting jobs whose reason is looked into
MOST_JOBS_TO_EXPLAIN = 2000  # of a run: to say which need a job waits for, all jobs of its run are read
MOST_ROWS = 500
DAY_S = 86400.0
SAMPLE_S = 1.0
MOST_GROUPS = 200

_TALLIES: Memory[Tally] = Memory()
_CAUSES: Memory[CauseList] = Memory(20)
_USES: Memory[UsageList] = Memory(20)


class _Sampler:
    """One measurement of what runs here for all pages, at most once a second unless another job runs."""

    def __init__(self) -> None:
        self._meter = Meter()
        self._lock = threading.Lock()
        self._at = 0.0
        self._asked: frozenset[int] = frozenset()
        self._found: dict[int, UseNow] = {}

    def measure(self, reader: Reader, jobs: Sequence[JobRow], now: float) -> dict[int, UseNow]:
        with self._lock:
            asked = frozenset(job.id for job in jobs)
            if not 0.0 <= now - self._at < SAMPLE_S or not asked <= self._asked:
                self._found = self._meter.measure(reader, jobs, now)
                self._at, self._asked = now, asked
            return self._found

    def of_job(self, reader: Reader, row: JobRow, now: float) -> dict[int, UseNow]:
        if row.state not in ACTIVE:
            return {}
        jobs = reader.listed(find_jobs(reader, Wanted(states=ACTIVE), MOST_ITEMS, now)[0])
        return self.measure(reader, jobs, now)


_SAMPLER = _Sampler()


# ---- now --------------------------------------------------------------------------------------------


def now_view(session: Session, _: QueryParams) -> doc.Now:
    now = time.time()
    since = now - DAY_S
    reader = session.reader
    facts = coordinator_facts(session)
    if reader is None:
        nothing = doc.Items((), 0)
        machine = _machine(reader, [], {})
        return doc.Now(now, facts, machine, nothing, nothing, nothing, nothing, since)
    wanted = (
        Wanted(states=ACTIVE), Wanted(states=WAITING, sort="number"), Wanted(states=SETTLING),
        Wanted(states=BAD, since=since),
    )  # fmt: skip
    lists = [find_jobs(reader, one, MOST_ITEMS, now) for one in wanted]
    rows = [reader.listed(numbers) for numbers, _ in lists]
    uses = _SAMPLER.measure(reader, rows[0], now)
    shown = [_items(session, jobs, total, uses) for jobs, (_, total) in zip(rows, lists, strict=True)]
    running, waiting, settling, failed = shown
    machine = _machine(reader, rows[0], uses)
    return doc.Now(now, facts, machine, running, waiting, settling, failed, since)


def coordinator_facts(session: Session) -> CoordinatorFacts:
    """Whether a coordinator answers. None is started by a look."""
    try:
        client = Client.connect(session.home, start=False)
    except UnreachableError:
        return nobody(session)
    try:
        return read_status(session, client, "runs")
    except UnreachableError:
        return nobody(session)
    finally:
        client.close()


def _items(session: Session, jobs: Sequence[JobRow], total: int, uses: dict[int, UseNow]) -> doc.Items:
    facts = jobs_facts(session, list(jobs))
    explained, machine = 0, MachineUse(session)
    items = []
    for row, fact in zip(jobs, facts, strict=True):
        is_looked_into = row.state is State.PENDING and explained < MOST_EXPLAINED
        explained += is_looked_into
        items.append(doc.Item(fact, note_of(session, row, machine if is_looked_into else None), uses.get(row.id)))
    return doc.Items(tuple(items), total - len(items))


def note_of(session: Session, row: JobRow, machine: MachineUse | None = None) -> str:
    """Why it waits or ended so, in words; never empty. With `machine` it is looked into what it waits for."""
    if machine is not None and (words := _waiting(session, row, machine)):
        return f"waiting {words}"
    if not row.state.is_settled and row.state is not State.PENDING:
        return render.unsettled_sentence(row.state, row.reason).rstrip(".").lower()
    words = render.short_words(row.state, row.exit, row.reason)
    if row.state is State.PENDING:
        return f"waiting: {reasons.PENDING_WORDS.get(row.reason) or words or 'for its turn'}"
    return words or row.state.value.lower().replace("_", " ")


def _waiting(session: Session, row: JobRow, machine: MachineUse) -> str:
    if row.reason == reasons.DEPENDENCY and session.run_row(row.run).jobs > MOST_JOBS_TO_EXPLAIN:
        return ""
    try:
        return waiting_words(session, row, machine=machine)
    except AverError:
        return ""


@cache
def _engine(name: str) -> Capabilities:
    return capabilities_of(name)


def _machine(reader: Reader | None, jobs: Sequence[JobRow], uses: dict[int, UseNow]) -> doc.MachineFacts:
    room, asked, here = room_here(load_config()), NOTHING, 0
    for job in jobs:
        attempts = reader.attempts(job.id) if reader is not None else []
        if attempts and not _engine(attempts[-1].engine).has_queue:
            asked, here = asked + room_of(attempts[-1].request), here + 1
    is_unknown = here > 0 and not uses
    cpus = [use.cpus_now for use in uses.values() if use.cpus_now is not None]
    return doc.MachineFacts(
        room.cpus,
        asked.millicpus / 1000,
        None if is_unknown or (uses and not cpus) else sum(cpus),
        room.mem_bytes,
        asked.mem_bytes,
        None if is_unknown else sum(use.memory_now_bytes for use in uses.values()),
        room.gpus,
        asked.gpus,
        here,
        len(uses),
    )


# ---- runs -------------------------------------------------------------------------------------------


def runs_view(session: Session, params: QueryParams) -> doc.RunPage:
    reader = session.reader
    before = query.cursor(params)
    asked = RunQuery(
        query.states(params), query.text(params, "text"), query.text(params, "folder"), _since(params),
        query.text(params, "engine"), None if before is None else before[1],
    )  # fmt: skip
    limit = query.number(params, "limit", 50, 1, 200)
    if reader is None:
        return doc.RunPage((), None)
    page = run_page(reader, asked, limit)
    rows = reader.runs_by_id(page.numbers)
    session.mask(page.numbers)
    shown = [_run_item(reader, rows[number]) for number in page.numbers if number in rows]
    return doc.RunPage(tuple(shown), query.cursor_text(page.next))


def _since(params: QueryParams) -> float | None:
    """`since`, or `within` so many seconds by the clock of this machine: the browser's may be another."""
    within = query.seconds(params, "within")
    return query.seconds(params, "since") if within is None else time.time() - within


def _run_item(reader: Reader, row: RunRow) -> doc.RunItem:
    found = tally(reader, row)
    return doc.RunItem(run_facts(row, found.counts), found.believed)


def tally(reader: Reader, row: RunRow) -> Tally:
    return _TALLIES.get(reader, row, lambda: tally_of(reader, row.id))


# ---- a run ------------------------------------------------------------------------------------------


def run_view(session: Session, params: QueryParams, run: int) -> doc.RunView:
    row = session.run_row(run)
    reader = session.found_reader(str(run))
    session.mask([run])
    sketch = reader.sketch(run)
    if sketch is None:
        raise AverError(f"run {run} has no submission in the store")
    found = tally(reader, row)
    origin, flow = sketch.origin, sketch.head().flow
    return doc.RunView(
        run_facts(row, found.counts),
        found.believed,
        run_sentence(row, found),
        origin.user,
        origin.host,
        origin.command,
        dict(flow.params),
        sketch.definitions,
        row.submitted_at,
        row.ended_at or time.time(),
    )


def run_sentence(row: RunRow, found: Tally) -> str:
    """How the run stands, in one sentence."""
    total = sum(found.counts.values())
    failed = sum(count for state, count in found.counts.items() if state in BAD)
    done = found.counts.get(State.COMPLETED, 0)
    skipped = found.counts.get(State.SKIPPED, 0)
    waits = sum(found.counts.get(state, 0) for state in UNSETTLED)
    parts = [f"{done} of {total} job{'s' if total != 1 else ''} completed"]
    parts += [f"{failed} failed"] if failed else []
    parts += [f"{skipped} skipped"] if skipped else []
    parts += [f"{waits} not settled yet"] if waits else []
    mark = f"; {found.believed} believed and not verified (*)" if found.believed else ""
    again = f" in round {row.round}" if row.round > 1 else ""
    return f"The run is {row.state.value}{again}: {', '.join(parts)}{mark}."


def jobs_view(session: Session, params: QueryParams, run: int) -> doc.JobPage:
    session.run_row(run)
    reader = session.found_reader(str(run))
    asked = JobQuery(
        run,
        query.states(params),
        query.text(params, "text"),
        query.group(params),
        query.word(params, "order", tuple(ORDERS), "state"),
        query.word(params, "turn", ("up", "down"), "up") == "down",
        query.cursor(params),
    )
    limit = query.number(params, "limit", 200, 1, MOST_ROWS)
    page = job_page(reader, asked, limit, time.time())
    rows = reader.listed(page.numbers)
    facts = jobs_facts(session, rows)
    shown = tuple(doc.JobItem(fact, note_of(session, row)) for row, fact in zip(rows, facts, strict=True))
    total = page.total or 0
    return doc.JobPage(shown, total, total - len(shown), query.cursor_text(page.next))


def causes_view(session: Session, _: QueryParams, run: int) -> CauseList:
    row = session.run_row(run)
    session.mask([run])

    def make() -> CauseList:
        with collector_paused():
            return causes_of(session, row)

    return _CAUSES.get(session.found_reader(str(run)), row, make)


def usage_view(session: Session, _: QueryParams, run: int) -> UsageList:
    row = session.run_row(run)
    reader = session.found_reader(str(run))
    session.mask([run])

    def make() -> UsageList:
        with collector_paused():
            use = run_use(reader.outcomes(run), reader.request, Rules())
        groups = use.groups[:MOST_GROUPS]
        left = use.group_count - len(groups)
        return UsageList(run, groups, (), left, use.never_ran, use.cpu_s, use.is_cpu_least, use.cpu_given_s)

    return _USES.get(reader, row, make)


# ---- a job ------------------------------------------------------------------------------------------


def job_row(session: Session, job: int) -> JobRow:
    row = session.found_reader(str(job)).job(job)
    if row is None:
        raise UsageError(f"no job {job}")
    return row


def job_view(session: Session, _: QueryParams, job: int) -> doc.JobView:
    row = job_row(session, job)
    shown = job_shown(session, row)
    command = " ".join(shown.command) if len(shown.command) == 1 else shlex.join(shown.command)
    uses = _SAMPLER.of_job(session.found_reader(""), row, time.time())
    return doc.JobView(
        shown,
        explain(session, row),
        _dependents(session, row),
        f"cd {shlex.quote(shown.folder)} && {command}",
        _hint(session, row),
        uses.get(job),
    )


def _dependents(session: Session, row: JobRow) -> tuple[str, ...] | None:
    """The jobs of its flow that name it, or its group, as a need."""
    flow = session.submission(row.run).flow
    if len(flow.jobs) > MOST_JOBS_TO_EXPLAIN:
        return None
    own = {row.name, session.spec(row).name}
    found = []
    for spec in flow.jobs:
        needs = [*spec.needs.all_of, *(need for group in spec.needs.any_of for need in group)]
        if any(need.job in own for need in needs):
            found.append(f"{row.run}/{spec.name}")
    return tuple(found)


def _hint(session: Session, row: JobRow) -> str | None:
    """The well-known line that its output ends with: a quotation, no evidence."""
    if row.state is not State.FAILED or not row.attempt:
        return None
    files = files_of(session, row, row.attempt)
    hint = hint_of([path for path in (files.stderr, files.stdout) if path is not None], session.output.masking)
    return None if hint is None else hint.line


def environment_view(session: Session, _: QueryParams, job: int) -> doc.EnvironmentView:
    row = job_row(session, job)
    session.mask([row.run])
    return doc.EnvironmentView(job, tuple(environment(session, row.run, row)))
