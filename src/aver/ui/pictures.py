"""What a run looks like as a whole: the graph of its groups, the grid of a matrix, and two runs side by side."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from starlette.datastructures import QueryParams

from aver.cli.session import Session
from aver.client.documents import run_facts
from aver.errors import UsageError
from aver.judge.run import WORST_FIRST
from aver.model.job import JobSpec
from aver.model.record import replace
from aver.plan.matrix import Member, declared_names, members
from aver.render.verdict import believed_text
from aver.report.graph.layers import overview
from aver.report.html.graph import MOST_NODES, NODE_HEIGHT, NODE_WIDTH, places
from aver.store.read.pages import JobQuery, job_page
from aver.store.read.rows import RunRow
from aver.ui import documents as doc
from aver.ui import query
from aver.ui.tallies import Memory
from aver.ui.views import tally

MOST_CELLS = 2000
MOST_DIFFERENCES = 500

_Times = tuple[int | None, str | None, float | None]
_NOWHERE: _Times = (None, None, None)
_RANKS = {state.value: rank for rank, state in enumerate(WORST_FIRST)}
_GROUPS: Memory[doc.GroupView] = Memory(20)


def groups_view(session: Session, _: QueryParams, run: int) -> doc.GroupView:
    """The graph: at most 80 nodes, each with its jobs by state."""
    row = session.run_row(run)
    session.mask([run])
    return _GROUPS.get(session.found_reader(str(run)), row, lambda: _groups(session, row))


def _groups(session: Session, row: RunRow) -> doc.GroupView:
    run, reader = row.id, session.found_reader(str(row.id))
    flow = session.submission(run).flow
    offsets, specs = {row.first_job: 0}, list(flow.jobs)
    for batch in reader.generated(run):
        offsets[batch.first_job] = len(specs)
        specs += batch.flow.jobs
    made_by = {offset: first for first, offset in offsets.items()}
    picture = overview(replace(flow, jobs=tuple(specs)), MOST_NODES)
    node_of = {spec: at for at, node in enumerate(picture.nodes) for spec in node.specs}
    counts: list[dict[str, int]] = [{} for _ in picture.nodes]
    first: list[int] = [0 for _ in picture.nodes]
    for group in reader.groups(run):
        at = node_of.get(offsets[group.first_job] + group.spec) if group.first_job in offsets else None
        if at is None:
            continue  # added since the definitions were read: the event that added it has the graph made again
        counts[at][group.state.value] = counts[at].get(group.state.value, 0) + group.jobs
        first[at] = first[at] or group.first
    place = places(picture)
    nodes = []
    for at, node in enumerate(picture.nodes):
        first_job, spec = _definition(node.specs, made_by) or (None, None)
        x, y = place[at]
        only = first[at] if sum(counts[at].values()) == 1 else None
        nodes.append(doc.GroupNode(node.label, x, y, counts[at], first_job, spec, only))
    edges = tuple(doc.GroupEdge(one.source, one.target, one.label, one.is_alternative) for one in picture.edges)
    width = max((x for x, _ in place.values()), default=0) + NODE_WIDTH + 8
    height = max((y for _, y in place.values()), default=0) + NODE_HEIGHT + 8
    return doc.GroupView(width, height, NODE_WIDTH, NODE_HEIGHT, tuple(nodes), edges, picture.is_grouped)


def _definition(specs: tuple[int, ...], made_by: dict[int, int]) -> tuple[int, int] | None:
    """The first job and the place of the only definition of a node."""
    if len(specs) != 1:
        return None
    offset = max(one for one in made_by if one <= specs[0])
    return made_by[offset], specs[0] - offset


def grid_view(session: Session, params: QueryParams, run: int) -> doc.Grid:
    """The members of the group, in their order."""
    session.run_row(run)
    reader = session.found_reader(str(run))
    chosen = query.group(params)
    if chosen is None:
        raise UsageError("group: which matrix")
    page = job_page(reader, JobQuery(run, group=chosen), MOST_CELLS, 0.0)
    session.mask([run])
    spec = _spec_of(session, run, chosen)
    axes = () if spec is None else tuple(declared_names(spec))
    all_members = () if spec is None else members(spec)
    cells = tuple(
        doc.Cell(
            row.id, row.name, row.state.value, believed_text(row.state, row.verified) != row.state.value,
            _values(all_members[row.member], axes) if row.member < len(all_members) else (),
        )
        for row in reader.listed(page.numbers)
    )  # fmt: skip
    return doc.Grid(axes, cells, (page.total or 0) - len(cells))


def _spec_of(session: Session, run: int, group: tuple[int, int]) -> JobSpec | None:
    """The definition of a group; None if the run has none of that number."""
    first_job, number = group
    flows = {session.run_row(run).first_job: session.submission(run).flow}
    flows |= {batch.first_job: batch.flow for batch in session.found_reader(str(run)).generated(run)}
    jobs = flows[first_job].jobs if first_job in flows else ()
    return jobs[number] if number < len(jobs) else None


def _values(member: Member, axes: Sequence[str]) -> tuple[str, ...]:
    found = dict(member.values)
    return tuple(found.get(axis, "") for axis in axes)


def compare_view(session: Session, params: QueryParams) -> doc.Comparison:
    """Two runs job by job, by name; only what differs is listed."""
    runs = [query.number(params, name, 0) for name in ("first", "second")]
    rows = [session.run_row(run) for run in runs]
    session.mask(runs)
    reader = session.found_reader("")
    first, second = (reader.job_times(run) for run in runs)
    moves: dict[str, int] = {}
    found = []
    for name in first.keys() | second.keys():
        one, other = first.get(name, _NOWHERE), second.get(name, _NOWHERE)
        move = f"{one[1] or '-'} {other[1] or '-'}"
        moves[move] = moves.get(move, 0) + 1
        found.append((name, one, other))
    shown = heapq.nsmallest(MOST_DIFFERENCES, found, key=_rank)
    peaks = reader.peaks(job for _, one, other in shown for job in (one[0], other[0]) if job is not None)
    facts = [run_facts(row, tally(reader, row).counts) for row in rows]
    differences = tuple(
        doc.Difference(
            name, one[0], other[0], one[1], other[1], one[2], other[2], peaks.get(one[0] or 0), peaks.get(other[0] or 0)
        )
        for name, one, other in shown
    )  # fmt: skip
    return doc.Comparison(facts[0], facts[1], dict(sorted(moves.items())), differences, len(found) - len(shown))


def _rank(pair: tuple[str, _Times, _Times]) -> tuple[object, ...]:
    """Other verdicts first, the worst of the second run first; then by the change of time."""
    name, one, other = pair
    worst = _RANKS.get(other[1] or "", len(_RANKS))
    return one[1] == other[1], worst, -abs((other[2] or 0.0) - (one[2] or 0.0)), name
