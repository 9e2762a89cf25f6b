"""When the folder of a run is removed from a host: a real sshd, and files as executors leave them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from aver.engines.slurm.allocation.folder import CLOSE, SUBFOLDERS, RunFolder, Size
from aver.engines.slurm.remote.allocation import HostFolders
from aver.engines.slurm.remote.folder_removal import AWAY_S, LEAVE_S, REMOVED_THERE
from aver.engines.slurm.remote.host import Host, Layout
from aver.witness import binary
from sshd import WHY_NOT, Sshd

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
ONE = Size(1, 0, 0)


class Place:
    """A run's folder here and there, and a clock."""

    def __init__(self, sshd: Sshd, folder: Path) -> None:
        self.now = 1000.0
        self.sshd = sshd
        self.host = Host(sshd.ssh(), str(folder / "there"), binary(), 10, print, lambda found: None, lambda: self.now)
        layout = self.host.layout()
        assert isinstance(layout, Layout)
        self.there = Path(layout.folder) / "alloc" / "7"
        (folder / "here").mkdir()
        self.here = RunFolder(folder / "here" / "7")
        self.here.make()
        self.mirror = self.next_mirror()

    def next_mirror(self) -> HostFolders:
        self.mirror = HostFolders(self.host, 10, lambda: self.now)
        return self.mirror

    def put(self, key: str) -> str:
        """An order, here and there."""
        name = self.here.put_order(1, key, ONE, ("step", "0"), b"true\n")
        assert self.mirror.sync([self.here]) == ""
        assert (self.there / "in" / name).exists()
        return name

    def end(self, name: str, key: str) -> None:
        """As an executor ends it, heard of here."""
        (self.there / "in" / name).rename(self.there / "started" / f"{name}@3@n1")
        (self.there / "done" / key).write_text("0\n")
        (self.there / "allocs" / "3").write_text("n1 1 -1 0\n")
        assert self.mirror.sync([self.here]) == ""
        assert self.here.status_of(key) == 0

    def close(self) -> None:
        self.here.close()
        self.mirror.close(self.here)
        assert self.mirror.sync([self.here]) == ""
        assert (self.there / CLOSE).exists()

    def forget(self, key: str) -> None:
        self.here.forget(key, self.here.read())
        self.mirror.forget(self.here, [key])

    def leave(self) -> None:
        (self.there / "allocs" / ".left-3").touch()

    def sync(self) -> None:
        """Nothing of the run is live."""
        assert self.mirror.sync([]) == ""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    folder = Path(tempfile.mkdtemp(prefix="aver-sshd-"))
    try:
        with Sshd(folder, {}).running() as daemon:
            yield Place(daemon, tmp_path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_it_is_removed_when_all_was_read_and_the_executor_has_left(place: Place) -> None:
    """Not before, and the coordinator stays for it."""
    name = place.put("k")
    place.end(name, "k")
    place.close()
    place.sync()
    assert place.there.exists(), "the engine still reads it"
    assert not place.mirror.is_behind
    place.forget("k")
    place.mirror.drop(place.here)
    place.sync()
    assert place.there.exists(), "the executor is there"
    assert place.mirror.is_behind
    place.leave()
    place.sync()
    assert not place.there.exists()
    assert not place.mirror.is_behind
    assert list(place.there.parent.iterdir()) == []
    assert (place.here.path / REMOVED_THERE).exists()


def test_an_executor_that_was_killed_is_not_waited_for(place: Place) -> None:
    """It never says that it left."""
    place.end(place.put("k"), "k")
    place.close()
    place.forget("k")
    place.mirror.drop(place.here)
    place.sync()
    assert place.there.exists()
    place.now += LEAVE_S
    place.sync()
    assert not place.there.exists()


@pytest.mark.parametrize("file", ["in/0000000000000001_1_0_0_0_k", "started/0000000000000001_1_0_0_0_k@3@n1", "done/k"])
def test_what_was_not_read_keeps_it(place: Place, file: str) -> None:
    """An order that is still ours, whatever the host has of it; the next coordinator looks again."""
    name = place.put("k")
    (place.there / "in" / name).unlink()
    (place.there / file).write_text("0\n")
    place.close()
    place.mirror.drop(place.here)
    for _ in range(3):
        place.now += LEAVE_S
        place.sync()
    assert (place.there / file).exists()
    assert not place.mirror.is_behind
    place.here.forget("k", place.here.read())  # its verdict is durable, and the host was not told
    place.now += 1000
    place.next_mirror()
    place.mirror.attach(place.here)
    place.mirror.drop(place.here)
    place.now += 1000
    for _ in range(2):
        place.sync()
    assert not place.there.exists()


def test_a_host_that_is_away_is_not_waited_for(place: Place) -> None:
    """The coordinator may leave; while it is there it tries again."""
    place.end(place.put("k"), "k")
    place.close()
    place.forget("k")
    place.leave()
    place.mirror.drop(place.here)
    place.sshd.leave()
    place.sshd.stop()
    assert place.mirror.sync([]) != ""
    assert not place.mirror.is_behind
    place.sshd.start()
    place.now += AWAY_S
    place.sync()
    assert not place.there.exists()


def test_a_call_that_may_be_at_work_is_waited_for(place: Place) -> None:
    """A coordinator before us may have sent orders: what it sent would not find what was cancelled meanwhile."""
    place.end(place.put("k"), "k")
    place.close()
    place.forget("k")
    place.sync()
    place.leave()
    place.next_mirror()
    place.mirror.attach(place.here)
    place.mirror.drop(place.here)
    assert place.mirror.is_behind
    place.sync()
    assert place.there.exists()
    place.now += 1000
    place.sync()
    place.sync()
    assert not place.there.exists()


def test_a_run_that_goes_on_keeps_its_folder(place: Place) -> None:
    """Somebody tried it again before the folder was removed."""
    place.end(place.put("k"), "k")
    place.close()
    place.forget("k")
    place.mirror.drop(place.here)
    place.here.open()
    place.sync()
    place.now += LEAVE_S
    place.sync()
    assert {path.name for path in place.there.iterdir()} >= set(SUBFOLDERS)
