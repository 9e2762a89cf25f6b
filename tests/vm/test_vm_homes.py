"""Homes and machines of other kinds: NFS, overlayfs, hidepid=2, containers of podman.

Each runs the same story: a failure, a kill for memory, a killed coordinator, a cancellation; and doctor says what is
weaker there.
"""

from __future__ import annotations

import json

import pytest
from vm_desk import Vm

from odd_story import STORY

pytestmark = pytest.mark.long

PYTHON = "/opt/aver/venv/bin/python"
OVERLAY = """mkdir -p /over/lower /over/upper /over/work /home/alice/over
mount -t overlay overlay -o lowerdir=/over/lower,upperdir=/over/upper,workdir=/over/work /home/alice/over
chown alice: /home/alice/over
"""
NFS = """mkdir -p /srv/nfs /home/alice/nfs && chown alice: /srv/nfs
echo '/srv/nfs 127.0.0.1(rw,sync,no_subtree_check,insecure,fsid=0)' >/etc/exports
systemctl start nfs-server && exportfs -ra && mount -t nfs -o vers=4.2 127.0.0.1:/ /home/alice/nfs
"""
BOX = """mkdir -p box/usr box/opt box/etc box/proc box/sys box/dev box/tmp box/run
for one in bin sbin lib lib64; do ln -sfn usr/$one box/$one; done
"""
RUN = "podman run --rm --network=none --log-driver=none --tmpfs /tmp -v /usr:/usr:ro -v /opt:/opt:ro -v /etc:/etc:ro"


def tell(vm: Vm, words: str) -> dict[str, dict[str, str]]:
    """The checks of doctor after the story, which the words run."""
    vm.put("story.py", STORY)
    return {check["name"]: check for check in json.loads(vm.ask(words))["checks"]}


def test_processes_of_others_are_hidden(vm: Vm) -> None:
    """hidepid=2: the memory limit is the kernel's all the same."""
    vm.ask("mount -o remount,hidepid=2 /proc", user="root")
    try:
        checks = tell(vm, f"{PYTHON} story.py")
    finally:
        vm.ask("mount -o remount,hidepid=0 /proc", user="root")
    assert (checks["memory limit"]["status"], checks["clean-up"]["status"]) == ("ok", "ok")


def test_a_home_on_overlayfs(vm: Vm) -> None:
    vm.ask(OVERLAY, user="root")
    try:
        checks = tell(vm, f"AVER_HOME=$PWD/over/home {PYTHON} story.py")
    finally:
        vm.ask("umount -l /home/alice/over", user="root")
    assert (checks["memory limit"]["status"], checks["file system"]["status"]) == ("ok", "ok")


def test_a_home_on_nfs(vm: Vm) -> None:
    """Served by the machine itself. Doctor says that the journal is another one."""
    vm.ask(NFS, user="root")
    try:
        checks = tell(vm, f"AVER_HOME=$PWD/nfs/home {PYTHON} story.py")
    finally:
        vm.ask("umount -l /home/alice/nfs; systemctl stop nfs-server", user="root")
    assert checks["file system"]["fact"].startswith("a network file system"), checks["file system"]


@pytest.mark.parametrize("user", ["root", "alice"])
def test_in_a_container_of_podman(vm: Vm, user: str) -> None:
    """Its cgroups are read-only: memory is sampled, and doctor names the option with which the kernel enforces it."""
    vm.ask(BOX, user=user)
    vm.put("story.py", STORY)
    story = f"-v /home/alice/story.py:/story.py:ro --env AVER_HOME=/tmp/home --rootfs $PWD/box {PYTHON} /story.py"
    said = vm.ask(f"{RUN} {story}", user=user)
    limit = {check["name"]: check for check in json.loads(said)["checks"]}["memory limit"]
    assert (limit["status"], "Read-only" in limit["fact"]) == ("limited", True), limit
    option = limit["advice"].split("`")[1]
    said = vm.ask(f"{RUN} {option} {story}", user=user)
    limit = {check["name"]: check for check in json.loads(said)["checks"]}["memory limit"]
    assert limit["status"] == "ok", limit
