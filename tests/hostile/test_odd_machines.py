"""Machines that lack something: system calls that seccomp forbids, a PID 1 that reaps nobody, read-only cgroups."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from live_home import LiveHome
from odd_story import STORY
from second_user import needs_root

FORBID = """
import ctypes, os, struct, sys
calls = [435, 434, 424, 438]  # clone3, pidfd_open, pidfd_send_signal, pidfd_getfd
word = lambda code, jump, value: struct.pack("HBBI", code, jump, 0, value)
text = word(0x20, 0, 0) + b"".join(word(0x15, len(calls) - number, one) for number, one in enumerate(calls))
kept = ctypes.create_string_buffer(text + word(6, 0, 0x7FFF0000) + word(6, 0, 0x50000 | 38))
class Filter(ctypes.Structure):
    _fields_ = [("count", ctypes.c_ushort), ("text", ctypes.c_void_p)]
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Filter(len(calls) + 3, ctypes.addressof(kept))), 0, 0) == 0
try:
    os.pidfd_open(os.getpid())
except OSError:
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
NEVER_REAPS = "import subprocess, sys; sys.exit(subprocess.call([sys.executable, *sys.argv[1:]]))"
WORDS = ["-c", STORY]


def tell(command: list[str], home: Path, tmp_path: Path) -> dict[str, dict[str, str]]:
    """The checks of doctor, after a failure, a kill for memory, a killed coordinator and a cancellation."""
    own = {**os.environ, "AVER_HOME": str(home)}
    done = subprocess.run(command, env=own, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    LiveHome(home, tmp_path).end_everything()
    assert done.returncode == 0, done.stdout + done.stderr
    return {check["name"]: check for check in json.loads(done.stdout)["checks"]}


def unshare(*options: str) -> list[str]:
    """The words before a command that is to run in namespaces of its own."""
    words = ["unshare", *options]
    if shutil.which("unshare") is None or subprocess.run([*words, "true"], capture_output=True).returncode != 0:
        pytest.skip(f"`{' '.join(words)}` does not work here")
    return words


def test_without_clone3_and_pidfds(aver_home: Path, tmp_path: Path) -> None:
    """As older container runtimes have it."""
    tell([sys.executable, "-c", FORBID, *WORDS], aver_home, tmp_path)


@needs_root
def test_below_a_process_1_that_reaps_nobody(aver_home: Path, tmp_path: Path) -> None:
    """A container whose first process is the program itself: who dies stays a zombie, and is known to be dead."""
    words = unshare("--mount", "--pid", "--fork", "--mount-proc")
    tell([*words, sys.executable, "-c", NEVER_REAPS, *WORDS], aver_home, tmp_path)


@needs_root
def test_with_cgroups_that_can_not_be_written(aver_home: Path, tmp_path: Path) -> None:
    """Memory is sampled, and doctor says what is missing and what helps."""
    folder = next((one for one in ("/sys/fs/cgroup/memory", "/sys/fs/cgroup") if os.path.ismount(one)), None)
    if folder is None:
        pytest.skip("no cgroups are mounted")
    close = f'mount -o remount,bind,ro {folder} && exec "$@"'
    words = [*unshare("--mount"), "sh", "-c", close, "sh"]
    if subprocess.run([*words, "true"], capture_output=True).returncode != 0:
        pytest.skip("the cgroups can't be mounted read-only")
    check = tell([*words, sys.executable, *WORDS], aver_home, tmp_path)["memory limit"]
    assert (check["status"], "Read-only" in check["fact"]) == ("limited", True)
    assert check["advice"].startswith("start the container with `-")
