"""Commands that change something: submit, cancel, hold, release, accept, retry, stop."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
from pathlib import Path

from product import Product, wait_for_file

from live_home import is_alive


def test_submit_prints_the_number_and_nothing_else(aver: Product) -> None:
    """For scripts: job=$(aver submit …)."""
    answer = aver("submit", "--", "true")
    assert (answer.status, answer.out, answer.err) == (0, "1\n", "")
    assert aver("submit", "--json", "--", "true").document == {"kind": "submitted", "run": 2, "first_job": 2, "jobs": 1}


def test_submit_of_a_flow_prints_the_runs_number(aver: Product) -> None:
    """Its jobs have the numbers after it."""
    (aver.folder / "flow.yaml").write_text("jobs:\n  a: {run: 'true'}\n  b: {run: 'true'}\n")
    assert aver("submit", "--json", "flow.yaml").document == {
        "kind": "submitted", "run": 1, "first_job": 2, "jobs": 2,
    }  # fmt: skip


def test_cancel_ends_a_running_job(aver: Product) -> None:
    """Who cancelled it is evidence, and twice is harmless."""
    number = aver.submit("--", "sh", "-c", "touch started; exec sleep 600")
    wait_for_file(aver.folder / "started")
    assert aver("cancel", str(number)).status == 0
    assert aver("watch", str(number), "-e").status == 5
    assert aver("why", str(number)).out.startswith("Cancelled by ")
    again = aver("cancel", str(number))
    assert (again.status, again.out) == (0, f"{number}: already CANCELLED\n")


def test_cancel_by_pattern(aver: Product) -> None:
    """Only the jobs that match."""
    (aver.folder / "flow.yaml").write_text(
        "jobs:\n  prep: {run: sleep 600}\n  train: {needs: [prep], run: 'true'}\n  tell: {needs: [prep], run: 'true'}\n"
    )
    run = aver.submit("flow.yaml")
    done = aver("cancel", f"{run}/t*", "--json").document
    assert [result["id"] for result in done["results"]] == [3, 4]
    assert aver.state(3) == "CANCELLED"
    assert aver("cancel", str(run)).status == 0
    assert aver("watch", str(run), "-e").status == 5


def test_a_signal_cancels_nothing(aver: Product) -> None:
    """--signal only sends it."""
    script = "trap 'exit 42' USR1; touch started; while :; do sleep 0.05; done"
    number = aver.submit("--", "sh", "-c", script)
    wait_for_file(aver.folder / "started")
    assert aver("cancel", str(number), "--signal", "USR1").status == 0
    aver("watch", str(number))
    assert aver("show", str(number), "--json").document["job"]["exit"]["text"] == "42:0"
    assert aver("cancel", str(number), "--signal", "NOPE").status == 2


def test_hold_and_release(aver: Product) -> None:
    """A held job says so until it is let go."""
    number = aver.submit("--hold", "--", "true")
    assert aver("show", str(number), "--json").document["job"]["reason"] == "JobHeldUser"
    assert f"aver release {number}" in aver("why", str(number)).out
    status = aver("status", "--json").document
    assert (status["running"], status["pending"]) == (0, 1)
    assert aver("release", str(number)).status == 0
    assert aver("watch", str(number), "-e").status == 0


def test_run_says_what_its_job_waits_for(aver: Product) -> None:
    """Whoever waits in the foreground is told once why nothing happens."""
    waiting = aver.start("run", "--hold", "--", "true")
    assert waiting.stderr is not None
    assert waiting.stderr.readline() == b"aver: job 1 PENDING (JobHeldUser): it is held; `aver release` lets it go\n"
    assert aver("release", "1").status == 0
    assert waiting.communicate()[1].startswith(b"aver: job 1 COMPLETED in ")
    assert waiting.returncode == 0


def test_suspend_and_resume(aver: Product) -> None:
    """A suspended job is SUSPENDED, and ends as it would have."""
    number = aver.submit("--", "sh", "-c", "touch started; while [ ! -e go ]; do sleep 0.05; done")
    wait_for_file(aver.folder / "started")
    assert aver("suspend", str(number)).status == 0
    assert aver.state(number) == "SUSPENDED"
    (aver.folder / "go").touch()
    assert aver("resume", str(number)).status == 0
    assert aver("watch", str(number), "-e").status == 0


def test_a_lost_job_is_unverified_until_a_person_accepts_it(aver: Product) -> None:
    """A killed witness: exit 7, never success; then `accept` makes it COMPLETED, by a person."""
    number = aver.submit("--", "sh", "-c", "echo $PPID > pid.tmp; mv pid.tmp pid; exec sleep 600")
    wait_for_file(aver.folder / "pid")
    os.kill(int((aver.folder / "pid").read_text()), signal.SIGKILL)
    assert aver("watch", str(number), "-e").status == 7
    why = aver("why", str(number)).out
    assert f"aver accept {number}" in why
    assert "{" not in why
    assert aver("accept", str(number)).status == 0
    job = aver("show", str(number), "--json").document["job"]
    assert (job["state"], job["source"]) == ("COMPLETED", "person")


def test_retry_runs_it_again_and_keeps_both_attempts(aver: Product) -> None:
    """The second attempt finds what the first left."""
    number = aver.submit("--", "sh", "-c", "if [ -e once ]; then exit 0; fi; touch once; exit 3")
    assert aver("watch", str(number), "-e").status == 1
    assert aver("retry", str(number)).status == 0
    assert aver("watch", str(number), "-e").status == 0
    attempts = aver("show", str(number), "--json").document["attempts"]
    assert [attempt["exit"]["text"] for attempt in attempts] == ["3:0", "0:0"]


def test_stop_says_so_when_the_store_is_closed(aver: Product, aver_home: Path) -> None:
    """Who copies the store after it has all that was shown in one file."""
    for number in (1, 2, 3):
        aver("run", "--", "true")
        pid = aver("stop", "--json").document["pid"]
        assert not is_alive(pid)
        shutil.copy(aver_home / "aver.db", aver.folder / f"copy-{number}")
        with contextlib.closing(sqlite3.connect(aver.folder / f"copy-{number}")) as copy:
            assert copy.execute("SELECT state FROM jobs WHERE id = ?", (number,)).fetchall() == [("COMPLETED",)]


def test_stop_leaves_jobs_running(aver: Product) -> None:
    """The next command finds them again."""
    number = aver.submit("--", "sh", "-c", "touch started; while [ ! -e go ]; do sleep 0.05; done")
    wait_for_file(aver.folder / "started")
    assert aver("stop").status == 0
    (aver.folder / "go").touch()
    assert aver("watch", str(number), "-e").status == 0


def test_reading_works_when_no_coordinator_can_start(aver: Product) -> None:
    """An unsettled job and wrong settings: the answer comes all the same, and says so."""
    number = aver.submit("--hold", "--", "true")
    aver("stop")
    answer = aver("show", str(number), env={"AVER_CONFIG": "/no/such/settings"})
    assert answer.status == 0
    assert "PENDING" in answer.out
    assert "AVER_CONFIG" in answer.err


def test_what_is_refused_exits_1_and_says_so_on_stderr(aver: Product) -> None:
    """A settled job can't be held, suspended or vouched for; what is so already is no error."""
    number = str(aver.submit("--", "false"))
    aver("watch", number)
    for verb, code in (("hold", "settled"), ("suspend", "settled"), ("resume", "settled"), ("accept", "settled")):
        refused = aver(verb, number)
        assert (refused.status, refused.out) == (1, ""), verb
        assert refused.err.startswith(f"aver: {number}: already FAILED"), verb
        answer = aver(verb, number, "--json")
        assert answer.status == 1
        assert answer.document["results"][0]["done"] is False
        assert answer.document["results"][0]["code"] == code
    held = str(aver.submit("--hold", "--", "true"))
    again = aver("hold", held, "--json")
    assert again.status == 0
    assert (again.document["results"][0]["done"], again.document["results"][0]["code"]) == (True, "already")
    assert aver("hold", held).out == f"{held}: held already\n"
    assert aver("suspend", held).status == 1
    assert aver("release", held).status == 0


def test_retry_says_that_the_flows_file_has_changed(aver: Product) -> None:
    """A retry runs the flow as it was submitted; `reinit` is what runs it as it is now. A touch is no change."""
    file = aver.folder / "flow.yaml"
    file.write_text("jobs:\n  a: {run: 'false'}\n  b: {run: 'true'}\n")
    run = str(aver.submit("flow.yaml"))
    aver("watch", run)
    os.utime(file)
    assert aver("retry", run).err == ""
    aver("watch", run)
    file.write_text("jobs:\n  a: {run: 'exit 3'}\n  b: {run: 'true'}\n")
    answer = aver("retry", run)
    assert answer.err == (
        f"aver: {file} has changed since run {run} was submitted; the retry runs it as it was. "
        f"`aver reinit {run}` runs it as it is now\n"
    )
    aver("watch", run)


def test_retry_reads_the_flows_file_as_the_run_has_it(aver: Product) -> None:
    """Params, the selected part, the folder and the environment of the run make the flow no other one."""
    elsewhere = aver.folder / "elsewhere"
    elsewhere.mkdir()
    (aver.folder / "ids.txt").write_text("x\n")
    file = elsewhere / "flow.yaml"
    file.write_text(
        "params: {n: 1}\njobs:\n"
        "  a: {run: 'exit {n}', env: {A: 'b{f}'}, matrix: {f: {lines: ids.txt}}}\n"
        "  b: {run: 'true'}\n"
    )
    run = str(aver.submit("--set", "n=3", "--only", "a", "elsewhere/flow.yaml"))
    aver("watch", run)
    os.utime(file)
    assert aver("retry", run).err == ""
    aver("watch", run)


def test_the_time_of_a_round_is_its_own(aver: Product, aver_home: Path) -> None:
    """The time between two rounds is nobody's."""
    (aver.folder / "flow.yaml").write_text("jobs:\n  a: {run: 'false'}\n  b: {run: 'true'}\n")
    run = str(aver.submit("flow.yaml"))
    aver("watch", run)
    aver("stop")
    with sqlite3.connect(aver_home / "aver.db") as store:
        store.execute("UPDATE runs SET submitted_at = submitted_at - 50000")
    aver("retry", run)
    summary = aver("watch", run).err
    assert " min" not in summary
    assert " h" not in summary
    assert " in " in summary
