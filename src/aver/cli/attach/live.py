"""The live tree of one or more runs: reads the store in a thread of its own and draws what it finds.

The thread never decides anything and never holds anything up: whoever waits for the verdict only tells it
that something changed. What it reads is few rows, however many jobs a run has.
"""

from __future__ import annotations

import threading
import time

from aver.cli.attach.signals import kept_out
from aver.cli.attach.stream import SIGNALS
from aver.cli.output import ReaderLeft
from aver.cli.output.documents import RunFacts
from aver.cli.output.tree import Branch, Screen, tree_lines
from aver.cli.session import Session
from aver.client.documents import run_facts
from aver.errors import AverError
from aver.model.exit import ExitStatus
from aver.model.job import FlowSpec
from aver.model.states import State
from aver.render.verdict import short_words
from aver.report.graph.layers import picture
from aver.store.read.reader import Reader
from aver.store.read.rows import GroupRow, JobRow

MEMBERS = 4  # a matrix of so many is shown member by member
TICK_S = 1.0
REDRAW_S = 0.1
DEEPEST = 8  # deeper than this nothing is indented further
SHARE = 5  # reading takes at most this part of the time
JOIN_S = 5.0


class LiveTree:
    """What `watch` and `run` of a flow show on a terminal."""

    says_waits = True

    def __init__(self, session: Session, runs: list[int]) -> None:
        self._session = session
        self._runs = runs
        self._shapes = {run: _Shape(session.submission(run).flow) for run in runs}
        self._screen = Screen(session.output)
        self._changed = threading.Event()
        self._is_over = threading.Event()
        self._has_left: threading.Event | None = None  # set when the thread that draws has ended

    def begin(self) -> None:
        self._is_over.clear()
        has_left = threading.Event()
        with kept_out(*SIGNALS):
            threading.Thread(target=self._work, args=(has_left,), name="live-tree", daemon=True).start()
            self._has_left = has_left

    def __call__(self, changed: tuple[int, ...]) -> None:
        if self._has_left is None:
            self.begin()
        self._changed.set()

    def end(self) -> None:
        """Draw how it ended, and leave that on the screen. Cancelling twice is harmless."""
        if self._has_left is not None:
            self._is_over.set()
            self._changed.set()
            self._has_left.wait(JOIN_S)  # no join: Python takes a thread for ended when a signal interrupts that
            self._has_left = None

    def clear(self) -> None:
        """Take it away: somebody else wants to write."""
        self.end()
        try:
            self._screen.clear()
        except ReaderLeft:
            pass

    def _work(self, has_left: threading.Event) -> None:
        try:
            self._draw()
        finally:
            has_left.set()

    def _draw(self) -> None:
        try:
            reader = Reader.open(self._session.home.database)
            if reader is None:
                return
            with reader:
                self._loop(reader)
        except (AverError, ReaderLeft, OSError):
            return  # the verdict is waited for elsewhere, and said there

    def _loop(self, reader: Reader) -> None:
        found: list[tuple[RunFacts, list[Branch]]] = []
        self._changed.set()
        while True:
            is_last = self._is_over.is_set()
            began = time.monotonic()
            if self._changed.is_set() or is_last:
                self._changed.clear()
                found = [self._read(reader, run) for run in self._runs]
            output = self._session.output
            self._screen.draw(tree_lines(found, time.time(), output.width - 1, output.height - 1))
            if is_last:
                return
            spent = time.monotonic() - began
            self._is_over.wait(max(REDRAW_S, spent * SHARE))
            self._changed.wait(TICK_S)

    def _read(self, reader: Reader, run: int) -> tuple[RunFacts, list[Branch]]:
        row = reader.run(run)
        if row is None:
            raise AverError(f"run {run} is gone")
        groups: dict[tuple[int, int], list[GroupRow]] = {}
        for group in reader.groups(run):
            groups.setdefault((group.first_job, group.spec), []).append(group)
        order = self._shapes[run].order(row.first_job, list(groups))
        branches: list[Branch] = []
        for key, lead in order:
            branches += _branches(reader, groups[key], lead)
        return run_facts(row, reader.counts(row.id)), branches


class _Shape:
    """In which order the definitions of a flow are shown, each with the branches that lead to it."""

    def __init__(self, flow: FlowSpec) -> None:
        self._order: list[tuple[int, str]] = [(number, "") for number in range(len(flow.jobs))]
        shown = picture(flow)
        if shown.is_grouped:
            return
        needs: dict[int, list[int]] = {}
        for edge in shown.edges:
            needs.setdefault(edge.target, []).append(edge.source)
        children: dict[int, list[int]] = {}
        for number in range(len(shown.nodes)):
            above = needs.get(number, [])
            parent = max(above, key=lambda source: (shown.nodes[source].layer, -source), default=-1)
            children.setdefault(parent, []).append(number)
        self._order = []
        roots = children.get(-1, [])
        todo = [(number, "", number == roots[-1]) for number in reversed(roots)]
        while todo:
            number, bars, is_last = todo.pop()
            self._order.append((number, f"{bars}{'└─ ' if is_last else '├─ '}"))
            below = children.get(number, [])
            inner = f"{bars}{'   ' if is_last else '│  '}" if len(bars) < DEEPEST * 3 else bars
            todo += [(child, inner, child == below[-1]) for child in reversed(below)]

    def order(self, first_job: int, keys: list[tuple[int, int]]) -> list[tuple[tuple[int, int], str]]:
        """The flow's own first, then what was generated, as it came."""
        known = set(keys)
        own = [((first_job, spec), lead) for spec, lead in self._order if (first_job, spec) in known]
        return own + [(key, "+  ") for key in sorted(known - {key for key, _ in own})]


def _branches(reader: Reader, groups: list[GroupRow], lead: str) -> list[Branch]:
    total = sum(group.jobs for group in groups)
    if total == 1:
        return [_of_group(groups[0], lead)]
    if total <= MEMBERS:
        first = min(group.first for group in groups)
        rows = reader.jobs_by_id(range(first, first + total))
        running_first = sorted(rows, key=lambda number: (rows[number].state is State.PENDING, number))
        above = f"{lead[:-3]}├─ " if lead.endswith("└─ ") else lead  # of all but the last member
        return [_of_job(rows[number], lead if number == running_first[-1] else above) for number in running_first]
    starts = [group.started_at for group in groups if group.started_at is not None]
    ends = [group.ended_at for group in groups if group.ended_at is not None]
    is_over = all(group.state.is_settled for group in groups)
    took = max(ends) - min(starts) if is_over and starts and ends else None
    return [
        Branch(
            lead,
            groups[0].name.partition("[")[0],
            {group.state: group.jobs for group in groups},
            _failed_member(reader, groups),
            min(starts, default=None) if not is_over else None,
            took,
        )
    ]


def _failed_member(reader: Reader, groups: list[GroupRow]) -> str:
    """`(job 17 seed=3)`: the first member that failed, to be looked at; how many there are is said beside it."""
    failed = [group for group in groups if _has_failed(group.state)]
    job = reader.job(min(group.first for group in failed)) if failed else None
    return "" if job is None else f"(job {job.id} {job.name.partition('[')[2].rstrip(']')})"


def _has_failed(state: State) -> bool:
    return state.is_settled and state not in (State.COMPLETED, State.SKIPPED)


def _of_group(group: GroupRow, lead: str) -> Branch:
    detail = _detail(group.state, group.exit, group.reason, group.first)
    return Branch(lead, group.name, {group.state: 1}, detail, *_times(group.state, group.started_at, group.elapsed_s))


def _of_job(job: JobRow, lead: str) -> Branch:
    detail = _detail(job.state, job.exit, job.reason, job.id)
    return Branch(lead, job.name, {job.state: 1}, detail, *_times(job.state, job.started_at, job.elapsed_s))


def _times(state: State, started_at: float | None, elapsed_s: float | None) -> tuple[float | None, float | None]:
    if state.is_settled:
        return None, elapsed_s
    return (None if state is State.PENDING else started_at), None


def _detail(state: State, exit_status: ExitStatus | None, reason: str, job: int) -> str:
    number = f"(job {job})" if _has_failed(state) else ""
    return " ".join(filter(None, [short_words(state, exit_status, reason), number]))
