"""Memory, cpu and time against what was asked for, as a table with bars: of each job, or of each group of a large run.

Of a job the newest attempt counts. Where nothing was measured or asked for, it says so: there is no bar.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from aver.client.use.series import AttemptUse
from aver.model.record import Record
from aver.render import verdict
from aver.report.html.graph import Groups
from aver.report.story import Story, clean
from aver.store.read.rows import AttemptRow

MOST_ROWS = 60
WIDTH, HEIGHT = 160, 24  # of a curve
_FULL = 0.9  # of a limit, where a bar is marked


class Meter(Record):
    """`share` is None where there is nothing to compare with."""

    text: str
    share: float | None = None


def use_table(story: Story, found: Groups) -> str:
    """The table; empty text when nothing was measured."""
    newest = {number: rows[-1] for number, rows in story.attempts.items() if rows and rows[-1].elapsed_s is not None}
    if not newest:
        return ""
    if len(newest) <= MOST_ROWS:
        rows = [
            _row(f'data-job="{job.id}"', job.name, [newest[job.id]], story.use.get(job.id))
            for job in story.jobs if job.id in newest
        ]  # fmt: skip
        kind = "job"
    else:
        rows = []
        for number, group in enumerate(found.groups):
            attempts = [newest[job.id] for job in group.jobs if job.id in newest]
            if attempts:
                rows.append(_row(f'data-group="{number}"', group.label, attempts))
        kind = "jobs; of several, the highest"
    head = f"<tr><th>{kind}</th><th>memory</th><th>cpu</th><th>time</th></tr>"
    return f'<table class="use"><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table>'


def _row(what: str, label: str, attempts: Sequence[AttemptRow], use: AttemptUse | None = None) -> str:
    asked = attempts[0].request
    memory = _curve("memory", [one.memory_bytes for one in use.points], asked.mem_bytes) if use else ""
    cpus = _curve("CPUs", [one.cpus for one in use.points], asked.cpus) if use else ""
    cells = (
        _cell("memory", _memory(attempts), memory),
        _cell("cpu", _cpu(attempts), cpus),
        _cell("time", _time(attempts)),
    )
    return f'<tr {what} tabindex="0"><th scope="row">{escape(clean(label))}</th>{"".join(cells)}</tr>'


def _curve(what: str, values: Sequence[float | None], limit: float | None) -> str:
    """The values over time against the limit, or else against the highest of them."""
    highest = max((one for one in values if one is not None), default=0.0)
    if len(values) < 2 or not highest:
        return ""
    most = max(limit or 0, highest)
    width = WIDTH / (len(values) - 1)
    points = [
        f"{at * width:.1f},{HEIGHT - HEIGHT * one / most:.1f}" for at, one in enumerate(values) if one is not None
    ]
    line = "" if limit is None else f'<path class="limit" d="M0 {HEIGHT - HEIGHT * limit / most:.1f}H{WIDTH}"/>'
    return (
        f'<svg class="curve" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{what} over time">'
        f'{line}<polyline points="{" ".join(points)}"/></svg>'
    )


def _cell(name: str, meter: Meter, curve: str = "") -> str:
    if meter.share is None:
        return f'<td data-head="{name}">{escape(meter.text)}{curve}</td>'
    full = " full" if meter.share >= _FULL and name != "cpu" else ""
    width = min(100.0, meter.share * 100)
    return (
        f'<td data-head="{name}"><span class="meter{full}" style="--v:{width:.1f}%"></span>{escape(meter.text)} '
        f"<b>{meter.share * 100:.0f} %</b>{curve}</td>"
    )


def _memory(attempts: Sequence[AttemptRow]) -> Meter:
    pairs = [(one.peak_bytes, one.request.mem_bytes) for one in attempts if one.peak_bytes is not None]
    limited = [(used, asked) for used, asked in pairs if asked]
    if limited:
        used, asked = max(limited, key=lambda pair: pair[0] / pair[1])
        words = f"{verdict.bytes_words(used)} of {verdict.limit_words(asked)}"
        return Meter(words + _measured(len(pairs), len(attempts)), used / asked)
    if pairs:
        most = verdict.bytes_words(max(used for used, _ in pairs))
        return Meter(f"{most}, no limit{_measured(len(pairs), len(attempts))}")
    return Meter("not measured")


def _cpu(attempts: Sequence[AttemptRow]) -> Meter:
    """Of the cpu time that was there for all of them together."""
    used = there = 0.0
    measured = 0
    for one, seconds in _cpu_seconds(attempts):
        measured += 1
        used += seconds
        there += (one.elapsed_s or 0.0) * one.request.cpus
    if not there:
        return Meter("not measured")
    cpus = max(one.request.cpus for one in attempts)
    least = "at least " if any(one.is_cpu_least for one in attempts) else ""
    words = f"{least}{verdict.duration_words(used)} on {cpus} cpu{'s' if cpus != 1 else ''}"
    return Meter(words + _measured(measured, len(attempts)), used / there)


def _measured(known: int, jobs: int) -> str:
    """Of how many jobs the figure is, where it is not of all."""
    return "" if known == jobs else f" ({known} of {jobs} measured)"


def _cpu_seconds(attempts: Iterable[AttemptRow]) -> Iterator[tuple[AttemptRow, float]]:
    for one in attempts:
        if one.user_s is not None and one.sys_s is not None and one.elapsed_s:
            yield one, one.user_s + one.sys_s


def _time(attempts: Sequence[AttemptRow]) -> Meter:
    pairs = [(one.elapsed_s, one.request.time_s) for one in attempts if one.elapsed_s is not None]
    limited = [(used, asked) for used, asked in pairs if asked]
    if limited:
        used, asked = max(limited, key=lambda pair: pair[0] / pair[1])
        return Meter(f"{verdict.duration_words(used)} of {verdict.duration_words(asked)}", used / asked)
    return Meter(f"{verdict.duration_words(max(used for used, _ in pairs))}, no limit")
