"""What the page's table and its panel show, as compact JSON: columns of jobs, and the evidence that was collected.

Texts that repeat are kept once. Times are milliseconds after the submission. Nothing in it can end the element that
holds it: `<` is escaped.
"""

from __future__ import annotations

import json
from typing import Any

from aver.printable import printable
from aver.render import verdict as render
from aver.report.html.graph import Groups
from aver.report.story import WORST_FIRST, Story, clean
from aver.store.read.rows import AttemptRow, JobRow


class _Words:
    """Texts by number."""

    def __init__(self) -> None:
        self.list: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        found = self._numbers.get(text)
        if found is None:
            found = self._numbers[text] = len(self.list)
            self.list.append(text)
        return found


def page_data(story: Story, found: Groups) -> str:
    """The JSON text, safe inside a script element."""
    words = _Words()
    start = story.run.submitted_at
    states = {state: number for number, state in enumerate(WORST_FIRST)}
    columns: dict[str, list[Any]] = {
        "id": [job.id for job in story.jobs],
        "name": [clean(job.name) for job in story.jobs],
        "group": [found.of[job.id] for job in story.jobs],
        "state": [states[job.state] for job in story.jobs],
        "mark": [words.number(_mark(job)) for job in story.jobs],
        "exit": [words.number(render.exit_text(job.exit) if _has_exit(job) else "") for job in story.jobs],
        "reason": [words.number("" if job.reason in ("", "None") else clean(job.reason)) for job in story.jobs],
        "attempt": [job.attempt for job in story.jobs],
        "start": [_after(job.started_at, start) for job in story.jobs],
        "elapsed": [None if job.elapsed_s is None else round(job.elapsed_s * 1000) for job in story.jobs],
        "peak": [_peak(story.attempts.get(job.id)) for job in story.jobs],
        "source": [words.number(job.source or "") for job in story.jobs],
    }
    document = {
        "run": story.run.id,
        "submitted": start,
        "states": [state.value for state in WORST_FIRST],
        "groups": [clean(group.label) for group in found.groups],
        "columns": columns,
        "words": words.list,
        "sentences": {str(number): clean(text) for number, text in story.sentences.items()},
        "details": {str(job.id): clean(job.detail) for job in story.jobs if job.detail and job.id in story.evidence},
        "warnings": {str(job.id): [clean(one) for one in story.warnings_of(job)] for job in _warned(story)},
        "evidence": {str(number): [_line(one) for one in lines] for number, lines in story.evidence.items()},
        "attempts": {
            str(number): [_attempt(one, start) for one in rows]
            for number, rows in story.attempts.items()
            if number in story.evidence or len(rows) > 1
        },
        "logs": {str(number): [clean(log.path), log.is_cut, clean_log(log.text)] for number, log in story.logs.items()},
    }
    text = json.dumps(document, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def clean_log(text: str) -> str:
    """A log's text: tabs and line ends stay, other control characters are spelled out."""
    return printable(text, keep="\n\t")


def _has_exit(job: JobRow) -> bool:
    """Whether there is an exit to speak of, known or not."""
    return job.exit is not None or (job.attempt > 0 and job.state.is_settled and job.verdict is not None)


def _mark(job: JobRow) -> str:
    """What stands behind the state: `*` believed, `!` with warnings."""
    verdict = job.verdict
    return "" if verdict is None else render.state_text(verdict).removeprefix(verdict.state.value)


def _after(at: float | None, start: float) -> int | None:
    return None if at is None else round((at - start) * 1000)


def _peak(attempts: Any) -> int | None:
    """In KiB, of the newest attempt."""
    peak = attempts[-1].peak_bytes if attempts else None
    return None if peak is None else -(-peak // 1024)


def _warned(story: Story) -> list[JobRow]:
    return [job for job in story.jobs if job.warnings or job.id in story.warnings]


def _line(one: Any) -> list[Any]:
    told = one.told
    said = None if told.said is None else clean(told.said)
    return [told.at, told.attempt, one.state and one.state.value, told.source, clean(told.what), said]


def _attempt(one: AttemptRow, start: float) -> list[Any]:
    verdict = one.verdict
    asked = [
        f"{one.request.cpus} cpu{'s' if one.request.cpus != 1 else ''}",
        "no memory limit"
        if one.request.mem_bytes is None
        else f"{render.limit_words(one.request.mem_bytes)} of memory",
        "no time limit" if one.request.time_s is None else f"{render.duration_words(one.request.time_s)} of time",
    ]
    least = "at least " if one.is_cpu_least else ""
    used = [
        None if one.elapsed_s is None else f"ran {render.duration_words(one.elapsed_s)}",
        None
        if one.user_s is None or one.sys_s is None
        else f"cpu {least}{render.duration_words(one.user_s + one.sys_s)}",
        None if one.peak_bytes is None else f"peak {render.bytes_words(one.peak_bytes)}",
    ]
    return [
        one.attempt,
        one.state.value,
        render.exit_text(one.exit) if verdict is not None else "",
        clean(one.reason),
        one.engine + (f" on {clean(one.node)}" if one.node else ""),
        "asked for " + ", ".join(asked),
        ", ".join(text for text in used if text),
        _after(one.started_at, start),
    ]
