"""Work that may block, in threads of its own: everything that the coordinator does in folders of users.

A folder of a user may hang for as long as a network disk's server is away. Calls are put into lanes, by the folder
that they are about: calls of one lane run one after the other, and a lane that hangs holds up no other. What a call
gave is handed over in the loop's thread, when `fileno` is readable. Nothing waits for these threads when the
coordinator leaves: what they do is done again, or it was not durable.
"""

from __future__ import annotations

import os
import threading
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from aver.log import log
from aver.model.record import Record
from aver.protocol.messages import Answer

MOST_THREADS = 32

T = TypeVar("T")
Act = Callable[[], None]


class Failed(Record):
    """The call raised: a bug, or a lack of memory. The text names the exception."""

    text: str


class Later(Record):
    """A reply for which a user's folder is looked at first: `call` does so aside, `then` goes on in the loop's thread.

    `give_up` is for when nobody waits for the reply any more.
    """

    lane: str
    call: Callable[[], Any]
    then: Callable[[Any, float], Answer]
    give_up: Callable[[], None] = lambda: None


class Background:
    """`run` and `take` are for the loop's thread, `hand_over` is for every other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lanes: dict[str, deque[Act]] = {}  # calls that have not begun, of lanes that have some or are at work
        self._ready: deque[str] = deque()  # lanes that have a call and are not at work
        self._threads = 0
        self._done: deque[Act] = deque()
        self._unfinished = 0
        self._wake_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def fileno(self) -> int:
        return self._wake_fd

    @property
    def is_busy(self) -> bool:
        """Whether a call has not been handed over yet."""
        return self._unfinished > 0

    def run(self, lane: str, call: Callable[[], T], then: Callable[[T | Failed], None]) -> None:
        """Call it in a thread, and `then` in the loop's with what it gave."""
        self._unfinished += 1

        def act() -> None:
            result: T | Failed
            try:
                result = call()
            except Exception as error:  # the outermost edge of a thread
                log(f"a bug, please report it: {traceback.format_exc()}")
                result = Failed(f"{type(error).__name__}: {error}")
            self.hand_over(lambda: self._finish(then, result))

        with self._lock:
            waiting = self._lanes.get(lane)
            if waiting is not None:
                waiting.append(act)  # whoever has the lane goes on with it
                return
            self._lanes[lane] = deque([act])
            self._ready.append(lane)
            if self._threads >= MOST_THREADS:
                return
            self._threads += 1
        threading.Thread(target=self._work, name="background", daemon=True).start()

    def hand_over(self, act: Act) -> None:
        """Have this called in the loop's thread."""
        self._done.append(act)
        os.eventfd_write(self._wake_fd, 1)

    def take(self) -> None:
        """Hand over what is done since the last time."""
        try:
            os.eventfd_read(self._wake_fd)
        except BlockingIOError:
            return
        while self._done:
            self._done.popleft()()

    def _finish(self, then: Callable[[T | Failed], None], result: T | Failed) -> None:
        self._unfinished -= 1
        then(result)

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._ready:
                    self._threads -= 1
                    return
                lane = self._ready.popleft()
                act = self._lanes[lane].popleft()
            act()
            with self._lock:
                if self._lanes[lane]:
                    self._ready.append(lane)
                else:
                    del self._lanes[lane]
