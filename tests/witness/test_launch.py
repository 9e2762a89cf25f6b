"""How a job is started, and what is said when it can't be."""

from __future__ import annotations

import errno
import os
import resource
import signal
from pathlib import Path

import pytest
from witness_driver import IS_ROOT, Line, Slot, StartSlot, until


def launch(line: Line) -> tuple[str, int, str]:
    assert line["raw"] is None
    failure = line["launch"]
    return failure["op"], failure["errno"], failure["path"]


def executable(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_environment_is_the_file_and_what_replaces_it(slot: Slot, tmp_path: Path) -> None:
    """`e` gives the environment, `E` replaces or removes a name, and AVER_KEY is there."""
    file = tmp_path / "env"
    file.write_bytes(b"A=1\0B=two\nlines\0C=3\0D=4\0PATH=" + os.environ["PATH"].encode() + b"\0")
    out = tmp_path / "out"
    fields = (f"e{file}", "EB=x=y", "ENEW=1", "ENEW=2", "EC", f"o{out}", "aenv", "a-0")
    slot.run("key-1", *fields)
    seen = dict(pair.split("=", 1) for pair in out.read_text().split("\0")[:-1])
    assert seen == {"A": "1", "B": "x=y", "D": "4", "NEW": "2", "AVER_KEY": "key-1", "PATH": os.environ["PATH"]}


def test_an_environment_that_was_replaced_is_read_again(slot: Slot, tmp_path: Path) -> None:
    """The witness keeps the last one; the next job has what the file has then, also of the same name and size."""
    file, out = tmp_path / "env", tmp_path / "out"
    for number in range(3):
        new = tmp_path / "new"
        new.write_bytes(b"A=%d\0PATH=" % number + os.environ["PATH"].encode() + b"\0")
        new.rename(file)
        for _ in range(2):
            slot.run(f"k{number}", f"e{file}", f"o{out}", "aprintenv", "aA")
            assert out.read_text() == f"{number}\n"
    file.unlink()
    assert slot.fail("gone", f"e{file}", "atrue")["launch"]["path"] == str(file)


def test_defaults_are_for_names_that_nobody_sets(slot: Slot, tmp_path: Path) -> None:
    """`v` yields to the file and to `E`; a name that `E` removes gets the default."""
    file, out = tmp_path / "env", tmp_path / "out"
    file.write_bytes(b"A=1\0C=3\0PATH=" + os.environ["PATH"].encode() + b"\0")
    slot.run("k", f"e{file}", "vA=no", "vB=no", "vC=yes", "vD=x=y", "EB=2", "EC", f"o{out}", "aenv", "a-0")
    seen = dict(pair.split("=", 1) for pair in out.read_text().split("\0")[:-1])
    del seen["PATH"]
    assert seen == {"A": "1", "B": "2", "C": "yes", "D": "x=y", "AVER_KEY": "k"}


def test_the_job_runs_on_the_cpus_that_it_is_given(slot: Slot, tmp_path: Path) -> None:
    """The journal has them before it begins; the witness itself and the next job are not bound."""
    own = sorted(os.sched_getaffinity(0))
    read = ("agrep", "aCpus_allowed_list", "a/proc/self/status")
    slot.run("bound", f"B{own[-1]}", f"o{tmp_path}/bound", "EPATH=/bin:/usr/bin", *read)
    begun = [line for line in slot.lines() if line["ev"] == "begin"]
    slot.run("free", f"o{tmp_path}/free", "EPATH=/bin:/usr/bin", *read)
    assert begun[0]["cpus"] == str(own[-1])
    assert (tmp_path / "bound").read_text().split() == ["Cpus_allowed_list:", str(own[-1])]
    mine = Path("/proc/self/status").read_text().partition("Cpus_allowed_list:")[2].split()[0]
    assert (tmp_path / "free").read_text().split() == ["Cpus_allowed_list:", mine]


@pytest.mark.parametrize("text", ["", "x", "1-", "2-1", "-1", "0,", "0;1", "0-1024", "99999999999999999999"])
def test_cpus_that_are_no_list_are_refused(slot: Slot, text: str) -> None:
    """Nothing is started."""
    slot.send("R", "kk", f"B{text}", "atrue")
    assert slot.expect("error")["text"] == "unknown or malformed field in a run order"


def test_cpus_that_are_not_there_bind_nobody(slot: Slot) -> None:
    """As of a machine that has lost them since."""
    assert slot.run("k", "B1000-1023", "a/bin/true")["raw"] == 0


def test_changed_environment_file_is_read_again(slot: Slot, tmp_path: Path) -> None:
    """The witness keeps the last environment file, and notices when it changed."""
    file, out = tmp_path / "env", tmp_path / "out"
    for value in ("old", "new", "newer"):
        file.with_suffix(".part").write_bytes(f"V={value}\0".encode())
        file.with_suffix(".part").replace(file)
        for _ in range(2):
            slot.run("k", f"e{file}", f"o{out}", "a/bin/sh", "a-c", "aecho $V")
            assert out.read_text() == value + "\n"


def test_without_a_file_the_environment_is_empty(slot: Slot, tmp_path: Path) -> None:
    """Nothing of the witness's own environment reaches the job."""
    slot.run("bare", f"o{tmp_path}/out", "aenv")
    assert (tmp_path / "out").read_text() == "AVER_KEY=bare\n"


def test_program_is_looked_up_in_the_jobs_path(slot: Slot, tmp_path: Path) -> None:
    """PATH is that of the job; a file that may not be executed is passed over."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "one" / "prog").write_text("#!/bin/sh\nexit 1\n")
    executable(tmp_path / "two" / "prog", "#!/bin/sh\nexit 42\n")
    end = slot.run("path", f"EPATH=/nowhere:{tmp_path}/one:{tmp_path}/two", "aprog")
    assert end["raw"] == 42 << 8
    assert launch(slot.fail("path2", f"EPATH={tmp_path}/one", "aprog")) == ("exec", errno.EACCES, "prog")
    assert slot.run("path3", f"d{tmp_path}/two", "EPATH=", "aprog")["raw"] == 42 << 8


def test_folder_umask_limits_and_files(slot: Slot, tmp_path: Path) -> None:
    """Folder, umask and limits are set; relative names are relative to the folder; stderr follows stdout."""
    (tmp_path / "in").write_text("input\n")
    script = "pwd -P; umask; ulimit -Sn; ulimit -Hn; cat; echo error >&2"
    slot.sh("set", script, f"d{tmp_path}", "u027", "l7 50 60", "iin", "oout")
    folder = str(tmp_path.resolve())
    assert (tmp_path / "out").read_text().split() == [folder, "0027", "50", "60", "input", "error"]
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o640


def test_append_and_truncate(slot: Slot, tmp_path: Path) -> None:
    """Files are truncated, or appended to with `A`; stderr may have its own, or name the same file."""
    for key, *more in (("1",), ("2", "A"), ("3",)):
        slot.sh("k" + key, f"echo o{key}; echo e{key} >&2", f"d{tmp_path}", "oout", "rerr", *more)
        if key == "2":
            assert (tmp_path / "out").read_text() == "o1\no2\n"
    assert ((tmp_path / "out").read_text(), (tmp_path / "err").read_text()) == ("o3\n", "e3\n")
    slot.sh("same", "echo o; echo e >&2; echo o", f"d{tmp_path}", "osame", "rsame")
    assert (tmp_path / "same").read_text() == "o\ne\no\n"


def test_limit_above_our_own_is_lowered(start_slot: StartSlot, tmp_path: Path) -> None:
    """A hard limit above the witness's own is lowered to it, and is no failure."""
    slot = start_slot(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 200)))
    slot.sh("limits", "ulimit -Sn; ulimit -Hn", "l7 -1 -1", f"o{tmp_path}/out")
    assert (tmp_path / "out").read_text().split() == ["200", "200"]


def test_signals_are_reset(start_slot: StartSlot, tmp_path: Path) -> None:
    """Ignored and blocked signals of whoever started the witness do not reach the job."""

    def ignore() -> None:
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGQUIT, signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM, signal.SIGCHLD})

    slot = start_slot(ignore)
    slot.run("signals", f"o{tmp_path}/out", "agrep", "aSig", "a/proc/self/status")
    words = dict(line.split(":\t") for line in (tmp_path / "out").read_text().splitlines())
    assert [int(words[name], 16) for name in ("SigBlk", "SigIgn", "SigPnd")] == [0, 0, 0]


def test_own_session_and_no_descriptor_of_ours(slot: Slot, tmp_path: Path) -> None:
    """The child leads a session of its own, and has only its three descriptors."""
    slot.start("fds", f"o{tmp_path}/out", "abash", "a-c", "aecho $(ls /proc/$$/fd); echo done; exec sleep 60")
    until(lambda: "done" in (tmp_path / "out").read_text())
    pid = int(slot.connect()["pid"])
    assert os.getsid(pid) == pid
    until(lambda: sorted(os.listdir(f"/proc/{pid}/fd")) == ["0", "1", "2"])  # its loader opens libraries
    slot.send("S", "kfds", "s9", "ca")
    slot.expect("end")


def test_no_such_program(slot: Slot) -> None:
    """ENOENT with the path as given, whether looked up or not; no start line is sent."""
    assert launch(slot.fail("a", "a/no/such/program")) == ("exec", errno.ENOENT, "/no/such/program")
    assert launch(slot.fail("b", "ano-such-program")) == ("exec", errno.ENOENT, "no-such-program")
    assert [line["ev"] for line in slot.lines()] == ["begin", "end", "begin", "end"]


def test_not_a_program(slot: Slot, tmp_path: Path) -> None:
    """A file without execute permission, a folder, text without `#!`, a missing interpreter."""
    plain = tmp_path / "plain"
    plain.write_text("hello\n")
    assert launch(slot.fail("a", f"a{plain}")) == ("exec", errno.EACCES, str(plain))
    assert launch(slot.fail("b", f"a{tmp_path}")) == ("exec", errno.EACCES, str(tmp_path))
    text = executable(tmp_path / "text", "hello\n")
    assert launch(slot.fail("c", f"a{text}")) == ("exec", errno.ENOEXEC, str(text))
    script = executable(tmp_path / "script", "#!/no/such/interpreter\n")
    assert launch(slot.fail("d", f"a{script}")) == ("exec", errno.ENOENT, str(script))


def test_arguments_too_long(slot: Slot) -> None:
    """An argument that the kernel refuses is E2BIG, not a crash."""
    assert launch(slot.fail("big", "a/bin/true", "a" + "x" * (1 << 20))) == ("exec", errno.E2BIG, "/bin/true")


def test_two_megabytes_of_arguments(slot: Slot, tmp_path: Path) -> None:
    """A frame of 2 MB arrives whole, if the kernel takes that much."""
    words = ["a" + "y" * 1000] * 2000
    end = slot.run("long", "l3 -1 -1", f"o{tmp_path}/out", "abash", "a-c", "aecho $# ${#1999}", *words)
    assert end["raw"] == 0
    assert (tmp_path / "out").read_text().split() == ["1999", "1000"]


def test_missing_folder_and_files(slot: Slot, tmp_path: Path) -> None:
    """Each file that can't be had is named, with what it was for."""
    gone = str(tmp_path / "gone" / "x")
    assert launch(slot.fail("a", f"d{gone}", "atrue")) == ("chdir", errno.ENOENT, gone)
    assert launch(slot.fail("b", f"i{gone}", "atrue")) == ("stdin", errno.ENOENT, gone)
    never = "/proc/none/x"  # a folder that nobody can make
    assert launch(slot.fail("c", f"o{never}", "atrue")) == ("stdout", errno.ENOENT, never)
    assert launch(slot.fail("d", f"o{tmp_path}/o", f"r{never}", "atrue")) == ("stderr", errno.ENOENT, never)
    assert launch(slot.fail("e", f"e{gone}", "atrue")) == ("env", errno.ENOENT, gone)
    assert slot.sh("f", "exit 0")["raw"] == 0


def test_folders_of_outputs_are_made(slot: Slot, tmp_path: Path) -> None:
    """As Slurm makes them: 0755, less the umask. A file where a folder should be is told."""
    out, err = tmp_path / "a" / "b" / "out", tmp_path / "c" / "err"
    slot.run("a", "u27", f"o{out}", f"r{err}", "ash", "a-c", "aecho said; echo bad >&2")
    assert (out.read_text(), err.read_text()) == ("said\n", "bad\n")
    assert [folder.stat().st_mode & 0o777 for folder in (tmp_path / "a", out.parent)] == [0o750, 0o750]
    assert launch(slot.fail("b", f"o{out}/x", "atrue")) == ("stdout", errno.ENOTDIR, f"{out}/x")


def test_outputs_are_opened_to_append(slot: Slot, tmp_path: Path) -> None:
    """After they were truncated: another writer's lines are not written over."""
    out = tmp_path / "out"
    out.write_text("before\n")
    slot.run("a", f"o{out}", "ash", "a-c", f"aecho one; echo other >>{out}; echo two")
    assert out.read_text() == "one\nother\ntwo\n"


@pytest.mark.skipif(IS_ROOT, reason="root may write everywhere")
def test_unwritable_output(slot: Slot, tmp_path: Path) -> None:
    """A file that may not be written is EACCES."""
    file = tmp_path / "locked"
    file.touch(0o400)
    assert launch(slot.fail("a", f"o{file}", "atrue")) == ("stdout", errno.EACCES, str(file))


def test_fifo_does_not_hang_the_witness(slot: Slot, tmp_path: Path) -> None:
    """Output to a FIFO that nobody reads is refused at once; input from one that nobody writes is empty."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    assert launch(slot.fail("out", f"o{fifo}", "atrue")) == ("stdout", errno.ENXIO, str(fifo))
    assert slot.run("in", f"i{fifo}", "acat")["raw"] == 0


def test_path_bytes_are_kept(slot: Slot) -> None:
    """Bytes of a path that are not ASCII come one by one."""
    op, number, path = launch(slot.fail("a", 'a/no/ä"\\\n'))
    assert (op, number) == ("exec", errno.ENOENT)
    assert path.encode("latin-1") == '/no/ä"\\\n'.encode()


def test_output_under_a_name_of_avers(slot: Slot, tmp_path: Path) -> None:
    """With `O` a new file or a plain one of ours is written; a link, a FIFO, a second name or an open folder is not."""
    folder = tmp_path / "aver-7"
    folder.mkdir(mode=0o755)
    out, precious = folder / "a.out", tmp_path / "precious"
    precious.write_text("keep")
    for own in ("O1", "O2"):
        for more, text in (((), "x\n"), ((), "x\n"), (("A",), "x\nx\n")):
            assert slot.run("k", own, *more, f"o{out}", "a/bin/echo", "ax")["raw"] == 0
            assert out.read_text() == text
        out.unlink()
        for plant in (lambda: out.symlink_to(precious), lambda: os.mkfifo(out), lambda: os.link(precious, out)):
            plant()
            assert launch(slot.fail("k", own, f"o{out}", "a/bin/echo", "ax")) == ("stdout", errno.EEXIST, str(out))
            out.unlink()
    folder.chmod(0o775)
    assert launch(slot.fail("k", "O2", f"o{out}", "a/bin/echo", "ax")) == ("stdout", errno.EEXIST, str(folder))
    assert slot.run("k", "O1", f"o{out}", "a/bin/echo", "ax")["raw"] == 0
    folder.chmod(0o755)
    (tmp_path / "link").symlink_to(folder)
    linked = tmp_path / "link"
    failed = launch(slot.fail("k", "O2", f"o{linked}/b.out", "a/bin/echo", "ax"))
    assert failed == ("stdout", errno.EEXIST, str(linked))
    missing = launch(slot.fail("k", "O2", f"o{tmp_path}/none/b.out", "a/bin/echo", "ax"))
    assert missing == ("stdout", errno.ENOENT, f"{tmp_path}/none")
    assert precious.read_text() == "keep"


@pytest.mark.parametrize("value", ["", "0", "3", "12"])
def test_bad_count_of_own_parts(slot: Slot, value: str) -> None:
    """It is an error line, and nothing is started."""
    slot.send("R", "kx", f"O{value}", "atrue")
    assert "malformed field" in slot.expect("error")["text"]
