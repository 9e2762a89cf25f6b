"""From Slurm's answers to evidence: what is new, what has been silent for how long, and whose row it is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from aver.engines.api import Heard, Order
from aver.engines.slurm.batches import Batch, Shelf, batch_name
from aver.engines.slurm.commands.call import Commands
from aver.engines.slurm.commands.rows import AccountRow, QueueRow
from aver.engines.slurm.engine import SlurmEngine
from aver.engines.slurm.states import read_word
from aver.engines.slurm.submit.sbatch_call import Hander
from aver.engines.slurm.track.evidence import Settle, Track
from aver.engines.slurm.track.exit_records import Records
from aver.engines.slurm.track.pace import Pace
from aver.model.evidence import (
    AccountingSaid,
    Evidence,
    LeftQueue,
    MemoryWatch,
    NeverSeen,
    NobodySaid,
    QueueSaid,
    RecordIsLate,
    WitnessRecord,
)
from aver.model.exit import ExitStatus
from aver.model.job import Request
from aver.model.record import replace
from node_witness import witness_at

SETTLE = Settle()
MADE_AT = 1000.0
NAME = "train.k1"
RECORD = WitnessRecord("k1.r0", 2, ExitStatus(), 1001.0, 3.0, watch=MemoryWatch.CGROUP1)
RUNNING = QueueRow(
    job=7, index=None, word="RUNNING", reason="None", exit="", derived="0:0", restarts=0,
    submitted_at=1000.0, started_at=1001.0, ended_at=None, nodes="n1", name=NAME,
)  # fmt: skip
COMPLETED = replace(RUNNING, word="COMPLETED", exit="0:0", ended_at=1004.0)
FAILED = replace(RUNNING, word="FAILED", reason="NonZeroExitCode", exit="137:0", ended_at=1004.0)
JOB = AccountRow(
    job=7, index=None, step="", word="FAILED", exit="9:0", derived="0:0", submitted_at=1000.0, started_at=1001.0,
    ended_at=1004.0, elapsed_s=3.0, user_s=1.0, sys_s=0.5, maxrss_bytes=None, nodes="n1", name=NAME, partition="main",
)  # fmt: skip
BATCH = replace(JOB, step="batch", submitted_at=1001.0, name="batch", partition="", maxrss_bytes=4096)


def one() -> Track:
    return Track("k1", Batch(NAME, ("k1",), MADE_AT, id=7), None)


def queue(track: Track, row: QueueRow | None, since: float = 1.0) -> list[Evidence]:
    return track.hear_queue(row, since, 2000.0, SETTLE)


def accounts(track: Track, *rows: AccountRow, since: float = 1.0) -> list[Evidence]:
    return track.hear_accounting(rows, since, 2000.0, SETTLE, False)


def gone(track: Track) -> Track:
    """One that was seen to run, and left the queue."""
    assert [type(said) for said in queue(track, RUNNING) + queue(track, None)] == [QueueSaid, LeftQueue]
    return track


def test_only_news_is_told() -> None:
    """The same row again says nothing; another word, reason, exit or node does; gone is told once."""
    track = one()
    pending = replace(RUNNING, word="PENDING", reason="Priority", started_at=None, nodes="", derived="")
    changes = [pending, replace(pending, reason="Resources"), RUNNING, COMPLETED]
    for row in changes:
        (said,) = queue(track, row)
        assert isinstance(said, QueueSaid)
        assert (said.word.text, said.reason) == (row.word, "" if row.reason == "None" else row.reason)
        assert queue(track, row) == []
    assert [type(said) for said in queue(track, None) + queue(track, None)] == [LeftQueue]


def test_cancelled_while_it_waited() -> None:
    """Slurm then shows a start, and no node: it never ran, and has no exit status."""
    track = one()
    (said,) = queue(track, replace(RUNNING, word="CANCELLED", exit="0:0", nodes=""))
    assert isinstance(said, QueueSaid)
    assert said.started_at is None
    track = gone(one())
    rows = [replace(JOB, word="CANCELLED by 0", exit="0:0", nodes="")]
    accounts(track, *rows)
    (row,) = accounts(track, *rows, since=10.0)
    assert isinstance(row, AccountingSaid)
    assert row.started_at is None


def test_absence_is_evidence_only_for_something_once_seen() -> None:
    """Never listed: nothing is told, and its unseen time grows; listed again after it was gone: it is back."""
    track = one()
    assert queue(track, None) == []
    assert not track.is_over
    assert track.unseen_s == 1.0
    gone(track)
    assert track.is_over
    assert [type(said) for said in queue(track, RUNNING)] == [QueueSaid]
    assert not track.is_over


def test_first_answer_after_trouble_ages_nothing() -> None:
    """Time counts between two answers: the first one after a silence brings 0 s, however long that was."""
    track = gone(one())
    for _ in range(5):
        assert accounts(track, since=0.0) == []
        assert queue(track, None, since=0.0) == []
    assert (track.silent_s, track.late_s, track.unseen_s) == (0.0, 0.0, 0.0)


def test_never_seen() -> None:
    """Neither queue nor accounting ever had it: told once, when its unseen time has passed."""
    track = one()
    queue(track, None, since=299.0)
    assert accounts(track) == []
    queue(track, None, since=1.0)
    assert [type(said) for said in accounts(track)] == [NeverSeen]
    assert accounts(track) == []


def test_never_in_the_queue_and_found_in_accounting() -> None:
    """It ended between two questions: accounting's row counts."""
    track = one()
    queue(track, None, since=61.0)
    assert track.asks_accounting
    assert accounts(track, JOB, BATCH) == []
    assert [type(said) for said in accounts(track, JOB, BATCH, since=10.0)] == [AccountingSaid]


def test_rows_are_believed_when_they_no_longer_change() -> None:
    """Accounting rewrites rows for a while: without a record they must stay the same for `settle.stable`."""
    track = gone(one())
    early = replace(JOB, exit="0:0", word="COMPLETED")
    assert accounts(track, early) == []
    assert accounts(track, early, since=9.0) == []
    assert accounts(track, JOB, BATCH, since=5.0) == [], "changed: it starts again"
    assert accounts(track, JOB, BATCH, since=9.0) == []
    (said,) = accounts(track, JOB, BATCH, since=1.0)
    assert isinstance(said, AccountingSaid)
    assert (said.word, said.batch_exit, said.maxrss_bytes) == (read_word("FAILED"), "9:0", 4096)
    assert not track.asks_accounting


def test_with_a_record_one_settled_row_is_enough() -> None:
    """The witness has the exit status; only the cause is asked for."""
    track = gone(one())
    track.hear_record(replace(RECORD, exit=ExitStatus(3)))
    assert [type(said) for said in accounts(track, JOB, BATCH)] == [AccountingSaid]


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(replace(JOB, ended_at=None), id="no end yet, as after the database came back"),
        pytest.param(replace(JOB, word="RUNNING", ended_at=None), id="still called running"),
        pytest.param(replace(JOB, word="PENDING"), id="a word that is no end"),
        pytest.param(replace(JOB, name="allocation", partition=""), id="a placeholder"),
        pytest.param(replace(JOB, partition="", word="COMPLETED", exit="0:0"), id="a placeholder with our name"),
        pytest.param(replace(JOB, name="somebody.else"), id="another name: the id was used again"),
        pytest.param(replace(JOB, submitted_at=MADE_AT - 7200.0), id="submitted before us: the id was used before"),
        pytest.param(replace(JOB, index=3), id="a member of an array"),
        pytest.param(replace(JOB, job=8), id="another job"),
    ],
)
def test_rows_that_say_nothing(row: AccountRow) -> None:
    """None of these settles anything; the long wait goes on."""
    track = gone(one())
    for _ in range(5):
        assert accounts(track, row, BATCH, since=100.0) == []
    (said,) = accounts(track, row, BATCH, since=100.0)
    assert isinstance(said, NobodySaid)
    assert (said.waited_s, said.accounting) == (600.0, "silent")


def test_steps_of_another_job_are_not_ours() -> None:
    """The id was used before, by a job with a script of its own: only the rows behind our job's count."""
    track = gone(one())
    other = replace(JOB, name="other.k9", submitted_at=950.0)
    rows = [replace(other), replace(BATCH, exit="1:0"), JOB]
    accounts(track, *rows)
    (said,) = accounts(track, *rows, since=10.0)
    assert isinstance(said, AccountingSaid)
    assert (said.exit, said.batch_exit) == ("9:0", "")
    track = gone(one())
    rows = [JOB, replace(other, submitted_at=1500.0), replace(BATCH, exit="1:0", submitted_at=1500.0)]
    accounts(track, *rows)
    (said,) = accounts(track, *rows, since=10.0)
    assert isinstance(said, AccountingSaid)
    assert (said.exit, said.batch_exit) == ("9:0", "")


def test_silent_for_the_long_wait() -> None:
    """Asked and answered for 600 s without a row: nobody said. Told once; a row that comes late is waited for."""
    track = gone(one())
    assert accounts(track, since=599.0) == []
    assert [type(said) for said in accounts(track, since=1.0)] == [NobodySaid]
    assert accounts(track, since=600.0) == []
    assert track.asks_accounting


def test_silence_about_what_still_runs_is_no_evidence() -> None:
    """The queue has it: however long accounting says nothing, nobody gives it up."""
    track = one()
    queue(track, RUNNING)
    assert accounts(track, since=10_000.0) == []
    assert track.hear_disabled(10_000.0, 2000.0, SETTLE) == []
    assert track.given_up_at is None


def test_an_earlier_start_says_nothing_of_a_later_one() -> None:
    """Slurm has started it again: rows of the first start, in the queue and in accounting, are not its own."""
    track = replace(one(), restarts=1)
    assert queue(track, replace(FAILED, restarts=0)) == []
    assert not track.is_over
    queue(track, replace(RUNNING, restarts=1))
    queue(track, None)
    assert accounts(track, JOB, BATCH, since=20.0) + accounts(track, JOB, BATCH, since=20.0) == []
    again = replace(JOB, word="COMPLETED", exit="0:0")
    rows = (JOB, BATCH, again, replace(BATCH, word="COMPLETED", exit="0:0"))
    accounts(track, *rows)
    (said,) = accounts(track, *rows, since=20.0)
    assert isinstance(said, AccountingSaid)
    assert (said.word, said.batch_exit) == (read_word("COMPLETED"), "0:0")


def test_disabled_accounting() -> None:
    """With a record, the short wait is enough; without one, the long."""
    track = gone(one())
    track.hear_record(replace(RECORD, exit=ExitStatus(3)))
    assert track.hear_disabled(9.0, 2000.0, SETTLE) == []
    (said,) = track.hear_disabled(1.0, 2000.0, SETTLE)
    assert isinstance(said, NobodySaid)
    assert said.accounting == "disabled"
    track = gone(one())
    assert track.hear_disabled(599.0, 2000.0, SETTLE) == []
    assert [type(said) for said in track.hear_disabled(1.0, 2000.0, SETTLE)] == [NobodySaid]


def test_late_record() -> None:
    """The controller called it failed: its record is waited for, then told as late, once; a record ends the wait."""
    track = one()
    queue(track, RUNNING)
    queue(track, FAILED)
    assert queue(track, FAILED, since=9.0) == []
    (said,) = queue(track, FAILED, since=1.0)
    assert isinstance(said, RecordIsLate)
    assert said.waited_s == 10.0
    assert queue(track, FAILED, since=100.0) == []
    track = one()
    queue(track, FAILED)
    assert queue(track, None, since=5.0) == [LeftQueue(2000.0)]
    assert track.hear_record(RECORD) == [RECORD]
    assert queue(track, None, since=100.0) == []
    assert track.hear_record(replace(RECORD, exit=ExitStatus(1))) == []


@pytest.mark.parametrize(
    ("rows", "record", "is_asked"),
    [
        ([RUNNING], None, False),
        ([RUNNING], RECORD, False),
        ([RUNNING, None], None, True),
        ([RUNNING, None], RECORD, False),
        ([RUNNING, None], replace(RECORD, exit=ExitStatus(1)), True),
        ([RUNNING, None], replace(RECORD, got=(15,)), True),
        ([COMPLETED], None, True),
        ([COMPLETED], replace(RECORD, got=(15,)), False),
        ([FAILED], None, False),
        ([FAILED, None], None, False),
        ([None], None, True),
        ([replace(RUNNING, word="QUARANTINED")], None, True),
    ],
)
def test_when_accounting_is_asked(rows: list[QueueRow | None], record: WitnessRecord | None, is_asked: bool) -> None:
    """Only where it can say something that is missing: most jobs need no sacct at all."""
    track = one()
    for row in rows:
        queue(track, row)
    if record is not None:
        track.hear_record(record)
    assert track.asks_accounting is is_asked


def test_arrays_are_counted_member_by_member() -> None:
    """One row COMPLETED 0:0 of an array that just ended settles its own member at most, not the nine others."""
    batch = Batch("m.k0+10", tuple(f"k{number}" for number in range(10)), MADE_AT, id=7, is_array=True)
    tracks = [Track(key, batch, batch.index_of(key)) for key in batch.keys]
    row = replace(JOB, name=batch.name, word="COMPLETED", exit="0:0")
    whole = row
    for track in tracks:
        track.hear_queue(replace(RUNNING, index=track.index, name=batch.name), 1.0, 2000.0, SETTLE)
        track.hear_queue(None, 1.0, 2000.0, SETTLE)
    for since in (1.0, 10.0, 10.0):
        told = [bool(accounts(track, whole, since=since)) for track in tracks]
        assert told == [False] * 10, "a row of the array as a whole is no member's"
    first = replace(row, index=3)
    told = [bool(accounts(track, first)) or bool(accounts(track, first, since=10.0)) for track in tracks]
    assert told == [track.index == 3 for track in tracks]


# ---- the engine's clock, with commands that a test answers for -------------------------------------------


def test_an_array_that_was_cancelled_while_it_waited_is_one_row() -> None:
    """Slurm then has one row, of the array's id alone. It speaks of members that never ran, and only as cancelled."""
    batch = Batch("m.k0+3", ("k0", "k1", "k2"), MADE_AT, id=7, is_array=True)
    waited, ran = Track("k1", batch, 1), Track("k2", batch, 2)
    waiting = replace(RUNNING, index=1, word="PENDING", name=batch.name, nodes="", started_at=None)
    queue(waited, waiting)
    queue(ran, replace(waiting, index=2, word="RUNNING", nodes="n1", started_at=1001.0))
    row = replace(waiting, index=None, word="CANCELLED", exit="0:0")
    found = waited.in_one_row([row])
    assert found is not None
    assert (found.index, found.word, found.exit, found.started_at) == (1, "CANCELLED", "", None)
    assert ran.in_one_row([row]) is None
    assert waited.in_one_row([replace(row, word="COMPLETED")]) is None
    assert Track("k1", replace(batch, is_array=False), None).in_one_row([row]) is None
    accounted = replace(JOB, index=None, word="CANCELLED by 0", exit="0:0", name=batch.name, nodes="")
    mine = waited.in_one_row([accounted])
    assert mine is not None
    waited.is_gone = True
    accounts(waited, mine)
    (said,) = accounts(waited, mine, since=10.0)
    assert isinstance(said, AccountingSaid)
    assert (said.word, said.started_at) == (read_word("CANCELLED by 0"), None)


ANSWER = """#!/bin/sh
name=$(basename "$0")
echo $name >>{folder}/calls
if [ -e {folder}/down ] && [ $name != sbatch ]; then
    echo "$name: error: Unable to contact slurm controller" >&2
    exit 1
fi
cat {folder}/$name.says 2>/dev/null
exit 0
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[SlurmEngine, Path]]:
    """An engine whose commands print what the files of a folder say; all but sbatch fail while `down` is there."""
    folder = tmp_path / "site"
    for name in ("bin", "batches", "records"):
        (folder / name).mkdir(parents=True)
    for name in ("sbatch", "squeue", "sacct", "scontrol", "scancel"):
        path = folder / "bin" / name
        path.write_text(ANSWER.format(folder=folder))
        path.chmod(0o755)
    (folder / "sbatch.says").write_text("7\n")
    commands = Commands(path=f"{folder / 'bin'}:/usr/bin:/bin")
    records = str(folder / "records")
    hander = Hander(
        lambda: commands, witness=witness_at("/no"), records=records, shim="/no", own_folder="/no", timeout_s=20.0
    )
    engine = SlurmEngine(
        Shelf(folder / "batches"), commands, hander, Records(folder / "records"),
        Settle(ask_accounting_s=0.0, never_seen_s=0.5), Pace(least_s=0.02, most_s=0.05, trouble_most_s=0.05),
        lambda text: None,
    )  # fmt: skip
    engine.attach()
    yield engine, folder
    engine.close()


def asked(folder: Path) -> int:
    try:
        return (folder / "calls").read_text().split().count("squeue")
    except FileNotFoundError:
        return 0


def hear_until(engine: SlurmEngine, found: type[object] | None, until: int, folder: Path) -> list[Heard]:
    """Listen until this kind of evidence came, or so many questions were asked."""
    heard: list[Heard] = []
    end = time.monotonic() + 60
    while True:
        heard += engine.heard()
        if found is not None and any(isinstance(said.evidence, found) for said in heard):
            return heard
        if found is None and asked(folder) >= until:
            return heard
        assert time.monotonic() < end, heard
        time.sleep(0.02)


def test_trouble_ages_nothing(site: tuple[SlurmEngine, Path]) -> None:
    """A controller that can't be asked moves nothing for however long; answers that come back do."""
    engine, folder = site
    order = Order(
        key="k1", args=("true",), folder="/", env_file=None, env=(), umask=0o22, limits=(), request=Request(),
        stdin=None, stdout=None, stderr=None, append=False, warning=None, kill_wait_s=1.0, name="train",
    )  # fmt: skip
    (folder / "down").touch()
    began = time.monotonic()
    engine.submit([order])
    while not (folder / "batches" / "k1.json").exists() or '"id": 7' not in (folder / "batches/k1.json").read_text():
        assert time.monotonic() < began + 60
        time.sleep(0.01)
    heard = hear_until(engine, None, asked(folder) + 30, folder)
    assert not [said for said in heard if isinstance(said.evidence, NeverSeen)]
    back = time.monotonic()
    (folder / "down").unlink()
    heard = hear_until(engine, NeverSeen, 0, folder)
    (said,) = [one.evidence for one in heard if isinstance(one.evidence, NeverSeen)]
    assert 0.5 <= said.waited_s <= time.monotonic() - back, "the time of trouble is not in it"


def test_a_row_that_has_not_ended_is_a_record_of_it() -> None:
    """Never in the queue, and accounting has it as pending: it is not said that nobody has a record of it."""
    track = one()
    queue(track, None, since=600.0)
    for _ in range(3):
        assert accounts(track, replace(JOB, word="PENDING", ended_at=None), since=100.0) == []
    assert [type(said) for said in queue(track, None)] == [LeftQueue]
    assert [type(said) for said in accounts(track, since=300.0)] == [NobodySaid]


def test_clocks_that_differ_by_minutes() -> None:
    """The cluster's clock is behind ours: a row of our name is ours all the same; one of last week is not."""
    behind = [replace(row, submitted_at=MADE_AT - 900.0) for row in (JOB, BATCH)]
    track = gone(one())
    assert accounts(track, *behind) == []
    assert [type(said) for said in accounts(track, *behind, since=10.0)] == [AccountingSaid]
    track = gone(one())
    old = [replace(row, submitted_at=MADE_AT - 7 * 86400.0) for row in (JOB, BATCH)]
    assert accounts(track, *old) + accounts(track, *old, since=10.0) == []


def test_names_that_accounting_can_hold() -> None:
    """MariaDB's tables may be latin1 and hold 255 bytes: a job's name goes there in ASCII, and its key whole."""
    name = batch_name("größe 尺寸" * 50, ("0123abcd.1.1.bbbbbbbb", "k2"))
    assert name.isascii()
    assert len(name) < 200
    assert name.endswith(".0123abcd.1.1.bbbbbbbb+2")
