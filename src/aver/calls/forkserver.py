"""The server of warm calls: it imports once, then forks a process for each call.

A witness runs it: `forkserver.py FILE`. Descriptor 3 is the link to the witness (docs/design/witness.md, "Warm calls").
One process is always forked in advance: the spare. It is the witness's own child, since the process between them ends
at once and the witness is sub-reaper.
"""

import os
import sys

LINK_FD = 3
MOST_BYTES = 64
PAUSE_S = 0.0002


def serve(witness: int) -> "list[bytes]":
    """Fork spares, one after the other. Returns in a spare that has taken a call: the arguments of the order."""
    while os.getppid() == witness:
        taken, tell_taken = os.pipe()
        between = os.fork()
        if between == 0:
            between = os.getpid()
            if os.fork() != 0:
                os._exit(0)
            os.close(taken)
            return _spare(witness, between, tell_taken)
        os.close(tell_taken)
        os.waitpid(between, 0)
        os.read(taken, 1)  # the spare has taken a call, or is gone
        os.close(taken)
    os._exit(0)


def _spare(witness: int, between: int, tell_taken: int) -> "list[bytes]":
    import time

    while os.getppid() == between:
        time.sleep(PAUSE_S)
    if os.getppid() != witness:
        os._exit(0)
    os.setsid()
    order = _receive()
    fields = order.split(b"\0")
    if int(fields[0][1:]) != os.getpid():  # the one that it was meant for is gone
        os._exit(0)
    try:
        os.write(tell_taken, b".")
    except OSError:
        pass  # the server is gone, and the call does not need it
    os.close(tell_taken)
    os.close(LINK_FD)
    args = _become(fields)
    if os.getppid() != witness:  # nobody would see how the call ends
        os._exit(0)
    return args


def _receive() -> bytes:
    """Say that there is a spare, and wait for its order; what the witness has opened is then in place."""
    import socket

    with socket.socket(fileno=os.dup(LINK_FD)) as link:
        try:
            link.send(str(os.getpid()).encode())
            said, fds, _, _ = socket.recv_fds(link, MOST_BYTES, 5)
        except OSError:
            os._exit(0)
    if not said or len(fds) != 5:
        os._exit(0)
    *streams, folder, order = fds
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
    os.fchdir(folder)
    text = os.pread(order, os.fstat(order).st_size, 0)
    for fd in fds:
        os.close(fd)
    return text


def _become(fields: "list[bytes]") -> "list[bytes]":
    """Take the order's umask, limits, CPUs and environment, as a process does that the witness starts."""
    import resource

    args: list[bytes] = []
    cpus: set[int] = set()
    os.environb.clear()
    for field in fields:
        tag, value = field[:1], field[1:]
        if tag == b"a":
            args.append(value)
        elif tag == b"E":
            name, _, text = value.partition(b"=")
            os.environb[name] = text
        elif tag == b"u":
            os.umask(int(value))
        elif tag == b"B":
            cpus.add(int(value))
        elif tag == b"l":
            number, soft, hard = map(int, value.split())
            _, most = resource.getrlimit(number)
            hard = hard if most == resource.RLIM_INFINITY else most if hard < 0 else min(hard, most)
            soft = soft if hard < 0 else hard if soft < 0 else min(soft, hard)
            resource.setrlimit(number, (soft, hard))
    if cpus:
        try:
            os.sched_setaffinity(0, cpus)
        except OSError:
            pass  # CPUs that are gone: it runs on any
    return args


def _import_all(path: str) -> None:
    """What calls need, as the caller's sys.path finds it. What can't be imported is left to the calls, which say so."""
    import importlib
    from functools import partial

    from aver.calls.files import pickler, read_imports
    from aver.calls.user_code import attempt

    found = read_imports(path)
    sys.path[:] = found.path
    pickler()
    for name in found.modules:
        attempt(partial(importlib.import_module, name))


def _seed() -> None:
    """Give each call random numbers of its own, as in a process that imports numpy itself."""
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()


if __name__ == "__main__":
    own_witness = os.getppid()
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    import gc

    from aver.calls.call import call

    _import_all(sys.argv[1])
    gc.freeze()
    words = serve(own_witness)
    _seed()
    sys.exit(call(os.fsdecode(words[3]), os.fsdecode(words[4]), int(os.environ["AVER_ATTEMPT"])))
