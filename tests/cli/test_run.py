"""`aver run`, end to end."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest
from product import DEADLINE_S, Product, end, wait_for_file


def test_output_is_streamed_and_the_verdict_is_one_line(aver: Product) -> None:
    """stdout has the job's words and nothing else; stderr has one line of ours."""
    answer = aver("run", "--", "echo", "hello")
    assert (answer.status, answer.out) == (0, "hello\n")
    assert answer.err.startswith("aver: job 1 COMPLETED in ")
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "script", "status", "said"),
    [
        ((), "exit 0", 0, "COMPLETED"),
        ((), "exit 3", 1, "FAILED 3:0 NonZeroExitCode"),
        ((), "exit 137", 1, "FAILED 137:0 NonZeroExitCode"),
        ((), "kill -KILL $$", 1, "FAILED 0:9 RaisedSignal:9(Killed)"),
        (("--time", "1s"), "exec sleep 60", 3, "TIMEOUT 0:15 TimeLimit"),
        (("--time", "1s"), "trap 'exit 0' TERM; sleep 60 & wait", 3, "TIMEOUT 0:0 TimeLimit"),
    ],
)
def test_exit_statuses(aver: Product, options: tuple[str, ...], script: str, status: int, said: str) -> None:
    """The exit status is the outcome's, and the line says the outcome."""
    answer = aver("run", *options, "--", "bash", "-c", script)
    assert answer.status == status
    assert f"aver: job 1 {said} in " in answer.err


def test_out_of_memory_exits_4(aver: Product) -> None:
    """Memory is enforced, whatever this machine has to do it with."""
    answer = aver("run", "--mem", "30M", "--", "python3", "-c", "import time; x = b'x' * (300 << 20); time.sleep(60)")
    assert answer.status == 4
    assert "OUT_OF_MEMORY" in answer.err


def test_a_command_that_is_not_there_is_a_launch_failure(aver: Product) -> None:
    """Not exit 127: it never ran, and why says what is missing."""
    answer = aver("run", "--", "/no/such/program")
    assert answer.status == 1
    assert "FAILED JobLaunchFailure" in answer.err
    assert "/no/such/program" in aver("why", "1").out


def test_forward_exit_gives_the_jobs_own_code(aver: Product) -> None:
    """--forward-exit is for people who think in shells."""
    assert aver("run", "--forward-exit", "--", "sh", "-c", "exit 37").status == 37
    assert aver("run", "--forward-exit", "--", "sh", "-c", "kill -TERM $$").status == 143
    process = aver.start(
        "run", "--forward-exit", "--", "sh", "-c", "trap 'exit 0' TERM; touch begun; while :; do sleep 0.02; done"
    )
    wait_for_file(aver.folder / "begun")
    assert aver("cancel", "3").status == 0
    assert end(process).status == 5  # it exited 0, and is CANCELLED


def test_a_program_without_two_dashes_gets_the_hint(aver: Product) -> None:
    """`aver run sh x` is answered with `aver run -- sh x`."""
    answer = aver("run", "sh", "x.sh")
    assert answer.status == 2
    assert "aver run -- sh x.sh" in answer.err


def test_nothing_to_run_is_usage(aver: Product) -> None:
    """No file and no command."""
    assert aver("run").status == 2
    assert aver("run", "--").status == 2


@pytest.mark.parametrize(
    "options", [("--time", "soon"), ("--mem", "-5"), ("--cpus", "-1"), ("--env", "X"), ("--signal", "NOPE@1")]
)
def test_wrong_values_are_one_line_that_names_the_option(aver: Product, options: tuple[str, str]) -> None:
    """Exit 2; nothing is submitted."""
    answer = aver("run", *options, "--", "true")
    assert answer.status == 2
    assert options[0] in answer.err
    assert answer.err.count("\n") == 1
    assert aver("jobs", "--json").document["jobs"] == []


def test_arguments_go_through_untouched(aver: Product) -> None:
    """Bytes that are not UTF-8, quotes, newlines, empty words and further `--` arrive as they are."""
    words = [b"\xff\xfe", b"a b", b"it's", b"two\nlines", b"", b"--", b"--help", b"{x}", b"$HOME", b"%j"]
    code = "import os, sys; os.write(1, b'\\0'.join(map(os.fsencode, sys.argv[1:])))"
    answer = aver("run", "-q", "--", "python3", "-c", code, *words)
    assert os.fsencode(answer.out) == b"\0".join(words)


def test_a_script_gets_its_arguments_and_its_lines_are_read(aver: Product) -> None:
    """#SBATCH lines are options; what follows the file is the script's."""
    script = aver.folder / "job.sh"
    script.write_text('#!/bin/bash\n#SBATCH --job-name=mine\n#SBATCH --time=5\necho "$1 $2"\n')
    answer = aver("run", "job.sh", "--time", "x")
    assert answer.out == "--time x\n"
    document = aver("show", "1", "--json").document
    assert document["job"]["name"] == "mine"
    assert document["attempts"][0]["time_s"] == 300


def test_the_job_inherits_environment_folder_and_umask(aver: Product) -> None:
    """It runs as if it had been typed here."""
    before = os.umask(0o027)
    try:
        answer = aver("run", "-q", "--env", "B=2 3", "--", "sh", "-c", 'echo "$A $B $(umask)"; pwd', env={"A": "1"})
    finally:
        os.umask(before)
    assert answer.out == f"1 2 3 0027\n{aver.folder}\n"


def test_stdin_is_empty_a_file_or_ours(aver: Product) -> None:
    """Empty by default; --stdin FILE; --stdin - copies."""
    (aver.folder / "in").write_text("from file")
    assert aver("run", "-q", "--", "cat", stdin=b"typed").out == ""
    assert aver("run", "-q", "--stdin", "in", "--", "cat").out == "from file"
    assert aver("run", "-q", "--stdin", "-", "--", "cat", stdin=b"typed\xff").out == "typed\udcff"


def test_output_and_error_go_to_files_and_to_us(aver: Product) -> None:
    """With --error the two streams stay apart."""
    answer = aver("run", "-q", "-o", "%x-%j.out", "-e", "%x.err", "-J", "n", "--", "sh", "-c", "echo out; echo err >&2")
    assert (answer.out, answer.err) == ("out\n", "err\n")
    assert (aver.folder / "n-1.out").read_text() == "out\n"
    assert (aver.folder / "n.err").read_text() == "err\n"


def test_an_old_output_file_is_not_shown(aver: Product) -> None:
    """What was in the file before the job is not the job's; with --append it stays in the file."""
    (aver.folder / "f").write_text("old\n")
    assert aver("run", "-q", "--append", "-o", "f", "--", "echo", "new").out == "new\n"
    assert (aver.folder / "f").read_text() == "old\nnew\n"
    assert aver("run", "-q", "-o", "f", "--", "echo", "newer").out == "newer\n"
    assert (aver.folder / "f").read_text() == "newer\n"


def test_a_flood_of_output_arrives_whole(aver: Product) -> None:
    """100,000 lines, to the last byte."""
    answer = aver("run", "-q", "--", "seq", "100000")
    assert answer.out == "".join(f"{number}\n" for number in range(1, 100001))


def test_secrets_are_masked_in_the_stream_and_kept_out_of_the_store(aver: Product, aver_home: Path) -> None:
    """The value is in the job, in what it wrote and in the environment's file, and nowhere else."""
    answer = aver(
        "run",
        "--env",
        "TOKEN=hunter2",
        "--secret",
        "TOKEN",
        "--",
        "sh",
        "-c",
        'printf hun; sleep 0.2; echo "ter2 $TOKEN"',
    )
    assert answer.out == "*** ***\n"
    for path in aver_home.rglob("*"):
        if path.is_file() and path.parent.name not in ("env", "logs"):
            assert b"hunter2" not in path.read_bytes(), path


def test_interrupt_cancels_and_reports(aver: Product) -> None:
    """Ctrl-C: the job is cancelled, its verdict is waited for and said, exit 130."""
    process = aver.start("run", "--", "sh", "-c", "touch started; exec sleep 600")
    wait_for_file(aver.folder / "started")
    answer = end(process, signal.SIGINT)
    assert answer.status == 130
    assert "aver: job 1 CANCELLED 0:15" in answer.err
    assert aver.state(1) == "CANCELLED"


def test_term_cancels_too(aver: Product) -> None:
    """TERM: the same, exit 143."""
    process = aver.start("run", "--", "sh", "-c", "touch started; exec sleep 600")
    wait_for_file(aver.folder / "started")
    assert end(process, signal.SIGTERM).status == 143
    assert aver.state(1) == "CANCELLED"


def test_a_signal_at_any_moment_is_no_bug(aver: Product) -> None:
    """Ctrl-C long before, right after and while the job is submitted: 130, and never a job that goes on unseen."""
    aver("status")
    for number in range(8):
        process = aver.start("run", "-q", "--", "sleep", "600")
        try:
            process.wait(number * 0.06)
        except subprocess.TimeoutExpired:
            pass
        answer = end(process, signal.SIGINT)
        if answer.status == 1 and "/aver/" not in answer.err:
            continue  # the interpreter itself was still starting; no line of ours had run
        assert answer.status in (130, -signal.SIGINT), answer.err
        assert "bug" not in answer.err
    jobs = aver("jobs", "--json").document["jobs"]
    assert {job["state"] for job in jobs} <= {"CANCELLED"}


def test_hangup_detaches(aver: Product) -> None:
    """HUP: the job goes on."""
    process = aver.start("run", "--", "sh", "-c", "touch started; while [ ! -e go ]; do sleep 0.05; done")
    wait_for_file(aver.folder / "started")
    assert end(process, signal.SIGHUP).status == 129
    assert aver.state(1) == "RUNNING"
    (aver.folder / "go").touch()
    assert aver("watch", "1", "--exit-status").status == 0


def test_a_second_interrupt_stops_the_waiting(aver: Product) -> None:
    """Ctrl-C twice: we leave at once and say that the job is being cancelled."""
    script = "trap 'touch termed' TERM; touch started; while [ ! -e go ]; do sleep 0.05; done"
    process = aver.start("run", "--kill-wait", "50", "--", "sh", "-c", script)
    wait_for_file(aver.folder / "started")
    process.send_signal(signal.SIGINT)
    wait_for_file(aver.folder / "termed")
    answer = end(process, signal.SIGINT)
    assert answer.status == 130
    assert "job 1 is being cancelled" in answer.err
    (aver.folder / "go").touch()
    assert aver("watch", "1", "--exit-status").status == 5


@pytest.mark.parametrize("presses", [1, 2])
def test_an_interrupt_ends_it_though_nobody_reads_its_output(aver: Product, presses: int) -> None:
    """`aver run -- yes | less` and Ctrl-C: the pipe is full and stays so; we cancel, and leave all the same."""
    process = aver.start("run", "--", "sh", "-c", "touch started; exec yes")
    wait_for_file(aver.folder / "started")
    assert process.stdout is not None
    full = select.poll()
    full.register(process.stdout, select.POLLIN)
    assert full.poll(30_000), "it shows nothing"
    for _ in range(presses):
        process.send_signal(signal.SIGINT)
    try:
        assert process.wait(30) == 130
    finally:
        process.kill()
        process.stdout.close()
    assert aver("watch", "1", "--exit-status").status == 5


def test_the_rest_of_the_output_is_shown_after_an_interrupt(aver: Product) -> None:
    """What the job wrote before it ended is passed on as long as somebody reads it, however slowly."""
    script = "trap 'yes | head -c 400000; exit 3' TERM; touch started; while true; do sleep 0.02; done"
    process = aver.start("run", "--", "sh", "-c", script)
    wait_for_file(aver.folder / "started")
    process.send_signal(signal.SIGINT)
    assert process.stdout is not None
    got = b""
    while chunk := process.stdout.read1(4096):
        got += chunk
    assert (process.wait(30), got.count(b"y\n")) == (130, 200_000)


def test_a_job_that_runs_again_while_its_output_is_still_read_has_ended_as_it_ended(aver: Product) -> None:
    """Nobody reads the pipe yet, and somebody retries the job: the exit status is that of the end that was seen."""
    script = "[ -e first ] && { touch again; while [ ! -e go ]; do sleep 0.05; done; exit 3; }; touch first; seq 99999"
    process = aver.start("run", "-q", "--", "sh", "-c", f"{script}; exit 3")
    deadline = time.monotonic() + DEADLINE_S
    wait_for_file(aver.folder / "first")
    while aver.state(1) != "FAILED":
        assert time.monotonic() < deadline
    assert aver("retry", "1").status == 0
    wait_for_file(aver.folder / "again")
    try:
        out, err = process.communicate(timeout=10)
    except subprocess.TimeoutExpired:  # it had not heard of the first end yet, and waits for the second
        (aver.folder / "go").touch()
        out, err = process.communicate(timeout=DEADLINE_S)
    (aver.folder / "go").touch()
    assert (process.returncode, err, out[-6:]) == (1, b"", b"99999\n")
    assert aver("watch", "1", "-q", "--exit-status").status == 1


def test_detach_is_submit(aver: Product) -> None:
    """--detach prints the number and leaves."""
    answer = aver("run", "--detach", "--", "true")
    assert (answer.status, answer.out) == (0, "1\n")


def test_a_flow_shows_changes_and_exits_by_its_worst(aver: Product) -> None:
    """One line for each change, one summary, the run's exit status."""
    (aver.folder / "flow.yaml").write_text(
        "jobs:\n  a: {run: 'true'}\n  b: {needs: [a], run: exit 3}\n  c: {needs: [b], run: 'true'}\n"
    )
    answer = aver("run", "flow.yaml")
    assert answer.status == 1
    assert "job 2 a COMPLETED" in answer.out
    assert "job 3 b FAILED 3:0 NonZeroExitCode" in answer.out
    assert "job 4 c SKIPPED NeedFailed:b(FAILED)" in answer.out
    assert "aver: run 1 FAILED: 1 COMPLETED, 1 FAILED, 1 SKIPPED" in answer.err


def test_every_attempt_is_streamed(aver: Product) -> None:
    """A job that is requeued shows the output of both attempts, with a line between them."""
    script = "echo attempt; touch started; while [ ! -e go ]; do sleep 0.05; done; echo end"
    process = aver.start("run", "--", "sh", "-c", script)
    wait_for_file(aver.folder / "started")
    (aver.folder / "started").unlink()
    assert aver("shell", "--", "scontrol", "requeue", "1").status == 0
    wait_for_file(aver.folder / "started")
    (aver.folder / "go").touch()
    answer = end(process)
    assert answer.out == "attempt\nattempt\nend\n"
    assert answer.err.splitlines()[0] == "aver: attempt 2 begins"
    assert answer.status == 0


def test_a_failed_jobs_last_lines_come_before_the_summary(aver: Product) -> None:
    """At most ten lines each, on stderr."""
    (aver.folder / "flow.yaml").write_text("jobs:\n  a: {run: 'seq 100; exit 3'}\n")
    lines = aver("run", "flow.yaml").err.splitlines()
    assert lines[0].endswith("a.out ends:")
    assert lines[1:11] == [f"  | {number}" for number in range(91, 101)]
    assert lines[11].startswith("aver: run 1 FAILED")


def test_a_wrong_flow_shows_every_mistake(aver: Product) -> None:
    """Exit 2, one line for each."""
    (aver.folder / "flow.yaml").write_text("jobs:\n  a: {rnu: 'true'}\n  b: {needs: [x], run: 'true', time: soon}\n")
    answer = aver("run", "flow.yaml")
    assert answer.status == 2
    assert all(line.startswith("aver: flow.yaml:") for line in answer.err.splitlines())
    assert len(answer.err.splitlines()) >= 2


def test_a_secret_that_is_not_there_is_refused(aver: Product) -> None:
    """A slip in the name would leave a value unmasked."""
    done = aver("run", "--secret", "AVER_NO_SUCH", "--", "true")
    assert done.status == 2
    assert (
        done.err == "aver: --secret AVER_NO_SUCH: neither your environment nor the flow has a variable of that name\n"
    )


def test_the_tails_are_of_jobs_that_wrote_something(aver: Product) -> None:
    """The first three failed jobs with output, stderr where it has a file of its own, and how many more there are."""
    silent = "".join(f"  a{number}: {{run: 'false'}}\n" for number in range(4))
    loud = "".join(f"  b{number}: {{run: 'echo loud{number}; false'}}\n" for number in range(3))
    apart = "  b9: {error: apart.err, run: 'echo out; echo the-cause >&2; false'}\n"
    (aver.folder / "flow.yaml").write_text(f"jobs:\n{silent}{apart}{loud}")
    answer = aver("run", "flow.yaml")
    assert [word for word in ("the-cause", "loud0", "loud1", "loud2", "| out") if word in answer.err] == [
        "the-cause", "loud0", "loud1",
    ]  # fmt: skip
    assert "aver: 5 more jobs failed; `aver why 1` groups them by cause\n" in answer.err


def test_options_may_follow_a_flow(aver: Product) -> None:
    """A flow takes no arguments, so what follows it is an option; one that is for jobs says where to write it."""
    (aver.folder / "flow.yaml").write_text("jobs:\n  a: {run: 'true'}\n  b: {run: 'true'}\n")
    assert aver("run", "flow.yaml", "--quiet").status == 0
    assert aver("run", "flow.yaml", "--name", "nightly", "-d").status == 0
    assert aver("show", "4", "--json").document["run"]["name"] == "nightly"
    refused = aver("run", "flow.yaml", "--time", "5m")
    assert refused.status == 2
    assert refused.err == (
        "aver: --time is for a script or a command: in a flow write it in a job or in defaults (flow.yaml)\n"
    )
    stray = aver("run", "flow.yaml", "stray")
    assert (stray.status, stray.err) == (2, 'aver: a flow takes no arguments: flow.yaml was given "stray"\n')


def test_a_command_needs_others_and_is_tried_again(aver: Product) -> None:
    """--needs waits for jobs of other runs, --retry tries again; priority, deadline and comment are kept."""
    held = aver.submit("--hold", "--", "true")
    rules = ("--needs", str(held), "--priority", "5", "--deadline", "now+2hours", "--comment", "for ann")
    number = aver.submit(*rules, "--retry", "1", "--", "sh", "-c", "[ -e once ] || { touch once; exit 1; }")
    assert aver("show", str(number), "--json").document["job"]["reason"] == "Dependency"
    assert aver("release", str(held)).status == 0
    assert aver("watch", str(number), "-e").status == 0
    shown = aver("show", str(number), "--json").document
    assert [attempt["state"] for attempt in shown["attempts"]] == ["FAILED", "COMPLETED"]
    assert aver("submit", "--needs", "999", "--", "true").status == 2


def test_a_job_behind_others_says_what_it_waits_for(aver: Product, tmp_path: Path) -> None:
    """Not only one that lacks CPUs itself: one that is behind another in the queue."""
    everything = str(len(os.sched_getaffinity(0)))
    first = aver.submit("-q", "-c", everything, "--", "sleep", "600")
    second = aver.submit("-q", "-c", everything, "--", "sleep", "600")
    said = tmp_path / "said"
    with said.open("wb") as err:
        process = aver.start_to(err, "run", "--", "true")
        wait_for_file(said, "waiting")
    assert f"job {first} has" in said.read_text()
    aver("cancel", "--force", str(first), str(second))
    assert process.wait(DEADLINE_S) == 0


def test_python_is_not_buffered(aver: Product) -> None:
    """What a killed program wrote last is in its log, unless the environment says otherwise."""
    script = "echo $PYTHONUNBUFFERED"
    assert aver("run", "-q", "--", "sh", "-c", script).out == "1\n"
    assert aver("run", "-q", "--env", "PYTHONUNBUFFERED=", "--", "sh", "-c", script).out == "\n"
