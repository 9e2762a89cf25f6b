"""Databases of earlier versions: what they hold becomes what this version would have written."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from store_events import ended, planned, started, submitted, whole_job

from aver.model.codec import decode, encode
from aver.model.events import Event, FlowReplaced, JobsGenerated, Observed, StepEnded, StepStarted, TaskEnded, Usage
from aver.model.evidence import LaunchFailure, TaskCause, Verdict
from aver.model.exit import ExitStatus
from aver.model.job import JobSpec, Origin, StepSpec
from aver.model.record import replace
from aver.model.slurm_options import SlurmKind, SlurmOptions
from aver.model.states import State
from aver.store.encoding import decode_event, task_cause_text
from aver.store.read.light import LightReader
from aver.store.read.pages import RunQuery, run_page
from aver.store.read.reader import Reader
from aver.store.read.sketch import Sketch
from aver.store.schema import DERIVED_TABLES, MIGRATIONS, VERSION
from aver.store.write.writer import Writer
from store_replay import replay


def step(
    number: int, state: State, raw: int | None, derived: int | None, job: int = 2, attempt: int = 1
) -> list[Event]:
    verdict = Verdict(state, None if raw is None else ExitStatus.from_wait(raw), "None", raw is not None, "coordinator")
    spec = StepSpec("s", ("true",), "/")
    return [
        StepStarted(103.0, 1, job, attempt, number, f"t{job}.{attempt}.{number}", spec),
        StepEnded(104.0, 1, job, attempt, number, verdict, derived),
    ]


def data_of_10(data: str, said: str | None) -> str:
    """An event as it was stored up to schema 10: with what its source said, and its verdict in full."""
    document = json.loads(data)
    if said is not None:
        document["said"] = said
    for name in ("state", "reason", "source"):
        if isinstance(document.get("verdict"), dict) and name in document:
            document["verdict"].setdefault(name, document[name])
    return json.dumps(document, separators=(",", ":"))


def take_back_11(connection: sqlite3.Connection) -> None:
    connection.create_function("data_of_10", 2, data_of_10)
    connection.execute("UPDATE events SET data = data_of_10(data, said)")
    connection.execute("ALTER TABLE events DROP COLUMN said")
    for name in ("events_ranges", "jobs_failed"):
        connection.execute(f"DROP INDEX {name}")


def as_version_3(path: Path, events: list[Event]) -> None:
    """Write a database as schema 3 had it: no DerivedExitCode was unknown, and 0 stood for it."""
    newest = path.with_name("newest.db")
    writer = Writer.open(newest)
    writer.commit(events)
    writer.close()
    connection = sqlite3.connect(path, isolation_level=None)
    for part in MIGRATIONS[:3]:
        for statement in part:
            connection.execute(statement)
    connection.execute("ATTACH ? AS newest", (str(newest),))
    connection.execute("DELETE FROM meta")
    connection.create_function("data_of_10", 2, data_of_10)
    old = {"derived": "coalesce(derived, 0)", "data": "data_of_10(data, said)"}
    for table in ("meta", "events", *DERIVED_TABLES):
        names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        chosen = ", ".join(old.get(name, name) for name in names)
        connection.execute(f"INSERT INTO main.{table} SELECT {chosen} FROM newest.{table}")
    connection.execute("PRAGMA user_version = 3")
    connection.close()


@pytest.mark.parametrize(
    ("steps", "derived"),
    [
        pytest.param(step(0, State.FAILED, 7 << 8, 7 << 8), 7 << 8, id="a step that was seen"),
        pytest.param(step(0, State.UNVERIFIED, None, 0), None, id="a step that nobody saw"),
        pytest.param(
            step(0, State.UNVERIFIED, None, 0) + step(1, State.FAILED, 7 << 8, 7 << 8), None, id="one of two unseen"
        ),
        pytest.param(step(0, State.OUT_OF_MEMORY, None, 0), 125, id="out of memory with a lost task"),
        pytest.param(step(0, State.CANCELLED, None, 0), 0, id="cancelled before it began"),
    ],
)
def test_a_derived_exit_that_was_0_for_want_of_a_word_is_mended(
    tmp_path: Path, steps: list[Event], derived: int | None
) -> None:
    """The row after the migration is what a replay of the old events gives, and unknown is None; read before it too."""
    path = tmp_path / "aver.db"
    as_version_3(path, [submitted(), planned(), started(), *steps, ended()])
    before = Reader.open(path)
    assert before is not None
    assert [row.derived for row in before.jobs()] == [derived if all(row.exit for row in before.steps(2)) else None]
    before.close()
    Writer.open(path).close()
    reader = Reader.open(path)
    assert reader is not None
    job = reader.job(2)
    assert job is not None
    assert (job.derived, job.state) == (derived, State.COMPLETED)
    reader.close()
    assert replay(path) == []


def test_steps_of_an_earlier_attempt_say_nothing_of_the_newest(tmp_path: Path) -> None:
    """The job was tried again: its DerivedExitCode is that of the new attempt."""
    path = tmp_path / "aver.db"
    first = [planned(), started(), *step(0, State.UNVERIFIED, None, 0)]
    again = ended(state=State.UNVERIFIED, ended_as=None, job_state=State.PENDING, job_reason="Retry")
    second = [planned(attempt=2), started(attempt=2), *step(0, State.FAILED, 256, 256, attempt=2), ended(attempt=2)]
    as_version_3(path, [submitted(), *first, again, *second])
    Writer.open(path).close()
    reader = Reader.open(path)
    assert reader is not None
    job = reader.job(2)
    assert job is not None
    assert job.derived == 256
    reader.close()
    assert replay(path) == []


def test_the_jobs_keep_their_index(tmp_path: Path) -> None:
    """A table that was made anew is as quick as before."""
    path = tmp_path / "aver.db"
    as_version_3(path, [submitted()])
    Writer.open(path).close()
    connection = sqlite3.connect(path)
    names = {row[1] for row in connection.execute("PRAGMA index_list(jobs)")}
    assert (names, connection.execute("PRAGMA user_version").fetchone()) == (
        {"jobs_run", "jobs_ended", "jobs_unsettled", "jobs_failed"},
        (VERSION,),
    )
    connection.close()


LAUNCH = (
    '{"ev":"end","key":"k.s0.t0","pid":0,"witness":7,"raw":null,"start":1.0,"elapsed":0.0,"suspended":0.0,"user":0.0,'
    '"sys":0.0,"peak":null,"maxrss":null,"mem":"none","limit":null,"oom":0,"hostoom":0,"acts":[],"got":[],"left":0,'
    '"launch":{"op":"exec","errno":2,"path":"/no/s\u00c3\u00bcch"},"boot":"b","size":0}'
)


def test_a_launch_failure_of_an_earlier_version_is_data(tmp_path: Path) -> None:
    """Operation, errno and path of a task that could not start come from its witness's words, in replay as well."""
    path = tmp_path / "aver.db"
    verdict = Verdict(State.FAILED, None, "JobLaunchFailure", True, "witness", (), "exec /no: no (errno 2)")
    task = TaskEnded(104.0, 1, 2, 1, 0, 0, LAUNCH, verdict)
    as_version_3(path, [submitted(), planned(), started(), *step(0, State.FAILED, 2 << 8, 2 << 8), task, ended()])
    Writer.open(path).close()
    reader = Reader.open(path)
    assert reader is not None
    with reader:
        (row,) = reader.tasks(2, 1, 0)
    assert row.cause == TaskCause(LaunchFailure("exec", 2, "/no/s\u00fcch"))
    assert replay(path) == []


@pytest.mark.parametrize("kind", ["RunSubmitted", "JobsGenerated", "FlowReplaced"])
def test_options_of_slurm_that_were_pairs_of_text_are_read(kind: str) -> None:
    """Numbers become numbers, what nothing reads is left out, and the job is written in the present form."""
    pairs = {
        "kind": "srun", "command": "a.sh 1", "partition": "big", "nodes": "1", "ntasks": "4", "ntasks_per_node": "2",
        "cpus_per_task": "3", "mem_per_cpu": "1048576", "requeue": "0", "exclusive": "", "features": "fast",
        "mail_user": "ann", "nice": "-5",
    }  # fmt: skip
    document = {
        "name": "a",
        "command": {"is": "Argv", "args": ["true"]},
        "facts": [list(pair) for pair in pairs.items()],
    }
    flow = {"name": "f", "jobs": [document]}
    origin = {"user": "u", "uid": 1, "folder": "/", "host": "h", "umask": 18}
    stored = {
        "RunSubmitted": {"first_job": 1, "submission": {"flow": flow, "origin": origin}},
        "JobsGenerated": {"first_job": 1, "flow": flow},
        "FlowReplaced": {"by": "ann", "flow": flow},
    }[kind]
    event: Any = decode_event(1.0, 1, 1, None, kind, json.dumps(stored))
    (spec,) = getattr(event, "submission", event).flow.jobs
    assert Sketch(decode(Origin, origin), flow).spec(0) == spec
    assert spec.slurm == SlurmOptions(
        SlurmKind.SRUN, "a.sh 1", "big", ntasks=4, ntasks_per_node=2, cpus_per_task=3, mem_per_cpu=1 << 20,
        requeue=False, exclusive="", features="fast", nice="-5",
    )  # fmt: skip
    assert decode(JobSpec, encode(spec)) == spec
    assert "facts" not in encode(spec)
    assert decode(JobSpec, JobSpec.read_older({**document, "facts": []})).slurm is None


@pytest.mark.parametrize("version", range(1, VERSION))
def test_a_database_of_an_earlier_version_is_read_as_it_is(tmp_path: Path, version: int) -> None:
    """Until a coordinator migrates it, what its tables lack is unknown, for `aver` and for Slurm's commands."""
    newest = tmp_path / "newest.db"
    writer = Writer.open(newest)
    writer.commit([submitted(), *whole_job()])
    writer.close()
    path = tmp_path / "aver.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.create_function("task_cause", 1, task_cause_text, deterministic=True)
    for statement in (one for part in MIGRATIONS[:version] for one in part):
        connection.execute(statement)
    connection.execute("ATTACH ? AS newest", (str(newest),))
    tables = [row[0] for row in connection.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'")]
    for table in set(tables) & {"events", *DERIVED_TABLES}:
        names = ", ".join(row[1] for row in connection.execute(f"PRAGMA main.table_info({table})"))
        connection.execute(f"INSERT INTO main.{table} ({names}) SELECT {names} FROM newest.{table}")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    before = path.read_bytes()
    with Reader.open(path) as reader, LightReader.open(path) as light:  # type: ignore[union-attr]
        assert [row.id for row in reader.runs()] == [1]
        assert [row.state for row in reader.jobs()] == [State.COMPLETED]
        assert len(reader.attempts(2)) == len(reader.outcomes(1)) == len(light.attempts([2])) == 1
        assert reader.steps(2) == reader.tasks(2, 1, 0) == light.steps([2]) == []
        assert [row.state for row in light.numbered([2])] == ["COMPLETED"]
        assert reader.sketch(1) is not None
        assert light.asked([1]) == []
    assert path.read_bytes() == before


def test_what_was_not_selected_is_taken_from_the_submission(tmp_path: Path) -> None:
    """A run of a version that kept it in the events alone gets its column; readers see it only then."""
    path = tmp_path / "aver.db"
    event = submitted(1)
    part = replace(event, submission=replace(event.submission, flow=replace(event.submission.flow, unselected=("a",))))
    writer = Writer.open(path)
    writer.commit([part, submitted(5, 6)])
    writer.close()
    with sqlite3.connect(path) as old:
        take_back_11(old)
        old.execute("ALTER TABLE runs DROP COLUMN unselected")
        old.execute("DROP INDEX runs_engines")
        old.execute("ALTER TABLE runs DROP COLUMN engines")
        for name in ("jobs_ended", "jobs_unsettled", "attempts_ended"):
            old.execute(f"DROP INDEX {name}")
        for table in ("attempts", "tasks"):
            old.execute(f"ALTER TABLE {table} DROP COLUMN is_cpu_least")
        old.execute("PRAGMA user_version = 6")
    with Reader.open(path) as reader:  # type: ignore[union-attr]
        assert [row.unselected for row in reader.runs()] == [(), ()]
    Writer.open(path).close()
    with Reader.open(path) as reader:  # type: ignore[union-attr]
        assert {row.id: row.unselected for row in reader.runs()} == {1: ("a",), 5: ()}


def test_engines_are_taken_from_the_definitions(tmp_path: Path) -> None:
    """Those of the submission, of generated jobs and of a replaced flow: a migrated row is as one that is new."""
    path = tmp_path / "aver.db"
    event = submitted(1)
    flow = event.submission.flow
    named = replace(flow, jobs=tuple(replace(spec, engine="slurm") for spec in flow.jobs))
    again = replace(flow, jobs=tuple(replace(spec, engine="pool") for spec in flow.jobs))
    writer = Writer.open(path)
    writer.commit([replace(event, submission=replace(event.submission, engine="allocation"))])
    writer.commit([FlowReplaced(3.0, 1, "ann", again), submitted(50, 51)])
    writer.commit([replace(submitted(60, 61), submission=replace(event.submission, flow=named))])
    writer.commit([JobsGenerated(4.0, 60, 61, 70, again)])
    writer.close()
    expected = {1: ("allocation", "pool"), 50: ("local",), 60: ("pool", "slurm")}
    with Reader.open(path) as reader:  # type: ignore[union-attr]
        assert {row.id: row.engines for row in reader.runs()} == expected
        assert run_page(reader, RunQuery(engine="pool"), 10).numbers == (60, 1)
        assert run_page(reader, RunQuery(engine="poo"), 10).numbers == ()
    assert replay(path) == []
    with sqlite3.connect(path) as old:
        take_back_11(old)
        old.execute("DROP INDEX runs_engines")
        old.execute("ALTER TABLE runs DROP COLUMN engines")
        for table in ("attempts", "tasks"):
            old.execute(f"ALTER TABLE {table} DROP COLUMN is_cpu_least")
        old.execute("PRAGMA user_version = 8")
    with Reader.open(path) as reader:  # type: ignore[union-attr]
        assert {row.engines for row in reader.runs()} == {()}
    Writer.open(path).close()
    with Reader.open(path) as reader:  # type: ignore[union-attr]
        assert {row.id: row.engines for row in reader.runs()} == expected
    assert replay(path) == []


def test_cpu_time_that_is_a_lower_bound_is_taken_from_the_records(tmp_path: Path) -> None:
    """What witnesses said of attempts and tasks becomes their column; a text of the job's that reads so does not."""
    record = '{"key":"k","cpu":"least","user":1.0}'
    quoted = json.dumps({"key": "k", "file": '"cpu":"least"'})
    verdict = Verdict(State.COMPLETED, ExitStatus(), "None", True, "witness")
    path = tmp_path / "aver.db"
    tasks = [
        TaskEnded(103.5, 1, 2, 1, 0, task, said, verdict, Usage(103.0, 0.5, 0.1, 0.0, is_cpu_least=said is record))
        for task, said in enumerate((record, quoted))
    ]
    steps = step(0, State.COMPLETED, 0, 0)
    end = ended()
    assert isinstance(end, Observed)
    assert end.usage is not None
    told = replace(end, said=record, usage=replace(end.usage, is_cpu_least=True))
    other = ended(job=3)
    assert isinstance(other, Observed)
    writer = Writer.open(path)
    writer.commit([submitted(jobs=2), planned(), started(), steps[0], *tasks, steps[1], told])
    writer.commit([planned(3), started(3), replace(other, said=quoted)])
    writer.close()
    expected = {2: True, 3: False}

    def stored() -> dict[int, bool]:
        with Reader.open(path) as reader:  # type: ignore[union-attr]
            found = {number: row.is_cpu_least for number in (2, 3) for row in reader.attempts(number)}
            if any(found.values()):
                assert [row.is_cpu_least for row in reader.tasks(2, 1, 0)] == [True, False]
            return found

    assert stored() == expected
    assert replay(path) == []
    with sqlite3.connect(path) as old:
        take_back_11(old)
        for table in ("attempts", "tasks"):
            old.execute(f"ALTER TABLE {table} DROP COLUMN is_cpu_least")
        old.execute("""UPDATE events SET data = replace(data, ',"is_cpu_least":true', '')""")
        assert old.total_changes
        old.execute("PRAGMA user_version = 9")
    assert stored() == {2: False, 3: False}
    Writer.open(path).close()
    assert stored() == expected
    assert replay(path) == []


def test_events_of_an_earlier_version_are_read_beside_new_ones(tmp_path: Path) -> None:
    """What sources said, and verdicts in full: before the migration, after it, and with words no column can hold."""
    odd = replace(ended(job=3), said="no \0 and no \udc80")
    path = tmp_path / "aver.db"
    first = [submitted(jobs=2), planned(), started(), ended(), planned(3), started(3), odd]
    writer = Writer.open(path)
    writer.commit(first)
    writer.close()
    with sqlite3.connect(path) as old:
        assert [row[0] for row in old.execute("SELECT said IS NULL FROM events WHERE kind = 'Observed'")][-1] == 1
        take_back_11(old)
        old.execute("PRAGMA user_version = 10")
    with Reader.open(path) as reader:  # type: ignore[union-attr]
        assert [one.event for one in reader.events()] == first
    second = [submitted(50, 51), planned(51), started(51), ended(job=51)]
    writer = Writer.open(path)
    writer.commit(second)
    writer.close()
    with Reader.open(path) as reader:  # type: ignore[union-attr]
        assert [one.event for one in reader.events()] == [*first, *second]
    assert replay(path) == []
