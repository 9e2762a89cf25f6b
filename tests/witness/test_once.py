"""The form for other schedulers: one job, one record, and the same end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from witness_driver import IS_ROOT, Line, acts, is_running, read_lines, until


class Once:
    def __init__(self, binary: Path, folder: Path) -> None:
        self.binary, self.record = binary, folder / "record"
        self.folder = folder

    def command(self, *words: str, options: tuple[str, ...] = ()) -> list[str]:
        return [str(self.binary), "once", "--record", str(self.record), "--key", "7.1", *options, "--", *words]

    def run(self, *words: str, options: tuple[str, ...] = ()) -> tuple[subprocess.CompletedProcess[str], Line]:
        done = subprocess.run(
            self.command(*words, options=options),
            capture_output=True, text=True, cwd=self.folder, check=False, timeout=60,
        )  # fmt: skip
        (line,) = read_lines(self.record)
        assert [path.name for path in self.folder.iterdir() if path.suffix == ".tmp"] == []
        return done, line


@pytest.fixture
def once(witness_binary: Path, tmp_path: Path) -> Once:
    return Once(witness_binary, tmp_path)


def test_ends_as_its_child(once: Once) -> None:
    """Same code, or same signal; the record has the raw status."""
    for code in (0, 1, 137, 255):
        done, line = once.run("sh", "-c", f"exit {code}")
        assert (done.returncode, line["raw"], line["size"], done.stderr) == (code, code << 8, 0, "")
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGHUP, signal.SIGPIPE, signal.SIGUSR2):
        done, line = once.run("sh", "-c", f"kill -{number} $$")
        assert (done.returncode, line["raw"]) == (-number, number)


def test_no_second_core(once: Once) -> None:
    """A child that dumps core makes one core file, not two."""
    done, line = once.run("sh", "-c", "ulimit -c unlimited; kill -SEGV $$")
    assert done.returncode == -signal.SIGSEGV
    assert os.WTERMSIG(line["raw"]) == signal.SIGSEGV
    assert len([path for path in once.folder.iterdir() if path.name.startswith("core")]) <= 1


def test_inherits(once: Once) -> None:
    """Streams, folder, descriptors, session and environment are those of the caller."""
    read, write = os.pipe()
    script = f"pwd -P; echo $HERE $AVER_KEY; echo pmi >&{write}; cat; ps -o sid= -p $$ 2>/dev/null"
    done = subprocess.run(
        once.command("bash", "-c", script, options=("--env", "HERE=yes")),
        input="in\n", capture_output=True, text=True, cwd=once.folder, pass_fds=(write,), check=True,
    )  # fmt: skip
    os.close(write)
    assert os.read(read, 100) == b"pmi\n"
    os.close(read)
    words = done.stdout.split()
    assert words[:4] == [str(once.folder.resolve()), "yes", "7.1", "in"]
    assert words[4:] in ([], [str(os.getsid(0))])


def test_launch_failures(once: Once) -> None:
    """127 for not found, 126 otherwise, with a sentence and a record."""
    done, line = once.run("/no/such")
    assert (done.returncode, line["launch"]) == (127, {"op": "exec", "errno": 2, "path": "/no/such"})
    assert "can't start /no/such" in done.stderr
    done, line = once.run("/etc/passwd")
    assert (done.returncode, line["launch"]["errno"], line["raw"]) == (126, 13, None)


def test_unwritable_record_does_not_change_the_end(once: Once) -> None:
    """The record can't be written: the end is the child's, and a sentence says so."""
    once.record = once.folder / "gone" / "record"
    done = subprocess.run(once.command("sh", "-c", "exit 5"), capture_output=True, text=True, check=False)
    assert done.returncode == 5
    assert "can't write the exit record" in done.stderr


def test_time_limit(once: Once) -> None:
    """Limits are enforced here too."""
    done, line = once.run("sleep", "60", options=("--time", "100", "--kill-wait", "5000"))
    assert (done.returncode, acts(line)) == (-signal.SIGTERM, [("time", signal.SIGTERM)])


def test_time_that_a_scheduler_stopped_the_job_is_not_counted(once: Once) -> None:
    """Suspended from outside with all its processes, a job has its whole time afterwards."""
    script = "import os, time\nos.write(1, b'ready\\n')\nfor _ in range(50): time.sleep(0.01)\n"
    command = once.command(sys.executable, "-I", "-S", "-c", script, options=("--time", "3000"))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    os.killpg(process.pid, signal.SIGSTOP)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(4)
    os.killpg(process.pid, signal.SIGCONT)
    assert process.wait(20) == 0
    process.stdout.close()
    (line,) = read_lines(once.record)
    assert (line["acts"], line["suspended"] > 2) == ([], True)


def test_warning(once: Once) -> None:
    """The warning comes, and reaches the program under a script that does not catch it."""
    script = "sleep 60; exit 8"
    done, line = once.run("bash", "-c", script, options=("--time", "60000", "--warn", "10 59000 p"))
    assert (done.returncode, acts(line)) == (8, [("warn", signal.SIGUSR1)])


def test_signals_are_forwarded(once: Once) -> None:
    """A signal to the witness reaches the child, is noted, and the witness waits for the end."""
    script = "trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done"
    process = subprocess.Popen(once.command("bash", "-c", script), stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 3
    process.stdout.close()
    (line,) = read_lines(once.record)
    assert (line["got"], line["raw"]) == ([signal.SIGTERM], 3 << 8)


@pytest.mark.parametrize("whom", ["witness", "all"])
def test_signals_come_once(once: Once, whom: str) -> None:
    """Each signal reaches the child once: sent to the witness alone, or by a scheduler to every process of the job."""
    script = (
        "import os, signal, time\ncount = 0\n"
        "def add(*_):\n    global count\n    count += 1\n    os.write(1, b'got\\n')\n"
        "def end(*_):\n    raise SystemExit(count)\n"
        "signal.signal(signal.SIGUSR1, add)\nsignal.signal(signal.SIGTERM, end)\n"
        "os.write(1, b'ready\\n')\nwhile True: time.sleep(0.01)\n"
    )
    process = subprocess.Popen(
        once.command(sys.executable, "-I", "-S", "-c", script),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    known: set[str] = set()
    for _ in range(3):
        known.clear()
        known.update(children.read_text().split())
        process.send_signal(signal.SIGUSR1) if whom == "witness" else os.killpg(process.pid, signal.SIGUSR1)
        assert process.stdout.readline() == "got\n"
        if whom == "all":  # it has seen that everybody got it
            until(lambda: set(children.read_text().split()) - known and len(children.read_text().split()) == 2)
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 3
    process.stdout.close()
    (line,) = read_lines(once.record)
    assert (line["got"], line["left"]) == ([signal.SIGUSR1] * 3 + [signal.SIGTERM], 0)


def test_left_over_processes_are_killed(once: Once) -> None:
    """Also without a session of its own nothing is left; the caller's other processes are spared."""
    other = subprocess.Popen(["sleep", "60"])
    _, line = once.run("bash", "-c", "(sleep 61 & setsid sleep 62 & echo $! >pid); until [ -s pid ]; do :; done")
    pid = int((once.folder / "pid").read_text())
    assert line["left"] == 2
    assert until(lambda: not is_running(pid))
    assert other.poll() is None
    other.kill()
    other.wait()


def test_bad_options(witness_binary: Path) -> None:
    """A wrong option is a usage error, and nothing runs."""
    for words in (["--nope", "1", "--", "true"], ["--time", "x", "--", "true"], ["--key", "a/b", "--", "true"],
                  ["--"], ["--mem", "1"], ["--record"]):  # fmt: skip
        done = subprocess.run([witness_binary, "once", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 2, words
        assert "usage" in done.stderr


def test_files_and_folder(once: Once) -> None:
    """Folder and streams may be named; names are relative to the folder, and stderr goes where stdout goes."""
    inner = once.folder / "inner"
    inner.mkdir()
    (inner / "in").write_text("hello\n")
    options = ("--folder", str(inner), "--stdin", "in", "--stdout", "out")
    done, line = once.run("sh", "-c", "cat; pwd -P; echo oh >&2", options=options)
    assert (done.returncode, done.stdout, line["launch"]) == (0, "", None)
    assert (inner / "out").read_text() == f"hello\n{inner.resolve()}\noh\n"
    once.run("sh", "-c", "echo more; echo err >&2", options=(*options, "--append", "1", "--stderr", "err"))
    assert (inner / "out").read_text().splitlines()[2:] == ["oh", "more"]
    assert (inner / "err").read_text() == "err\n"
    once.run("echo", "anew", options=options)
    assert (inner / "out").read_text() == "anew\n"


@pytest.mark.parametrize("op", ["stdin", "stdout", "stderr"])
def test_file_that_cannot_be_opened(once: Once, op: str) -> None:
    """A stream or a folder that can't be opened is a launch failure, with errno and path."""
    path = "/proc/none/file"  # in a folder that nobody can make
    done, line = once.run("true", options=(f"--{op}", path))
    assert (done.returncode, line["raw"], line["launch"]) == (127, None, {"op": op, "errno": 2, "path": path})
    assert path in done.stderr
    done, line = once.run("true", options=("--folder", str(once.record), f"--{op}", "x"))
    assert (done.returncode, line["launch"]["op"], line["launch"]["errno"]) == (126, "chdir", 20)


def test_folder_that_hangs_does_not_hold_up_the_end(once: Once) -> None:
    """Where the record's file can't even be opened, the witness ends as its child after a while, and says so."""
    script = 'mkfifo "$0.$$.tmp"; exec "$@"'
    done = subprocess.run(
        ["sh", "-c", script, str(once.record), *once.command("sh", "-c", "kill -USR1 $$")],
        capture_output=True, text=True, cwd=once.folder, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == -signal.SIGUSR1
    assert "can't write the exit record" in done.stderr
    assert not once.record.exists()


def test_full_folder_does_not_change_the_end(once: Once) -> None:
    """No room for the record: the end is the child's, and no half record is left."""
    done = subprocess.run(
        ["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", *once.command("sh", "-c", "exit 9")],
        capture_output=True, text=True, cwd=once.folder, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 9
    assert "can't write the exit record" in done.stderr
    assert list(once.folder.iterdir()) == []


@pytest.mark.skipif(IS_ROOT, reason="root may write everywhere")
def test_record_in_a_read_only_folder(once: Once) -> None:
    """As an ordinary user: a folder that may not be written does not change the end."""
    folder = once.folder / "locked"
    folder.mkdir(0o500)
    once.record = folder / "record"
    done = subprocess.run(once.command("true"), capture_output=True, text=True, check=False)
    assert (done.returncode, "can't write" in done.stderr) == (0, True)
