"""Jobs that are wrong or too much: paths, names, sizes, output, arguments, secrets."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from aver.model.exit import ExitStatus
from aver.model.job import Argv, JobSpec, Streams
from aver.model.states import State
from aver.store.write import writer
from live_home import LiveHome, shell_job, wait_for

Typed = Callable[..., subprocess.CompletedProcess[bytes]]


def _shown(typed: Typed, number: int = 1) -> dict[str, object]:
    done = typed("show", "--json", str(number))
    assert done.returncode == 0, done.stderr
    job = json.loads(done.stdout)["job"]
    assert isinstance(job, dict)
    return job


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (["--output", "/proc/none/out"], ["stdout /proc/none/out", "errno 2"]),
        (["--output", "/"], ["stdout /", "errno 21"]),
        (["--stdin", "/no/such/input"], ["stdin /no/such/input", "errno 2"]),
    ],
)
def test_place_that_can_not_be_opened(typed: Typed, place: list[str], words: list[str]) -> None:
    """A launch failure with errno and path; status 1, no exit code is made up."""
    done = typed("run", *place, "--", "true")
    assert done.returncode == 1, done.stderr
    job = _shown(typed)
    assert (job["state"], job["reason"], job["exit"]) == ("FAILED", "JobLaunchFailure", None)
    why = typed("why", "1").stdout.decode()
    assert all(word in why for word in words), why


def test_missing_folder_is_a_launch_failure(live: LiveHome) -> None:
    """The folder is gone when the job starts: errno and path."""
    number = live.submit(shell_job("job", "exit 0", folder="/no/such/folder", streams=Streams(stdout="/dev/null")))
    live.settle([number])
    job = live.job(number)
    assert (job.state, job.exit, job.reason) == (State.FAILED, None, "JobLaunchFailure")
    assert "/no/such/folder" in job.detail
    assert "errno 2" in job.detail


def test_output_is_a_fifo_that_nobody_reads(live: LiveHome) -> None:
    """Nothing hangs: a launch failure, and other jobs go on."""
    os.mkfifo(live.folder / "fifo")
    number = live.submit(shell_job("job", "echo x", streams=Streams(stdout="fifo")))
    other = live.run_text("exit 3")
    live.settle([number, other])
    assert live.job(number).state is State.FAILED
    assert "fifo" in live.job(number).detail
    assert live.job(other).exit == ExitStatus(3)


def test_a_hundred_thousand_lines(typed: Typed) -> None:
    """Every line comes through `aver run`, in order, and no line of ours is among them."""
    done = typed("run", "--", "seq", "100000")
    assert done.returncode == 0, done.stderr
    assert done.stdout == b"".join(b"%d\n" % number for number in range(1, 100001))


def test_ten_megabytes_a_second(typed: Typed) -> None:
    """Thirty megabytes of output in three seconds: each byte arrives."""
    text = "for i in 1 2 3; do head -c 10000000 /dev/zero | tr '\\0' $i; sleep 1; done"
    done = typed("run", "--", "sh", "-c", text)
    assert done.returncode == 0, done.stderr
    assert [done.stdout.count(digit) for digit in (b"1", b"2", b"3")] == [10_000_000] * 3
    assert len(done.stdout) == 30_000_000


def test_last_line_without_an_end(typed: Typed) -> None:
    """Output that ends without a newline, and NUL bytes, come through unchanged."""
    done = typed("run", "--", "printf", "a\\0b\\nc")
    assert done.stdout == b"a\0b\nc"


def test_two_megabytes_of_arguments(live: LiveHome, typed: Typed) -> None:
    """They arrive whole, or the launch failure says E2BIG and the path."""
    arguments = tuple("x" * 1000 for _ in range(2000))
    number = live.submit(JobSpec("job", Argv(("/bin/sh", "-c", "echo $#", "sh", *arguments))), is_single=True)
    live.settle([number])
    job = live.job(number)
    if job.state is State.COMPLETED:
        assert (live.folder / f"aver-{number}.out").read_text() == "2000\n"
    else:
        assert job.reason == "JobLaunchFailure"
        assert "errno 7" in job.detail
    number = live.submit(JobSpec("job", Argv(("/bin/echo", "y" * 2_000_000))), is_single=True)
    live.settle([number])
    assert live.job(number).reason == "JobLaunchFailure"
    assert "/bin/echo" in live.job(number).detail
    assert "errno 7" in live.job(number).detail
    number = live.submit(JobSpec("job", Argv(("/bin/echo", *["z" * 100_000] * 100))), is_single=True)
    live.settle([number])
    assert live.job(number).reason == "JobLaunchFailure"
    assert live.job(number).exit is None


ODD_NAMES = ["two\nlines", "a'b\"c %j {brace} $(touch pwned)", "-dash", "ü € 漢 back\\slash", "\x1b[31mred"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names(typed: Typed, live: LiveHome, name: str) -> None:
    """A name is refused, or kept with control characters spelled out; it never becomes a command or a line."""
    done = typed("run", f"--name={name}", "--", "sh", "-c", 'printf "%s" "$AVER_JOB_NAME"')
    text = done.stderr.decode()
    assert done.returncode in (0, 2), text
    assert "Traceback" not in text
    if done.returncode == 0:
        shown = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in name)
        assert done.stdout.decode() == shown
        listed = typed("jobs")
        assert listed.returncode == 0, listed.stderr
        assert len(listed.stdout.decode().strip().splitlines()) == 2, listed.stdout
        assert "\x1b[31m" not in listed.stdout.decode()
        assert typed("why", "1").returncode == 0
        assert _shown(typed)["name"] == shown
    assert not (live.folder / "pwned").exists()


def test_bytes_that_are_not_utf8(typed: Typed, live: LiveHome) -> None:
    """Arguments, names, folders and output with such bytes arrive as they are."""
    folder = os.fsencode(live.folder) + b"/f\xff\nolder"
    os.mkdir(folder)
    done = typed(
        "run", b"--name=n\xffame", b"--chdir=" + folder, b"--output=o\xfeut", "--",
        "sh", "-c", 'printf "%s|%s" "$1" "$AVER_JOB_NAME"', "sh", b"a\xffrg",
    )  # fmt: skip
    assert done.returncode in (0, 2), done.stderr
    assert b"Traceback" not in done.stderr
    if done.returncode == 0:
        assert done.stdout == b"a\xffrg|n\xffame"
        for command in (
            ["jobs"],
            ["show", "1"],
            ["why", "1"],
            ["log", "1"],
            ["jobs", "--json"],
            ["show", "1", "--json"],
        ):
            again = typed(*command)
            assert again.returncode == 0, again.stderr
            assert b"Traceback" not in again.stderr
        live.assert_store_is_whole()


@pytest.mark.parametrize(
    "options",
    [
        ["--cpus", "-1"],
        ["--cpus", "100000"],
        ["--cpus", "99999999999999999999999999"],
        ["--cpus", "two"],
        ["--cpus", "nan"],
        ["--cpus", "1e-9"],
        ["--mem", "-1"],
        ["--mem", "100000T"],
        ["--mem", "99999999999999999999999999999999"],
        ["--mem", "lots"],
        ["--mem", "nan"],
        ["--mem", "inf"],
        ["--gpus", "1000"],
        ["--gpus", "-1"],
        ["--time", "-5"],
        ["--time", "soon"],
        ["--time", "1e9"],
        ["--time", "99999999999999999999"],
        ["--name", ""],
        ["--begin", "never"],
        ["--signal", "NOPE"],
    ],
)
def test_absurd_sizes_are_refused(typed: Typed, options: list[str]) -> None:
    """Status 2 and a sentence that has the wrong value in it; nothing is run."""
    done = typed("run", *options, "--", "touch", "ran")
    text = done.stderr.decode()
    assert done.returncode == 2, (done.returncode, text)
    assert "Traceback" not in text
    assert options[1].lstrip("-") in text


def test_time_zero_means_what_the_words_say(typed: Typed) -> None:
    """`--time 0` is Slurm's word for no limit: the job is not ended at once."""
    done = typed("run", "--time", "0", "--", "sleep", "0.3")
    assert done.returncode in (0, 2), done.stderr
    if done.returncode == 0:
        assert _shown(typed)["state"] == "COMPLETED"


def test_memory_zero(typed: Typed) -> None:
    """`--mem 0` is Slurm's word for all of it, or is refused; it never kills the job."""
    done = typed("run", "--mem", "0", "--", "true")
    assert done.returncode in (0, 2), done.stderr


def test_environment_values_stay_in_their_file(typed: Typed, live: LiveHome) -> None:
    """A value is in env/RUN.env, mode 0600, and in no other file of the home nor in any output."""
    secret = "s3cr3t-" + os.urandom(8).hex()
    env = {"MY_TOKEN": secret, "AVER_DEBUG": ""}
    done = typed("run", "--env", f"OTHER={secret}", "--", "sh", "-c", "echo ${#MY_TOKEN} ${#OTHER}; exit 3", env=env)
    assert done.stdout.split() == [str(len(secret)).encode()] * 2, done
    outputs = [done.stderr]
    for command in (
        ["jobs"],
        ["show", "1"],
        ["why", "1"],
        ["jobs", "--json"],
        ["show", "1", "--json"],
        ["runs", "--json"],
    ):
        answer = typed(*command)
        outputs += [answer.stdout, answer.stderr]
    assert not any(secret.encode() in output for output in outputs)
    found = [path for path in live.home.path.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    assert found == [live.home.env(1)]
    assert found[0].stat().st_mode & 0o777 == 0o600
    live.kill_coordinator()
    live.connect_again()
    live.wait_until_gone()
    found = [path for path in live.home.path.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    assert found == [live.home.env(1)]


def test_network_file_system_has_no_write_ahead_log(
    live: LiveHome, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The whole product on a rollback journal: jobs run, the coordinator is killed, verdicts are there."""
    folder = tmp_path / "network"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "import sys\n"
        "if 'aver.coordinator' in ' '.join(sys.orig_argv):\n"
        "    import aver.store.write.writer\n"
        f"    assert hasattr(aver.store.write.writer, '{writer.is_on_network.__name__}')\n"
        "    aver.store.write.writer.is_on_network = lambda folder: True\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{folder}:{os.environ.get('PYTHONPATH', '')}")
    numbers = [live.run_text(f'echo "$AVER_KEY" >> "$RAN"; sleep 0.{n}; exit {n}') for n in range(5)]
    assert not live.home.database.with_name("aver.db-wal").exists()
    live.kill_coordinator()
    live.settle(numbers)
    assert [live.job(number).exit for number in numbers] == [ExitStatus(code) for code in range(5)]
    assert list(live.keys_run().values()) == [1] * 5
    assert live.home.database.read_bytes()[18] == 1
    live.assert_store_is_whole()
    live.assert_nothing_left()


def test_events_of_the_future(live: LiveHome, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The clock is set back a day between two coordinators: jobs go on, end once, and take the time that they took."""
    folder = tmp_path / "tomorrow"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "import sys, time\n"
        "if 'aver.coordinator' in ' '.join(sys.orig_argv):\n"
        "    now = time.time\n"
        "    time.time = lambda: now() + 86400\n"
    )
    with monkeypatch.context() as tomorrow:
        tomorrow.setenv("PYTHONPATH", f"{folder}:{os.environ.get('PYTHONPATH', '')}")
        running = live.run_text('echo "$AVER_KEY" >> "$RAN"; sleep 1; exit 3')
        cancelled = live.run_text('echo "$AVER_KEY" >> "$RAN"; sleep 600')
        live.wait_running(running)
        live.wait_running(cancelled)
        live.kill_coordinator()
    with live.client() as client:
        client.call("cancel", ids=[cancelled], by="tester", signal=None, now=False)
    live.kill_coordinator()
    live.settle([running, cancelled])
    assert live.job(running).exit == ExitStatus(3)
    assert live.job(cancelled).state is State.CANCELLED
    elapsed = live.job(running).elapsed_s
    assert elapsed is not None
    assert 0.9 < elapsed < 60
    assert list(live.keys_run().values()) == [1, 1]
    live.assert_store_is_whole()
    live.assert_nothing_left()


def test_many_jobs_that_cannot_start(live: LiveHome) -> None:
    """Two hundred commands that do not exist: two hundred launch failures, each with its path."""
    jobs = tuple(JobSpec(f"job{n}", Argv((f"/no/such/program-{n}",))) for n in range(200))
    run = live.submit(*jobs, is_single=False)
    live.settle([run])
    with live.reader() as reader:
        found = reader.jobs(run=run)
    assert len(found) == 200
    assert all(job.reason == "JobLaunchFailure" and f"program-{job.name[3:]}:" in job.detail for job in found)
    wait_for(lambda: not live.processes(), "no processes")
    live.assert_nothing_left()
