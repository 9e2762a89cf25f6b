"""`container: {engine: docker}` with a real daemon of Debian's packages, on a socket and in folders of its own."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from flow_lab import Lab, states

from aver.client.use.now import live_use, measured
from boxes import make_image
from second_user import needs_root

IMAGE = "aver-test:1"
PACKAGES = ("docker.io", "containerd", "runc")
WAIT_S = 240
pytestmark = needs_root


def _unpack(folder: Path) -> str:
    """The packages' files below `folder`: nothing of the machine changes. Empty, or why that can't be."""
    done = subprocess.run(
        ["apt-get", "download", *PACKAGES], cwd=folder, capture_output=True, text=True, timeout=WAIT_S, check=False
    )
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, folder / "root"], check=True)
    return "" if done.returncode == 0 else done.stderr.strip()[-300:]


@pytest.fixture(scope="session")
def docker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment in which docker's client finds the daemon, which has the image."""
    folder = tmp_path_factory.mktemp("docker")
    problem = _unpack(folder)
    if problem:
        pytest.skip(f"no packages of docker's: {problem}")
    programs = os.pathsep.join(str(folder / "root" / part) for part in ("usr/bin", "usr/sbin"))
    env = {"PATH": programs + os.pathsep + os.environ["PATH"], "DOCKER_HOST": f"unix://{folder}/docker.sock"}
    words = [
        "dockerd", f"--host={env['DOCKER_HOST']}", f"--data-root={folder}/data", f"--exec-root={folder}/exec",
        f"--pidfile={folder}/pid", "--iptables=false", "--bridge=none", "--storage-driver=vfs",
    ]  # fmt: skip
    with open(folder / "log", "wb") as log, subprocess.Popen(words, env={**os.environ, **env}, stderr=log) as daemon:
        try:
            image = make_image(folder)
            trial = (
                "for i in $(seq 300); do docker version >&2 && break; sleep 0.1; done; "
                f'docker import "$1" {IMAGE} && docker run --rm --network=host {IMAGE} bash -c :'
            )
            done = subprocess.run(
                ["sh", "-c", trial, "sh", image], env={**os.environ, **env}, capture_output=True, text=True,
                timeout=WAIT_S, check=False,
            )  # fmt: skip
            if done.returncode != 0:
                pytest.skip(f"docker runs no container here: {done.stderr.strip()[-300:]}")
            yield env
        finally:
            daemon.send_signal(signal.SIGTERM)
            daemon.wait(WAIT_S)
            subprocess.run(["umount", "-l", folder / "exec/netns/default"], capture_output=True, check=False)


@pytest.fixture
def boxes(lab: Lab, docker: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Lab:
    for name, value in docker.items():
        monkeypatch.setenv(name, value)
    return lab


def containers() -> list[str]:
    return subprocess.run(["docker", "ps", "-aq"], capture_output=True, text=True, check=True).stdout.split()


def test_ends_are_the_jobs_own_and_what_it_used_is_unknown(boxes: Lab) -> None:
    run = boxes.submit(
        f"""
defaults: {{cpus: 0, container: {{image: "{IMAGE}", engine: docker}}}}
jobs:
  good: {{cpus: 1, run: 'echo "$AVER_JOB_NAME $(nproc)" > good'}}
  code: {{run: "exit 7"}}
  looks-killed: {{run: "exit 137"}}
  killed: {{run: "kill -9 $$"}}
  program: {{run: [bash, -c, "kill -SEGV $$"]}}
  absent: {{run: [no-such-program]}}
  late: {{time: 2s, run: sleep 600}}
"""
    )
    run.wait(WAIT_S)
    assert {job.name: (str(job.state), str(job.exit)) for job in run} == {
        "good": ("COMPLETED", "0:0"),
        "code": ("FAILED", "7:0"),
        "looks-killed": ("FAILED", "137:0"),
        "killed": ("FAILED", "0:9"),
        "program": ("FAILED", "0:11"),
        "absent": ("FAILED", "127:0"),
        "late": ("TIMEOUT", "0:15"),
    }
    assert (boxes.folder / "good").read_text() == "good 1\n"
    rows = boxes("results", "--json", str(run.number)).document["results"]
    assert {row["peak_bytes"] for row in rows} == {None}, "docker's client is not the job"
    assert containers() == []


@pytest.mark.parametrize("dies", ["job", "witness"])
def test_no_container_outlives_its_job(boxes: Lab, dies: str) -> None:
    """The daemon would keep it: a job that ignores TERM and is killed, or whose witness is."""
    run = boxes.submit(
        f"""
defaults: {{cpus: 0, kill_wait: 1s, container: {{image: "{IMAGE}", engine: docker}}}}
jobs:
  stubborn: {{run: 'trap "" TERM; echo > up; while :; do sleep 0.1; done'}}
"""
    )
    boxes.wait_for("up")
    key = next(iter(run["stubborn"].attempts)).key
    assert key in live_use()
    assert key not in measured(live_use()), "docker's client is not the job"
    if dies == "job":
        assert boxes("cancel", str(run.number)).status == 0
    else:
        os.kill(_witness_of(boxes, run["stubborn"].number), signal.SIGKILL)
    run.wait(WAIT_S)
    assert states(run) == {"stubborn": "CANCELLED" if dies == "job" else "UNVERIFIED"}
    boxes.until(lambda: containers() == [], "the container lives on")


def _witness_of(boxes: Lab, job: int) -> int:
    """The parent of the job's process."""
    pid = boxes("why", str(job)).out.partition("started as process ")[2].split()[0].rstrip(",")
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
