"""Jobs in containers of a real podman on a real Slurm: their ends are the program's own, and none outlives its job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fault_desk import ClusterHome

from aver.model.job import Container, JobSpec, Setup, Shell
from boxes import IMAGE, podman_environment, remove_boxes
from live_home import pids, wait_for


@pytest.fixture(scope="session")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    environment = podman_environment(tmp_path_factory.mktemp("podman"))
    yield environment
    remove_boxes(environment)


def boxed(name: str, text: str) -> JobSpec:
    return JobSpec(name, Shell(text), setup=Setup(container=Container(IMAGE)))


def test_ends_in_containers_are_the_programs_own(whole_cluster: ClusterHome, podman: dict[str, str]) -> None:
    """Without a parent of its own the program is the container's first process, which no KILL of its own ends."""
    run = whole_cluster.submit(
        boxed("good", "exit 0"), boxed("code", "exit 7"), boxed("looks-killed", "exit 137"),
        boxed("killed", "kill -9 $$"), env=podman,
    )  # fmt: skip
    whole_cluster.settle([run], 240)
    with whole_cluster.reader() as reader:
        found = {one.name: (str(one.state), str(one.exit)) for one in reader.jobs(run=run)}
    assert found == {
        "good": ("COMPLETED", "0:0"),
        "code": ("FAILED", "7:0"),
        "looks-killed": ("FAILED", "137:0"),
        "killed": ("FAILED", "0:9"),
    }


def test_no_container_outlives_its_cancelled_job(whole_cluster: ClusterHome, podman: dict[str, str]) -> None:
    up = whole_cluster.folder / "up"
    mark = "sleep 0.4321"
    text = f'trap "" TERM; echo > {up}; while :; do {mark}; done'
    run = whole_cluster.submit(boxed("stubborn", text), env=podman)
    wait_for(up.exists, "the job runs", 120)
    assert any(mark.encode() in _words(pid) for pid in pids())
    with whole_cluster.client() as client:
        client.call("cancel", ids=[run], by="tester", signal=None, now=False)
    whole_cluster.settle([run], 240)
    assert whole_cluster.states(run) == {"stubborn": "CANCELLED"}
    wait_for(lambda: not any(mark.encode() in _words(pid) for pid in pids()), "its processes are gone", 60)


def _words(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
