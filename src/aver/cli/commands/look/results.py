"""`aver results`: how each job and attempt of a run ended, failed ones first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import click

from aver.cli.address import Named
from aver.cli.logs import RunLogs
from aver.cli.options import ADDRESS, StateType, csv_option, json_option, listing_options, only_one, row_limit
from aver.cli.output.report_documents import ResultList
from aver.cli.output.report_views import RESULT_HEADS, result_cells, write_csv
from aver.cli.output.views import answer
from aver.cli.selection import find_run
from aver.cli.session import Session
from aver.errors import UsageError
from aver.model.record import replace
from aver.model.states import State
from aver.plan.address import parse_address
from aver.report.results import Line, Result, is_failed, lines_of, result_of, selected, sums_of, sums_of_totals
from aver.report.tails import last_lines
from aver.spec.flow.file import collector_paused
from aver.store.read.large_run import first_page
from aver.store.read.rows import RunRow
from aver.store.read.step_warnings import step_warnings_of_run

LOG_LINES = 20
LOG_BYTES = 8192
LOGS = 1000  # no more of them are read
LARGE = 5000  # jobs of a run of which no more rows are read than are shown


@click.command("results")
@click.argument("run", metavar="[RUN]", required=False, type=ADDRESS)
@click.option(
    "--state",
    "-s",
    "states",
    type=StateType(),
    multiple=True,
    metavar="STATE",
    help="Show only attempts in this state.",
)
@click.option(
    "--pattern", "-p", metavar="GLOB", help="Show only jobs whose name matches, such as 'train*' or 'train[seed=2]'."
)
@click.option("--failed", "-f", is_flag=True, help="Show only jobs that did not complete.")
@click.option("--log", is_flag=True, help="Show the end of each failed job's output.")
@listing_options
@csv_option
@json_option
def command(
    run: str | None,
    states: tuple[State, ...],
    pattern: str | None,
    failed: bool,
    log: bool,
    limit: int | None,
    show_all: bool,
    as_csv: bool,
    as_json: bool,
) -> None:
    """Show how each job and attempt of a run ended, failed ones first.

    One row for each attempt: state, exit (code:signal), return code (as a shell would show it; 137 for
    OUT_OF_MEMORY, 152 for TIMEOUT), reason, time, cpu time, peak memory and node. ? is unknown, -
    is none, ≥ is at least. The last line sums up. Without RUN: the newest run.

    \b
    Examples:
      aver results 3
      aver results 3 --failed --log
      aver results 3 --pattern 'train*' --state out_of_memory --state timeout
      aver results 3 --csv > results.csv
    """
    only_one(as_csv, as_json)
    session = Session()
    session.refresh()
    with collector_paused():
        chosen = find_run(session, run)
        most = None if limit is None and (as_csv or as_json) else row_limit(limit, show_all)
        is_plain = not (states or pattern or failed or log or as_csv) and chosen.jobs is None
        page = _first_page(session, chosen.run, most) if is_plain and most is not None else None
        if page is not None:
            answer(session.output, page, as_json)
            return
        rows = session.found_reader("").outcomes(chosen.run.id)
        session.mask([chosen.run.id])
        lines = lines_of(rows if chosen.jobs is None else [row for row in rows if row.job in chosen.jobs])
        lines = selected(lines, frozenset(states), failed, _fits(chosen.run.id, pattern))
        logs = RunLogs(session, chosen.run.id, rows) if log else None
        warned = step_warnings_of_run(session.found_reader(""), chosen.run.id)
        facts = tuple(_facts(session, shown, logs, warned) for shown in _with_logs(lines[:most], log))
        if as_csv:
            write_csv(session.output, RESULT_HEADS, map(result_cells, facts))
            return
        if log and (unread := _count_unread(lines[:most])):
            session.output.note(
                f"the logs of {unread} more failed jobs are not shown: choose with --pattern or --state"
            )
        left_out = len(lines) - len(facts)
        run_row = chosen.run
        document = ResultList(run_row.id, run_row.state.value, facts, left_out, sums_of(lines), run_row.unselected)
        answer(session.output, document, as_json)


def _first_page(session: Session, run: RunRow, most: int) -> ResultList | None:
    """The first rows of a run with very many jobs; None: all of its rows are to be read."""
    reader = session.found_reader("")
    page = first_page(reader, run.id, run.jobs, most) if run.jobs > LARGE else None
    if page is None:
        return None
    session.mask([run.id])
    lines = lines_of(page.rows)
    facts = tuple(result_of(line) for line in lines[:most])
    in_order = dict.fromkeys((*(State(word) for word in sums_of(lines).counts), *page.counts))  # as the rows have them
    sums = sums_of_totals(page.totals, run.jobs, {one.value: page.counts[one] for one in in_order})
    return ResultList(run.id, run.state.value, facts, page.lines - len(facts), sums, run.unselected)


def _fits(run: int, pattern: str | None) -> Callable[[str], bool] | None:
    if pattern is None:
        return None
    try:
        parse_address(pattern)
    except ValueError as error:
        raise UsageError(str(error)) from None
    return Named(run, pattern).matches


def _with_logs(lines: Sequence[Line], log: bool) -> list[tuple[Line, bool]]:
    """Each line, and whether the end of its log is wanted: the newest attempt of a failed job, up to a bound."""
    left = LOGS if log else 0
    found = []
    for line in lines:
        wants = left > 0 and _has_log(line)
        left -= wants
        found.append((line, wants))
    return found


def _has_log(line: Line) -> bool:
    return line.is_newest and is_failed(line) and line.row.started_at is not None


def _count_unread(lines: Sequence[Line]) -> int:
    return max(0, sum(map(_has_log, lines)) - LOGS)


def _facts(
    session: Session, shown: tuple[Line, bool], logs: RunLogs | None, warned: Mapping[int, Sequence[str]]
) -> Result:
    line, wants_log = shown
    one = result_of(line, warned)
    if not wants_log or logs is None:
        return one
    data = b"\n".join(
        part
        for path in reversed(logs.paths(one.job, one.attempt or 1))
        for part in last_lines(path, LOG_LINES, LOG_BYTES)
    )
    return replace(one, log=session.output.masking.whole(data).decode("utf-8", "replace"))
