"""The tables are what the events say, however the events were cut into batches."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from store_events import submission, submitted, whole_job

from aver.model.codec import decode, dumps, encode
from aver.model.events import (
    AttemptPlanned,
    Event,
    JobMoved,
    JobsEnded,
    JobsGenerated,
    Observed,
    PersonAsked,
    RunMoved,
    RunPruned,
    RunSubmitted,
    StepEnded,
    StepStarted,
    TaskEnded,
    Usage,
)
from aver.model.evidence import Verdict
from aver.model.exit import ExitStatus
from aver.model.job import Request, StepSpec
from aver.model.states import SETTLED, State
from aver.store.encoding import decode_event, event_columns
from aver.store.read.reader import Reader
from aver.store.write.steps import StepEvent
from aver.store.write.writer import Writer
from store_replay import replay

texts = st.text(st.characters(), max_size=6)  # lone surrogates, NUL and newlines included
times = st.floats(0, 1e10)
states = st.sampled_from(State)
exits = st.none() | st.integers(0, 255).map(lambda code: ExitStatus(code=code)) | st.just(ExitStatus(signal=9))
some_verdicts = st.builds(
    Verdict, states, exits, texts, st.booleans(), texts, st.lists(texts, max_size=2).map(tuple), texts
)
verdicts = st.none() | some_verdicts
usages = st.none() | st.builds(
    Usage, times, st.none() | times, st.none() | times, st.none() | times, st.none() | st.integers(0, 1 << 50),
    st.none() | texts,
)  # fmt: skip
runs = st.sampled_from([1, 11])
jobs = st.integers(2, 5)
attempts = st.integers(1, 3)
requests = st.builds(
    Request, st.integers(0, 9), st.integers(0, 2), st.none() | st.integers(0, 1 << 50), st.none() | st.integers(0, 99)
)
hot_events = st.one_of(
    st.builds(AttemptPlanned, times, runs, jobs, attempts, texts, texts, requests),
    st.builds(
        Observed, times, runs, jobs, attempts, texts, texts, states, texts, verdicts, usages, st.none() | states,
        st.none() | texts,
    ),
    st.builds(JobMoved, times, runs, jobs, states, texts, verdicts),
)  # fmt: skip
steps = st.integers(0, 1)
step_events = st.one_of(
    st.builds(StepStarted, times, runs, jobs, attempts, steps, texts, st.just(StepSpec("s", ("x",), "/", 2))),
    st.builds(TaskEnded, times, runs, jobs, attempts, steps, steps, texts, some_verdicts, usages, st.booleans()),
    st.builds(StepEnded, times, runs, jobs, attempts, steps, some_verdicts, st.sampled_from([None, 0, 9, 7 << 8])),
)
settled_verdicts = st.builds(Verdict, st.sampled_from(sorted(SETTLED)), exits, texts, st.booleans(), texts)
ranges = st.builds(
    lambda at, ends, verdict: JobsEnded(at, 1, min(ends), max(ends), verdict),
    times, st.tuples(jobs, jobs), settled_verdicts,
)  # fmt: skip
events = st.one_of(
    hot_events,
    step_events,
    ranges,
    st.builds(RunMoved, times, runs, states, st.integers(1, 3)),
    st.builds(PersonAsked, times, runs, st.none() | jobs, texts, texts),
    st.builds(RunPruned, times, st.just(11)),
)


def numbered(batches: list[list[Event]]) -> list[list[Event]]:
    """Run 1 has jobs 2 to 5 and run 11 job 11, as a coordinator would number them; a step starts once and ends once."""
    first: list[Event] = [RunSubmitted(1.0, 1, 2, submission(4)), RunSubmitted(1.0, 11, 11, submission())]
    fixed: list[list[Event]] = [first]
    live: dict[tuple[int, int, int], bool] = {}
    for batch in batches:
        fixed.append([])
        for event in batch:
            if isinstance(event, AttemptPlanned | Observed | JobMoved | StepEvent) and event.run == 11:
                event = decode(type(event), {**encode(event), "job": 11})
            if isinstance(event, StepEvent):
                which = (event.job, event.attempt, event.step)
                if live.get(which) is not (None if isinstance(event, StepStarted) else True):
                    continue
                live[which] = not isinstance(event, StepEnded)
            fixed[-1].append(event)
    return fixed


def each(event: Event) -> list[Event]:
    """As it is read."""
    if not isinstance(event, JobsEnded):
        return [event]
    return [event.move_of(job) for job in range(event.first, event.last + 1)]


@settings(max_examples=60)
@given(st.lists(st.lists(events, max_size=12), max_size=5))
def test_replaying_the_events_gives_the_tables_again(batches: list[list[Event]]) -> None:
    """Rows made batch by batch equal rows made in one go, and the events come back as they were."""
    fixed = numbered(batches)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "aver.db"
        writer = Writer.open(path)
        for batch in fixed:
            writer.commit(batch)
        assert replay(path) == []
        with Reader.open(path) as reader:  # type: ignore[union-attr]
            committed = [one for batch in fixed for event in batch for one in each(event)]
            if not any(isinstance(event, RunPruned) for event in committed):
                assert [one.event for one in reader.events()] == committed
            assert len(reader.jobs()) >= 4
        writer.close()


@given(hot_events)
def test_a_row_says_what_the_codec_says(event: Event) -> None:
    """A row has the event's document but for its columns and what it would say twice; it decodes to the same event."""
    seq, at, run, job, attempt, kind, text, said = event_columns(3, event)
    data = json.loads(text)
    document = json.loads(json.dumps(encode(event)))
    for name, value in (("at", at), ("run", run), ("job", job), ("attempt", attempt)):
        assert document.pop(name, None) == value
    for name in ("state", "reason", "source"):
        if document.get("verdict") and document["verdict"][name] == document.get(name):
            del document["verdict"][name]
    usual = {"engine": "local", "request": {}} if isinstance(event, AttemptPlanned) else {}  # of a plan: left out
    document = {name: value for name, value in document.items() if name not in usual or value != usual[name]}
    if said is not None:
        assert document.pop("said") == said
    assert (seq, kind, data) == (3, type(event).__name__, document)
    assert decode_event(at, run, job, attempt, kind, dumps(data), said) == event


def test_a_row_that_no_event_explains_is_found(tmp_path: Path) -> None:
    """Replay names the table, what is stored and what the events say."""
    path = tmp_path / "aver.db"
    writer = Writer.open(path)
    writer.commit([submitted(), *whole_job(), JobsGenerated(120.0, 1, 2, 3, submission(2).flow)])
    writer.close()
    assert replay(path) == []
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE jobs SET state = 'FAILED' WHERE id = 2")
    (problem,) = replay(path)
    assert problem.startswith("jobs: stored (2, 1, 'train'")


def test_no_database_has_no_problem(tmp_path: Path) -> None:
    """There is nothing to compare."""
    assert replay(tmp_path / "aver.db") == []
