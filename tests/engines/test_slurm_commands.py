"""How Slurm's commands are called: real processes, real pipes."""

from __future__ import annotations

import os
import shutil
import stat
import threading
from pathlib import Path

import pytest

from aver.client.slurm_bin import install
from aver.engines.slurm.commands import call as commands
from aver.engines.slurm.commands.call import Call, Commands, Reply, Trouble
from aver.engines.slurm.submit.sbatch_answer import Unreachable, read_submission
from aver.home import Home
from live_home import is_alive, wait_for


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder


def program(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def site(folder: Path, **settings: object) -> Commands:
    return Commands(path=f"{folder}:/usr/bin:/bin", **settings)  # type: ignore[arg-type]


def answered(reply: Reply | Trouble) -> Reply:
    assert isinstance(reply, Reply), reply
    return reply


def test_status_and_both_streams(bin_folder: Path) -> None:
    """The reply has the exit status and what was printed on each stream, also bytes that are no text."""
    program(bin_folder, "squeue", r"printf 'one\377\n'; echo two >&2; exit 3")
    reply = answered(site(bin_folder).call(["squeue"], timeout_s=20))
    assert (reply.status, reply.out, reply.err) == (3, "one\udcff\n", "two\n")


def test_arguments_are_passed_as_they_are(bin_folder: Path) -> None:
    """No shell comes between: spaces, newlines and quotes arrive."""
    program(bin_folder, "squeue", 'for one in "$@"; do printf "<%s>" "$one"; done')
    words = ["a b", "c\nd", "'\"$HOME;", "", "\x1f"]
    assert answered(site(bin_folder).call(["squeue", *words], timeout_s=20)).out == "".join(f"<{one}>" for one in words)


def test_the_environment_is_clean(bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables that change what Slurm's commands do or print are not passed on; where its configuration is, is."""
    for name in ("SLURM_CLUSTERS", "SQUEUE_FORMAT", "SACCT_FEDERATION", "SBATCH_PARTITION", "SALLOC_QOS", "SINFO_SORT",
                 "SCANCEL_CTLD", "SLURM_JOB_ID", "MY_SECRET", "LC_TIME", "POSIXLY_CORRECT"):  # fmt: skip
        monkeypatch.setenv(name, "spoilt")
    monkeypatch.setenv("SLURM_CONF", "/etc/mine.conf")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("SLURM_TIME_FORMAT", "relative")
    program(bin_folder, "squeue", "env")
    seen = dict(
        line.split("=", 1) for line in answered(site(bin_folder).call(["squeue"], timeout_s=20)).out.splitlines()
    )
    assert "spoilt" not in seen.values()
    assert seen["SLURM_CONF"] == "/etc/mine.conf"
    assert (seen["LC_ALL"], seen["TZ"], seen["SLURM_TIME_FORMAT"], seen["SLURM_BITSTR_LEN"]) == (
        "C",
        "UTC0",
        "standard",
        "0",
    )
    there = answered(site(bin_folder, conf="/etc/other.conf").call(["squeue"], timeout_s=20, env={"A": "b"})).out
    assert "SLURM_CONF=/etc/other.conf\n" in there
    assert "A=b\n" in there


def test_our_own_commands_are_not_slurms(bin_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside of `aver shell`, sbatch is Aver's own: the cluster's is the next one on PATH."""
    home = tmp_path / "home"
    home.mkdir()
    own = install(Home(home))
    program(own, "squeue", "echo ours")
    program(bin_folder, "squeue", "echo theirs")
    monkeypatch.setenv("PATH", f"{own}:{bin_folder}:/usr/bin:/bin")
    assert answered(Commands().call(["squeue"], timeout_s=20)).out == "theirs\n"


def test_names_and_a_prefix(bin_folder: Path) -> None:
    """A site's commands may have other names, several words each, or one word before all of them."""
    program(bin_folder, "spur", 'echo "spur $*"')
    named = site(bin_folder, names={"squeue": "spur 'queue list'"})
    assert answered(named.call(["squeue", "-h"], timeout_s=20)).out == "spur queue list -h\n"
    assert answered(site(bin_folder, prefix="spur").call(["sacct", "-n"], timeout_s=20)).out == "spur sacct -n\n"
    wrong = site(bin_folder, names={"squeue": "spur 'queue"}).call(["squeue"], timeout_s=20)
    assert isinstance(wrong, Trouble)
    assert not wrong.began


def test_stdin_folder_and_umask(bin_folder: Path, tmp_path: Path) -> None:
    """A large text on stdin arrives whole while the command prints as much."""
    program(bin_folder, "sbatch", "pwd; umask; cat; cat > /dev/null")
    text = b"x" * 3_000_000
    folder = os.path.realpath(tmp_path)
    reply = answered(site(bin_folder).call(["sbatch"], timeout_s=60, stdin=text, umask=0o027, cwd=folder))
    assert reply.out == f"{folder}\n0027\n{text.decode()}"


def test_a_command_that_does_not_read_its_stdin(bin_folder: Path) -> None:
    """It may end without reading; its own exit status counts."""
    program(bin_folder, "sbatch", "exec <&-; echo 7")
    assert answered(site(bin_folder).call(["sbatch"], timeout_s=60, stdin=b"x" * 3_000_000)).out == "7\n"


@pytest.mark.parametrize(("make", "says"), [("", "not found"), ("not executable", "can't be started")])
def test_a_command_that_cannot_be_started(bin_folder: Path, make: str, says: str) -> None:
    """It is said, and that nothing was begun."""
    if make:
        (bin_folder / "squeue").write_text("#!/no/such/interpreter\n")
        reply = Commands(names={"squeue": str(bin_folder)}, path=str(bin_folder)).call(["squeue"], timeout_s=20)
    else:
        reply = Commands(path=str(bin_folder)).call(["squeue"], timeout_s=20)
    assert isinstance(reply, Trouble)
    assert says in reply.text
    assert not reply.began


def test_impossible_words_are_no_traceback(bin_folder: Path) -> None:
    """A NUL in an argument, or a list that is too long, is trouble and nothing began."""
    program(bin_folder, "squeue", "true")
    for words in (["squeue", "a\0b"], ["squeue", "x" * 10_000_000]):
        reply = site(bin_folder).call(words, timeout_s=20)
        assert isinstance(reply, Trouble)
        assert not reply.began
    reply = site(bin_folder).call(["squeue"], timeout_s=20, cwd="/no/such/folder")
    assert isinstance(reply, Trouble)
    assert "/no/such/folder" in reply.text


def test_a_time_limit_ends_the_whole_group(bin_folder: Path, tmp_path: Path) -> None:
    """At the time limit the command and its children are killed, and what was printed is kept."""
    program(bin_folder, "squeue", f"sleep 600 & echo $! > {tmp_path}/pid; echo 7; echo $$ > {tmp_path}/own; wait")
    reply = site(bin_folder).call(["squeue"], timeout_s=3.0)
    assert isinstance(reply, Trouble)
    assert reply.began
    assert reply.out == "7\n"
    assert "no answer within 3 s" in reply.text
    assert not os.path.exists(f"/proc/{(tmp_path / 'own').read_text().strip()}")
    child = int((tmp_path / "pid").read_text())
    wait_for(lambda: not is_alive(child), "the child's end")


def test_a_command_that_closes_its_output_is_still_waited_for(bin_folder: Path) -> None:
    """The end is the process's end; a time limit holds also when both streams are closed."""
    program(bin_folder, "squeue", "exec >&- 2>&-; exec sleep 600")
    assert isinstance(site(bin_folder).call(["squeue"], timeout_s=0.5), Trouble)
    program(bin_folder, "squeue", "exec >&- 2>&-; exit 4")
    assert answered(site(bin_folder).call(["squeue"], timeout_s=20)).status == 4


def test_a_child_left_in_the_background_is_not_waited_for(bin_folder: Path, tmp_path: Path) -> None:
    """Who keeps the streams open behind the command's back holds nothing up."""
    program(bin_folder, "squeue", f"sleep 600 & echo $! > {tmp_path}/pid; echo 7")
    reply = answered(site(bin_folder).call(["squeue"], timeout_s=60))
    os.kill(int((tmp_path / "pid").read_text()), 9)
    assert reply.out == "7\n"


def test_a_command_that_is_killed(bin_folder: Path) -> None:
    """Death by a signal is trouble, not an exit status."""
    program(bin_folder, "squeue", "echo 7; kill -9 $$")
    reply = site(bin_folder).call(["squeue"], timeout_s=20)
    assert isinstance(reply, Trouble)
    assert reply.began
    assert "signal 9" in reply.text
    assert reply.out == "7\n"


def test_endless_output_is_bounded(bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that prints without end is ended."""
    monkeypatch.setattr(commands, "MOST_BYTES", 1 << 20)
    program(bin_folder, "squeue", "exec yes")
    reply = site(bin_folder).call(["squeue"], timeout_s=60)
    assert isinstance(reply, Trouble)
    assert "more than 1 MiB" in reply.text


def test_calls_from_several_threads(bin_folder: Path) -> None:
    """Each call gets its own answer."""
    program(bin_folder, "squeue", 'echo "$1"')
    replies: dict[int, str] = {}

    def ask(number: int) -> None:
        replies[number] = answered(site(bin_folder).call(["squeue", str(number)], timeout_s=60)).out

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert replies == {number: f"{number}\n" for number in range(8)}


def test_another_transport() -> None:
    """Where the words run is replaceable: it gets the whole call."""

    class Elsewhere:
        def run(self, call: Call) -> Reply | Trouble:
            return Reply(0, " ".join(call.words), call.env["TZ"], 0.0)

    reply = Commands(prefix="spur", transport=Elsewhere()).call(["squeue", "-h"], timeout_s=1)
    assert reply == Reply(0, "spur squeue -h", "UTC0", 0.0)


@pytest.mark.skipif(shutil.which("sbatch") is None, reason="needs Debian's slurm-client")
def test_a_configuration_that_is_not_there_is_said_at_once(tmp_path: Path) -> None:
    """The real sbatch would try for a minute, before it talks to anybody: nothing was submitted."""
    reply = answered(Commands(conf=os.fspath(tmp_path / "slurm.conf")).call(["sbatch", "--wrap", "true"], timeout_s=50))
    assert reply.took_s < 10
    answer = read_submission(reply)
    assert isinstance(answer, Unreachable)
    assert answer.reason == "NoConfiguration"
