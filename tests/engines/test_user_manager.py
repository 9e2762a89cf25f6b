"""Whose a cgroup is: our own scope below the user's service manager, another unit there, or one delegated elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aver.engines.local.capabilities import (
    Machine,
    container_cgroup,
    delegated_cgroup,
    is_below_manager,
    leave_job_cgroup,
    own_scope,
)
from aver.engines.local.user_manager import find_obstacle, scope_of

MANAGER = "/user.slice/user-1000.slice/user@1000.service"
SCOPE = scope_of(Path("/home/alice/.local/state/aver"))
KEY = "afa7a320.1.1.40a6bb6d"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "self" / "mountinfo").write_text(f"41 31 0:38 / {tmp_path}/cg rw - cgroup2 cgroup2 rw\n")
    return tmp_path


def process_in(tree: Path, cgroup: str) -> Machine:
    """A process that is in this cgroup of a v2 hierarchy."""
    (tree / "cg" / cgroup.lstrip("/")).mkdir(parents=True, exist_ok=True)
    (tree / "proc" / "self" / "cgroup").write_text(f"0::{cgroup}\n")
    return Machine(tree / "proc", tree / "dev")


def test_a_home_has_one_scope_whatever_its_path_is_called(tmp_path: Path) -> None:
    """A link to the home leads to the scope of the home: a coordinator that comes back finds its jobs."""
    (tmp_path / "link").symlink_to(tmp_path)
    assert scope_of(tmp_path / "link") == scope_of(tmp_path) != scope_of(tmp_path / "other")


def test_the_scope_is_found_from_its_leaf_and_from_a_job(tree: Path) -> None:
    for inner in ("", "/coordinator", f"/{KEY}"):
        machine = process_in(tree, f"{MANAGER}/aver.slice/{SCOPE}{inner}")
        assert own_scope(machine) == tree / f"cg{MANAGER}/aver.slice/{SCOPE}"
        assert is_below_manager(machine)


def test_units_of_others_are_not_divided(tree: Path) -> None:
    """A terminal's unit below the manager is the user's and can be written; jobs have no place in it."""
    machine = process_in(tree, f"{MANAGER}/app.slice/terminal.scope")
    assert own_scope(machine) is None
    assert delegated_cgroup(machine) is None
    assert list((tree / f"cg{MANAGER}/app.slice/terminal.scope").iterdir()) == []


def test_a_login_session_is_not_below_the_manager(tree: Path) -> None:
    assert not is_below_manager(process_in(tree, "/user.slice/user-1000.slice/session-3.scope"))


def test_a_coordinator_started_in_a_job_goes_to_the_leaf(tree: Path) -> None:
    """Not to the scope itself: a v2 cgroup with controlled children takes no process."""
    machine = process_in(tree, f"{MANAGER}/aver.slice/{SCOPE}/{KEY}/{KEY}.s0.t0")
    leave_job_cgroup(machine)
    leaf = tree / f"cg{MANAGER}/aver.slice/{SCOPE}/coordinator/cgroup.procs"
    assert leaf.read_text() == str(os.getpid())


def test_without_a_unified_hierarchy_that_is_what_is_missing(tree: Path) -> None:
    """The first thing that is missing is named, with what helps."""
    (tree / "proc" / "self" / "cgroup").write_text("4:memory:/\n")
    obstacle = find_obstacle(Machine(tree / "proc", tree / "dev"))
    assert obstacle is not None
    assert (obstacle.what, bool(obstacle.remedy)) == ("no cgroup v2 hierarchy is mounted", True)


def test_only_the_cgroup_of_a_container_is_divided(tree: Path) -> None:
    """The kernel's own root holds processes beside controlled children. `tests/vm` has a real container."""
    machine = process_in(tree, "/")
    (tree / "cg/cgroup.controllers").write_text("memory pids\n")
    assert container_cgroup(machine) is None
    (tree / "cg/cgroup.type").write_text("domain\n")
    assert container_cgroup(process_in(tree, "/libpod.scope")) is None
