"""Commands that read: they work with no coordinator, show one verdict everywhere, and hide secrets."""

from __future__ import annotations

from pathlib import Path

import pytest
from stored_past import SECRET, T0, Aver, ended, origin, record

from aver.api.job import Job
from aver.cli import explanation
from aver.cli.output.documents import JobFacts
from aver.cli.output.table import Table, plain
from aver.cli.output.views import job_table
from aver.model import events as ev
from aver.model.job import FlowSpec, JobSpec, Matrix, Request, Shell, Submission
from aver.model.record import replace
from aver.render.timeline import Told, in_order
from aver.store.write.writer import Writer


def test_jobs_lists_all_with_stable_columns(past: Path, call: Aver) -> None:
    """Plain text: one line for each job, aligned, no colours, no boxes."""
    answer = call("jobs")
    lines = answer.out.splitlines()
    assert lines[0].split() == ["JOB", "RUN", "NAME", "STATE", "EXIT", "DERIVED", "TIME", "PEAK", "REASON", "WARNING"]
    assert [line.split()[0] for line in lines[1:]] == ["6", "5", "4", "2", "1"]
    assert "\x1b" not in answer.out
    assert "OUT_OF_MEMORY" in lines[4]
    assert "0:9" in lines[4]


def test_a_job_that_runs_has_a_time() -> None:
    """What has passed since it began; one that waits, or of which nobody knows when it began, has none."""
    runs = JobFacts(
        1, 1, "a", "1/a", "RUNNING", False, "None", None, None, None, None, (), "", 1, False, T0, T0, None, None, None,
        None, "0:0", None,
    )  # fmt: skip
    jobs = [runs, replace(runs, started_at=None), replace(runs, state="PENDING")]
    assert [row[6] for row in job_table(jobs, T0 + 90).rows] == ["1 min 30 s", "-", "-"]


def test_jobs_of_a_run_and_by_state(past: Path, call: Aver) -> None:
    """A run's number and a state choose rows."""
    assert [job["id"] for job in call("jobs", "3", "--json").document["jobs"]] == [4, 5, 6]
    assert [job["id"] for job in call("jobs", "--state", "failed", "--json").document["jobs"]] == [5]
    assert [job["id"] for job in call("jobs", "3/train", "--json").document["jobs"]] == [4, 5]


def test_jobs_are_cut_and_say_so(past: Path, call: Aver) -> None:
    """-n keeps the newest, and says how many are left out."""
    answer = call("jobs", "-n", "2", "--json").document
    assert [job["id"] for job in answer["jobs"]] == [6, 5]
    assert answer["left_out"] == 3
    assert "3 more" in call("jobs", "-n", "2").err
    assert len(call("jobs", "-n", "9" * 30, "--json").document["jobs"]) == 5
    assert call("runs", "-n", "9" * 30).status == 0


def test_a_wrong_state_is_refused_with_the_states(past: Path, call: Aver) -> None:
    """The sentence lists what there is."""
    answer = call("jobs", "--state", "dead")
    assert answer.status == 2
    assert "OUT_OF_MEMORY" in answer.err


def test_runs_lists_runs_with_counts(past: Path, call: Aver) -> None:
    """Newest first; a flow with how its jobs stand."""
    runs = call("runs", "--json").document["runs"]
    assert [run["id"] for run in runs] == [3, 2, 1]
    assert runs[0]["counts"] == {"COMPLETED": 1, "FAILED": 1, "SKIPPED": 1}
    assert "1 COMPLETED, 1 FAILED, 1 SKIPPED" in call("runs").out


def test_show_a_job_has_its_attempts_and_files(past: Path, call: Aver) -> None:
    """All facts, the verdict's sentence first."""
    document = call("show", "1", "--json").document
    assert document["kind"] == "job"
    assert document["job"]["exit"] == {
        "text": "0:0", "code": 0, "signal": 0, "core_dumped": False, "return_code": 0,
    }  # fmt: skip
    (attempt,) = document["attempts"]
    assert attempt["stdout"].endswith("/work/aver-1.out")
    assert attempt["node"] == "node1"
    assert call("show", "1").out.splitlines()[1] == "Completed with exit code 0 after 1.2 s."


def test_show_a_run(past: Path, call: Aver) -> None:
    """A flow's number shows the run and its jobs."""
    document = call("show", "3", "--json").document
    assert document["kind"] == "run"
    assert [job["address"] for job in document["jobs"]] == ["3/train[seed=1]", "3/train[seed=2]", "3/eval"]


def test_a_members_command_has_its_values(past: Path, call: Aver) -> None:
    """What is shown is what was run."""
    assert call("show", "3/train[seed=2]", "--json").document["command"][-1] == "python train.py --seed '2'"


def test_why_begins_with_the_sentence_and_ends_with_what_to_type(past: Path, call: Aver) -> None:
    """The heart: sentence, timeline, next commands."""
    lines = call("why", "2").out.splitlines()
    assert lines[0] == (
        "Killed by the kernel for memory: it reached 2.0 GiB of the 2 GiB asked for, 41 s after its start."
    )
    text = "\n".join(lines)
    assert "submitted by ann on box" in text
    assert "started as process 11, memory watched by a cgroup (v1)" in text
    assert "ended with signal 9 (SIGKILL) after 41 s; the kernel killed 1 of its processes for memory" in text
    assert "verdict: OUT_OF_MEMORY 0:9 OutOfMemory" in text
    assert lines.index("Next:") < lines.index("  aver log 2")


def test_why_of_a_run_names_the_job_that_failed_before_the_one_that_followed(past: Path, call: Aver) -> None:
    """The skipped one comes last; each group has its jobs."""
    causes = call("why", "3", "--json").document["causes"]
    assert [cause["jobs"] for cause in causes] == [[5], [6]]


def test_why_of_a_skipped_job_names_the_need(past: Path, call: Aver) -> None:
    """The cause is one command away."""
    assert call("why", "6").out.startswith("Skipped, it never ran: train[seed=2], which it needs, is FAILED.")


@pytest.mark.parametrize(
    "args", [("show", "2"), ("show", "2", "--json"), ("why", "2"), ("why", "2", "--json"), ("log", "2")]
)
def test_secrets_are_masked_everywhere(past: Path, call: Aver, args: tuple[str, ...]) -> None:
    """The value of a name that was marked secret is never shown."""
    answer = call(*args)
    assert answer.status == 0
    assert SECRET not in answer.out + answer.err


def test_log_is_the_bytes_that_were_written(past: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Bytes that are not UTF-8 come out as they are."""
    from aver.cli.main import invoke

    assert invoke(["log", "2"]) == 0
    assert capfdbinary.readouterr().out == b"token ***\nline \xff\n"


def test_log_as_json_is_cut_at_lines(past: Path, call: Aver) -> None:
    """-n keeps the last lines, and the document says so."""
    document = call("log", "2", "-n", "1", "--json").document
    assert document["text"] == "line \N{REPLACEMENT CHARACTER}\n"
    assert document["is_cut"] is True


def test_log_of_a_job_that_never_started_says_so(past: Path, call: Aver) -> None:
    """A skipped job has no output."""
    answer = call("log", "6")
    assert answer.status == 2
    assert "aver why 6" in answer.err


@pytest.mark.parametrize(
    ("args", "status"),
    [
        (("jobs",), 1),
        (("results", "3"), 1),
        (("export", "3", "--junit"), 1),
        (("watch", "3", "--exit-status"), 69),
        (("recover", "3", "--dry-run"), 69),
    ],
)
def test_a_store_that_cannot_be_read_is_one_line_and_no_verdict(
    past: Path, call: Aver, args: tuple[str, ...], status: int
) -> None:
    """Nothing is answered. Where an exit of 1 would say that a job FAILED, it is 69."""
    (past / "aver.db").write_bytes(b"no database at all, and long enough to be looked at\n" * 100)
    answer = call(*args)
    assert (answer.status, answer.out, answer.err.count("\n")) == (status, "", 1)
    assert "aver.db is damaged" in answer.err


def test_log_of_a_file_that_is_gone_names_it(past: Path, call: Aver, tmp_path: Path) -> None:
    """The path and the cause are in the sentence."""
    (tmp_path / "work" / "aver-1.out").unlink()
    answer = call("log", "1")
    assert answer.status == 1
    assert "aver-1.out: No such file" in answer.err


@pytest.mark.parametrize("command", ["show", "why", "log", "watch", "cancel", "jobs"])
def test_an_unknown_number_is_a_sentence(past: Path, call: Aver, command: str) -> None:
    """Exit 2, and where to look."""
    answer = call(command, "99")
    assert (answer.status, answer.err) == (2, "aver: no job or run 99; `aver jobs` lists them\n")


@pytest.mark.parametrize("command", ["show", "why"])
def test_several_jobs_where_one_is_needed(past: Path, call: Aver, command: str) -> None:
    """The sentence says how many there are."""
    answer = call(command, "3/train")
    assert answer.status == 2
    assert "2 jobs" in answer.err


def test_an_empty_home_has_no_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Aver) -> None:
    """Reading makes nothing and fails at nothing."""
    monkeypatch.setenv("AVER_HOME", str(tmp_path / "none"))
    assert call("jobs").status == 0
    assert call("runs", "--json").document["runs"] == []
    assert call("show", "1").status == 2
    assert not (tmp_path / "none").exists()


def test_status_without_a_coordinator_starts_none(past: Path, call: Aver) -> None:
    """It says that nobody is there."""
    assert call("status", "--json").document["is_running"] is False
    assert call("stop").status == 0
    assert not (past / "lock").exists()


@pytest.mark.parametrize("size", [2, 2001])
def test_why_orders_events_by_their_number(tmp_path: Path, past: Path, call: Aver, size: int) -> None:
    """The clock was set back an hour while the job ran: its timeline, what was asked of its whole run included, is in
    the order in which events were stored, however many jobs the run has."""
    sweep = JobSpec("sweep", Shell("true {n}"), matrix=Matrix((("n", tuple(map(str, range(size)))),)))
    submission = Submission(FlowSpec("large", (sweep,)), origin(tmp_path / "work", ()))
    planned, begun, end = ended(7, 8, record(8, raw=0))
    earlier = T0 - 3600
    writer = Writer.open(past / "aver.db")
    writer.commit([ev.RunSubmitted(T0, 7, 8, submission), planned, begun])
    writer.commit([ev.PersonAsked(earlier, 7, None, "bob", "cancel"), ev.PersonAsked(earlier, 7, 9, "eve", "hold")])
    writer.commit([replace(end, at=earlier + 1)])
    writer.close()
    timeline = [item["what"] for item in call("why", "8", "--json").document["timeline"]]
    assert timeline[0] == "submitted by ann on box"
    assert timeline[-3] == "bob asked: cancel for the whole run"
    assert not [what for what in timeline if "eve" in what]


def test_who_cancelled_on_a_cluster() -> None:
    """Whoever asked Aver is named; if nobody did, it was done there. On this machine nobody else can."""
    there = ev.AttemptPlanned(T0, 1, 1, 1, "k", "slurm", Request())
    asked = ev.PersonAsked(T0 + 1, 1, 1, "ann", "cancel")
    assert explanation.cancelled_by([there]) == "somebody at the cluster"
    assert explanation.cancelled_by([there, asked]) == "ann"
    assert explanation.cancelled_by([replace(there, engine="local")]) is None


def test_why_without_a_number_takes_the_newest_that_did_not_complete(past: Path, call: Aver) -> None:
    """A skipped job only follows another."""
    answer = call("why")
    assert answer.out.startswith("Failed with exit code 3")
    assert answer.err == "aver: job 5 (train[seed=2]) is the newest that did not complete\n"


def test_a_success_has_no_reason(call: Aver, past: Path) -> None:
    """null in JSON, as in Python: "None" is a text like any other to a program."""
    assert call("show", "1", "--json").document["job"]["reason"] is None
    assert call("show", "1", "--json").document["attempts"][0]["reason"] is None
    assert call("results", "1", "--json").document["results"][0]["reason"] is None
    assert Job(1).reason is None
    assert Job(2).reason == "OutOfMemory"


def test_wide_characters_align() -> None:
    """A name in Japanese takes two columns for each letter."""
    table = Table(
        ("NAME", "STATE"), (("日本", "FAILED"), ("abcd", "FAILED"), ("e\u0301e\u0301e\u0301e\u0301", "FAILED"))
    )
    assert plain(table) == ["NAME  STATE", "日本  FAILED", "abcd  FAILED", "e\u0301e\u0301e\u0301e\u0301  FAILED"]


def test_what_a_witness_tells_late_stands_where_it_happened() -> None:
    """An act of a record comes before what was told after it; another attempt's lines are not passed."""
    told = [
        Told(1.0, "witness", "started", 1),
        Told(5.0, "coordinator", "step 0 ended", 1),
        Told(3.0, "witness", "warned", 1),
    ]
    assert [one.what for one in in_order(told)] == ["started", "warned", "step 0 ended"]
    later = [Told(9.0, "coordinator", "attempt 1", 1), Told(3.0, "witness", "started", 2)]
    assert [one.what for one in in_order(later)] == ["attempt 1", "started"]
