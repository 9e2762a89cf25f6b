"""The batch script for a node, run by the real shells of this machine under the real witness."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aver.engines.slurm.submit.script import Member, Program, Text, Witness, batch_script, quote
from aver.model.record import replace
from node_witness import witness_at

SHELLS = [["bash", "--posix"], *([["dash"]] if shutil.which("dash") else [])]
# Bytes that a command line can hold: all but NUL.
anything = st.binary(max_size=40).map(lambda raw: os.fsdecode(raw.replace(b"\0", b"")))
SHOW = "import os, sys; sys.stdout.buffer.write(b'\\0'.join(map(os.fsencode, sys.argv[1:])))"


@dataclass(frozen=True)
class Node:
    """A node: a folder, a witness that may be there, and a folder for records that may be."""

    folder: Path
    witness: str
    shell: Sequence[str]
    installed: Witness | None = None  # what the script was told of it; None: as it is

    @property
    def records(self) -> Path:
        return self.folder / "records"

    def run(
        self, *members: Member, env: Mapping[str, str] = {}, shim: str | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        script = batch_script(
            members, witness=self.installed or witness_at(self.witness), records=str(self.records), shim=shim
        )
        assert script.startswith(b"#!/bin/bash --posix\n")
        assert b"\r" not in script
        file = self.folder / "slurm_script"
        file.write_bytes(script)
        file.chmod(0o700)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "AVER"))}
        return subprocess.run(
            [*self.shell, str(file)], capture_output=True, cwd=self.folder, check=False, timeout=60,
            stdin=subprocess.DEVNULL, env={**kept, "TMPDIR": str(self.folder / "tmp"), **env},
        )  # fmt: skip

    def record(self, name: str) -> dict[str, object]:
        line = json.loads((self.records / name).read_bytes()[18:])
        assert isinstance(line, dict)
        assert line["key"] == name
        return line


@pytest.fixture(params=SHELLS, ids=lambda shell: shell[0])
def node(request: pytest.FixtureRequest, tmp_path: Path, witness_binary: Path) -> Node:
    """One where everything is there, with each shell."""
    for name in ("records", "tmp"):
        (tmp_path / name).mkdir()
    return Node(tmp_path, str(witness_binary), request.param)


@pytest.fixture
def bare(node: Node) -> Node:
    """One that does not see the shared folder."""
    return Node(node.folder, str(node.folder / "not-here"), node.shell)


def sh(text: str, *args: str) -> Program:
    return Program(("sh", "-c", text, "sh", *args))


def test_end_is_the_works_own(node: Node, bare: Node) -> None:
    """Codes above 127 and signals stay what they are, with the witness and without."""
    for where in (node, bare):
        assert where.run(Member("7-1", sh("exit 200"))).returncode == 200
        assert where.run(Member("7-2", sh("kill -KILL $$"))).returncode == -signal.SIGKILL
    assert (node.record("7-1.r0")["raw"], node.record("7-2.r0")["raw"]) == (200 << 8, signal.SIGKILL)


def test_no_witness_no_record(bare: Node, node: Node) -> None:
    """Without the witness, or where records can't be kept, the command runs all the same and knows of no record."""
    work = sh('echo "[$AVER_RECORD_KEY]"')
    assert bare.run(Member("7-1", work)).stdout == b"[]\n"
    assert list(bare.records.iterdir()) == []
    node.records.rmdir()
    assert node.run(Member("7-1", work)).stdout == b"[]\n"
    broken = node.folder / "broken"
    broken.write_bytes(b"\x7fELF, but of another machine")
    broken.chmod(0o755)
    node.records.mkdir()
    done = Node(node.folder, str(broken), node.shell).run(Member("7-1", work), env={"AVER_RECORD_KEY": "old"})
    assert (done.stdout, done.stderr) == (b"[]\n", b"")


def test_witness_that_was_swapped(node: Node) -> None:
    """A file with another hash than the one that was put there is not run, not even to ask for its version."""
    installed = witness_at(node.witness)
    swapped = node.folder / "swapped"
    swapped.write_text(f"#!/bin/sh\ntouch {node.folder}/ran\n")
    swapped.chmod(0o755)
    there = Node(node.folder, str(swapped), node.shell, Witness(str(swapped), installed.sha256))
    done = there.run(Member("7-1", sh('echo "[$AVER_RECORD_KEY]"; exit 3')))
    assert (done.returncode, done.stdout) == (3, b"[]\n")
    assert done.stderr == f"aver: {swapped} is not the witness that was put there: not run\n".encode()
    assert not (node.folder / "ran").exists()
    assert list(node.records.iterdir()) == []


def test_output_that_somebody_else_put_there(node: Node, bare: Node) -> None:
    """Under a name of Aver's nothing is written through a link, with the witness and without; under a user's it is."""
    precious, out = node.folder / "precious", node.folder / "aver-7" / "a.out"
    out.parent.mkdir()
    for where in (node, bare):
        for own_parts in (1, 2):
            precious.write_text("keep")
            out.symlink_to(precious)
            done = where.run(Member("7-1", sh("echo x"), stdout=str(out), own_parts=own_parts))
            assert done.returncode == 126, done
            assert str(out).encode() in done.stderr
            assert precious.read_text() == "keep"
            out.unlink()
            out.write_text("older and longer")
            assert where.run(Member("7-2", sh("echo x"), stdout=str(out), own_parts=own_parts)).returncode == 0
            assert out.read_text() == "x\n"
            out.unlink()
        out.symlink_to(precious)
        assert where.run(Member("7-3", sh("echo x"), stdout=str(out))).returncode == 0
        assert precious.read_text() == "x\n"
        out.unlink()


def test_files_are_looked_at_on_the_node(node: Node, bare: Node) -> None:
    """Patterns reach the witness whole; without one the command runs, and nobody looks."""
    work = Program(("sh", "-c", "touch 'a b.csv'; exit 3"))
    member = Member("k", work, folder=str(node.folder), files=("o *b.csv", "p it's"), clean="-")
    assert node.run(member).returncode == 3
    files = node.record("k.r0")["files"]
    assert isinstance(files, dict)
    assert (files["outputs"], files["written"], files["removed"]) == (2, 1, 1)
    assert not (node.folder / "a b.csv").exists()
    missing = Member("m", work, folder=str(node.folder), files=("i none/*.csv",))
    assert node.run(missing).returncode == 127
    assert not (node.folder / "a b.csv").exists()
    assert bare.run(replace(member, folder=str(bare.folder))).returncode == 3
    assert (bare.folder / "a b.csv").exists()


def test_restarts_have_records_of_their_own(node: Node) -> None:
    """The record and its key have Slurm's restart count, and tasks find the key."""
    done = node.run(Member("7-1", sh("echo $AVER_RECORD_KEY $AVER_KEY; exit 1")))
    assert done.stdout == b"7-1.r0 7-1.r0\n"
    node.run(Member("7-1", sh("exit 2")), env={"SLURM_RESTART_COUNT": "2"})
    assert sorted(path.name for path in node.records.iterdir()) == ["7-1.r0", "7-1.r2"]
    assert node.record("7-1.r2")["raw"] == 2 << 8


def test_limits_are_the_witnesss(node: Node) -> None:
    """Time limit, warning and kill wait reach the witness."""
    member = Member("7-1", Program(("sleep", "60")), time_ms=300, warn="10 200 b", kill_wait_ms=50)
    assert node.run(member).returncode == -signal.SIGUSR1
    ignore = Text("trap '' TERM\nwhile :; do sleep 0.01; done\n", ("bash",))
    assert node.run(Member("7-2", ignore, time_ms=200, kill_wait_ms=50)).returncode == -signal.SIGKILL
    acts = node.record("7-2.r0")["acts"]
    assert isinstance(acts, list)
    assert [act["act"] for act in acts] == ["time", "kill"]


@pytest.mark.parametrize("name", ["witness", "bare"])
def test_member_of_an_array_has_its_own(node: Node, bare: Node, name: str) -> None:
    """Each member has its key, command, folder, files, environment and name; others' values do not reach it."""
    where = node if name == "witness" else bare
    folder = where.folder / "with space"
    folder.mkdir()
    (folder / "in").write_text("input\n")
    script = 'cat; pwd -P; echo "$SEED,$OTHER,$SLURM_JOB_NAME"; echo err >&2; exit "$1"'
    members = [
        Member(
            f"7-{index}", sh(script, str(index)), name=f"train[{index}]", folder=str(folder), stdin="in",
            stdout=f"out{index}", env=(("SEED", f"it's {index}"), *([("OTHER", "x")] if index == 0 else [])),
        )
        for index in range(3)
    ]  # fmt: skip
    (folder / "out2").write_text("old\n")
    for index in (0, 2, 2):
        done = where.run(*members, env={"SLURM_ARRAY_TASK_ID": str(index)})
        assert (done.returncode, done.stdout, done.stderr) == (index, b"", b"")
    text = f"input\n{folder.resolve()}\nit's 2,,train[2]\nerr\n"
    assert (folder / "out2").read_text() == text
    assert (folder / "out0").read_text().splitlines()[2] == "it's 0,x,train[0]"
    assert not (folder / "out1").exists()
    done = where.run(*members, env={"SLURM_ARRAY_TASK_ID": "9"})
    assert (done.returncode, done.stderr) == (126, b"aver: this array has no task '9'\n")


@pytest.mark.parametrize("name", ["witness", "bare"])
def test_append_and_two_files(node: Node, bare: Node, name: str) -> None:
    """With append, output is added; stdout and stderr may be two files or one."""
    where = node if name == "witness" else bare
    out, err = where.folder / "o", where.folder / "e"
    work = sh("echo out; echo err >&2")
    for _ in range(2):
        where.run(Member("7-1", work, stdout=str(out), stderr=str(err), append=True))
    assert (out.read_text(), err.read_text()) == ("out\nout\n", "err\nerr\n")
    where.run(Member("7-1", work, stdout=str(out), stderr=str(out)))
    assert out.read_text() == "out\nerr\n"


def test_files_that_cannot_be_opened(node: Node, bare: Node) -> None:
    """Such a job does not start: a sentence, a status that is none of its own, and in the record the path."""
    for option in ("stdin", "stdout", "stderr", "folder"):
        path = "/proc/none/x"
        for where in (node, bare):
            done = where.run(Member("7-1", sh("echo ran >&2"), **{option: path}))  # type: ignore[arg-type]
            assert done.returncode in (126, 127), done
            assert b"ran\n" not in done.stderr
            assert os.fsencode(path) in done.stderr
        launch = node.record("7-1.r0")["launch"]
        assert launch == {"op": "chdir" if option == "folder" else option, "errno": 2, "path": path}


def test_texts_are_whole(node: Node, bare: Node) -> None:
    """A script's text comes to its interpreter byte by byte, in whatever lines it ends, and leaves no file behind."""
    texts = ["", "exit", "a\n", "a\n\n", "AVER_END\nb", "AVER_END", "#h#r\r\ny\r", "\r", "$HOME `id` \\ ' \"\n",
             os.fsdecode(b"\xff\x81\x88\n"), os.fsdecode(bytes(range(1, 256))), "l" * 200_000]  # fmt: skip
    read = "import sys; sys.stdout.buffer.write(open(sys.argv[1], 'rb').read())"
    for text in texts:
        for where in (node, bare):
            done = where.run(Member("7-1", Text(text, (sys.executable, "-c", read), ("one",))))
            assert (done.stdout, done.stderr) == (os.fsencode(text), b""), text[:50]
    assert list((node.folder / "tmp").iterdir()) == []


def test_text_is_a_script_as_any(node: Node) -> None:
    """It has its arguments and its standard input, may read itself again, and a module beside it is nobody else's."""
    text = 'case $1 in again) echo "again: $2"; exit 5;; esac\ncat\nexec bash "$0" again "$2"\n'
    (node.folder / "in").write_text("stdin\n")
    done = node.run(Member("7-1", Text(text, ("bash",), ("x", "it's")), stdin=str(node.folder / "in")))
    assert (done.returncode, done.stdout) == (5, b"stdin\nagain: it's\n")
    where = Text("import sys, os\nprint(os.path.isdir(sys.path[0]))\n", ("/usr/bin/env", "python3"))
    assert node.run(Member("7-2", where)).stdout == b"False\n"


def test_interpreter_that_closes_what_it_inherits(node: Node) -> None:
    """The text can be opened by its name, also by an interpreter that closes all descriptors first, as csh does."""
    closes = "import os, sys; os.closerange(3, 100); print(open(sys.argv[1]).read())"
    assert node.run(Member("7-1", Text("echo hi", (sys.executable, "-c", closes)))).stdout == b"echo hi\n"


def test_no_room_for_the_text(node: Node) -> None:
    """A folder that can't be written is passed over; with no folder at all the job does not start, and says why."""
    member = Member("7-1", Text("echo ran\n", ("sh",)))
    assert node.run(member, env={"TMPDIR": "/no/such"}).stdout == b"ran\n"
    no_mktemp = node.folder / "mktemp"
    no_mktemp.write_text("#!/bin/sh\nexit 1\n")
    no_mktemp.chmod(0o755)
    done = node.run(member, env={"PATH": f"{node.folder}:{os.environ['PATH']}"})
    assert (done.returncode, done.stdout) == (126, b"")
    assert done.stderr == b"aver: no folder on this node has room for the job's script\n"


def test_members_share_a_text() -> None:
    """A text that all members have is in the script once."""
    members = [Member(f"7-{index}", Text("x" * 1000, ("sh",), (str(index),))) for index in range(100)]
    assert len(batch_script(members, witness=Witness("/w", "0"), records="/r")) < 20_000


def test_shim_comes_first_where_it_is(node: Node, bare: Node) -> None:
    """Our srun is first in PATH if the witness is used and it is there; else PATH is as it was."""
    shim = node.folder / "bin"
    work = Member("7-1", sh('echo "${PATH%%:*}"'))
    first = os.environ["PATH"].split(":")[0].encode() + b"\n"
    assert node.run(work, shim=str(shim)).stdout == first
    shim.mkdir()
    (shim / "srun").touch(0o755)
    assert node.run(work, shim=str(shim)).stdout == os.fsencode(shim) + b"\n"
    assert bare.run(work, shim=str(shim)).stdout == first


def test_environment_is_whole(node: Node, bare: Node) -> None:
    """Functions that a shell exported and variables with odd names reach the program; start-up files are not read."""
    noise = node.folder / "noise"
    noise.write_text("echo noise\n")
    env = {"BASH_FUNC_module%%": "() {  echo hi\n}", "x.y": "z", "BASH_ENV": str(noise), "ENV": str(noise)}
    names = ("key", "mode", "in", "out", "err", "name", "file", "folder", "cr", "witness", "records", "shim")
    env |= dict.fromkeys(names, "mine")
    script = node.folder / "slurm_script"
    for where in (node, bare):
        where.run(Member("7-1", Program(("env",))))
        done = subprocess.run([str(script)], capture_output=True, env={**os.environ, **env}, check=True)
        told = set(done.stdout.splitlines())
        assert {b"BASH_FUNC_module%%=() {  echo hi", b"x.y=z", *(f"{name}=mine".encode() for name in names)} <= told
        assert b"\nnoise\n" not in b"\n" + done.stdout


def test_names_that_no_shell_can_say(node: Node, bare: Node) -> None:
    """A variable of a member may have a name that a shell does not take."""
    member = Member("7-1", Program(("env",)), env=(("a.b", "c d"),))
    for where in (node, bare):
        assert b"a.b=c d" in where.run(member).stdout.splitlines()


@pytest.mark.parametrize("member", [Member("7-1", Program(("a\0b",))), Member("7-1", Text("a\0b", ("sh",)))])
def test_nul_is_refused(member: Member) -> None:
    """What no shell can say is an error here, not half a command there."""
    with pytest.raises(ValueError, match="NUL"):
        batch_script([member], witness=Witness("/w", "0"), records="/r")


def test_no_member_is_refused() -> None:
    """A script of nothing would be an empty success."""
    with pytest.raises(ValueError, match="without a job"):
        batch_script([], witness=Witness("/w", "0"), records="/r")


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(args=st.lists(anything, max_size=4))
def test_arguments_are_whole(args: Sequence[str]) -> None:
    """Every argument comes through both shells byte by byte."""
    words = " ".join(quote(word) for word in (sys.executable, "-I", "-S", "-c", SHOW, *args))
    for shell in SHELLS:
        script = os.fsencode(f"_aver_cr=$(printf '\\r')\nexec {words}\n")
        assert b"\r" not in script
        done = subprocess.run(shell, input=script, capture_output=True, check=True)
        assert done.stdout == b"\0".join(map(os.fsencode, args))
