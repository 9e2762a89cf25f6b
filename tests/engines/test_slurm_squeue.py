"""What squeue says. Recorded answers of 22.05 and 25.11, and answers written from the documentation of others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slurm_recordings import answers

from aver.engines.slurm.commands import squeue
from aver.engines.slurm.commands.call import Reply, Trouble
from aver.engines.slurm.commands.fields import SEPARATOR
from aver.engines.slurm.commands.ids import Members
from aver.engines.slurm.commands.rows import NoAnswer, Queue, QueueRow
from aver.model.record import replace

RECORDED = answers("squeue-22.05.txt")
RECORDED_25_11 = answers("squeue-25.11.txt")
OTHERS = answers("squeue-other-versions.txt")


def rows_of(reply: Reply) -> dict[str, QueueRow]:
    answer = squeue.read_queue(reply, asked=10)
    assert isinstance(answer, Queue)
    assert answer.is_whole
    return {row.said.partition("|")[0]: row for row in answer.rows}


def test_a_recorded_answer() -> None:
    """Exit statuses are whole, names are as they were given, and what has not ended has no exit."""
    rows = rows_of(RECORDED["many"])
    assert len(rows) == 18
    code137 = rows["1405"]
    assert (code137.word, code137.exit, code137.derived) == ("FAILED", "137:0", "7:0")
    assert code137.ended_at == 1794794916.0
    assert (rows["1406"].exit, rows["1406"].name) == ("0:1", "a|b  c=d")
    assert [rows[f"1407_{index}"].exit for index in (1, 3, 5)] == ["1:0", "3:0", "5:0"]
    assert (rows["1407_3"].job, rows["1407_3"].index) == (1407, 3)
    assert rows["1411"].exit == "0:125"
    assert rows["1412"].exit == "0:15"
    assert (rows["1413"].restarts, rows["1413"].reason) == (1, "BeginTime")
    assert rows["1409"].name == "two\nlines"
    assert (rows["1414+1"].job, rows["1414+1"].het) == (1414, 1)
    assert rows["1416"].exit == "0:0"


def test_a_recorded_answer_of_25_11() -> None:
    """Exits are `code:signal`, not raw wait statuses, and the name of a signal has spaces."""
    rows = rows_of(RECORDED_25_11["many"])
    assert len(rows) == 13
    assert (rows["633"].word, rows["633"].exit, rows["633"].derived) == ("FAILED", "137:0", "7:0")
    assert (rows["634"].exit, rows["634"].name) == ("0:1", "a|b  c=d")
    assert (rows["635"].exit, rows["635"].reason) == ("0:11", "RaisedSignal:11(Segmentation fault)")
    assert rows["638"].exit == "0:125"
    assert [rows[f"643_{index}"].exit for index in (1, 2, 3)] == ["1:0", "2:0", "3:0"]
    waits = rows["640"]  # a requeued failure: the exit of its last attempt is not its own
    assert (waits.word, waits.restarts, waits.exit, waits.started_at) == ("PENDING", 1, "", None)
    assert squeue.read_queue(RECORDED_25_11["unknown"], asked=1) == Queue(())


def test_forecasts_are_no_facts() -> None:
    """Slurm prints when a waiting job may start and when a running one will end at the latest: neither is taken."""
    rows = rows_of(RECORDED["many"])
    waits, runs = rows["1413"], rows["1410"]
    assert (waits.started_at, waits.ended_at, waits.exit, waits.derived) == (None, None, "", "")
    assert runs.started_at == 1794794915.0
    assert (runs.ended_at, runs.exit, runs.derived) == (None, "", "0:0")


def test_an_unknown_id_is_an_answer_only_when_it_was_asked_for_alone() -> None:
    """«Invalid job id specified» says that the one job is not in the queue; it says nothing of two."""
    assert squeue.read_queue(RECORDED["unknown"], asked=1) == Queue(())
    assert isinstance(squeue.read_queue(RECORDED["unknown"], asked=2), NoAnswer)
    assert isinstance(squeue.read_queue(RECORDED["unknown"], asked=0), NoAnswer)
    assert squeue.read_queue(RECORDED["unknown two"], asked=2) == Queue(())


@pytest.mark.parametrize("title", ["wrong id", "refused", "readclose", "nomunge", "broken"])
def test_trouble_is_no_answer(title: str) -> None:
    """Where squeue failed, nothing is known, and its own words say why; also when it hid its exit status."""
    for status in (1, 0) if title in ("refused", "readclose", "nomunge") else (1,):
        answer = squeue.read_queue(replace(RECORDED[title], status=status), asked=1)
        assert isinstance(answer, NoAnswer)
        assert all(line in RECORDED[title].err for line in answer.text.split("; "))


def test_a_call_that_did_not_end() -> None:
    """A call that was killed or not found has no answer."""
    assert squeue.read_queue(Trouble("squeue: no answer within 5 s", began=True), asked=1) == NoAnswer(
        "squeue: no answer within 5 s"
    )


def test_a_field_that_this_squeue_does_not_know() -> None:
    """It is left empty, exit status 0; the rest of the row counts."""
    rows = rows_of(RECORDED["field that it does not know"])
    assert (rows["1405"].exit, rows["1405"].derived) == ("137:0", "")


def test_a_row_that_cannot_be_read_makes_absence_no_answer() -> None:
    """The rows that can be read count, but what is not among them may be the one that can't."""
    reply = RECORDED["many"]
    broken = replace(reply, out=reply.out.replace("1416\x1f", "14?16\x1f", 1))
    answer = squeue.read_queue(broken, asked=10)
    assert isinstance(answer, Queue)
    assert len(answer.rows) == 17
    assert not answer.is_whole
    cut = squeue.read_queue(replace(reply, out=reply.out[:-5]), asked=10)
    assert isinstance(cut, Queue)
    assert not cut.is_whole


def test_a_banner_around_the_rows() -> None:
    """A line that has no fields at all is no row; alone it is no answer."""
    reply = RECORDED["names"]
    answer = squeue.read_queue(replace(reply, out=f"Welcome!\n{reply.out}Bye.\n"), asked=0)
    assert isinstance(answer, Queue)
    assert (len(answer.rows), answer.is_whole) == (5, True)
    assert isinstance(squeue.read_queue(Reply(0, "Welcome!\n", "", 0.1), asked=2), NoAnswer)
    assert squeue.read_queue(Reply(0, "\n", "", 0.1), asked=2) == Queue(())


def test_warnings_do_not_hide_an_answer() -> None:
    """Words on stderr that are no refusal to answer change nothing."""
    reply = replace(RECORDED["names"], err="squeue: error: Parsing error at unrecognized key: Fancy\n")
    assert squeue.read_queue(reply, asked=0) == squeue.read_queue(RECORDED["names"], asked=0)


def test_other_versions() -> None:
    """Lists of members, cut lists, both forms of exit statuses, and words that nobody knows are kept."""
    old, new = rows_of(OTHERS["20.11"]), rows_of(OTHERS["25.11"])
    assert old["7_[3-9%2]"].members == Members(((3, 9, 1),), limit=2)
    assert old["7_[3-9%2]"].index is None
    cut = old["8_[1,3,5,...]"]
    assert cut.members is not None
    assert not cut.members.is_whole
    assert (old["9"].exit, old["9"].derived, old["9"].restarts) == ("", "0:0", None)
    assert (new["7"].exit, new["7"].reason) == ("0:11", "RaisedSignal:11(Segmentation_fault)")
    assert (new["8"].exit, new["8"].derived, new["8"].restarts) == ("3:0", "4:0", 2)
    for unknown in ("9", "10"):
        assert (new[unknown].exit, new[unknown].ended_at) == ("", None)
    assert new["10"].word == "EVAPORATED"
    nothing = new["11"]
    assert (nothing.exit, nothing.derived) == ("", "")
    assert (nothing.restarts, nothing.started_at, nothing.ended_at) == (None, None, None)


def test_the_call() -> None:
    """All partitions, all states, each member, fields without a width, and the name last."""
    words = squeue.by_ids(["7", "8"])
    assert words[0] == "squeue"
    assert "--jobs=7,8" in words
    assert {"--all", "--array", "--noheader", "--states=all", "--local"} <= set(words)
    (format_,) = [word for word in words if word.startswith("--Format=")]
    assert all(field.endswith(f":{SEPARATOR}") for field in format_.removeprefix("--Format=").split(","))
    assert format_.endswith(f"Name:{SEPARATOR}")
    assert "--clusters=east" in squeue.by_names(["a"], cluster="east")


@given(st.lists(st.text("0123456789", min_size=1, max_size=30000), max_size=20))
def test_chunks_hold_all_words_in_order(words: list[str]) -> None:
    """No id is lost or asked twice, and each call is short enough."""
    parts = list(squeue.chunks(words))
    assert [word for part in parts for word in part] == words
    assert all(len(",".join(part)) <= squeue.LONGEST_LIST or len(part) == 1 for part in parts)
    assert all(parts)


def test_a_thousand_jobs_are_one_question() -> None:
    """1,000 jobs cost no more calls than 10."""
    assert len(list(squeue.chunks([str(number) for number in range(9_000_000, 9_001_000)]))) == 1


FIELD = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["7", "7_3", "7_[1-3]", "FAILED", "RUNNING", "0", "256", "2026-11-16T02:08:35", "N/A"]),
)


@given(st.lists(st.lists(FIELD, min_size=10, max_size=14), max_size=5), st.integers(0, 2), st.text(max_size=50))
def test_any_answer(records: list[list[str]], status: int, err: str) -> None:
    """No answer raises, and no row has a number that was not printed."""
    out = "".join(SEPARATOR.join(fields) + f"{SEPARATOR}\n" for fields in records)
    answer = squeue.read_queue(Reply(status, out, err, 0.1), asked=1)
    if isinstance(answer, Queue):
        for row in answer.rows:
            assert str(row.job) in out
            assert row.index is None or str(row.index) in out
            assert row.word
            assert row.word in out
            if row.exit:
                assert row.word in ("FAILED",)


@given(st.text())
def test_any_text(text: str) -> None:
    """Text without fields is no row."""
    answer = squeue.read_queue(Reply(0, text.replace(SEPARATOR, ""), "", 0.1), asked=2)
    assert isinstance(answer, NoAnswer) or answer == Queue(())
