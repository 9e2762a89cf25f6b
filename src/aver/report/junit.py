"""A run as JUnit XML, as CI systems read it: one suite, one case for each job.

A failure is what the work itself did (FAILED, OUT_OF_MEMORY, TIMEOUT, DEADLINE); an error is what stands in the way of
knowing or of running it (UNVERIFIED, NODE_FAIL, CANCELLED, not settled yet …); SKIPPED is skipped. Nothing that is
not COMPLETED passes. Characters that XML can't have are spelled out.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from typing import assert_never
from xml.sax.saxutils import escape

from aver.model.reasons import parse_from_run
from aver.model.states import State
from aver.render import verdict
from aver.report.story import Story, verdict_text
from aver.store.read.rows import JobRow

_AS_AGREED = (State.COMPLETED, State.CHECKPOINTED)  # what was run again after these had not failed
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Result(StrEnum):
    PASSED = "passed"
    FAILURE = "failure"
    ERROR = "error"
    SKIPPED = "skipped"


def result_of(state: State) -> Result:
    """How a job in this state counts for a CI system."""
    match state:
        case State.COMPLETED:
            return Result.PASSED
        case State.FAILED | State.OUT_OF_MEMORY | State.TIMEOUT | State.DEADLINE:
            return Result.FAILURE
        case State.SKIPPED:
            return Result.SKIPPED
        case State.UNVERIFIED | State.NODE_FAIL | State.BOOT_FAIL | State.PREEMPTED:
            return Result.ERROR
        case State.CANCELLED | State.CHECKPOINTED:
            return Result.ERROR
        case State.PENDING | State.SUBMITTED | State.RUNNING | State.SUSPENDED | State.COMPLETING | State.SETTLING:
            return Result.ERROR
        case _:
            assert_never(state)


def junit(story: Story) -> Iterator[str]:
    """The document, piece by piece."""
    run = story.run
    counts = Counter(result_of(job.state) for job in story.jobs)
    wall = (run.ended_at if run.ended_at is not None else story.now) - run.submitted_at
    totals = (
        f'tests="{len(story.jobs)}" failures="{counts[Result.FAILURE]}" errors="{counts[Result.ERROR]}" '
        f'time="{max(0.0, wall):.3f}"'
    )
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(run.submitted_at))
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield f'<testsuites name="aver" {totals}>\n'
    yield (
        f'  <testsuite name="{_attribute(run.name)}" id="{run.id}" package="" hostname="{_attribute(story.host)}" '
        f'timestamp="{stamp}" skipped="{counts[Result.SKIPPED]}" {totals}>\n'
    )
    yield "    <properties>\n"
    for name, value in (("aver.run", str(run.id)), ("aver.state", run.state.value), ("aver.round", str(run.round))):
        yield f'      <property name="{name}" value="{_attribute(value)}"/>\n'
    yield "    </properties>\n"
    for job in story.jobs:
        yield from _case(story, job)
    yield "  </testsuite>\n</testsuites>\n"


def _case(story: Story, job: JobRow) -> Iterator[str]:
    head = f'    <testcase classname="{_attribute(story.run.name)}" name="{_attribute(job.name)}"'
    if job.elapsed_s is not None or not job.attempt:  # not known is not 0; what never began took no time
        head += f' time="{job.elapsed_s or 0.0:.3f}"'
    result = result_of(job.state)
    out = _out(story, job)
    earlier = _earlier(story, job, result)
    if result is Result.PASSED and not out and not earlier:
        yield f"{head}/>\n"
        return
    yield f"{head}>\n"
    message = _attribute(verdict_text(job))
    match result:
        case Result.PASSED:
            pass
        case Result.SKIPPED:
            yield f'      <skipped message="{message}"/>\n'
        case Result.FAILURE | Result.ERROR:
            yield f'      <{result} message="{message}" type="{job.state}">{_text(_body(story, job))}</{result}>\n'
        case _:
            assert_never(result)
    yield from earlier
    if out:
        yield f"      <system-out>{_text(out)}</system-out>\n"
    yield "    </testcase>\n"


def _earlier(story: Story, job: JobRow, result: Result) -> list[str]:
    """Failed attempts before the newest: a job that passed in the end was flaky, one that did not was run again."""
    name = "flakyFailure" if result is Result.PASSED else "rerunFailure"
    found = []
    for attempt in story.attempts.get(job.id, ()):
        if attempt.attempt < job.attempt and attempt.verdict is not None and attempt.state not in _AS_AGREED:
            piece = verdict.piece(attempt.verdict, attempt.elapsed_s)
            words = _attribute(f"attempt {attempt.attempt}: {piece.state} {piece.exit} {piece.reason}")
            found.append(f'      <{name} message="{words}" type="{attempt.state}"/>\n')
    return found


def _body(story: Story, job: JobRow) -> str:
    """What happened in one sentence, the evidence, and the command that tells more."""
    lines = [story.sentences.get(job.id, ""), *(f"Warning: {warning}" for warning in story.warnings_of(job))]
    for one in story.evidence.get(job.id, ()):
        clock = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(one.told.at))
        lines.append(f"{clock} UTC  {one.told.source}: {one.told.what}")
    lines.append(f"aver why {job.id}")
    return "\n".join(line for line in lines if line)


def _out(story: Story, job: JobRow) -> str:
    parts = [f"Warning: {warning}\n" for warning in story.warnings_of(job)] if job.state is State.COMPLETED else []
    if parse_from_run(job.reason) is not None:
        parts.append(f"Not run: {job.detail}\n")
    elif job.state is State.COMPLETED and not job.verified and not job.warnings:
        parts.append(f"Believed, not verified: {job.detail}\n")
    log = story.logs.get(job.id)
    if log is not None:
        parts.append(f"{'… the end of ' if log.is_cut else ''}{log.path}\n{log.text}")
    return "".join(parts)


def _spelled(text: str) -> str:
    return _NOT_XML.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def _text(text: str) -> str:
    return escape(_spelled(text))


def _attribute(text: str) -> str:
    return escape(_spelled(text), {'"': "&quot;", "\n": "&#10;", "\t": "&#9;", "\r": "&#13;"})
