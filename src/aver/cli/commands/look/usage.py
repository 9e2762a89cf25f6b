"""`aver usage`: what was asked for and used; with --correct better requests are written into the flow."""

from __future__ import annotations

import os
import time
from typing import Any

import click

from aver.cli.correction import change_facts, correct_run, correction_options, rules_of
from aver.cli.options import ADDRESS, csv_option, json_option, listing_options, only_one, row_limit
from aver.cli.output.report_documents import Corrected, UsageList
from aver.cli.output.report_views import (
    GROUP_USE_HEADS,
    JOB_USE_HEADS,
    group_use_cells,
    job_use_cells,
    write_csv,
)
from aver.cli.output.views import answer
from aver.cli.selection import find_run, whole_run
from aver.cli.session import Session
from aver.errors import UsageError
from aver.report.correction.run import write_file
from aver.report.measure import Rules
from aver.report.usage import run_use
from aver.spec.flow.file import collector_paused


@click.command("usage")
@click.argument("run", metavar="[RUN]", required=False, type=ADDRESS)
@click.option("--by", type=click.Choice(["job", "group"]), help="Show only jobs or only groups (default for CSV: job).")
@listing_options
@csv_option
@json_option
@click.option("--correct", is_flag=True, help="Write corrected requests into the flow's file, and show the diff.")
@click.option("--dry-run", is_flag=True, help="With --correct: show the diff; change nothing.")
@correction_options
def command(
    run: str | None,
    by: str | None,
    limit: int | None,
    show_all: bool,
    as_csv: bool,
    as_json: bool,
    correct: bool,
    dry_run: bool,
    **options: Any,
) -> None:
    """Compare requested and used resources; --correct writes better requests into the flow.

    Memory, CPUs and time of each job's newest attempt, by job and by group (all members of a
    matrix): requested, used, and the share. MARKS: over, a limit was reached; under, a much smaller
    request would be enough. BY is the source: the witness, or sacct if there was no witness.
    ? is unknown, ≥ is at least. Without RUN: the newest run.

    --correct edits the file that the run was submitted from, and keeps its comments and order. All
    members of a matrix are corrected together. After OUT_OF_MEMORY, memory is the peak × 1.2, or
    the limit × 1.5 if it was reached; after TIMEOUT, time is the limit × 1.4; over-used CPUs go up.
    A request gets smaller only if every member completed, every figure is known and the saving is
    large enough. Other failures change nothing.

    \b
    Examples:
      aver usage 3
      aver usage 3 --by job --csv > usage.csv
      aver usage 3 --correct --dry-run
      aver usage 3 --correct --mem-factor 1.5 --mem-floor 1G
    """
    if dry_run and not correct:
        raise UsageError("--dry-run is for --correct: aver usage RUN --correct --dry-run")
    only_one(as_csv, as_json)
    session = Session()
    session.refresh()
    rules = rules_of(options)
    with collector_paused():
        if correct:
            if as_csv:
                raise UsageError("--correct prints a diff, or --json; it has no --csv")
            _correct(session, run, rules, dry_run, as_json)
        else:
            most = None if limit is None and (as_csv or as_json) else row_limit(limit, show_all)
            _show(session, run, rules, by, most, as_csv, as_json)


def _show(
    session: Session, text: str | None, rules: Rules, by: str | None, most: int | None, as_csv: bool, as_json: bool
) -> None:
    chosen = find_run(session, text)
    reader = session.found_reader("")
    rows = reader.outcomes(chosen.run.id)
    session.mask([chosen.run.id])
    if chosen.jobs is not None:
        rows = [row for row in rows if row.job in chosen.jobs]
    use = run_use(rows, reader.request, rules)
    if as_csv and by == "group":
        write_csv(session.output, GROUP_USE_HEADS, map(group_use_cells, use.groups))
        return
    if as_csv:
        write_csv(session.output, JOB_USE_HEADS, map(job_use_cells, use.ended[:most]))
        return
    is_cut = most is not None and most < len(use.ended)
    is_alike = not as_json and by is None and len(use.ended) == use.group_count  # the two tables would say the same
    groups = () if by == "job" or is_alike else use.groups[:most]
    jobs = () if by == "group" else use.jobs(most, worst_first=is_cut)
    left_out = len(use.ended) - len(jobs) if by != "group" else 0
    document = UsageList(
        chosen.run.id, groups, jobs, left_out, use.never_ran, use.cpu_s, use.is_cpu_least, use.cpu_given_s
    )
    answer(session.output, document, as_json)
    more = use.group_count - len(groups)
    if not as_json and more and groups:
        session.output.note(f"{more} more group{'s' if more > 1 else ''}; --all shows them")


def _correct(session: Session, text: str | None, rules: Rules, dry_run: bool, as_json: bool) -> None:
    row = whole_run(session, text, "usage") if text is not None else find_run(session, None).run
    session.mask([row.id])
    if not row.state.is_settled:
        session.output.note(
            f"run {row.id} is {row.state}: what has ended so far is counted, and nothing is made smaller"
        )
    found = correct_run(session, row.id, rules, time.time())
    correction = found.correction
    if correction is not None and correction.applied and not dry_run:
        write_file(correction)
    if correction is None and found.proposals:
        session.output.note(found.no_file)
    document = Corrected(
        row.id,
        None if correction is None else os.path.relpath(correction.path),
        dry_run,
        change_facts(found),
        found.left,
        "" if correction is None else correction.diff,
    )
    answer(session.output, document, as_json)
