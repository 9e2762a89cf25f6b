"""Functions that are called as jobs, and a caller to be killed. Imports little: each job imports it."""

from __future__ import annotations

import math
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple


class OddError(Exception):
    """Can't be unpickled: it takes more than its args say."""

    def __init__(self, first: object, second: object) -> None:
        super().__init__(first)
        self.second = second


class UnreadableHere:
    """Can be pickled, and raises where it is unpickled."""

    def __reduce__(self) -> Any:
        return (int, ("not a number",))


class Place(NamedTuple):
    """Where a call runs."""

    pid: int
    parent: int
    session: int
    server: int  # that forked it; 0: none did
    folder: str
    key: str
    descriptors: list[str]
    modules: list[str]

    @property
    def is_forked(self) -> bool:
        return self.server > 0


def place() -> Place:
    with open("/proc/self/environ") as file:
        is_own = f"AVER_KEY={os.environ['AVER_KEY']}" in file.read().split("\0")
    server = 0 if is_own else _server_below(os.getppid())
    return Place(
        os.getpid(), os.getppid(), os.getsid(0), server, os.getcwd(), os.environ["AVER_KEY"],
        sorted(os.listdir("/proc/self/fd")), sorted(sys.modules),
    )  # fmt: skip


class Environment(NamedTuple):
    """What a call has in its environment."""

    is_forked: bool
    values: dict[str, str]


def environment() -> Environment:
    return Environment(place().is_forked, dict(os.environ))


def _server_below(witness: int) -> int:
    """The oldest of its children: all others were forked by that one."""

    with open(f"/proc/{witness}/task/{witness}/children") as file:
        children = [int(word) for word in file.read().split()]
    return min(children, key=_start_of)


def _start_of(pid: int) -> float:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[19])
    except OSError:  # it has ended since: it was not the server
        return math.inf


def leave_a_child() -> int:
    import subprocess

    return subprocess.Popen(["sleep", "1000"]).pid


def note(file: str, word: str) -> str:
    """Write a line that says that this ran, all at once."""
    fd = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, f"{word}\n".encode())
    os.close(fd)
    return word


def note_and_wait(file: str, word: str, until: str) -> str:
    note(file, word)
    while not os.path.exists(until):
        time.sleep(0.01)
    return word


def note_and_end(file: str, word: str, how: str) -> None:
    """Say that this ran, then end in one of many ways."""
    note(file, word)
    match how:
        case "raise":
            raise ArithmeticError(word)
        case "kill":
            kill_self()
        case "exit":
            os._exit(3)
        case "memory":
            take_memory(300)


def add(*values: Any) -> Any:
    return sum(values)


def times(values: list[str], factor: int) -> str:
    return "".join(values) * factor


def deep(values: dict[str, list[Any]]) -> Any:
    return [value for part in values.values() for value in part]


def divide(one: int, other: int) -> float:
    print("dividing", flush=True)
    return one / other


def raise_odd() -> None:
    raise OddError(1, 2)


def kill_self(number: int = signal.SIGKILL) -> None:
    os.kill(os.getpid(), number)


def take_memory(size_mb: int) -> int:
    taken = bytearray(size_mb << 20)
    time.sleep(9)
    return len(taken)


def take_memory_once(size_mb: int) -> int:
    """Fits into four times the memory that it is given first."""
    taken = bytearray(size_mb << 20)
    if os.environ["AVER_ATTEMPT"] == "1":
        time.sleep(9)
    return len(taken)


def fail_until(attempt: int) -> int:
    found = int(os.environ["AVER_ATTEMPT"])
    if found < attempt:
        sys.exit(75)
    return found


def large(size: int) -> bytes:
    return b"x" * size


def write_nothing_more(value: Any) -> Any:
    """From now on no file of this process grows, as on a full disk."""
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    return value


def exit_badly_after_result() -> int:
    """Return, and have the interpreter end with another exit code once the result is written."""
    import atexit

    atexit.register(os._exit, 9)
    return 1


def generator() -> Any:
    return (number for number in range(3))


def caller(name: str, file: str, until: str, count: int, warm: str = "", dies_at: str = "") -> None:
    """Submit calls under a name, say so, and wait for them: to be killed at any moment.

    `dies_at` is an instant of the first submission at which the process kills itself.
    """
    import aver

    if dies_at:
        _die_at(dies_at)
    executor = aver.Executor(name=name, warm=warm.split())
    futures = [
        executor.submit(note_and_wait, file, str(number), until, aver={"key": f"call-{number}"})
        for number in range(count)
    ]
    for future in futures:
        future.add_done_callback(lambda _: None)
    executor._shared.pump.wait_submitted()
    print("submitted", flush=True)
    for future in futures:
        future.result()


def _die_at(instant: str) -> None:
    """Kill this process where the executor's thread sends a submission: before the request, or after its answer."""
    from importlib import import_module

    pump: Any = import_module("aver.api.executor.pump")
    whole = pump.submit_once

    def submit_and_die(*args: Any) -> Any:
        if instant == "answer lost":
            whole(*args)
        os.kill(os.getpid(), signal.SIGKILL)

    pump.submit_once = submit_and_die


def witnesses(home: Any) -> list[int]:
    """The witnesses of a home that live."""
    own = os.fsencode(home.witnesses) + b"/"
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(os.fsencode(f"/proc/{pid}/fd/4")).startswith(own):
                found.append(int(pid))
        except OSError:
            pass
    return sorted(found)


def servers(home: Any) -> list[int]:
    """The servers of warm calls below those: each the oldest child that is linked with its witness."""

    def is_linked(pid: int) -> bool:
        with open(f"/proc/{pid}/cmdline") as file:
            return "forkserver.py" in file.read() and os.readlink(f"/proc/{pid}/fd/3").startswith("socket:")

    found = []
    for witness in witnesses(home):
        try:
            with open(f"/proc/{witness}/task/{witness}/children") as file:
                linked = [int(word) for word in file.read().split() if is_linked(int(word))]
            found += [min(linked, key=_start_of)] if linked else []
        except OSError:
            pass
    return sorted(found)


if __name__ == "__main__":
    sys.path.insert(0, os.fspath(Path(__file__).parent))
    import call_kit

    call_kit.caller(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), *sys.argv[5:])
