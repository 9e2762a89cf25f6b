"""Output files that Aver names itself, where another user was first: nothing of theirs is used."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from aver.errors import CantWriteError
from aver.model.job import Need, Needs, Streams
from aver.model.states import State
from live_home import LiveHome, shell_job, wait_for
from second_user import needs_root, other_does

Typed = Callable[..., subprocess.CompletedProcess[bytes]]
TEXT = "keep this"


@pytest.fixture
def shared(live: LiveHome, place: Path) -> Path:
    """A folder that everybody may write, from which jobs are submitted; `place/precious` is a file of ours."""
    (place / "precious").write_text(TEXT)
    folder = place / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    live.folder = folder
    return folder


def _plant(path: Path, kind: str, precious: Path) -> None:
    if kind == "link":
        other_does(lambda: path.symlink_to(precious))
    elif kind == "their link to nothing":
        other_does(lambda: path.symlink_to(precious.parent / "new"))
    elif kind == "fifo":
        other_does(lambda: os.mkfifo(path, 0o666))
    elif kind == "their file":
        other_does(lambda: path.write_text(TEXT) and path.chmod(0o666))
    else:
        os.link(precious, path)  # what another user may do where the kernel does not protect hard links


KINDS = ["link", "their link to nothing", "fifo", "their file", "hard link"]


def _failed_to_launch(live: LiveHome, number: int, path: Path) -> None:
    job = live.job(number)
    assert (job.state, job.reason, job.exit) == (State.FAILED, "JobLaunchFailure", None), job
    assert str(path) in (job.detail or "")
    assert "not yours" in (job.detail or "")


@needs_root
@pytest.mark.parametrize("kind", KINDS)
def test_output_of_a_single_job(live: LiveHome, shared: Path, kind: str) -> None:
    """`aver-1.out` of somebody else: the job is not started, and says why."""
    precious = shared.parent / "precious"
    _plant(shared / "aver-1.out", kind, precious)
    number = live.run_text("echo overwritten")
    live.settle([number])
    _failed_to_launch(live, number, shared / "aver-1.out")
    assert precious.read_text() == TEXT
    assert not (precious.parent / "new").exists()
    if kind == "their file":
        assert (shared / "aver-1.out").read_text() == TEXT


@needs_root
def test_default_output_of_sbatch(live: LiveHome, shared: Path, typed: Typed) -> None:
    """`slurm-1.out` likewise."""
    _plant(shared / "slurm-1.out", "link", shared.parent / "precious")
    done = typed("shell", "--", "sbatch", "--wait", "--wrap=echo overwritten")
    assert done.returncode == 1, done.stderr
    _failed_to_launch(live, 1, shared / "slurm-1.out")
    assert (shared.parent / "precious").read_text() == TEXT


@needs_root
def test_folder_that_somebody_else_made(live: LiveHome, shared: Path) -> None:
    """The submission is refused with a sentence that names the folder, and nothing is written in it."""
    precious = shared.parent / "precious"

    def plant() -> None:
        (shared / "aver-1").mkdir()
        (shared / "aver-1").chmod(0o777)
        (shared / "aver-1" / "a.out").symlink_to(precious)

    other_does(plant)
    with pytest.raises(CantWriteError, match=r"aver-1 .*not yours"):
        live.submit(shell_job("a", "echo overwritten"), shell_job("b", "exit 0"))
    assert precious.read_text() == TEXT
    with live.client() as client:
        assert client.call("ping")["pending"] == 0


@needs_root
def test_folder_that_is_a_link(live: LiveHome, shared: Path) -> None:
    """A link to a folder of ours is not the folder that Aver makes."""
    (shared.parent / "mine").mkdir()
    other_does(lambda: (shared / "aver-1").symlink_to(shared.parent / "mine"))
    with pytest.raises(CantWriteError, match=r"aver-1 .*not yours"):
        live.submit(shell_job("a", "echo x"), shell_job("b", "exit 0"))
    assert list((shared.parent / "mine").iterdir()) == []


@needs_root
def test_folder_that_is_swapped_while_the_run_goes_on(live: LiveHome, shared: Path) -> None:
    """A later job finds another user's folder under the name: it is not started, and says why."""
    precious = shared.parent / "precious"
    run = live.submit(
        shell_job("a", f'while ! test -e "{shared.parent}/go"; do sleep 0.05; done'),
        shell_job("b", "echo overwritten", needs=Needs((Need("a"),))),
    )
    live.wait_running(run + 1)

    def swap() -> None:
        os.rename(shared / "aver-1", shared / "aside")
        (shared / "aver-1").mkdir(mode=0o755)
        (shared / "aver-1" / "b.out").symlink_to(precious)

    other_does(swap)
    (shared.parent / "go").touch()
    live.settle([run])
    _failed_to_launch(live, run + 2, shared / "aver-1")
    assert precious.read_text() == TEXT


def test_folder_that_is_there_and_is_ours(live: LiveHome) -> None:
    """It is used, as by a run of another home with the same number; a file of ours in it is written anew."""
    (live.folder / "aver-1").mkdir(mode=0o755)
    (live.folder / "aver-1" / "a.out").write_text("older and longer")
    run = live.submit(shell_job("a", "echo new"), shell_job("b", "exit 0"))
    live.settle([run])
    assert (live.folder / "aver-1" / "a.out").read_text() == "new\n"


def test_folder_of_ours_that_others_can_write(live: LiveHome) -> None:
    """Refused, with what to do."""
    (live.folder / "aver-1").mkdir()
    (live.folder / "aver-1").chmod(0o777)
    with pytest.raises(CantWriteError, match=r"aver-1.*chmod go-w"):
        live.submit(shell_job("a", "echo new"), shell_job("b", "exit 0"))


def test_folder_is_not_writable_by_others_whatever_the_umask(live: LiveHome, typed: Typed) -> None:
    """Its files follow the umask; the folder itself can't be written by a group or by everybody."""
    (live.folder / "flow.yaml").write_text("jobs:\n  a: {run: echo x}\n  b: {run: echo y}\n")
    done = typed("run", "flow.yaml", preexec_fn=lambda: os.umask(0o000))
    assert done.returncode == 0, done.stderr
    assert stat.S_IMODE((live.folder / "aver-1").stat().st_mode) == 0o755
    assert stat.S_IMODE((live.folder / "aver-1" / "a.out").stat().st_mode) == 0o666


@needs_root
def test_name_that_the_user_chose(live: LiveHome, shared: Path) -> None:
    """A link, a FIFO or a file of somebody else's that the user names is opened as by any shell."""
    theirs = shared / "theirs"
    _plant(theirs, "their file", shared)
    (shared / "link").symlink_to(theirs)
    number = live.submit(shell_job("job", "echo to it", streams=Streams(stdout="link")))
    live.settle([number])
    assert live.job(number).state is State.COMPLETED
    assert wait_for(theirs.read_text, "output") == "to it\n"
