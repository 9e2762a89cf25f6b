"""The corpus of the fuzzers, and a few hundred mutations of it: seconds in each run. `scripts/fuzz` for longer."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fuzz_runner import CORPUS, attempt, run
from fuzz_targets import TARGETS

INPUTS = 300
PROGRAM = """
import sys, time
import fuzz_runner
fuzz_runner.keep = lambda target, data: __import__("pathlib").Path(ascii(data))
fuzz_runner.quiet()
count, found = fuzz_runner.run(sys.argv[1], 1, time.monotonic() + 60, int(sys.argv[2]))
print(count, *found, sep="\\n", file=sys.stderr)
"""


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_is_found(target: str, tmp_path: Path) -> None:
    """No traceback, no 2 s of CPU time, no 500 MB; in a process of its own, whose output nobody sees."""
    env = {**os.environ, "AVER_HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, target, str(INPUTS)], env=env, capture_output=True, text=True, check=False
    )
    count, *found = done.stderr.splitlines()
    assert found == []
    assert int(count) > len(list((CORPUS / target).iterdir()))


def test_what_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A traceback, and a loop."""

    def spin(data: bytes) -> None:
        while True:
            pass

    monkeypatch.setitem(TARGETS, "record", lambda data: {}[data])  # type: ignore[misc]
    assert "KeyError" in (attempt("record", b"x") or "")
    monkeypatch.setitem(TARGETS, "record", spin)
    assert "CPU time" in (attempt("record", b"x") or "")


def test_much_memory_is_found() -> None:
    """In a process of its own, whose peak is not that of other tests."""
    program = (
        "import fuzz_runner; fuzz_runner.MOST_BYTES = 50 << 20; kept = []\n"
        "fuzz_runner.TARGETS['record'] = lambda data: kept.append(b'x' * (100 << 20))\n"
        "print(fuzz_runner.attempt('record', b'x'))"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    assert "MiB" in done.stdout


def test_mutations_are_the_same_for_a_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a finding in CI can be seen again."""
    seen: list[bytes] = []
    monkeypatch.setitem(TARGETS, "request", seen.append)
    run("request", 3, time.monotonic() + 60, 50)
    first, seen[:] = list(seen), []
    run("request", 3, time.monotonic() + 60, 50)
    assert seen == first
