"""Commands about runs with very many jobs say the same without reading a row for each."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from aver.cli.commands.look import results
from aver.model.events import AttemptPlanned, Event, JobMoved, JobsEnded, Observed, RunMoved, RunSubmitted, Usage
from aver.model.evidence import Verdict
from aver.model.exit import ExitStatus
from aver.model.job import Argv, FlowSpec, JobSpec, Matrix, Origin, Request, Submission
from aver.model.states import State
from aver.store.read import large_run
from aver.store.read.reader import Reader
from aver.store.write.writer import Writer
from past_runs import Call

COUNT = 60
CANCELLED = Verdict(State.CANCELLED, None, "None", True, "coordinator", (), "cancelled by ann before it started")


def ran(job: int, state: State, code: int) -> list[Event]:
    verdict = Verdict(
        state, ExitStatus(code), "None" if state is State.COMPLETED else "NonZeroExitCode", True, "witness"
    )
    usage = Usage(10.0, 2.0, 1.0, 0.5, 4096 * job, "n1")
    return [
        AttemptPlanned(9.0, 1, job, 1, f"home-{job}-1", "local", Request()),
        Observed(12.0, 1, job, 1, "witness", "end", state, verdict.reason, verdict, usage),
    ]


def unlucky(job: int, chance: random.Random) -> list[Event]:
    """The first attempt failed; then it was cancelled, ran again, or was lost before its start was seen."""
    events = ran(job, State.FAILED, 3)
    planned = AttemptPlanned(13.0, 1, job, 2, f"home-{job}-2", "local", Request())
    match chance.randint(0, 3):
        case 0:
            return [*events, JobMoved(14.0, 1, job, State.CANCELLED, "None", CANCELLED)]
        case 1:
            verdict = Verdict(State.UNVERIFIED, None, "WitnessVanished", False, "nobody")
            lost = Observed(15.0, 1, job, 2, "witness", "gone", State.UNVERIFIED, verdict.reason, verdict, None)
            return [*events, planned, lost]
        case 2:
            verdict = Verdict(State.NODE_FAIL, None, "NodeDown", True, "witness")
            usage = Usage(14.0, None, None, None, None, None)
            lost = Observed(15.0, 1, job, 2, "witness", "boot", State.NODE_FAIL, verdict.reason, verdict, usage)
            return [*events, planned, lost]
        case _:
            verdict = Verdict(State.FAILED, ExitStatus(1), "NonZeroExitCode", True, "witness")
            usage = Usage(14.0, 1.0, 0.5, 0.25, 1 << 30, "n1", chance.random() < 0.5)
            again = Observed(15.0, 1, job, 2, "witness", "end", State.FAILED, verdict.reason, verdict, usage)
            return [*events, planned, again]


def story(seed: int) -> list[Event]:
    """Run 1 with jobs 2 to 61: some ran, rows of others ended before they began, the rest waits."""
    chance = random.Random(seed)
    matrix = Matrix((("i", tuple(map(str, range(COUNT)))),))
    flow = FlowSpec("many", (JobSpec("m", Argv(("true",)), matrix=matrix),))
    events: list[Event] = [RunSubmitted(1.0, 1, 2, Submission(flow, Origin("ann", 1000, "host", "/tmp", 0o22)))]
    job = 2
    while job < 2 + COUNT:
        count = min(chance.randint(1, 12), 2 + COUNT - job)
        match chance.randint(0, 5):
            case 0:
                events += [one for at in range(count) for one in ran(job + at, State.COMPLETED, 0)]
            case 1:
                events += ran(job, State.FAILED, chance.randint(1, 2))
                count = 1
            case 2:
                events.append(JobsEnded(20.0, 1, job, job + count - 1, CANCELLED))
            case 3:
                reason = f"NeedFailed:{chance.choice('ab')}=FAILED"
                verdict = Verdict(State.SKIPPED, None, reason, True, "coordinator", (), "it needs")
                events += [JobMoved(20.0, 1, job + at, State.SKIPPED, reason, verdict) for at in range(count)]
            case 4:
                events += unlucky(job, chance)
                count = 1
            case _:
                pass
        job += count
    return [*events, RunMoved(30.0, 1, State.FAILED)]  # else a coordinator would run the rest


@pytest.mark.parametrize("seed", range(24))
def test_the_same_is_said_without_reading_all_rows(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """`results` and `why`: the same text and the same documents as by all rows of the run."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    writer = Writer.open(home / "aver.db")
    writer.commit(story(seed))
    writer.close()
    monkeypatch.setenv("AVER_HOME", str(home))
    asked = (("results", "1"), ("results", "1", "-n", "3"), ("results", "1", "-n", "7", "--json"), ("why", "1"),
             ("why", "1", "--json"), ("runs",))  # fmt: skip
    by_rows = []
    with monkeypatch.context() as patched:
        patched.setattr(large_run, "MOST_KINDS", -1)
        by_rows = [call(*words) for words in asked]
    monkeypatch.setattr(results, "LARGE", 0)
    if seed % 2:
        monkeypatch.setattr(large_run, "HALVED", 0)
    with Reader.open(home / "aver.db") as reader:  # type: ignore[union-attr]
        assert large_run.first_page(reader, 1, COUNT, 50) is not None
    assert [call(*words) for words in asked] == by_rows
    with Reader.open(home / "aver.db") as reader:  # type: ignore[union-attr]
        assert reader.counts(1) == {state: count for state, (count, _) in reader.tally(1).items()}


@pytest.mark.parametrize("halved", [0, large_run.HALVED], ids=["two threads", "one thread"])
def test_a_page_is_of_one_moment(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch, halved: int) -> None:
    """Jobs that end while the page is put together are in all of it or in none of it."""
    monkeypatch.setattr(large_run, "HALVED", halved)
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    matrix = Matrix((("i", tuple(map(str, range(COUNT)))),))
    flow = FlowSpec("many", (JobSpec("m", Argv(("true",)), matrix=matrix, hold=True),))
    writer = Writer.open(home / "aver.db")
    submission = Submission(flow, Origin("ann", 1000, "host", "/tmp", 0o22))
    writer.commit([RunSubmitted(1.0, 1, 2, submission), RunMoved(1.0, 1, State.FAILED)])  # settled: nobody drives it
    monkeypatch.setenv("AVER_HOME", str(home))
    monkeypatch.setattr(results, "LARGE", 0)
    before = call("results", "1")
    counted = large_run._totals

    def let_jobs_end(reader: Reader, first: int, last: int) -> object:
        writer.commit(
            [one for job in range(COUNT - 2, COUNT + 1) for one in ran(job, State.COMPLETED, 0)]
        )  # before the other thread
        found = counted(reader, first, last)
        writer.commit([one for job in range(2, 7) for one in ran(job, State.COMPLETED, 0)])
        return found

    with monkeypatch.context() as patched:
        patched.setattr(large_run, "_totals", let_jobs_end)
        assert call("results", "1") == before
    assert call("results", "1") != before
    writer.close()
