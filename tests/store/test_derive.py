"""What each event makes of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from store_events import ended, planned, started, submission, submitted, whole_job

from aver.model.events import (
    Event,
    JobMoved,
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
from aver.model.job import FlowSpec, JobSpec, Need, Needs, Origin, Shell, StepSpec, Submission
from aver.model.states import State
from aver.store.read.reader import Reader
from aver.store.read.rows import JobRow
from aver.store.write.writer import Writer
from store_replay import replay


class Store:
    def __init__(self, path: Path) -> None:
        self.writer = Writer.open(path)
        reader = Reader.open(path)
        assert reader is not None
        self.reader = reader

    def commit(self, *events: Event) -> None:
        self.writer.commit(events)

    def job(self, job: int = 2) -> JobRow:
        row = self.reader.job(job)
        assert row is not None
        return row


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "aver.db")
    yield made
    made.reader.close()
    made.writer.close()


def test_a_submitted_job_is_pending_and_says_why(store: Store) -> None:
    """Held, dependent, delayed and plain jobs each start with their own reason."""
    jobs = (
        JobSpec("plain", Shell("x")),
        JobSpec("held", Shell("x"), hold=True, needs=Needs((Need("plain"),))),
        JobSpec("needy", Shell("x"), needs=Needs((Need("plain"),)), begin_at=5.0),
        JobSpec("either", Shell("x"), needs=Needs(any_of=((Need("plain"),),)), background=True),
        JobSpec("later", Shell("x"), begin_at=5.0),
    )
    store.commit(RunSubmitted(1.0, 1, 2, Submission(FlowSpec("f", jobs), Origin("u", 1, "h", "/", 0))))
    rows = store.reader.jobs(run=1)
    assert [row.reason for row in rows] == ["Priority", "JobHeldUser", "Dependency", "Dependency", "BeginTime"]
    assert {row.state for row in rows} == {State.PENDING}
    assert [row.background for row in rows] == [False, False, False, True, False]
    assert [(row.spec, row.member, row.attempt, row.first_job) for row in rows] == [(n, 0, 0, 2) for n in range(5)]


def test_a_job_follows_its_attempt_to_the_verdict(store: Store) -> None:
    """Planned changes nothing yet, then RUNNING with a start, then settled with the verdict's columns and end."""
    store.commit(submitted(), planned())
    assert (store.job().state, store.job().attempt, store.job().started_at) == (State.PENDING, 0, None)
    store.commit(started())
    assert (store.job().state, store.job().started_at, store.job().ended_at) == (State.RUNNING, 102.0, None)
    assert store.job().verdict is None
    store.commit(ended(state=State.FAILED, ended_as=ExitStatus(code=137)))
    row = store.job()
    assert row.verdict == Verdict(
        State.FAILED, ExitStatus(code=137), "None", True, "witness", ("a warning",), "a detail"
    )
    assert (row.started_at, row.elapsed_s, row.ended_at) == (102.0, 5.0, 107.0)
    (attempt,) = store.reader.attempts(2)
    assert attempt.verdict == row.verdict
    assert (attempt.user_s, attempt.sys_s, attempt.peak_bytes, attempt.node) == (1.0, 0.5, 4096, "n1")
    assert (attempt.key, attempt.engine, attempt.request.mem_bytes) == ("home-2-1", "local", 1 << 30)


def test_one_batch_gives_the_same_rows_as_many(tmp_path: Path) -> None:
    """Merging the changes of a row before they are written changes nothing."""
    events = [submitted(jobs=3), *whole_job(2), planned(3), started(3), JobMoved(5.0, 1, 4, State.PENDING, "Resources")]
    one, many = Store(tmp_path / "one.db"), Store(tmp_path / "many.db")
    one.commit(*events)
    for event in events:
        many.commit(event)
    assert one.reader.jobs() == many.reader.jobs()
    assert one.reader.attempts_of_run(1) == many.reader.attempts_of_run(1)


def test_an_end_without_usage_is_when_it_was_observed(store: Store) -> None:
    """Without a start and a duration the end is the event's time, and a later correction does not move it."""
    store.commit(submitted(), planned(), ended(usage=None, state=State.UNVERIFIED, ended_as=None, at=110.0))
    row = store.job()
    assert (row.exit, row.ended_at, row.started_at) == (None, 110.0, None)
    store.commit(ended(usage=None, at=500.0))
    assert (store.job().state, store.job().ended_at) == (State.COMPLETED, 110.0)


def test_better_times_replace_and_unknown_ones_do_not(store: Store) -> None:
    """What is not known never erases what is."""
    store.commit(submitted(), planned(), ended())
    store.commit(ended(usage=Usage(102.0)))
    assert store.job().elapsed_s == 5.0
    assert store.reader.attempts(2)[0].peak_bytes == 4096
    store.commit(ended(usage=Usage(103.0, 6.0)))
    assert (store.job().started_at, store.job().ended_at) == (103.0, 109.0)


def test_a_job_that_is_to_be_retried_is_pending_without_times_or_verdict(store: Store) -> None:
    """The attempt keeps its verdict; the job has none until no retry is due."""
    store.commit(submitted(), planned(), started())
    store.commit(ended(state=State.TIMEOUT, job_state=State.PENDING, job_reason="Retry"))
    row = store.job()
    assert (row.state, row.reason, row.verdict, row.exit) == (State.PENDING, "Retry", None, None)
    assert (row.started_at, row.ended_at, row.elapsed_s) == (None, None, None)
    assert store.reader.attempts(2)[0].state is State.TIMEOUT


@pytest.mark.parametrize("together", [True, False])
def test_news_of_an_older_attempt_changes_that_attempt_only(store: Store, together: bool) -> None:
    """A late report about attempt 1 leaves the job with its attempt 2."""
    store.commit(submitted(), planned(attempt=1), started(attempt=1))
    late: list[Event] = [planned(attempt=2, at=200.0), ended(attempt=1, at=201.0)]
    for batch in [late] if together else [[one] for one in late]:
        store.commit(*batch)
    assert (store.job().state, store.job().attempt, store.job().exit) == (State.RUNNING, 2, None)
    assert [one.state for one in store.reader.attempts(2)] == [State.COMPLETED]


def failing_step(attempt: int = 1, raw: int = 7 << 8) -> list[Event]:
    verdict = Verdict(State.FAILED, ExitStatus.from_wait(raw), "NonZeroExitCode", True, "witness")
    return [
        StepStarted(103.0, 1, 2, attempt, 0, f"t{attempt}", StepSpec("s", ("false",), "/")),
        StepEnded(104.0, 1, 2, attempt, 0, verdict, raw),
    ]


def queued(attempt: int = 1) -> Observed:
    return Observed(105.0, 1, 2, attempt, "squeue", "PENDING", State.PENDING, "Priority")


@pytest.mark.parametrize("together", [True, False])
def test_a_queue_that_says_pending_takes_no_derived_exit_back(store: Store, together: bool) -> None:
    """Its steps have run, whatever the queue says: DerivedExitCode is a running maximum over one attempt."""
    events: list[Event] = [submitted(), planned(), started(), *failing_step(), queued()]
    for batch in [events] if together else [[one] for one in events]:
        store.commit(*batch)
    assert store.job().derived == 7 << 8
    assert replay(store.writer.path) == []


@pytest.mark.parametrize("together", [True, False])
def test_a_new_attempt_has_a_derived_exit_of_its_own(store: Store, together: bool) -> None:
    """It is 0:0 when the next attempt is planned, though nobody called the job PENDING, and grows with its steps."""
    events: list[Event] = [submitted(), planned(), started(), *failing_step(), planned(attempt=2)]
    for batch in [events] if together else [[one] for one in events]:
        store.commit(*batch)
    assert store.job().derived == 0
    store.commit(started(attempt=2), *failing_step(2, raw=3 << 8), queued(attempt=2))
    assert store.job().derived == 3 << 8
    assert replay(store.writer.path) == []


def test_a_job_that_waits_for_its_retry_has_no_derived_exit(store: Store) -> None:
    """Its attempt is over: what its steps were is that attempt's own."""
    store.commit(submitted(), planned(), started(), *failing_step())
    store.commit(ended(state=State.TIMEOUT, job_state=State.PENDING, job_reason="Retry"))
    assert store.job().derived == 0
    assert [step.derived for step in store.reader.steps(2)] == [7 << 8]


def test_a_job_that_a_person_has_run_again_has_no_derived_exit(store: Store) -> None:
    """Settled with a failing step, and then begun again: what it will derive is to come."""
    store.commit(submitted(), planned(), started(), *failing_step(), ended())
    assert store.job().derived == 7 << 8
    store.commit(JobMoved(300.0, 1, 2, State.PENDING, "Priority", None))
    assert store.job().derived == 0


def test_a_move_without_an_attempt_is_kept_beside_late_news(store: Store) -> None:
    """In one batch: late news of an old attempt is ignored by the job, the move that follows is not."""
    store.commit(submitted(), planned(attempt=1), planned(attempt=2))
    verdict = Verdict(State.CANCELLED, None, "None", True, "person")
    store.commit(ended(attempt=1), JobMoved(300.0, 1, 2, State.CANCELLED, "ByAnn", verdict))
    row = store.job()
    assert (row.state, row.reason, row.source, row.ended_at) == (State.CANCELLED, "ByAnn", "person", 300.0)


@pytest.mark.parametrize("together", [True, False])
def test_what_was_only_planned_is_no_attempt_of_the_store(store: Store, together: bool) -> None:
    """A job that ends before its planned attempt has the attempts that ran, and the next one takes the free number."""
    verdict = Verdict(State.CANCELLED, None, "None", True, "person")
    events: list[Event] = [
        submitted(jobs=2),
        planned(attempt=1),
        ended(attempt=1, state=State.FAILED, job_state=State.PENDING),
        planned(attempt=2),
        JobMoved(300.0, 1, 2, State.CANCELLED, "None", verdict),
        planned(job=3, attempt=1),
        JobMoved(300.0, 1, 3, State.CANCELLED, "None", verdict),
        JobMoved(301.0, 1, 3, State.PENDING, "Priority", None),
        planned(job=3, attempt=1),
        started(job=3, attempt=1),
    ]
    for batch in [events] if together else [[event] for event in events]:
        store.commit(*batch)
    assert (store.job(2).attempt, store.job(3).attempt) == (1, 1)
    assert [(row.attempt, row.state) for row in store.reader.attempts(2)] == [(1, State.FAILED)]
    assert [(row.attempt, row.state) for row in store.reader.attempts(3)] == [(1, State.RUNNING)]


def test_an_attempt_is_listed_once_its_program_was_given_to_the_engine(store: Store) -> None:
    """An intent that was made ahead is not shown."""
    store.commit(submitted(), planned())
    assert store.reader.attempts(2) == store.reader.attempts_of_run(1) == []
    assert [row.attempt for row in store.reader.outcomes(1) if row.job == 2] == [None]
    store.commit(started())
    assert [row.attempt for row in store.reader.attempts(2)] == [1]


def test_generated_jobs_join_their_run(store: Store) -> None:
    """They get rows, the run's count grows, and numbers go on after them."""
    store.commit(submitted(), *whole_job())
    store.commit(JobsGenerated(120.0, 1, 2, 3, submission(4, "more").flow))
    run = store.reader.run(1)
    assert run is not None
    assert run.jobs == 5
    assert [row.name for row in store.reader.jobs(run=1)] == ["train"] + [f"more[seed={n}]" for n in range(4)]
    assert store.reader.job(5).first_job == 3  # type: ignore[union-attr]
    assert store.writer.next_id() == 7
    assert [event.first_job for event in store.reader.generated(1)] == [3]


def test_a_run_follows_its_moves(store: Store) -> None:
    """Its state, round and end are those of the last move; PersonAsked changes no row."""
    store.commit(submitted())
    assert store.reader.unsettled_runs() == [1]
    store.commit(RunMoved(120.0, 1, State.FAILED), PersonAsked(1.0, 1, None, "ann", "cancel"))
    run = store.reader.run(1)
    assert run is not None
    assert (run.state, run.ended_at, run.round, run.user) == (State.FAILED, 120.0, 1, "ann")
    assert store.reader.unsettled_runs() == []
    store.commit(RunMoved(130.0, 1, State.RUNNING, 2))
    run = store.reader.run(1)
    assert run is not None
    assert (run.state, run.ended_at, run.round) == (State.RUNNING, None, 2)


def test_a_pruned_run_is_gone_and_its_numbers_stay_used(store: Store) -> None:
    """Its rows and events go, other runs stay, and no number is given twice."""
    store.commit(submitted(1, 2, 1), submitted(3, 4, 2), *whole_job(4, run=3))
    store.commit(*whole_job(5, run=3), RunPruned(200.0, 3))
    assert store.reader.run(3) is None
    assert store.reader.jobs(run=3) == []
    assert store.reader.attempts(4) == []
    assert store.reader.submission(3) is None
    assert [type(one.event).__name__ for one in store.reader.events(run=3)] == ["RunPruned"]
    assert [row.id for row in store.reader.jobs()] == [2]
    assert store.writer.next_id() == 6


def test_a_single_job_shares_its_number_with_its_run(store: Store) -> None:
    """Numbers go on after it."""
    store.commit(submitted(7, 7))
    assert store.reader.run(7) is not None
    assert store.job(7).run == 7
    assert store.writer.next_id() == 8


@pytest.mark.parametrize(("elapsed_s", "ended_at"), [(50.0, 153.0), (None, 9.0)])
def test_a_step_ends_with_the_last_of_its_tasks(store: Store, elapsed_s: float | None, ended_at: float) -> None:
    """The clock was set back while it ran: what was measured counts, and only without that the time of the event."""
    verdict = Verdict(State.TIMEOUT, ExitStatus(0, 15), "TimeLimit", True, "witness")
    store.commit(submitted(), planned(), started(), StepStarted(103.0, 1, 2, 1, 0, "t", StepSpec("a", ("a",), "/")))
    store.commit(TaskEnded(9.0, 1, 2, 1, 0, 0, "said", verdict, Usage(103.0, elapsed_s)))
    store.commit(StepEnded(9.0, 1, 2, 1, 0, verdict, 15))
    assert [step.ended_at for step in store.reader.steps(2)] == [ended_at]
