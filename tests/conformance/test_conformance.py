"""The whole matrix against Aver's own commands, in a home of its own: every cell is as Aver intends it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from aver.conformance.home import open_commands
from aver.conformance.parser import all_cases

ROOT = Path(__file__).resolve().parents[2]
NOT_ON_ONE_MACHINE = {"operator", "nodes", "partitions"}

pytestmark = pytest.mark.usefixtures("witness_binary")


def conformance(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `aver conformance` as whoever runs the tests, with nothing of a caller's home."""
    kept = {name: value for name, value in os.environ.items() if name not in ("AVER_HOME", "AVER_CONFIG")}
    return subprocess.run(
        [sys.executable, "-m", "aver", "conformance", *words],
        env={**kept, "PYTHONPATH": str(ROOT / "src"), **variables},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def kernel_limits_memory() -> bool:
    """Whether this machine has a cgroup for the cases of `memory/`."""
    done = subprocess.run(
        [sys.executable, "-m", "aver", "doctor", "--json"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    facts = {check["name"]: check["fact"] for check in json.loads(done.stdout)["checks"]}
    return facts["memory limit"].startswith("by the kernel")


def test_every_cell_is_as_aver_intends() -> None:
    """Every case that one machine can show settles in time, and all of its cells are as Aver intends."""
    done = conformance("--json", "--timeout", "500")
    assert done.stdout, done.stderr
    (report,) = json.loads(done.stdout)
    late = [f"{case['name']}: {case['trouble']}" for case in report["cases"] if case["trouble"]]
    wrong = [
        f"{cell['case']} {cell['cell']}: intended {cell['aver']!r}, got {cell['got']!r}"
        for case in report["cases"]
        if not case["skipped"]
        for cell in case["cells"]
        if not cell["holds"]
    ]
    assert not late + wrong, "\n".join(late + wrong)
    assert done.returncode == 0, done.stderr
    lacking = NOT_ON_ONE_MACHINE | (set() if kernel_limits_memory() else {"memory"})
    assert [case["name"] for case in report["cases"] if case["skipped"]] == [
        case.name for case in all_cases() if case.needs & lacking
    ]


def test_the_words_of_another_release_can_be_chosen() -> None:
    """`--release` makes the commands those of that release, and its expectations hold."""
    words = [word for name in ("tasks/wait", "cancels/step", "limits/warned-steps-only") for word in ("--case", name)]
    done = conformance("--release", "22.05", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "version 22.05.8, expectations of Slurm 22.05: 3 cases" in done.stderr


def test_the_cases_of_memory_are_among_them() -> None:
    """Where no cgroup is writable the cases of memory/ were left out above; this says so."""
    if not kernel_limits_memory():
        pytest.skip("memory/*: no cgroup is writable here, so that nobody can tell that memory ran out")
    assert [case for case in all_cases() if "memory" in case.needs]


def test_a_home_of_its_own_is_gone_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, eventually: Callable[..., object]
) -> None:
    """Nothing is left of it: no folder, no job, no coordinator; and the caller's own home is not touched."""
    monkeypatch.delenv("AVER_HOME", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    with open_commands("local", "") as commands:
        home = Path(commands.environment["AVER_HOME"])
        script = tmp_path / "job.sh"
        script.write_text("#!/bin/sh\necho $$ >pid.new && mv pid.new pid\nexec sleep 1000\n")
        done = commands.submit(["sbatch", "-o", "out", str(script)], tmp_path, {})
        assert done.status == 0, done.err
        eventually((tmp_path / "pid").exists)
        pids = [int((tmp_path / "pid").read_text()), json.loads((home / "lock").read_bytes())["pid"]]
    assert not home.parent.exists()
    eventually(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in pids))
    assert not (tmp_path / "state").exists()


def test_a_home_that_is_named_is_used_as_it_is(aver_home: Path) -> None:
    """With AVER_HOME the jobs are in that home, and stay there."""
    done = conformance("--case", "exit/0", AVER_HOME=str(aver_home))
    assert done.returncode == 0, done.stdout + done.stderr
    assert (aver_home / "aver.db").exists()
