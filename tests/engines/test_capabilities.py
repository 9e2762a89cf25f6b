"""What the machine has is found by trying, and nothing is left behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aver.engines.local.capabilities import CgroupBase, Machine, capabilities, find_cgroup, gpus, memory_bytes


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "dev").mkdir()
    return Machine(tmp_path / "proc", tmp_path / "dev")


def write(machine: Machine, name: str, text: str) -> None:
    (machine.proc / name).write_text(text)


def test_this_machine_has_cpus_and_memory() -> None:
    """The real machine: at least one cpu, some memory, and a sentence about cgroups."""
    found = capabilities()
    assert found.cpus == len(os.sched_getaffinity(0))
    assert found.memory_bytes > 1024 * 1024
    assert found.cgroup_reason


def test_the_probe_of_this_machine_leaves_nothing() -> None:
    """The folder that was made to try is gone."""
    base, _ = find_cgroup()
    if base is not None:
        assert base.version in (1, 2)
        assert not (Path(base.folder) / f"aver-probe-{os.getpid()}").exists()


def test_gpus_are_the_numbered_nvidia_devices(machine: Machine) -> None:
    """`nvidiactl` and `nvidia-uvm` are no gpus."""
    for name in ("nvidia10", "nvidia0", "nvidiactl", "nvidia-uvm"):
        (machine.dev / name).touch()
    assert gpus(machine) == (0, 10)


def test_memory_is_the_machines_without_a_limit(machine: Machine) -> None:
    """No cgroup: MemTotal counts."""
    write(machine, "meminfo", "MemTotal:        2048 kB\nMemFree: 1 kB\n")
    assert memory_bytes(machine) == 2048 * 1024


def test_memory_respects_the_cgroup_v2_limits_above_us(machine: Machine, tmp_path: Path) -> None:
    """The smallest limit on the way up counts; `max` is none."""
    inner = tmp_path / "cg" / "a" / "b"
    inner.mkdir(parents=True)
    (inner / "memory.max").write_text("max\n")
    (inner.parent / "memory.max").write_text("1048576\n")
    write(machine, "meminfo", "MemTotal:        2048 kB\n")
    write(machine, "self/cgroup", "0::/a/b\n")
    write(machine, "self/mountinfo", f"41 31 0:38 / {tmp_path}/cg rw - cgroup2 cgroup2 rw\n")
    assert memory_bytes(machine) == 1048576


def test_memory_respects_the_cgroup_v1_limit(machine: Machine, tmp_path: Path) -> None:
    """The hierarchical limit of our own v1 cgroup counts."""
    (tmp_path / "mem" / "x").mkdir(parents=True)
    (tmp_path / "mem" / "x" / "memory.stat").write_text("cache 0\nhierarchical_memory_limit 4096\n")
    write(machine, "meminfo", "MemTotal:        2048 kB\n")
    write(machine, "self/cgroup", "4:memory:/x\n0::/\n")
    write(machine, "self/mountinfo", f"35 31 0:32 / {tmp_path}/mem rw - cgroup cgroup rw,memory\n")
    assert memory_bytes(machine) == 4096


def test_no_cgroup_is_said(machine: Machine) -> None:
    """Without any cgroup file system the answer is None and a sentence."""
    base, reason = find_cgroup(machine)
    assert base is None
    assert "no cgroup file system" in reason


def test_a_v2_folder_without_the_controller_is_refused_with_its_name(machine: Machine, tmp_path: Path) -> None:
    """The reason names the folder and what is missing there."""
    folder = tmp_path / "cg" / "a"
    folder.mkdir(parents=True)
    (folder / "cgroup.controllers").write_text("cpu pids\n")
    write(machine, "self/cgroup", "0::/a\n")
    write(machine, "self/mountinfo", f"41 31 0:38 / {tmp_path}/cg rw - cgroup2 cgroup2 rw\n")
    base, reason = find_cgroup(machine)
    assert base is None
    assert f"the memory controller is not available in {folder}" in reason


def test_a_folder_that_is_no_cgroup_does_not_pass_the_probe(machine: Machine, tmp_path: Path) -> None:
    """A folder that can be made is not enough: it must have the limit's file. The probe's folder is removed."""
    (tmp_path / "mem").mkdir()
    write(machine, "self/cgroup", "4:memory:/\n")
    write(machine, "self/mountinfo", f"35 31 0:32 / {tmp_path}/mem rw - cgroup cgroup rw,memory\n")
    base, reason = find_cgroup(machine)
    assert base is None
    assert "memory.limit_in_bytes can't be written" in reason
    assert list((tmp_path / "mem").iterdir()) == []


def test_inside_a_container_the_mounts_root_is_taken_off(machine: Machine, tmp_path: Path) -> None:
    """The path in /proc/self/cgroup is the host's; the mount shows only what is below its root."""
    (tmp_path / "mem" / "inner").mkdir(parents=True)
    (tmp_path / "mem" / "inner" / "memory.stat").write_text("hierarchical_memory_limit 8192\n")
    write(machine, "meminfo", "MemTotal:        2048 kB\n")
    write(machine, "self/cgroup", "4:memory:/box/7/inner\n")
    write(machine, "self/mountinfo", f"35 31 0:32 /box/7 {tmp_path}/mem rw - cgroup cgroup rw,memory\n")
    assert memory_bytes(machine) == 8192


def test_a_base_names_version_and_folder() -> None:
    """What the engine gives to the witness."""
    assert CgroupBase(1, "/x") == CgroupBase(version=1, folder="/x")
