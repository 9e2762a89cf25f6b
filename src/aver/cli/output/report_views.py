"""How the documents of results, causes, usage and recovery look to a person, and the rows of their CSV."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, assert_never

from aver.cli.output import report_documents as doc
from aver.cli.output.table import Table, fits, show_table
from aver.cli.output.text import Output, coloured, unselected_text
from aver.cli.output.words import in_words
from aver.model.record import replace
from aver.model.states import State
from aver.printable import one_line
from aver.render import verdict
from aver.report.csv import csv_rows
from aver.report.measure import Mark, share
from aver.report.usage import Ended, GroupUse, JobUse, Use, group_name, measured_by

if TYPE_CHECKING:
    from aver.report.correction.run import LeftAlone
    from aver.report.results import Result

UNKNOWN = "?"
NOTHING = verdict.NOTHING
BAR = 8
LOG_MARK = "  | "


def show_report(output: Output, document: doc.ReportDocument) -> None:
    """Write the document for a person."""
    match document:
        case doc.ResultList():
            _show_results(output, document)
        case doc.CauseList():
            _show_causes(output, document)
        case doc.UsageList():
            _show_usage(output, document)
        case doc.Corrected():
            _show_corrected(output, document)
        case doc.Recovered():
            _show_recovered(output, document)
        case _:
            assert_never(document)


def write_csv(output: Output, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write rows as RFC 4180 has them, with \\n; unknown is an empty cell, and secrets are masked."""
    cells = ([str(cell).lower() if isinstance(cell, bool) else cell for cell in row] for row in rows)
    text = "".join(csv_rows(chain([heads], cells)))
    output.raw(output.masking.whole(text.encode("utf-8", "replace")))


RESULT_HEADS = (
    "job", "name", "attempt", "state", "exit", "return_code", "reason", "verified", "source", "started_at", "ended_at",
    "elapsed_s", "cpu_s", "peak_bytes", "node", "detail", "warnings", "is_cpu_least",
)  # fmt: skip


def result_cells(one: Result) -> tuple[object, ...]:
    return (
        one.job, one.name, one.attempt, one.state, one.exit, one.return_code,
        one.reason, one.verified, one.source, one.started_at, one.ended_at, one.elapsed_s, one.cpu_s, one.peak_bytes,
        one.node, one.detail, "; ".join(one.warnings) or None, one.is_cpu_least,
    )  # fmt: skip


USE_HEADS = (
    "mem_asked_bytes", "mem_peak_bytes", "mem_share", "mem_mark", "cpus_asked", "cpus_used", "cpus_share", "cpus_mark",
    "time_asked_s", "time_used_s", "time_share", "time_mark", "cpu_s", "measured_by", "is_cpu_least",
)  # fmt: skip
JOB_USE_HEADS = ("job", "name", "group", "attempt", "state", *USE_HEADS)
GROUP_USE_HEADS = ("group", "jobs", "unknown", *USE_HEADS)


def job_use_cells(ended: Ended) -> tuple[object, ...]:
    row, one = ended.row, ended.measured
    used = one.used_cpus
    return (
        row.job, row.name, group_name(row.name), row.attempt, one.state,
        one.mem_bytes, one.peak_bytes, _short(share(one.peak_bytes, one.mem_bytes)), ended.mem,
        one.cpus, _short(used), _short(share(used, one.cpus)), ended.cpus,
        one.time_s, one.elapsed_s, _short(share(one.elapsed_s, one.time_s)), ended.time, one.cpu_s, measured_by(row),
        one.is_cpu_least,
    )  # fmt: skip


def group_use_cells(one: GroupUse) -> tuple[object, ...]:
    uses = [
        cell
        for use in (one.mem, one.cpus, one.time)
        for cell in (use.asked, _short(use.used), _short(use.share), use.mark)
    ]
    return (one.name, one.jobs, one.unknown, *uses, one.cpu_s, " ".join(one.measured_by), one.is_cpu_least)


def _short(value: float | None) -> float | None:
    """Four decimals: more of them would only look exact, and take longer to write than all else."""
    return None if value is None else round(value, 4)


def _show_results(output: Output, document: doc.ResultList) -> None:
    rows = tuple(_result_row(one) for one in document.results)
    heads = ("JOB", "NAME", "TRY", "STATE", "EXIT", "RC", "REASON", "TIME", "CPU", "PEAK", "NODE")
    if rows:
        table = Table(heads, rows, right=frozenset({0, 2, 5, 7, 8, 9}), wide=6, spare=(10, 8))
        if output.out_is_terminal:
            table = in_words(
                table, [verdict.short_words(one.state, one.exit, one.reason or "") for one in document.results]
            )
            nodes = {row[10] for row in rows} - {NOTHING}
            alike = ((2, ("1",)), *(((10, tuple(nodes)),) if len(nodes) == 1 else ()))
            table = replace(table, silent=(*table.silent, *alike))
        show_table(output, table)
    for one in document.results:
        for warning in one.warnings:
            output.line(f"job {one.job}: warning: {one_line(warning)}")
    for one in document.results:
        if one.log is not None:
            _show_log(output, one)
    if document.left_out:
        output.note(f"{_count(document.left_out, 'more row')}; --all shows them")
    output.say(sums_text(document))


def _result_row(one: Result) -> tuple[str, ...]:
    state = one.state
    has_begun = one.attempt is not None and one.started_at is not None
    absent = verdict.absent_text(state, has_begun, one.reason or "")
    return (
        str(one.job),
        one.name,
        NOTHING if one.attempt is None else str(one.attempt),
        verdict.believed_text(state, one.verified) + verdict.from_text(one.reason),
        absent if one.exit is None else str(one.exit),
        absent if one.return_code is None else str(one.return_code),
        one.reason or NOTHING,
        absent if one.elapsed_s is None else verdict.duration_words(one.elapsed_s),
        absent if one.cpu_s is None else _least(one.is_cpu_least) + verdict.duration_words(one.cpu_s),
        absent if one.peak_bytes is None else verdict.bytes_words(one.peak_bytes),
        one.node or NOTHING,
    )


_AT_LEAST = "at least "


def _least(is_least: bool) -> str:
    """What stands before a figure in a table that may be higher in truth."""
    return "≥ " if is_least else ""


def _show_log(output: Output, one: Result) -> None:
    output.line("")
    attempt = "" if one.attempt in (None, 1) else f", attempt {one.attempt}"
    output.line(f"job {one.job} ({one_line(one.name)}{attempt}) {one.state}; its output ends:")
    for line in (one.log or "").splitlines() or ["(nothing)"]:
        output.line(f"{LOG_MARK}{one_line(line)}")


def sums_text(document: doc.ResultList) -> str:
    """`run 3 FAILED: 4 jobs, 5 attempts: 3 COMPLETED, 1 FAILED; 12 s of time, 9.1 s of cpu, highest peak 1.2 GiB`."""
    sums = document.sums
    counts = ", ".join(f"{sums.counts[state]} {state}" for state in State if sums.counts.get(state)) or "none"
    absent = UNKNOWN if sums.attempts else NOTHING
    known = "known " if sums.peaks_unknown and sums.peak_bytes is not None else ""
    least = _AT_LEAST if sums.is_cpu_least else ""
    parts = [
        f"{UNKNOWN if sums.elapsed_s is None else verdict.duration_words(sums.elapsed_s)} of time",
        f"{UNKNOWN if sums.cpu_s is None else least + verdict.duration_words(sums.cpu_s)} of cpu",
        f"highest {known}peak {absent if sums.peak_bytes is None else verdict.bytes_words(sums.peak_bytes)}",
    ]
    amounts = f"{_count(sums.jobs, 'job')}, {_count(sums.attempts, 'attempt')}"
    left = unselected_text(document.unselected)
    return f"run {document.run} {document.state}: {amounts}: {counts}{left}; {', '.join(parts)}"


def _show_causes(output: Output, document: doc.CauseList) -> None:
    state = coloured(State(document.state)) if output.has_colours else document.state
    counts = ", ".join(f"{count} {word}" for word, count in document.counts.items())
    output.line(f"run {document.run} {one_line(document.name)} {state}: {counts}")
    if not document.causes:
        output.line("")
        output.line("No job failed." if not document.unsettled else "No job has failed yet.")
    for cause in document.causes:
        output.line("")
        only = cause.hints[0] if len(cause.hints) == 1 and cause.hints[0].count == cause.count else None
        output.line(one_line(cause.sentence) + (f": `{one_line(only.line)}`" if only is not None else ""))
        if cause.count > 1:
            rest = f" and {cause.count - len(cause.jobs)} more" if cause.count > len(cause.jobs) else ""
            output.line(f"  jobs {', '.join(map(str, cause.jobs))}{rest}")
        for hint in cause.hints:
            said = "" if only is not None else f" `{one_line(hint.line)}` in {hint.count} of {cause.logs_read} logs,"
            output.line(f"  hint ({hint.name}):{said} job {hint.job}; {hint.advice}")
        if cause.logs_read < cause.count and cause.logs_read:
            output.line(f"  ({cause.logs_read} of {cause.count} logs were looked at)")
        for command in cause.next:
            output.line(f"  next: {command}")
    if document.unsettled:
        output.line("")
        output.line(f"{_count(document.unsettled, 'job')} not settled yet: aver watch {document.run}")


def _show_usage(output: Output, document: doc.UsageList) -> None:
    if document.groups:
        heads = ("GROUP", "JOBS", *_USE_COLUMNS)
        _show_uses(output, heads, [((one.name, str(one.jobs)), one, one.measured_by) for one in document.groups])
    if document.jobs:
        if document.groups:
            output.line("")
        heads = ("JOB", "NAME", *_USE_COLUMNS)
        _show_uses(output, heads, [((str(one.job), one.name), one, (one.measured_by,)) for one in document.jobs])
    for one in document.groups:
        if one.unknown and one.jobs > 1:
            what = f"a figure of {one.unknown} of its {one.jobs} jobs is not known: PEAK and USED are of the others"
            output.line(f"{one_line(one.name)}: {what}")
    if document.left_out:
        output.note(f"{_count(document.left_out, 'more job')}; --all shows them")
    if document.never_ran:
        output.line(f"{_count(document.never_ran, 'job')} without figures: never seen to run, or not ended yet")
    used, given = document.cpu_s, document.cpu_given_s
    part = "" if used is None or not given else f" ({used / given:.0%})"
    words = [UNKNOWN if value is None else verdict.duration_words(value) for value in (used, given)]
    least = _AT_LEAST if document.is_cpu_least and used is not None else ""
    output.line(f"run {document.run}: {least}{words[0]} of cpu time used, of {words[1]} asked for{part}")


_USE_COLUMNS = ("MEM", "PEAK", "%", "CPUS", "BUSY", "%", "TIME", "USED", "%", "MARKS", "BY")


def _show_uses(
    output: Output,
    heads: tuple[str, ...],
    items: Sequence[tuple[tuple[str, str], JobUse | GroupUse, tuple[str, ...]]],
) -> None:
    number = 1 if heads[0] == "GROUP" else 0
    right = frozenset({number, 2, 3, 5, 6, 8, 9})

    def table(bars: bool) -> Table:
        rows = tuple((*first, *_use_cells(one, bars), ", ".join(by)) for first, one, by in items)
        return Table(
            heads, rows, right=right if bars else right | {4, 7, 10}, wide=0 if number else 1,
            silent=((12, ("witness",)),), spare=(12, 7, 5, 6, 4, 10),
        )  # fmt: skip

    drawn = table(bars=True) if output.out_is_terminal else None
    show_table(output, drawn if drawn is not None and fits(drawn, output.width) else table(bars=False))


def _use_cells(one: JobUse | GroupUse, bars: bool) -> tuple[str, ...]:
    mem, cpus, time = one.mem, one.cpus, one.time
    marks = [
        f"{word} {use.mark}"
        for word, use in (("mem", mem), ("cpus", cpus), ("time", time))
        if use.mark in (Mark.OVER, Mark.UNDER)
    ]
    return (
        NOTHING if mem.asked is None else verdict.limit_words(int(mem.asked)),
        UNKNOWN if mem.used is None else verdict.bytes_words(int(mem.used)),
        _share(mem, bars),
        UNKNOWN if cpus.asked is None else f"{cpus.asked:g}",
        UNKNOWN if cpus.used is None else f"{_least(one.is_cpu_least)}{cpus.used:.2f}",
        _share(cpus, bars),
        NOTHING if time.asked is None else verdict.duration_words(time.asked),
        UNKNOWN if time.used is None else verdict.duration_words(time.used),
        _share(time, bars),
        ", ".join(marks) or NOTHING,
    )


def _share(use: Use, bars: bool) -> str:
    if use.share is None:
        return UNKNOWN if use.used is None else NOTHING
    text = f"{use.share:.0%}"
    if not bars:
        return text
    full = min(BAR, round(use.share * BAR))
    return f"{'█' * full}{'░' * (BAR - full)} {text:>4}"


def _show_corrected(output: Output, document: doc.Corrected) -> None:
    _show_changes(output, document.changes, document.left)
    if document.diff:
        output.raw(_diff_bytes(output, document.diff))
    if not document.changes:
        output.note("nothing to correct")
    elif document.file is not None and not document.is_dry_run:
        output.note(f"{document.file} is corrected")


def _show_changes(output: Output, changes: Sequence[doc.ChangeFacts], left: Sequence[LeftAlone]) -> None:
    for change in changes:
        old = "" if change.old is None else f"{change.old} to "
        output.line(f"{one_line(change.job)}: {change.key} {old}{change.new}: {one_line(change.why)}")
    for one in left:
        output.line(f"{one_line(one.job)}: not corrected in the file: {one_line(one.why)}")


def _diff_bytes(output: Output, diff: str) -> bytes:
    """The lines of the file as they are, but for what would move the cursor; coloured on a terminal."""
    lines = []
    for line in output.masking.whole(diff).removesuffix("\n").split("\n"):
        shown = one_line(line.replace("\t", "    "))
        code = {"+": "32", "-": "31", "@": "36"}.get(shown[:1]) if output.has_colours else None
        lines.append(f"\x1b[{code}m{shown}\x1b[0m" if code else shown)
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")


def _show_recovered(output: Output, document: doc.Recovered) -> None:
    _show_changes(output, document.changes, document.left)
    if document.diff:
        output.raw(_diff_bytes(output, document.diff))
    word = "runs again" if document.round is not None else "would run again"
    for again in document.jobs[:_LISTED]:
        output.line(f"{again.job}: {word} ({one_line(again.name)}): {one_line(again.why)}")
    if len(document.jobs) > _LISTED:
        output.line(f"… and {len(document.jobs) - _LISTED} more")
    if document.waiting:
        output.line(f"{_count(document.waiting, 'job')} that never ran: will start when all needs complete")
    for one in document.hopeless[:_LISTED]:
        output.line(f"{one.job}: left alone ({one_line(one.name)}), {one.state}: {one_line(one.why)}; {one.next}")
    if len(document.hopeless) > _LISTED:
        output.line(f"… and {len(document.hopeless) - _LISTED} more are left alone: aver why {document.run}")
    if document.round is not None:
        output.note(f"run {document.run} goes on in round {document.round}; aver watch {document.run}")
    elif not document.jobs:
        output.note(f"nothing to recover in run {document.run}")


_LISTED = 20


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
