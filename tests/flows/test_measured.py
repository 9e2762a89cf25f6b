"""Each number is right: what results and usage say is compared with what the kernel told the job about itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from flow_lab import DEADLINE_S, Lab

import aver

MIB = 1 << 20
NOBODY = 65534
JOB = """\
import json, os, resource, time

began = time.monotonic()
block = b"x" * (300 << 20)
while sum(os.times()[:2]) < 2:
    pass
time.sleep(3)
used = resource.getrusage(resource.RUSAGE_SELF)
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
said = {
    "cpu_s": used.ru_utime + used.ru_stime,
    "high_bytes": int(status["VmHWM"].split()[0]) * 1024,
    "anon_bytes": int(status["RssAnon"].split()[0]) * 1024,
    "took_s": time.monotonic() - began,
}
print(json.dumps(said))
"""
FLOW = """\
jobs:
  limited: {mem: 1G, time: 5m, run: [/usr/bin/python3, job.py]}
  free: {run: [/usr/bin/python3, job.py]}
"""


@dataclass(frozen=True)
class Said:
    """What a job printed about itself, and how long the whole run took at most."""

    cpu_s: float
    high_bytes: int
    anon_bytes: int
    took_s: float
    run_s: float


def compare(said: Said, elapsed_s: float, cpu_s: float, peak_bytes: int) -> None:
    """Cpu time from the kernel's own, memory between what is anonymous and the high-water mark, time around its own."""
    assert said.cpu_s <= cpu_s <= said.cpu_s + 0.5
    assert 300 * MIB <= said.anon_bytes - 2 * MIB <= peak_bytes <= said.high_bytes + 16 * MIB
    assert said.took_s <= elapsed_s <= said.run_s


def check(results: Any, usage: Any, said: dict[str, Said]) -> None:
    for one in results["results"]:
        compare(said[one["name"]], one["elapsed_s"], one["cpu_s"], one["peak_bytes"])
        assert one["return_code"] == 0
    for one in usage["jobs"]:
        own = said[one["name"]]
        compare(own, one["time"]["used"], one["cpu_s"], one["mem"]["used"])
        assert one["cpus"]["used"] == pytest.approx(one["cpu_s"] / one["time"]["used"])
        assert one["measured_by"] == "witness"
    limited = next(one for one in usage["jobs"] if one["name"] == "limited")
    assert limited["mem"]["share"] == pytest.approx(limited["mem"]["used"] / (1 << 30))
    assert limited["time"]["share"] == pytest.approx(limited["time"]["used"] / 300)


def said_by(folder: Path, run_s: float) -> dict[str, Said]:
    return {
        name: Said(**json.loads((folder / "aver-1" / f"{name}.out").read_text()), run_s=run_s)
        for name in ("limited", "free")
    }


def test_as_whoever_runs_the_tests(lab: Lab) -> None:
    """300 MB touched, 2 cpu-seconds burnt, 3 s slept; with a cgroup where there is one."""
    (lab.folder / "job.py").write_text(JOB)
    began = time.monotonic()
    assert lab.run(FLOW).state == "COMPLETED"
    said = said_by(lab.folder, time.monotonic() - began)
    check(lab("results", "1", "--json").document, lab("usage", "1", "--json").document, said)


@dataclass(frozen=True)
class Ordinary:
    """The product as an ordinary user, who has no cgroups here: memory is sampled."""

    python: str
    folder: Path
    env: Mapping[str, str]

    def __call__(self, *args: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [self.python, "-m", "aver", *args], cwd=self.folder, env=self.env, user=NOBODY, group=NOBODY,
            extra_groups=[], stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip


@pytest.fixture
def ordinary(aver_home: Path) -> Iterator[Ordinary]:
    """Needs root, to become somebody else; and an interpreter and a checkout that this somebody can read."""
    if os.getuid() != 0:
        pytest.skip("needs root, to become an ordinary user")
    folder = Path(tempfile.mkdtemp(prefix="aver-ordinary-", dir="/tmp"))
    config = folder / "config.toml"
    config.write_text("kill_wait = 1\ncpus = 4\n")
    for path in (folder, aver_home, config):
        os.chown(path, NOBODY, NOBODY)
    places = [str(Path(module.__file__ or "").parents[1]) for module in (aver, click)]
    env = {**os.environ, "HOME": str(folder), "AVER_CONFIG": str(config), "PYTHONPATH": ":".join(places)}
    try:
        yield next(one for one in _ordinary(folder, env))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _ordinary(folder: Path, env: Mapping[str, str]) -> Iterator[Ordinary]:
    """Our interpreter; where it is out of reach for others, the system's, which reads our modules if it is as new."""
    for python in (sys.executable, "/usr/bin/python3"):
        made = Ordinary(python, folder, env)
        try:
            if made("doctor").returncode == 0:
                yield made
        except OSError:
            continue
    pytest.skip("an ordinary user can't run this checkout")


@pytest.mark.root
def test_as_an_ordinary_user(ordinary: Ordinary) -> None:
    """The same figures from samples alone."""
    (ordinary.folder / "job.py").write_text(JOB)
    (ordinary.folder / "flow.yaml").write_text(FLOW)
    began = time.monotonic()
    done = ordinary("run", "flow.yaml")
    assert done.returncode == 0, done.stderr
    said = said_by(ordinary.folder, time.monotonic() - began)
    results, usage = (json.loads(ordinary(word, "1", "--json").stdout) for word in ("results", "usage"))
    check(results, usage, said)


@pytest.mark.root
def test_an_ordinary_user_recovers_what_ran_out_of_memory(ordinary: Ordinary) -> None:
    """The witness ends it by its samples; the next attempt gets more and completes."""
    program = "import time; x = b'x' * (140 << 20); time.sleep(1)"
    text = f'jobs:\n  a:\n    mem: 100M  # too little\n    run: [/usr/bin/python3, -c, "{program}"]\n'
    flow = ordinary.folder / "flow.yaml"
    flow.write_text(text)
    os.chown(flow, NOBODY, NOBODY)
    assert ordinary("run", "flow.yaml").returncode == 4
    done = ordinary("recover", "1", "--yes", "--watch")
    assert done.returncode == 0, done.stderr
    states = [one["state"] for one in json.loads(ordinary("results", "1", "--json").stdout)["results"]]
    assert states[-1] == "COMPLETED"
    assert set(states[:-1]) == {"OUT_OF_MEMORY"}
    assert flow.stat().st_uid == NOBODY
    assert "# too little" in flow.read_text()
