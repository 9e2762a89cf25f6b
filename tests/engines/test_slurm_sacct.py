"""What sacct says. Recorded answers of 22.05 and 25.11, and answers written from the documentation of others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slurm_recordings import answers

from aver.engines.slurm.commands import sacct
from aver.engines.slurm.commands.call import Reply, Trouble
from aver.engines.slurm.commands.fields import SEPARATOR
from aver.engines.slurm.commands.ids import Members
from aver.engines.slurm.commands.rows import AccountRow, Accounts, Disabled, NoAnswer
from aver.model.record import replace

RECORDED = answers("sacct-22.05.txt")
RECORDED_25_11 = answers("sacct-25.11.txt")
OTHERS = answers("sacct-other-versions.txt")


def rows_of(reply: Reply) -> dict[str, list[AccountRow]]:
    """All rows by their ids; a requeued job has several."""
    answer = sacct.read_accounts(reply)
    assert isinstance(answer, Accounts)
    assert answer.is_whole
    found: dict[str, list[AccountRow]] = {}
    for row in answer.rows:
        found.setdefault(row.said.partition("|")[0], []).append(row)
    return found


def test_a_recorded_answer() -> None:
    """Jobs, members and steps are told apart; sizes are in bytes; times are numbers or unknown."""
    rows = rows_of(RECORDED["many"])
    job, batch, step = rows["1405"][0], rows["1405.batch"][0], rows["1405.0"][0]
    assert (job.step, job.word, job.exit, job.derived) == ("", "FAILED", "9:0", "7:0")
    assert (batch.step, batch.exit, batch.maxrss_bytes, batch.sys_s) == ("batch", "9:0", 3317760, 0.010)
    assert (step.step, step.exit) == ("0", "7:0")
    assert rows["1406"][0].name == "a|b  c=d"
    member = rows["1407_3.batch"][0]
    assert (member.job, member.index, member.step) == (1407, 3, "batch")
    assert rows["1412"][0].word == "CANCELLED by 1001"
    assert rows["1408_[1,3,5,7,9%4]"][0].members is not None
    assert rows["1409"][0].name == "two\nlines"
    assert rows["1409"][0].nodes == ""
    assert rows["1414+1"][0].het == 1


def test_a_recorded_answer_of_25_11() -> None:
    """Codes are whole, a failure before a requeue keeps its row, and an empty size is unknown."""
    rows = rows_of(RECORDED_25_11["many"])
    assert [rows[name][0].exit for name in ("633", "633.batch", "633.0")] == ["137:0", "137:0", "7:0"]
    assert [(row.word, row.exit) for row in rows["640"]] == [("FAILED", "5:0"), ("PENDING", "0:0")]
    assert (rows["634"][0].exit, rows["634.batch"][0].exit) == ("1:0", "0:1")
    assert (rows["638.batch"][0].word, rows["638.batch"][0].maxrss_bytes) == ("OUT_OF_MEMORY", 45498368)
    assert rows["642.batch"][0].maxrss_bytes is None
    assert sacct.read_accounts(RECORDED_25_11["unknown"]) == Accounts(())


def test_a_row_without_an_end_has_none() -> None:
    """A running job's end is unknown, not now and not 0."""
    runs = rows_of(RECORDED["many"])["1410"][0]
    assert (runs.ended_at, runs.elapsed_s) == (None, 15.0)


def test_all_rows_of_a_requeued_job() -> None:
    """Each attempt has its row, and its steps come after it and before the next."""
    answer = sacct.read_accounts(RECORDED["many"])
    assert isinstance(answer, Accounts)
    mine = [(row.step, row.word) for row in answer.rows if row.job == 1413]
    assert mine == [("", "REQUEUED"), ("batch", "CANCELLED"), ("extern", "COMPLETED"), ("", "PENDING")]


def test_a_steps_submission_is_its_start() -> None:
    """Slurm gives a step's start as its submission, so that it does not tell which attempt it belongs to."""
    rows = rows_of(RECORDED["many"])
    assert rows["1407_5.batch"][0].submitted_at != rows["1407_5"][0].submitted_at


def test_silence_is_an_answer_without_rows() -> None:
    """An id that accounting does not know yet is exit status 0 and no line."""
    assert sacct.read_accounts(RECORDED["unknown"]) == Accounts(())


def test_no_accounting_here() -> None:
    """A site without accounts is told apart from one that does not answer."""
    assert sacct.read_accounts(RECORDED["noacct"]) == Disabled("Slurm accounting storage is disabled")


@pytest.mark.parametrize("title", ["nodbd", "later", "wrong id"])
def test_trouble_is_no_answer(title: str) -> None:
    """Where sacct failed, nothing is known, and its own words say why; also when it hid its exit status."""
    for status in (1, 0) if title == "nodbd" else (1,):
        answer = sacct.read_accounts(replace(RECORDED[title], status=status))
        assert isinstance(answer, NoAnswer)
        assert all(line in RECORDED[title].err for line in answer.text.split("; "))


def test_a_call_that_did_not_end() -> None:
    """A call that was killed or not found has no answer."""
    assert sacct.read_accounts(Trouble("sacct: not found", began=False)) == NoAnswer("sacct: not found")


def test_other_versions() -> None:
    """Words are kept, cut or not; fields that are empty or strange are unknown."""
    old, new = rows_of(OTHERS["20.11"]), rows_of(OTHERS["25.11"])
    job = old["7"][0]
    assert (job.word, job.name, job.user_s, job.elapsed_s) == ("CANCELLED by 1001", "pipe|in|name", 93784, 93784)
    assert [old[f"7.{step}"][0].maxrss_bytes for step in ("batch", "interactive", "3+1")] == [4718592, 1126400, 2 << 30]
    assert old["8_[3-9%2]"][0].members == Members(((3, 9, 1),), limit=2)
    empty = old["8_3.batch"][0]
    assert (empty.word, empty.exit, empty.derived, empty.user_s, empty.maxrss_bytes) == (
        "CANCELLED+",
        "",
        "",
        None,
        None,
    )
    assert (old["9+1"][0].job, old["9+1"][0].het) == (9, 1)
    assert new["7.batch"][0].exit == "137:0"
    strange = new["8"][0]
    assert strange.word == "EVAPORATED"
    assert (strange.exit, strange.ended_at, strange.elapsed_s, strange.user_s, strange.maxrss_bytes) == (
        "", None, None, None, None,
    )  # fmt: skip


def test_a_placeholder_is_recognised() -> None:
    """A job that accounting knows from its steps alone has no partition."""
    new = rows_of(OTHERS["25.11"])
    assert new["9"][0].is_placeholder
    assert not new["7"][0].is_placeholder
    assert not new["7.batch"][0].is_placeholder


def test_the_call() -> None:
    """All rows, from the given time in UTC, in fields that every version has, and the name last."""
    words = sacct.by_ids(["7", "8"], since=1794794109.9)
    assert words[0] == "sacct"
    assert {"--duplicates", "--noheader", "--parsable2", "--noconvert", "--jobs=7,8"} <= set(words)
    assert "--starttime=2026-11-16T01:55:09" in words
    assert f"--delimiter={SEPARATOR}" in words
    assert sacct.FIELDS[-1] == "JobName"
    assert not {"Reserved", "Planned"} & set(sacct.FIELDS)
    assert "--clusters=east" in sacct.by_names(["a"], 0, cluster="east")


def test_nobody_asks_for_every_job() -> None:
    """Without ids or names, sacct would answer with all jobs that there are."""
    for call in (sacct.by_ids, sacct.by_names):
        with pytest.raises(ValueError, match="every job"):
            call([], since=0)


FIELD = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["7", "7_3.batch", "7_[1-3]", "FAILED", "0:0", "9:0", "2026-11-16T02:08:35", "Unknown", "1100K", "02:03"]
    ),
)


@given(st.lists(st.lists(FIELD, min_size=13, max_size=17), max_size=5), st.integers(0, 2), st.text(max_size=50))
def test_any_answer(records: list[list[str]], status: int, err: str) -> None:
    """No answer raises, and no row has a number that was not printed."""
    out = "".join(SEPARATOR.join(fields) + "\n" for fields in records)
    answer = sacct.read_accounts(Reply(status, out, err, 0.1))
    if isinstance(answer, Accounts):
        for row in answer.rows:
            assert str(row.job) in out
            assert row.word in out
            assert row.exit in out
            assert row.maxrss_bytes is None or any(letter.isdigit() for letter in out)


@given(st.text())
def test_any_text(text: str) -> None:
    """Text without fields is no row."""
    answer = sacct.read_accounts(Reply(0, text.replace(SEPARATOR, ""), "", 0.1))
    assert not isinstance(answer, Accounts) or answer == Accounts(())
