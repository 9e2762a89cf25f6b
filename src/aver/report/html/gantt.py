"""The timeline of a run as SVG: when each attempt ran and how it ended.

A small run has a row for each job, with its attempts on it. A large one has a row for each group of the graph: how
many attempts ran at each time, stacked by how they ended.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from aver.model.record import Record
from aver.model.states import State
from aver.render import verdict
from aver.report.html.graph import Groups
from aver.report.story import WORST_FIRST, Story, clean
from aver.store.read.rows import AttemptRow, JobRow

MOST_ROWS = 80
_LABEL, _WIDTH, _ROW, _TALL, _TOP = 190, 960, 20, 44, 22
_LETTERS = 26
_BINS = 160
_STEPS_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)


class _Scale(Record):
    start: float
    end: float

    def x(self, at: float) -> float:
        part = (min(max(at, self.start), self.end) - self.start) / (self.end - self.start)
        return _LABEL + part * (_WIDTH - _LABEL - 8)


def gantt_svg(story: Story, found: Groups) -> str:
    """The timeline; empty text when nothing has started."""
    begun = [attempt for rows in story.attempts.values() for attempt in rows if attempt.started_at is not None]
    if not begun:
        return ""
    start = min(attempt.started_at or 0.0 for attempt in begun)
    end = max(_end(story, attempt) for attempt in begun)
    scale = _Scale(start, max(end, start + 0.1))
    ran = [job for job in story.jobs if any(one.started_at is not None for one in story.attempts.get(job.id, ()))]
    if len(ran) <= MOST_ROWS:
        rows = [_job_row(story, job, scale, number) for number, job in enumerate(ran)]
        height = _TOP + len(rows) * _ROW + 6
    else:
        shown = [(number, group.jobs) for number, group in enumerate(found.groups) if group.jobs]
        rows = [
            _group_row(story, number, found.groups[number].label, jobs, scale, row)
            for row, (number, jobs) in enumerate(shown)
        ]
        height = _TOP + len(rows) * _TALL + 6
    return "".join(
        [
            f'<svg class="gantt" viewBox="0 0 {_WIDTH} {height}" role="group" aria-label="Timeline of the attempts">',
            *_axis(scale, height),
            *rows,
            "</svg>",
        ]
    )


def _end(story: Story, attempt: AttemptRow) -> float:
    """When it ended; of one that runs, now."""
    if attempt.ended_at is not None:
        return attempt.ended_at
    return max(story.now, attempt.started_at or 0.0)


def _axis(scale: _Scale, height: int) -> Iterable[str]:
    span = scale.end - scale.start
    step = next((one for one in _STEPS_S if span / one <= 8), math.ceil(span / 8 / 86400) * 86400)
    for number in range(int(span / step) + 1):
        x = scale.x(scale.start + number * step)
        words = "0" if number == 0 else _short(number * step)
        anchor = "start" if number == 0 else "end" if x > _WIDTH - 40 else "middle"
        yield f'<path class="tick" d="M{x:.1f} {_TOP - 4} V{height}"/>'
        yield f'<text class="small" x="{x:.1f}" y="{_TOP - 9}" text-anchor="{anchor}">{words}</text>'


def _short(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:g} s"
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:g} s"


def _title(label: str) -> str:
    label = clean(label)
    return label if len(label) <= _LETTERS else f"{label[: _LETTERS - 1]}…"


def _job_row(story: Story, job: JobRow, scale: _Scale, row: int) -> str:
    y = _TOP + row * _ROW
    parts = [
        f'<g class="row" data-job="{job.id}" tabindex="0" role="button">',
        f'<rect class="hit" x="0" y="{y}" width="{_WIDTH}" height="{_ROW}"/>',
        f'<text x="2" y="{y + 14}">{escape(_title(job.name))}</text>',
    ]
    for attempt in story.attempts.get(job.id, ()):
        if attempt.started_at is None:
            continue
        x = scale.x(attempt.started_at)
        width = max(scale.x(_end(story, attempt)) - x, 2.0)
        took = "" if attempt.elapsed_s is None else f", {verdict.duration_words(attempt.elapsed_s)}"
        words = f"attempt {attempt.attempt} {attempt.state}{took}"
        parts.append(
            f'<rect class="bar s-{attempt.state}" x="{x:.1f}" y="{y + 3}" width="{width:.1f}" height="{_ROW - 6}" '
            f'rx="2"><title>{escape(clean(job.name))}: {words}</title></rect>'
        )
        if attempt.attempt > 1 and width > 14:
            parts.append(f'<text class="onbar" x="{x + 3:.1f}" y="{y + 14}">{attempt.attempt}</text>')
    return "".join([*parts, "</g>"])


def _group_row(story: Story, number: int, label: str, jobs: Sequence[JobRow], scale: _Scale, row: int) -> str:
    y = _TOP + row * _TALL
    levels = _levels(story, jobs, scale)
    top = max([sum(level[slot] for level in levels.values()) for slot in range(_BINS)], default=0.0) or 1.0
    what = f'data-job="{jobs[0].id}"' if len(jobs) == 1 else f'data-group="{number}"'
    parts = [
        f'<g class="row" {what} tabindex="0" role="button">',
        f"<title>{escape(clean(label))}: {len(jobs)} jobs, at most {math.ceil(top)} at once</title>",
        f'<rect class="hit" x="0" y="{y}" width="{_WIDTH}" height="{_TALL}"/>',
        f'<text x="2" y="{y + 18}">{escape(_title(label))}</text>',
        f'<text class="small" x="2" y="{y + 33}">at most {math.ceil(top)} at once</text>',
    ]
    base = [0.0] * _BINS
    for state, level in levels.items():
        above = [low + high for low, high in zip(base, level, strict=True)]
        parts.append(f'<path class="area s-{state}" d="{_area(base, above, y + _TALL - 4, (_TALL - 8) / top)}"/>')
        base = above
    return "".join([*parts, "</g>"])


def _levels(story: Story, jobs: Sequence[JobRow], scale: _Scale) -> dict[State, list[float]]:
    """How many attempts of each state ran in each slot, on average."""
    width = (scale.end - scale.start) / _BINS
    found: dict[State, list[float]] = {}
    for job in jobs:
        for attempt in story.attempts.get(job.id, ()):
            if attempt.started_at is None:
                continue
            level = found.setdefault(attempt.state, [0.0] * _BINS)
            first = (attempt.started_at - scale.start) / width
            last = max((_end(story, attempt) - scale.start) / width, first)
            for slot in range(max(0, int(first)), min(_BINS - 1, int(last)) + 1):
                level[slot] += min(last, slot + 1) - max(first, slot)
    return {state: found[state] for state in WORST_FIRST if state in found}


def _area(base: Sequence[float], above: Sequence[float], bottom: float, factor: float) -> str:
    """A stepped area between two lines; empty stretches are left out."""
    step = (_WIDTH - _LABEL - 8) / _BINS
    parts = []
    for slot in range(_BINS):
        if above[slot] - base[slot] > 1e-9:
            x = _LABEL + slot * step
            height = max((above[slot] - base[slot]) * factor, 0.6)
            parts.append(f"M{x:.1f} {bottom - base[slot] * factor:.1f}v{-height:.1f}h{step + 0.1:.1f}v{height:.1f}z")
    return "".join(parts)
