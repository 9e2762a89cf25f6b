"""What a job leaves behind is ended, whatever it did to itself; what can't be ended is in the record."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from witness_driver import IS_ROOT, Slot, StartSlot, is_running, sh, until

from aver.judge.witness_record import parse_record

PATH = f"EPATH={os.environ['PATH']}"
NOBODY = 65534
BECOMES_ROOT = """
#include <unistd.h>
#include <stdio.h>
int main(int argc, char **argv) {
    FILE *said = fopen(argv[1], "w");
    if (setgid(0) || setuid(0) || !said) return 1;
    fprintf(said, "%d\\n", (int)getpid());
    fclose(said);
    for (int i = 0; argc && i < 600; i++) sleep(1);
}
"""


def read_pid(path: Path) -> int:
    return int(until(lambda: path.exists() and path.read_text().strip()))


@pytest.mark.parametrize("start", ["AVER_COORDINATOR=/home AVER_KEY=another", "AVER_COORDINATOR="])
def test_an_environment_like_a_coordinators_saves_nobody(slot: Slot, tmp_path: Path, start: str) -> None:
    """A process that left the job's session, with an environment that begins as a coordinator's, is still the job's."""
    inner = f"echo $$ > {tmp_path}/pid; exec sleep 600"
    end = slot.run(
        "left",
        PATH,
        *sh(f"env -i {start} PATH=$PATH setsid sh -c '{inner}' & until [ -s {tmp_path}/pid ]; do sleep 0.01; done"),
    )
    assert (end["raw"], end["left"]) == (0, 1)
    assert not is_running(read_pid(tmp_path / "pid"))


@pytest.fixture
def setuid_program() -> Iterator[Path]:
    """A program of root's that becomes root whoever starts it, and a folder where anybody can write."""
    compiler = shutil.which("cc")
    if not IS_ROOT or compiler is None:
        pytest.skip("only root with a compiler can make a program that becomes root")
    folder = Path("/tmp") / f"aver-setuid-{os.getpid()}"
    folder.mkdir()
    try:
        (folder / "program.c").write_text(BECOMES_ROOT)
        subprocess.run([compiler, "-o", folder / "program", folder / "program.c"], check=True)
        (folder / "program").chmod(0o4755)
        folder.chmod(0o777)
        if os.statvfs(folder).f_flag & os.ST_NOSUID:
            pytest.skip("no program becomes root in this folder")
        yield folder / "program"
    finally:
        shutil.rmtree(folder)


def test_a_setuid_process_that_became_root_is_in_the_record(start_slot: StartSlot, setuid_program: Path) -> None:
    """An ordinary user's witness can't end it: after its time the record says that it stays, and the witness leaves."""
    try:
        slot = start_slot(lambda: (os.setgid(NOBODY), os.setuid(NOBODY)))
    except PermissionError:
        pytest.skip("the witness is in a folder that is closed to other users")
    said = setuid_program.parent / "pid"
    script = f"setsid {setuid_program} {said} & until [ -s {said} ]; do sleep 0.01; done"
    slot.start("left", PATH, *sh(script))
    pid = read_pid(said)
    try:
        end = slot.expect("end")
        assert (end["raw"], end["left"], end["stays"]) == (0, 0, 1)
        assert parse_record(end).stays == 1
        assert is_running(pid)
        assert slot.process.wait(20) == 0
    finally:
        os.kill(pid, signal.SIGKILL)


@pytest.fixture
def namespace() -> Iterator[int]:
    """The init of a pid namespace that no job has started."""
    command = ["unshare", "--pid", "--fork", "--kill-child", "sleep", "600"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as outside:
        children = Path(f"/proc/{outside.pid}/task/{outside.pid}/children")
        try:
            until(lambda: outside.poll() is not None or children.read_text())
            if outside.poll() is not None:
                pytest.skip("no pid namespace can be made here")
            yield int(children.read_text())
        finally:
            outside.kill()


def test_a_process_that_joined_another_pid_namespace_is_found_by_the_cgroup(
    cgroup1: Path, slot: Slot, tmp_path: Path, namespace: int
) -> None:
    """Its parent has ended, so the init of that namespace has it: no process of the job is above it any more."""
    inner = f"setsid sleep 600 & grep NSpid: /proc/self/status > {tmp_path}/none; exit 0"
    script = f"nsenter --pid=/proc/{namespace}/ns/pid sh -c '{inner}'; exit 0"
    slot.start("left", PATH, f"g1 {cgroup1}", "Gslot", *sh(script))
    end = slot.expect("end")
    left = [int(word) for word in Path(f"/proc/{namespace}/task/{namespace}/children").read_text().split()]
    alive = [pid for pid in left if is_running(pid)]
    for pid in alive:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert (end["raw"], alive, end.get("stays", 0)) == (0, [], 0)
