"""A third engine, as somebody else might write it: a queue of witnesses on this machine, so many at once.

It is registered through the settings alone: `[engines] pool = "pool_engine:ENGINE"`, and `[pool] most = 2`. All that
must not be lost is a file of the home's folder `pool`: KEY.order, KEY.pid (made by the witness's own process, once),
KEY.cancel and KEY.record. After a restart the folder is read again; what was not begun is begun, and never twice.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from aver.durable_files import write_file
from aver.engines.api import (
    UNLIMITED,
    Capabilities,
    Control,
    Heard,
    NotListed,
    ObserveReply,
    Order,
    Refusals,
    Registration,
    Seen,
    Site,
    SubmitReply,
    Submitted,
)
from aver.judge.witness_record import parse_line
from aver.model.evidence import Evidence, NobodySaid, QueueSaid, SchedulerWord, Taken, WitnessRecord
from aver.model.states import SchedulerState
from aver.witness import binary

WORDS = {
    "queued": SchedulerState.PENDING, "going": SchedulerState.RUNNING, "done": SchedulerState.COMPLETED,
    "broke": SchedulerState.FAILED, "stopped": SchedulerState.CANCELLED,
}  # fmt: skip
CLAIM = 'echo $$ > "$0.$$" && ln "$0.$$" "$0" && rm "$0.$$" && test -e "${0%.pid}.order" && exec "$@"'  # the first one


class PoolEngine:
    """See `aver.engines.api.Engine`."""

    name = "pool"
    totals = UNLIMITED

    def __init__(self, folder: Path, most: int) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        self._folder = folder
        self._most = most
        self._waiting: deque[str] = deque()
        self._running: dict[int, tuple[str, int]] = {}  # by descriptor of the process: key, pid
        self._known: set[str] = set()
        self._heard: list[Heard] = []
        self._poller = select.epoll()
        self._wake_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._poller.register(self._wake_fd, select.EPOLLIN)

    def fileno(self) -> int:
        return self._poller.fileno()

    def attach(self) -> None:
        for path in sorted(self._folder.glob("*.order"), key=lambda path: path.stat().st_mtime_ns):
            self._known.add(path.stem)
            if self._file(path.stem, "pid").exists():
                self._watch(path.stem)
            elif self._file(path.stem, "cancel").exists():
                self._say(path.stem, _queue("stopped"))
            else:
                self._waiting.append(path.stem)
        self._begin_next()

    def submit(self, orders: Sequence[Order]) -> list[SubmitReply]:
        for order in orders:
            write_file(self._file(order.key, "order"), json.dumps(_words(order)).encode())
            self._known.add(order.key)
            self._waiting.append(order.key)
            self._say(order.key, Taken(time.time(), order.key), _queue("queued"))
        self._begin_next()
        return [Submitted(order.key) for order in orders]

    def observe(self, keys: Sequence[str]) -> list[ObserveReply]:
        return [Seen(key) if key in self._known else NotListed(key) for key in keys]

    def control(self, controls: Sequence[Control]) -> None:
        pids = dict(self._running.values())
        for control in controls:
            if control.verb == "cancel" and control.key in self._known:
                self._file(control.key, "cancel").touch()
            if control.verb == "cancel" and control.key in self._waiting:
                self._waiting.remove(control.key)
                self._say(control.key, _queue("stopped"))
            elif control.key in pids:
                os.kill(pids[control.key], control.signal or signal.SIGTERM)

    def adopt(self, before: str, key: str) -> None:
        """Never: this engine starts nothing again."""

    def heard(self) -> list[Heard]:
        for descriptor, _ in self._poller.poll(0):
            if descriptor == self._wake_fd:
                os.eventfd_read(self._wake_fd)
            elif descriptor in self._running:
                self._end(descriptor)
        self._begin_next()
        heard, self._heard = self._heard, []
        return heard

    def settle(self, keys: Sequence[str]) -> None:
        for key in keys:
            if key in self._known:
                self._known.discard(key)
                for kind in ("order", "pid", "cancel", "record"):  # without its order nothing begins
                    self._file(key, kind).unlink(missing_ok=True)

    def tidy(self) -> float | None:
        return None

    def close(self) -> None:
        self._poller.close()
        os.close(self._wake_fd)

    def _begin_next(self) -> None:
        while self._waiting and len(self._running) < self._most:
            key = self._waiting.popleft()
            order = json.loads(self._file(key, "order").read_bytes())
            witness = [os.fspath(binary()), "once", "--record", os.fspath(self._file(key, "record")), "--key", key]
            command = ["/bin/sh", "-c", CLAIM, os.fspath(self._file(key, "pid")), *witness, *order["options"], "--"]
            with open(order["stdout"], "ab") as output:
                process = subprocess.Popen(
                    [*command, *order["args"]], env=order["env"], cwd=order["folder"], umask=order["umask"],
                    stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
                )  # fmt: skip
            self._watch(key, process.pid)

    def _watch(self, key: str, pid: int | None = None) -> None:
        """Wait for the end of its witness; one that is gone already has ended."""
        pid = pid or int(self._file(key, "pid").read_text())
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes()  # empty: it ends, or becomes the witness just now
            descriptor = os.pidfd_open(pid) if not words or key.encode() in words else -1
        except OSError:
            descriptor = -1
        if descriptor < 0:
            self._tell_end(key)
            return
        self._running[descriptor] = (key, pid)
        self._poller.register(descriptor, select.EPOLLIN)
        self._say(key, _queue("going", started_at=time.time()))

    def _end(self, descriptor: int) -> None:
        key, pid = self._running.pop(descriptor)
        self._poller.unregister(descriptor)
        os.close(descriptor)
        try:
            os.waitpid(pid, 0)
        except ChildProcessError:
            pass  # an earlier coordinator's
        claimed = self._file(key, "pid")
        if claimed.exists() and int(claimed.read_text()) != pid:
            self._watch(key)  # one that an earlier coordinator began was first
        else:
            self._tell_end(key)

    def _tell_end(self, key: str) -> None:
        try:
            record = parse_line(self._file(key, "record").read_bytes())
        except (OSError, ValueError):
            self._say(key, NobodySaid(time.time(), 0.0, "silent"))
            return
        assert isinstance(record, WitnessRecord)
        assert record.exit is not None
        is_cancelled = self._file(key, "cancel").exists()
        word = "stopped" if is_cancelled else "done" if record.exit.is_success else "broke"
        self._say(key, record, _queue(word, exit=str(record.exit), started_at=record.started_at))

    def _say(self, key: str, *evidence: Evidence) -> None:
        self._heard += [Heard(key, "pool", type(one).__name__, one) for one in evidence]
        os.eventfd_write(self._wake_fd, 1)

    def _file(self, key: str, kind: str) -> Path:
        return self._folder / f"{key}.{kind}"


def _queue(word: str, **more: object) -> QueueSaid:
    return QueueSaid(time.time(), SchedulerWord(WORDS[word], word), node="pool", **more)  # type: ignore[arg-type]


def _words(order: Order) -> dict[str, object]:
    inherited = Path(order.env_file or os.devnull).read_bytes().split(b"\0")
    pairs = [*(os.fsdecode(pair) for pair in inherited if pair), *order.env]
    limit = order.request.time_s
    options = [] if limit is None else ["--time", str(limit * 1000), "--kill-wait", str(int(order.kill_wait_s * 1000))]
    return {
        "args": order.args, "env": dict(pair.split("=", 1) for pair in pairs), "folder": order.folder,
        "umask": order.umask, "stdout": order.stdout or os.devnull, "options": options,
    }  # fmt: skip


def _make(site: Site) -> PoolEngine:
    return PoolEngine(site.home.path / "pool", int(str(site.settings_of("pool").get("most", 1))))


ENGINE = Registration(
    "pool",
    Capabilities(
        has_queue=True, has_scheduler=True, tells_steps=True, signals_steps=True,
        refusals=Refusals(suspend="in the pool nothing is suspended", limit="in the pool limits stay as they are"),
    ),
    _make,
    lambda site: any((site.home.path / "pool").glob("*.order")),
)  # fmt: skip
