"""What scontrol says. Recorded answers of 22.05; other versions' texts are written from their documentation."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slurm_recordings import answers

from aver.engines.slurm.commands import scontrol
from aver.engines.slurm.commands.call import Reply, Trouble
from aver.engines.slurm.commands.ids import Members
from aver.engines.slurm.commands.rows import NoAnswer, Queue, QueueRow
from aver.engines.slurm.commands.scontrol import Facts

RECORDED = answers("scontrol-22.05.txt")
CONFIG = Path(__file__).resolve().parents[1] / "slurm" / "recorded" / "scontrol.txt"


def rows_of(reply: Reply) -> list[QueueRow]:
    answer = scontrol.read_jobs(reply)
    assert isinstance(answer, Queue)
    assert answer.is_whole
    return list(answer.rows)


def test_recorded_jobs() -> None:
    """Exit codes are whole, and names with spaces, equals signs and newlines are as they were given."""
    (code137,) = rows_of(RECORDED["job 1405"])
    assert (code137.word, code137.reason, code137.exit, code137.derived) == (
        "FAILED",
        "NonZeroExitCode",
        "137:0",
        "7:0",
    )
    assert (code137.restarts, code137.nodes, code137.name) == (0, "n1", "code137")
    assert code137.ended_at == 1794794916.0
    assert rows_of(RECORDED["job 1406"])[0].name == "a|b  c=d"
    assert rows_of(RECORDED["job 1409"])[0].name == "two\nlines"
    assert rows_of(RECORDED["job 1411"])[0].exit == "0:125"
    assert rows_of(RECORDED["job 1412"])[0].exit == "0:15"


def test_recorded_arrays_and_parts() -> None:
    """Members, waiting lists and parts of heterogeneous jobs have their numbers."""
    members = rows_of(RECORDED["job 1407"])
    assert [(row.job, row.index, row.raw_job, row.exit) for row in members] == [
        (1407, 5, 1407, "5:0"),
        (1407, 3, 1418, "3:0"),
        (1407, 1, 1417, "1:0"),
    ]
    (waits,) = rows_of(RECORDED["job 1408"])
    assert (waits.job, waits.index) == (1408, None)
    assert waits.members == Members(tuple((index, index, 1) for index in (1, 3, 5, 7, 9)), limit=4)
    parts = rows_of(RECORDED["job 1414"])
    assert [(row.job, row.het, row.raw_job, row.name) for row in parts] == [
        (1414, 0, 1414, "het"),
        (1414, 1, 1415, "het"),
    ]


def test_what_has_not_ended_has_no_exit() -> None:
    """A running job's ExitCode 0:0 and its EndTime are no facts, nor is a waiting job's StartTime."""
    (runs,) = rows_of(RECORDED["job 1410"])
    assert (runs.exit, runs.ended_at, runs.started_at) == ("", None, 1794794915.0)
    (requeued,) = rows_of(RECORDED["job 1413"])
    assert (requeued.exit, requeued.started_at, requeued.restarts) == ("", None, 1)


def test_an_unknown_job_is_an_answer() -> None:
    """The controller does not know it: no rows."""
    assert scontrol.read_jobs(RECORDED["job 99999999"]) == Queue(())


@pytest.mark.parametrize("name", ["x JobState=COMPLETED Reason=None", "x UserId=a(1) GroupId=a(1) ExitCode=0:0"])
def test_a_name_that_looks_like_keys(name: str) -> None:
    """A key that is there twice is unknown: a name can't make a job look like a success."""
    reply = RECORDED["job 1405"]
    out = reply.out.replace("JobName=code137", f"JobName={name}")
    answer = scontrol.read_jobs(Reply(0, out, "", 0.1))
    if isinstance(answer, Queue):
        (row,) = answer.rows
        assert row.word == "FAILED"
        assert row.exit in ("", "137:0")
        assert row.name in ("", name)


def test_recorded_facts() -> None:
    """The site's settings are numbers and words; sacct's own version says whether codes are whole."""
    text = CONFIG.read_text().split("$ scontrol show config\n")[1].split("[exit 0]")[0]
    facts = scontrol.read_facts(Reply(0, text, "", 0.1), (22, 5, 8))
    assert isinstance(facts, Facts)
    assert (facts.version, facts.cluster, facts.max_array_size) == ((22, 5, 8), "lab", 1001)
    assert (facts.min_job_age_s, facts.kill_wait_s, facts.max_jobs) == (20, 2, 10000)
    assert (facts.accounting, facts.keeps_accounts) == ("accounting_storage/slurmdbd", True)
    assert facts.select == "select/cons_tres"
    assert not facts.has_whole_codes


def test_facts_of_a_site_without_accounts() -> None:
    """(null) and /none are no accounting; what is not said is not known."""
    for text in ("accounting_storage/none", "(null)"):
        facts = scontrol.read_facts(Reply(0, f"ClusterName = x\nAccountingStorageType   = {text}\n", "", 0.1))
        assert isinstance(facts, Facts)
        assert not facts.keeps_accounts
        assert (facts.version, facts.kill_wait_s, facts.max_jobs) == (None, None, None)


@pytest.mark.parametrize(
    ("text", "version"),
    [("slurm-wlm 22.05.8", (22, 5, 8)), ("slurm 25.11.6", (25, 11, 6)), ("slurm 20.11", (20, 11)),
     ("slurm 24.05.0-0rc1", (24, 5, 0)), ("22.05.8", (22, 5, 8)),
     ("", None), ("spur", None), ("slurm 1122.05.8", None), ("slurm ..", None)],
)  # fmt: skip
def test_versions(text: str, version: tuple[int, ...] | None) -> None:
    """A version is read with or without the package's name."""
    assert scontrol.parse_version(text) == version


def test_whole_codes_since() -> None:
    """From 25.11 on; where the version is not known, no."""
    assert scontrol.has_whole_codes((25, 11, 0))
    assert scontrol.has_whole_codes((26, 5))
    assert not scontrol.has_whole_codes((25, 5, 9))
    assert not scontrol.has_whole_codes(None)


@pytest.mark.parametrize(
    "reply",
    [
        Trouble("scontrol: not found", began=False),
        Reply(1, "", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n", 9.0),
        Reply(0, "", "slurm_load_ctl_conf error: Zero Bytes were transmitted or received\n", 1.0),
        Reply(0, "", "", 0.1),
        Reply(0, "hello\n", "", 0.1),
    ],
)
def test_trouble_is_no_answer(reply: Reply | Trouble) -> None:
    """Where scontrol failed or said nothing that can be read, nothing is known."""
    assert isinstance(scontrol.read_jobs(reply), NoAnswer)
    assert isinstance(scontrol.read_facts(reply), NoAnswer)


KEYED = st.lists(
    st.tuples(
        st.sampled_from(["JobId", "JobState", "ExitCode", "Reason", "ArrayTaskId", "Restarts", "Foo"]),
        st.text(max_size=9),
    ),
    max_size=12,
).map(lambda pairs: "JobId=7 " + " ".join(f"{key}={value}" for key, value in pairs))


@given(st.one_of(st.text(), KEYED), st.text(max_size=30))
def test_any_text(out: str, err: str) -> None:
    """No text raises, and no number comes out that was not there."""
    answer = scontrol.read_jobs(Reply(0, out, err, 0.1))
    if isinstance(answer, Queue):
        for row in answer.rows:
            assert str(row.job) in out
            assert row.word in out
    scontrol.read_facts(Reply(0, out, err, 0.1))
    scontrol.parse_version(out)
