"""What a `Run` and a `Job` share: the store that they read, and the coordinator that they ask."""

from __future__ import annotations

import asyncio
import time

from aver.errors import UnreachableError, UsageError
from aver.home import Home
from aver.protocol.client import Client
from aver.protocol.messages import Continued, Request, Results, Retried
from aver.store.read.reader import Reader

RECONNECTS = 5  # in a row: a coordinator that dies each time is not waited for


class Stored:
    """What is read from one home's store."""

    def __init__(self, home: Home | None = None) -> None:
        self._home = home or Home.find()

    def _reader(self) -> Reader:
        self._home.check()
        reader = Reader.open(self._home.database)
        if reader is None:
            raise UsageError(f"{self._home.path} has no jobs yet")
        return reader

    def _ask(self, request: Request, kind: type[Results | Continued | Retried]) -> None:
        client = Client.connect(self._home)
        try:
            client.ask(request, kind)
        finally:
            client.close()

    def _wait(self, number: int, timeout: float | None) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        failures = 0
        while True:
            try:
                client = Client.connect(self._home)
                try:
                    remaining = None if deadline is None else max(0.0, deadline - time.monotonic())
                    for _ in client.watch([number], remaining):
                        failures = 0
                    return
                finally:
                    client.close()
            except UnreachableError:  # it ended while this waited: another one takes up where it was
                failures += 1
                if failures > RECONNECTS:
                    raise
            except TimeoutError:
                raise TimeoutError(f"{number} is not settled after {timeout:g} s; it goes on") from None

    async def _wait_async(self, number: int, timeout: float | None) -> None:
        """The same for asyncio: the connection is read when it is readable, and no thread waits."""
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        failures = 0
        while True:
            client = None
            try:
                client = await asyncio.to_thread(Client.connect, self._home)
                waiting = not await asyncio.to_thread(client.begin_watch, [number])
                while waiting:
                    change = client.next_change(0.0)
                    if change is None:
                        await _readable(loop, client.fileno(), deadline)
                    else:
                        waiting = number not in change.settled
                return
            except UnreachableError:
                failures += 1
                if failures > RECONNECTS:
                    raise
            except TimeoutError:
                raise TimeoutError(f"{number} is not settled after {timeout:g} s; it goes on") from None
            finally:
                if client is not None:
                    client.close()


async def _readable(loop: asyncio.AbstractEventLoop, fd: int, deadline: float | None) -> None:
    """Wait until there is something to read; TimeoutError."""
    ready = asyncio.Event()
    loop.add_reader(fd, ready.set)
    try:
        await asyncio.wait_for(ready.wait(), None if deadline is None else max(0.0, deadline - loop.time()))
    finally:
        loop.remove_reader(fd)
