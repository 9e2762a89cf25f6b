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
    """A traceback, a loop and much memory."""
    kept: list[bytearray] = []

    def spin(data: bytes) -> None:
        while True:
            pass

    monkeypatch.setitem(TARGETS, "record", lambda data: {}[data])  # type: ignore[misc]
    assert "KeyError" in (attempt("record", b"x") or "")
    monkeypatch.setitem(TARGETS, "record", spin)
    assert "CPU time" in (attempt("record", b"x") or "")
    monkeypatch.setitem(TARGETS, "record", lambda data: kept.append(bytearray(b"x" * (600 << 20))))
    assert "MiB" in (attempt("record", b"x") or "")
    kept.clear()


def test_mutations_are_the_same_for_a_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a finding in CI can be seen again."""
    seen: list[bytes] = []
    monkeypatch.setitem(TARGETS, "request", seen.append)
    run("request", 3, time.monotonic() + 60, 50)
    first, seen[:] = list(seen), []
    run("request", 3, time.monotonic() + 60, 50)
    assert seen == first
