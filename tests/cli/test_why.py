"""`aver why`: of jobs that wait, end and have ended, and what it advises."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from product import Product, wait_for_file
from stored_past import T0, Aver, ended, origin, record

from aver.cli import explanation
from aver.model import events as ev
from aver.model.job import FlowSpec, JobSpec, Matrix, Request, Shell, Submission
from aver.model.record import replace
from aver.render.timeline import tell
from aver.store.write.writer import Writer
from live_home import wait_for


def sentence(aver: Product, number: int) -> str:
    return str(aver("why", str(number), "--json").document["sentence"])


def reaches(aver: Product, number: int, text: str) -> str:
    """Wait until the sentence has this text in it, and return it."""

    def look() -> str:
        found = sentence(aver, number)
        return found if text in found else ""

    return wait_for(look, f"why {number} says {text}")


def test_a_job_that_waits_for_cpus_names_who_has_them(aver: Product) -> None:
    """Not only that something is missing, but what, and which jobs have it."""
    cpus = len(os.sched_getaffinity(0))
    first = aver.submit("-c", str(cpus), "--", "sh", "-c", "touch started; exec sleep 600")
    wait_for_file(aver.folder / "started")
    number = aver.submit("-c", str(cpus), "--", "true")
    said = reaches(aver, number, "CPU")
    assert said == f"Waiting for {cpus} CPU{'s' if cpus > 1 else ''}: job {first} has them."
    aver("cancel", str(first), "--force")


def test_a_job_names_the_jobs_that_it_needs(aver: Product) -> None:
    """Those that are not settled yet, with their state."""
    (aver.folder / "flow.yaml").write_text(
        "max_parallel: 1\njobs:\n"
        "  a: {run: 'touch started; exec sleep 600'}\n  b: {needs: [a], run: 'true'}\n  c: {run: 'true'}\n"
    )
    run = aver.submit("flow.yaml")
    wait_for_file(aver.folder / "started")
    assert reaches(aver, run + 2, "RUNNING") == f"Waiting for job {run + 1} (a) RUNNING."
    said = reaches(aver, run + 3, "max_parallel")
    assert said == f"Waiting for max_parallel (1) of its run: job {run + 1} runs."
    aver("cancel", str(run), "--force")


def test_a_deadline_is_not_called_a_time_limit(aver: Product) -> None:
    """A job that runs past its deadline is ended: every surface names the deadline, Slurm's commands TimeLimit."""
    (aver.folder / "flow.yaml").write_text("jobs: {a: {run: exec sleep 600, time: 1h, deadline: now+5seconds}}\n")
    assert aver("run", "-q", "--", "true").status == 0  # so that a coordinator runs before the deadline is set
    assert aver("run", "-q", "flow.yaml").status == 3
    said = aver("why", "3", "--json").document
    assert said["sentence"].startswith("Ended because its deadline passed: it ended with signal 15 (SIGTERM), ")
    assert [one["what"] for one in said["timeline"] if "passed" in one["what"]] == [
        "sent SIGTERM to all its processes: the deadline passed"
    ]
    assert said["next"] == ["aver log 3"]
    of_run = aver("why", "2").out
    assert "job 3 (a) passed its deadline while it ran\n  next: aver log 3\n" in of_run
    assert "time limit" not in of_run
    assert aver("jobs", "--json", "3").document["jobs"][0]["reason"] == "DeadLine"
    assert aver("recover", "2", "--dry-run").out.startswith("3: left alone (a), TIMEOUT: its deadline passed;")
    assert "JobState=TIMEOUT Reason=TimeLimit " in aver("shell", "--", "scontrol", "-o", "show", "job", "3").out


def test_a_job_for_which_the_machine_has_become_too_small(
    aver: Product, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for what there will never be: that is said, and not that somebody has it."""
    number = aver.submit("--hold", "--mem", "200M", "--", "true")
    aver("stop")
    (tmp_path / "small.toml").write_text('mem = "100M"\n')
    monkeypatch.setenv("AVER_CONFIG", str(tmp_path / "small.toml"))
    aver("release", str(number))
    assert reaches(aver, number, "never") == (
        "Waiting for 200 MiB of memory, and this machine has 100 MiB: it never begins here unless it is edited."
    )
    other = aver.submit("--mem", "50M", "--", "true")
    assert aver("watch", str(other)).status == 0, "it keeps nobody out"
    aver("edit", str(number), "--mem", "50M")
    assert aver("watch", str(number), "--exit-status").status == 0


def test_the_settings_limit_has_a_name(aver: Product, config: None) -> None:
    """max_running is not said to be a lack of CPUs."""
    first = aver.submit("--", "sh", "-c", "touch started; exec sleep 600")
    wait_for_file(aver.folder / "started")
    number = aver.submit("--", "true")
    assert reaches(aver, number, "max_running") == f"Waiting for max_running (1) of the settings: job {first} runs."
    aver("cancel", str(first), "--force")


@pytest.fixture
def config(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path_factory.mktemp("config") / "config.toml"
    path.write_text("max_running = 1\n")
    monkeypatch.setenv("AVER_CONFIG", str(path))


def test_a_job_that_is_being_ended_says_so(aver: Product) -> None:
    """COMPLETING, when TERM was sent and when KILL follows; the advice is to force it, not to cancel it again."""
    script = "trap '' TERM; touch started; while :; do sleep 0.05; done"
    number = aver.submit("--kill-wait", "600", "--", "sh", "-c", script)
    wait_for_file(aver.folder / "started")
    assert aver("cancel", str(number)).status == 0
    assert aver.state(number) == "COMPLETING"
    answer = aver("why", str(number))
    assert re.match(r"Being cancelled by \S+: TERM sent [0-9.]+ s ago, KILL in (10|9) min.*\.\n", answer.out)
    assert f"  aver cancel {number} --force\n" in answer.out
    assert f"  aver cancel {number}\n" not in answer.out
    assert aver("cancel", str(number), "--force").status == 0
    assert aver("watch", str(number), "-e").status == 5
    shown = aver("show", str(number), "--json").document["job"]
    assert (shown["state"], shown["exit"]["text"]) == ("CANCELLED", "0:9")


def test_waiting_is_one_line_and_the_advice_helps(aver: Product) -> None:
    """However many reasons a job waited for; a job that ran out of time is recovered by the command that is named."""
    first = aver.submit("--hold", "--", "true")
    number = aver.submit("--needs", str(first), "--time", "1s", "--", "sleep", "600")
    aver("release", str(first))
    aver("watch", str(number))
    answer = aver("why", str(number))
    assert re.findall(r"waited .* s: (.*)", answer.out) == ["Dependency → Priority"]
    assert answer.out.endswith(f"Next:\n  aver recover {number}\n  aver log {number}\n")
    assert aver("recover", str(number), "--yes").status == 0


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


def test_nobody_asked_for_the_end_of_a_steps_wait() -> None:
    """--wait is a rule of the step: no person is named when its time is over."""
    asked = ev.PersonAsked(T0, 1, 1, "srun", "step wait", "0")
    (told,) = tell(asked, 1)
    assert told.source == "coordinator"
    assert told.what == "step 0: the time that --wait gives is over; its other tasks are ended"


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
