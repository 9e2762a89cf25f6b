"""A run as one page: its summary, failures, graph, timeline, use of resources and jobs. Nothing else is loaded.

Every text of a user is escaped, here or as data; scripts other than the page's own can't run (its policy names their
digest), and nothing can be fetched.
"""

from __future__ import annotations

import base64
import hashlib
import re
import time
from collections import Counter
from html import escape
from importlib import resources

from aver.render import verdict as render
from aver.report.html.gantt import gantt_svg
from aver.report.html.graph import graph_svg, groups_of
from aver.report.html.table_data import clean_log, page_data
from aver.report.html.use import use_table
from aver.report.story import WORST_FIRST, Story, clean, has_failed, verdict_text
from aver.store.read.rows import JobRow
from aver.version import __version__

OPEN_FAILURES = 5
_ELEMENTS = "// {{elements}}\n"  # where the script has the parts that it shares with the live page
_SLOT = re.compile(r"\{\{([a-z]+)\}\}")


def page(story: Story) -> str:
    """The whole document."""
    found = groups_of(story)
    script = _part("page.js").replace(_ELEMENTS, _part("elements.js"), 1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    parts = {
        "title": escape(f"run {story.run.id} {clean(story.run.name)}: {story.run.state}"),
        "policy": f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        "css": _part("page.css"),
        "summary": _summary(story),
        "failures": _failures(story),
        "graph": graph_svg(found),
        "timeline": gantt_svg(story, found) or '<p class="none">Nothing has started.</p>',
        "use": use_table(story, found) or '<p class="none">Nothing was measured.</p>',
        "legend": _legend(story),
        "footer": escape(f"Written by aver {__version__} on {_moment(story.now)}. Times are {_zone(story.now)}."),
        "data": page_data(story, found),
        "js": script,
    }
    return _SLOT.sub(lambda slot: parts[slot[1]], _part("page.html"))


def _part(name: str) -> str:
    return resources.files("aver.report.html").joinpath(name).read_text("utf-8")


def _moment(at: float | None) -> str:
    return "" if at is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def _zone(at: float) -> str:
    return time.strftime("%Z (UTC%z)", time.localtime(at))


def _badge(word: str) -> str:
    return f'<span class="badge s-{word}">{word}</span>'


def _summary(story: Story) -> str:
    run = story.run
    counts = Counter(job.state for job in story.jobs)
    shown = [(state, counts[state]) for state in WORST_FIRST if counts[state]]
    bar = "".join(f'<span class="s-{state}" style="flex-grow:{count}"></span>' for state, count in shown)
    words = "".join(f'<li class="s-{state}"><b>{count}</b> {state}</li>' for state, count in shown)
    wall = (run.ended_at if run.ended_at is not None else story.now) - run.submitted_at
    attempts = sum(len(rows) for rows in story.attempts.values())
    facts = [
        ("jobs", f"{len(story.jobs)}"),
        ("attempts", f"{attempts}"),
        ("took" if run.ended_at is not None else "so far", render.duration_words(wall)),
        ("cpu time", _cpu_time(story)),
        ("submitted", _moment(run.submitted_at)),
        ("ended", _moment(run.ended_at) or "not settled yet"),
        ("round", str(run.round)),
        ("by", f"{story.user} on {story.host}"),
        ("in", run.folder),
        ("typed", story.typed),
    ]
    listed = "".join(f"<div><dt>{name}</dt><dd>{escape(clean(text))}</dd></div>" for name, text in facts if text)
    title = f"<h1><small>run {run.id}</small> {escape(clean(run.name))} {_badge(run.state.value)}</h1>"
    return f'{title}<div class="states" aria-hidden="true">{bar}</div><ul class="counts">{words}</ul><dl>{listed}</dl>'


def _cpu_time(story: Story) -> str:
    """Of all attempts; where a part of it is not known, or not known yet, it says so."""
    ran = [
        one
        for rows in story.attempts.values()
        for one in rows
        if one.started_at is not None or render.may_have_run(one.state, one.reason)
    ]
    known = [one.user_s + one.sys_s for one in ran if one.user_s is not None and one.sys_s is not None]
    if not known and ran:
        return "not known"
    is_least = len(known) < len(ran) or any(one.is_cpu_least for one in ran)
    return ("at least " if is_least else "") + render.duration_words(sum(known))


def _failures(story: Story) -> str:
    failed = [job for job in story.jobs if has_failed(job)]
    if not failed:
        unsettled = sum(not job.state.is_settled for job in story.jobs)
        more = f"; {unsettled} jobs are not settled yet" if unsettled else ""
        return f'<p class="none">Nothing failed{more}.</p>'
    causes = Counter(verdict_text(job) for job in failed)
    parts = []
    if len(failed) > 1:
        rows = "".join(f"<li><b>{count}</b> {escape(clean(text))}</li>" for text, count in causes.most_common(12))
        rest = len(causes) - 12
        parts.append(f'<ul class="causes">{rows}{f"<li>and {rest} more</li>" if rest > 0 else ""}</ul>')
    shown = [job for job in failed if job.id in story.logs]
    shown += [job for job in failed if job.id not in story.logs][: max(0, 60 - len(shown))]
    shown.sort(key=lambda job: (WORST_FIRST.index(job.state), job.id))
    parts += [_failure(story, job, number < OPEN_FAILURES) for number, job in enumerate(shown)]
    if len(shown) < len(failed):
        parts.append(f'<p class="none">{len(failed) - len(shown)} more are in the table below.</p>')
    return "".join(parts)


def _failure(story: Story, job: JobRow, is_open: bool) -> str:
    took = "" if job.elapsed_s is None else f" in {render.duration_words(job.elapsed_s)}"
    tries = f", attempt {job.attempt}" if job.attempt > 1 else ""
    verdict = escape(clean(verdict_text(job).removeprefix(job.state.value).strip()))
    parts = [
        f'<details class="failure s-{job.state}"{" open" if is_open else ""}><summary>{_badge(job.state.value)} '
        f"<b>{escape(clean(job.name))}</b> <span>job {job.id} {verdict}{took}{tries}</span></summary>",
        f"<p>{escape(clean(story.sentences.get(job.id, '')))}</p>",
        "".join(f'<p class="warning">Warning: {escape(clean(one))}</p>' for one in story.warnings_of(job)),
    ]
    lines = story.evidence.get(job.id, ())
    if lines:
        rows = "".join(
            f"<tr><td>{_clock(one.told.at)}</td><td>{escape(one.told.source)}</td>"
            f"<td>{escape(clean(one.told.what))}</td></tr>"
            for one in lines
        )
        parts.append(f'<table class="evidence">{rows}</table>')
    log = story.logs.get(job.id)
    if log is not None:
        what = "the end of " if log.is_cut else ""
        parts.append(
            f'<p class="path">{what}{escape(clean(log.path))}</p><pre class="log">{escape(clean_log(log.text))}</pre>'
        )
    parts.append(f'<p class="next"><code>aver why {job.id}</code></p></details>')
    return "".join(parts)


def _clock(at: float) -> str:
    return f"{time.strftime('%H:%M:%S', time.localtime(at))}.{int(at * 1000) % 1000:03d}"


def _legend(story: Story) -> str:
    there = {job.state for job in story.jobs} | {one.state for rows in story.attempts.values() for one in rows}
    items = "".join(f'<li class="s-{state}">{state}</li>' for state in WORST_FIRST if state in there)
    return f'<ul class="legend">{items}</ul>'
