"""The real Slurm of the tests marked `slurm`: started once for all processes of a session, stopped after the last.

Only root can start it; for everybody else these tests are skipped, and say so. Tests that use it are in one xdist
group, so that under `--dist loadgroup` one process has them all. Under any other way of sharing, the lab's own lock and
a count of its users make it start once and stop when the last user has left. A lab that ran before is used and left.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

pytest.register_assert_rewrite("fault_desk", "ssh_desk", "sshd")

from fault_desk import FOLDER, PORT, ClusterHome, FaultLab  # noqa: E402
from ssh_desk import SshHome  # noqa: E402

from real_slurm import ONLY_ROOT, SlurmLab, lab, running_lab  # noqa: E402
from sshd import WHY_NOT, Sshd  # noqa: E402

HERE = Path(__file__).resolve().parent
CROWDED = ("test_allocation", "test_conformance_slurm", "test_same_verdicts")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that use the lab are marked, put in one group, and skipped where nobody can start it."""
    for item in items:
        uses = {"slurm_lab", "fault_lab"}.intersection(getattr(item, "fixturenames", ()))
        if uses and item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.slurm)
            item.add_marker(pytest.mark.xdist_group("slurm"))
            if os.geteuid() != 0:
                item.add_marker(pytest.mark.skip(reason=ONLY_ROOT))


@pytest.fixture(scope="session")
def slurm_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmLab]:
    """A real Slurm that runs, with an ordinary user to submit as."""
    with running_lab(tmp_path_factory.getbasetemp().parent) as found:
        yield found


@pytest.fixture(scope="module", autouse=True)
def nodes_of_its_own(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Modules that fill the nodes, or need all of them at once, have them one after the other."""
    if os.geteuid() != 0 or not request.module.__name__.startswith(CROWDED):
        yield
        return
    with (tmp_path_factory.getbasetemp().parent / "slurm-nodes").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def fault_lab() -> Iterator[FaultLab]:
    """A Slurm beside that of the other tests, to be broken and mended; the last process that uses it stops it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "AVER"))}
    environment = {**kept, "AVER_SLURM_LAB": str(FOLDER), "AVER_SLURM_LAB_PORT": PORT}
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / "users").open("w") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        with in_use(FOLDER, fcntl.LOCK_EX):
            lab("start", environment)
        yield FaultLab(FOLDER, {**environment, "SLURM_CONF": str(FOLDER / "etc" / "slurm.conf")})
        with suppress(BlockingIOError):
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            lab("stop", environment)


@contextmanager
def in_use(folder: Path, mode: int) -> Iterator[None]:
    """Nobody breaks or mends the lab while others use it."""
    with (folder / "in-use").open("w") as lock:
        fcntl.flock(lock, mode)
        yield


@contextmanager
def home_at(lab: FaultLab, mode: int, home: Path, folder: Path, patch: pytest.MonkeyPatch) -> Iterator[ClusterHome]:
    """A home whose jobs run on the lab, and the lab for it alone or with others."""
    patch.setenv("AVER_CONFIG", "")
    patch.delenv("AVER_CRASH_AT", raising=False)
    patch.setenv("SLURM_CONF", lab.environment["SLURM_CONF"])
    folder.mkdir()
    with in_use(lab.folder, mode):
        cluster = ClusterHome(home, folder, lab)
        try:
            yield cluster
        finally:
            cluster.kill_coordinator()
            if mode == fcntl.LOCK_EX:
                lab.clear()
            cluster.cancel_jobs()


@pytest.fixture
def cluster(
    fault_lab: FaultLab, aver_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ClusterHome]:
    """For a test that breaks the lab: it has it alone, and the lab is whole before and after."""
    with home_at(fault_lab, fcntl.LOCK_EX, aver_home, tmp_path / "jobs", monkeypatch) as home:
        yield home


@pytest.fixture
def whole_cluster(
    fault_lab: FaultLab, aver_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ClusterHome]:
    """For a test that leaves the lab whole: others of its kind may use it at the same time."""
    with home_at(fault_lab, fcntl.LOCK_SH, aver_home, tmp_path / "jobs", monkeypatch) as home:
        yield home


@pytest.fixture
def ssh_home(
    slurm_lab: SlurmLab, aver_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SshHome]:
    """A home whose jobs run on the lab behind an sshd of the test's own."""
    if WHY_NOT:
        pytest.skip(WHY_NOT)
    monkeypatch.setenv("AVER_CONFIG", "")
    monkeypatch.delenv("AVER_CRASH_AT", raising=False)
    folder = tmp_path / "jobs"
    folder.mkdir()
    lab = FaultLab(slurm_lab.folder, slurm_lab.environment)
    with Sshd(aver_home.with_name(f"{aver_home.name}-sshd"), {"SLURM_CONF": slurm_lab.configuration}).running() as sshd:
        home = SshHome(aver_home, folder, lab, sshd)
        try:
            yield home
        finally:
            home.kill_coordinator()
            home.cancel_all()
    shutil.rmtree(sshd.folder, ignore_errors=True)
