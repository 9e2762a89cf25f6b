"""The coordinator after the reboot: started on one home after the other, until all is settled and it leaves.

`python -m power_loss.reopen` imports the coordinator once and forks for each home that it is told of on stdin: what
runs is `aver.coordinator.__main__.main`, as in a process of its own, without the time that Python takes to start.
Each has a boot id of its own, another one than that of the recording. For each home it answers with its path and the
exit status.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

AT_ONCE = 1  # homes of one recording are copies: coordinators of the same home must not run side by side
DEADLINE_S = 240  # so long only if it hangs
LOOK_S = 0.02


class Reopener:
    """Coordinators on homes, one after the other."""

    def __init__(self, base: Mapping[str, str], config: Path) -> None:
        config.write_text("cpus = 4\nkill_wait = 1\nidle_exit = 0\n")
        environment = {**base, "AVER_CONFIG": str(config)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "power_loss.reopen"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def open(self, homes: Sequence[Path]) -> Iterator[tuple[Path, int]]:
        """Open each, and return it with the exit status of its coordinator when that has left."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        for home in homes:
            self._process.stdin.write(os.fsencode(home) + b"\n")
        self._process.stdin.write(b"\n")  # wait for all of them
        self._process.stdin.flush()
        for _ in homes:
            path, _, status = self._process.stdout.readline().rpartition(b" ")
            yield Path(os.fsdecode(path)), int(status)

    def close(self) -> None:
        self._process.communicate()


def serve() -> None:
    """Read homes from stdin, and run a coordinator on each."""
    import aver.coordinator.loop
    import aver.home

    aver.home.read_boot_id = lambda: _boot(sys.argv[-1])
    from aver.coordinator import __main__ as coordinator
    from aver.engines.local import capabilities

    found = capabilities.find_cgroup()
    capabilities.find_cgroup = lambda: found  # the same for every home, and slow to find out
    aver.coordinator.loop.CLOCK_CHECK_S = LOOK_S  # nobody connects: it sees soon that it has nothing to do
    running: dict[int, bytes] = {}
    for line in sys.stdin.buffer:
        home = line.rstrip(b"\n")
        while len(running) >= (AT_ONCE if home else 1):
            _reap(running)
        if not home:
            continue
        pid = os.fork()
        if pid == 0:
            _become(coordinator.main, os.fsdecode(home))
        running[pid] = home


def _boot(home: str) -> str:
    """Another one for each home, since keys of attempts name the boot and the homes are copies of one."""
    return hashlib.sha256(os.fsencode(home)).hexdigest()[:32]


def _reap(running: dict[int, bytes]) -> None:
    pid, status = os.wait()
    sys.stdout.buffer.write(running.pop(pid) + b" %d\n" % os.waitstatus_to_exitcode(status))
    sys.stdout.buffer.flush()


def _become(main: object, home: str) -> None:
    assert callable(main)
    log = os.open(f"{home}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.setsid()
    signal.alarm(DEADLINE_S)
    sys.argv = ["coordinator", home]
    status = 1
    try:
        main()
        status = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    serve()
