"""What a run looks like as a whole: the graph of its groups, the grid of a matrix, and two runs side by side."""

from __future__ import annotations

from starlette.datastructures import QueryParams

from aver.cli.session import Session
from aver.client.documents import run_facts
from aver.errors import UsageError
from aver.judge.run import WORST_FIRST
from aver.model.record import replace
from aver.render.verdict import believed_text
from aver.report.graph.layers import overview
from aver.report.html.graph import MOST_NODES, NODE_HEIGHT, NODE_WIDTH, places
from aver.store.columns import Outcome
from aver.store.read.pages import JobQuery, job_page
from aver.ui import documents as doc
from aver.ui import query
from aver.ui.views import tally

MOST_CELLS = 2000
MOST_DIFFERENCES = 500


def groups_view(session: Session, _: QueryParams, run: int) -> doc.GroupView:
    """The graph: at most 80 nodes, each with its jobs by state."""
    row = session.run_row(run)
    reader = session.found_reader(str(run))
    session.mask([run])
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
        at = node_of.get(offsets.get(group.first_job, 0) + group.spec, 0)
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
    rows = reader.listed(page.numbers)
    cells = tuple(
        doc.Cell(row.id, row.name, row.state.value, believed_text(row.state, row.verified) != row.state.value)
        for row in rows
    )
    return doc.Grid(cells, (page.total or 0) - len(cells))


def compare_view(session: Session, params: QueryParams) -> doc.Comparison:
    """Two runs job by job, by name; only what differs is listed."""
    runs = [query.number(params, name, 0) for name in ("first", "second")]
    rows = [session.run_row(run) for run in runs]
    session.mask(runs)
    reader = session.found_reader("")
    first, second = ({row.name: row for row in reader.outcomes(run)} for run in runs)  # the newest attempt is last
    moves: dict[str, int] = {}
    found = []
    for name in first.keys() | second.keys():
        one, other = first.get(name), second.get(name)
        move = f"{'-' if one is None else one.job_state} {'-' if other is None else other.job_state}"
        moves[move] = moves.get(move, 0) + 1
        found.append(_difference(name, one, other))
    found.sort(key=_rank)
    facts = [run_facts(row, tally(reader, row.id).counts) for row in rows]
    return doc.Comparison(
        facts[0], facts[1], dict(sorted(moves.items())), tuple(found[:MOST_DIFFERENCES]),
        max(0, len(found) - MOST_DIFFERENCES),
    )  # fmt: skip


def _difference(name: str, one: Outcome | None, other: Outcome | None) -> doc.Difference:
    return doc.Difference(
        name,
        None if one is None else one.job,
        None if other is None else other.job,
        None if one is None else one.job_state,
        None if other is None else other.job_state,
        None if one is None else one.elapsed_s,
        None if other is None else other.elapsed_s,
        None if one is None else one.peak_bytes,
        None if other is None else other.peak_bytes,
    )


def _rank(one: doc.Difference) -> tuple[object, ...]:
    """Other verdicts first, the worst of the second run first; then by the change of time."""
    is_same = one.first_state == one.second_state
    states = [state.value for state in WORST_FIRST]
    worst = states.index(one.second_state) if one.second_state in states else len(states)
    change = abs((one.second_s or 0.0) - (one.first_s or 0.0))
    return is_same, worst, -change, one.name
