"""`aver log`: what a job wrote, through all its attempts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from product import Product, end, wait_for_file
from stored_past import Aver
from talkative_flow import ALL, FLOW

WAITS = "touch started; while [ ! -e go ]; do sleep 0.05; done; exit 3"

RETRIED = """
jobs:
  flaky:
    retry: 2
    run: |
      echo "try $AVER_ATTEMPT"
      [ -e once ] && exit 0
      while [ ! -e go ]; do sleep 0.02; done
      touch once
      exit 1
"""


def test_following_goes_through_retries(aver: Product) -> None:
    """`aver log -f` shows the attempt that runs and the next, with a line between them, until the job is settled."""
    (aver.folder / "flow.yaml").write_text(RETRIED)
    run = aver.submit("flow.yaml")
    follower = aver.start("log", f"{run}/flaky", "-f")
    assert follower.stdout is not None
    assert follower.stdout.readline() == b"try 1\n"
    (aver.folder / "go").touch()
    answer = end(follower)
    assert (answer.status, answer.out) == (0, "try 2\n"), answer.err
    assert "aver: attempt 2 begins\n" in answer.err
    assert aver.state(run + 1) == "COMPLETED"


def test_following_waits_for_a_pending_job(aver: Product) -> None:
    """A held job has no output yet: `-f` says why, and shows it once there is some."""
    number = aver.submit("--hold", "--", "echo", "here")
    told = aver.folder / "told"
    with told.open("wb") as err:
        follower = aver.start_to(err, "log", str(number), "-f")
    wait_for_file(told, "JobHeldUser")
    assert aver("release", str(number)).status == 0
    assert end(follower).out == "here\n"


def test_following_says_when_the_next_attempt_is_due(aver: Product) -> None:
    """Nothing is written while the retry's wait passes: the line says how the attempt ended and when the next comes."""
    (aver.folder / "flow.yaml").write_text("jobs: {flaky: {run: echo here; exit 3, retry: {max: 1, backoff: 1h}}}\n")
    run = aver.submit("flow.yaml")
    told = aver.folder / "told"
    with told.open("wb") as err:
        follower = aver.start_to(err, "log", f"{run}/flaky", "-f")
    wait_for_file(told, "attempt 1 was FAILED (exit 3)")
    assert "aver: waiting for attempt 2, due in " in told.read_text()
    assert "Waiting for attempt 2, due in " in aver("why", f"{run}/flaky").out
    assert aver("cancel", str(run)).status == 0
    assert end(follower).out == "here\n"


SHARED = """
jobs:
  flaky:
    retry: 1
    output: all.txt
    run: echo "try $AVER_ATTEMPT"; [ "$AVER_ATTEMPT" = 2 ]
"""


def test_a_file_of_several_attempts_is_said_to_be_one(aver: Product) -> None:
    """Where the flow names the output, an attempt's output can't be told from the others': a line says so, and JSON."""
    (aver.folder / "flow.yaml").write_text(SHARED)
    assert aver("run", "flow.yaml").status == 0
    first = aver("log", "1/flaky", "--attempt", "1")
    assert first.out == "try 1\ntry 2\n"
    assert f"attempts 1 to 2 wrote to one file, {aver.folder}/all.txt: this is what all of them wrote\n" in first.err
    newest = aver("log", "1/flaky", "--json").document
    assert (newest["attempt"], newest["is_shared"]) == (2, True)
    assert aver("log", "1/flaky").err == ""


def test_an_attempts_own_file_is_its_own(aver: Product) -> None:
    """Names that Aver chooses have the attempt's number: nothing is said."""
    (aver.folder / "flow.yaml").write_text(SHARED.replace("    output: all.txt\n", ""))
    assert aver("run", "flow.yaml").status == 0
    first = aver("log", "1/flaky", "--attempt", "1")
    assert (first.out, first.err) == ("try 1\n", "")
    assert aver("log", "1/flaky", "--json").document["is_shared"] is False


@pytest.mark.parametrize("output", ["", "%x.txt", "%a.txt", "o/{f}.txt"])
def test_members_that_differ_only_in_a_slash_have_outputs_of_their_own(aver: Product, output: str) -> None:
    """Their files and names differ, however the flow names the file: nobody's output is shown for another's."""
    named = f'output: "{output}", ' if output else ""
    (aver.folder / "flow.yaml").write_text(f'jobs: {{m: {{matrix: {{f: [a/b, a_b]}}, {named}run: "echo is {{f}}"}}}}\n')
    assert aver("run", "flow.yaml").status == 0
    for value in ("a/b", "a_b"):
        answer = aver("log", f"1/m[f={value}]")
        assert (answer.out, answer.err) == (f"is {value}\n", "")
    paths = {aver("log", str(job), "--json").document["path"] for job in (2, 3)}
    assert len(paths) == 2


def test_a_file_of_several_members_is_said_to_be_one(aver: Product) -> None:
    """Where the flow gives all members one file, what is in it may be another's: a line says so."""
    text = 'jobs: {m: {matrix: {f: [a, b]}, output: all.txt, append: true, run: "echo is {f}"}}\n'
    (aver.folder / "flow.yaml").write_text(text)
    assert aver("run", "flow.yaml").status == 0
    said = f"other members of its matrix write to this file too, {aver.folder}/all.txt: it may have their output\n"
    assert said in aver("log", "1/m[f=a]").err


def call_slurm(aver: Product, name: str, *args: str) -> None:
    command = [f"{os.environ['AVER_HOME']}/bin/{name}", *args]
    subprocess.run(command, cwd=aver.folder, stdout=subprocess.DEVNULL, timeout=60, check=True)


def test_what_a_later_attempt_has_overwritten_is_gone(aver: Product) -> None:
    """sbatch's file is begun anew when its job is requeued: the first attempt's output is not what is in it."""
    (aver.folder / "job.sh").write_text('#!/bin/sh\necho "try $AVER_ATTEMPT"; [ -e again ] || sleep 600\n')
    aver.submit("--", "true")  # with it the commands are there
    call_slurm(aver, "sbatch", "-o", "out.txt", "job.sh")
    wait_for_file(aver.folder / "out.txt", "try 1")
    (aver.folder / "again").touch()
    call_slurm(aver, "scontrol", "requeue", "2")
    wait_for_file(aver.folder / "out.txt", "try 2")
    answer = aver("log", "2", "--attempt", "1")
    assert (answer.status, answer.out) == (1, "")
    assert "what attempt 1 of job 2 wrote is gone: attempt 2 overwrote" in answer.err
    assert aver("log", "2").out == "try 2\n"


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


def test_log_of_a_file_that_is_gone_names_it(past: Path, call: Aver, tmp_path: Path) -> None:
    """The path and the cause are in the sentence."""
    (tmp_path / "work" / "aver-1.out").unlink()
    answer = call("log", "1")
    assert answer.status == 1
    assert "aver-1.out: No such file" in answer.err


def test_log_follows_to_the_end(aver: Product) -> None:
    """`log -f` shows what comes and ends with the job."""
    number = aver.submit("--", "sh", "-c", f"echo first; {WAITS}")
    wait_for_file(aver.folder / "started")
    process = aver.start("log", str(number), "-f")
    assert process.stdout is not None
    assert process.stdout.readline() == b"first\n"
    (aver.folder / "go").touch()
    assert end(process).status == 0


@pytest.mark.parametrize("lines", [0, 1, 2, 5000])
def test_log_shows_the_last_lines(aver: Product, lines: int) -> None:
    """-n counts lines from the end, also of large files."""
    number = aver.submit("--", "seq", "100000")
    aver("watch", str(number))
    wanted = "".join(f"{value}\n" for value in range(100001 - lines, 100001))
    assert aver("log", str(number), "-n", str(lines)).out == wanted


def test_the_log_of_a_run_is_that_of_its_jobs(aver: Product) -> None:
    """In their order; a pattern chooses among them."""
    (aver.folder / "flow.yaml").write_text(FLOW)
    aver("run", "-q", "flow.yaml")
    newest = [line for line in ALL if line != "again | try 1"]
    assert sorted(aver("log", "1").out.splitlines()) == newest
    assert sorted(aver("log", "1", "-f").out.splitlines()) == newest
    assert aver("log", "1/train*", "-n", "1").out == "train[seed=1] | no end\ntrain[seed=2] | no end\n"
    assert aver("log", "1", "--json").status == 2


def test_a_run_is_followed_until_it_is_settled(aver: Product) -> None:
    """What runs is shown from its beginning, what starts later as well; what was settled before is not."""
    (aver.folder / "flow.yaml").write_text(
        "jobs:\n"
        "  early: {run: echo early}\n"
        "  now: {needs: [early], run: 'echo before; touch begun; until test -e go; do sleep 0.02; done; echo after'}\n"
        "  later: {needs: [now], run: echo later}\n"
    )
    run = aver.submit("flow.yaml")
    wait_for_file(aver.folder / "begun")
    follower = aver.start("log", "-f", str(run))
    assert follower.stdout is not None
    assert follower.stdout.readline() == b"now | before\n"
    (aver.folder / "go").touch()
    answer = end(follower)
    assert (answer.status, answer.out) == (0, "now | after\nlater | later\n")


def test_secrets_are_masked_in_what_many_jobs_write(aver: Product) -> None:
    """Also where a value is written in two parts."""
    (aver.folder / "flow.yaml").write_text("jobs: {a: {run: 'printf hun; sleep 0.3; echo ter2'}}\n")
    answer = aver("run", "--env", "TOKEN=hunter2", "--secret", "TOKEN", "flow.yaml", "--logs")
    assert answer.out == "a | ***\n"
