"""From a line on the socket to its reply: decode the request, call its handler, answer whatever happens.

Every handler is a function in a module of this package, marked with `serves` or `writes` and the type of its request.
It returns the reply, a Later, or None if the reply is sent by somebody else. Replies wait for the commit of what they
rest on; refusals rest on nothing.

The events of one request are committed all or none. Where a bug comes after the first of them, the state that they
changed is not to be trusted: they are taken back, and the coordinator starts over from the store.
"""

from __future__ import annotations

import importlib
import os
import time
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from aver.coordinator.background import Later
from aver.coordinator.requests.context import Context
from aver.coordinator.server import Peer
from aver.errors import AverError, InternalError
from aver.log import log
from aver.protocol.decode import decode_request
from aver.protocol.messages import Answer, Message, Refusal

BUG = "a bug in Aver: nothing of the request was carried out; the coordinator's log says more, please report it"

R = TypeVar("R")
Handler = Callable[[Context, Peer, R, float], Answer | Later | None]
_handlers: dict[type[Any], Handler[Any]] = {}


def serves(kind: type[R]) -> Callable[[Handler[R]], Handler[R]]:
    """Mark the handler of this type of request."""

    def register(handler: Handler[R]) -> Handler[R]:
        assert kind not in _handlers, f"{kind.__name__} has two handlers"
        _handlers[kind] = handler
        return handler

    return register


def writes(kind: type[R]) -> Callable[[Handler[R]], Handler[R]]:
    """As `serves`, for what is refused while nothing can be written."""

    def register(handler: Handler[R]) -> Handler[R]:
        def check_and_handle(context: Context, peer: Peer, request: R, now: float) -> Answer | Later | None:
            context.check_writable()
            return handler(context, peer, request, now)

        serves(kind)(check_and_handle)
        return handler

    return register


def handlers() -> dict[type[Any], Handler[Any]]:
    """The handlers of all modules of this package, by the types of their requests."""
    for name in sorted(os.listdir(os.path.dirname(__file__))):
        module, suffix = os.path.splitext(name)
        if suffix == ".py" and module != "__init__":
            importlib.import_module(f"{__package__}.{module}")
    return _handlers


class Dispatch:
    """`reply` sends when what was decided so far is durable, `send` at once."""

    def __init__(
        self, context: Context, reply: Callable[[Peer, Message], None], send: Callable[[Peer, Message], None]
    ) -> None:
        self._context = context
        self._reply = reply
        self._send = send
        self._handlers = handlers()

    def serve(self, peer: Peer, line: bytes) -> None:
        """Answer one request."""

        def handle() -> Answer | Later | None:
            request = decode_request(line)
            return self._handlers[type(request)](self._context, peer, request, time.time())

        self._answer(peer, handle)

    def _answer(self, peer: Peer, handle: Callable[[], Answer | Later | None]) -> None:
        """The outermost edge of a request: a bug in a handler is a refusal, and everybody else goes on."""
        decided = len(self._context.machine.out.events)
        try:
            answer = handle()
        except AverError as error:
            self._send(peer, Refusal(str(error), error.exit_status))
        except Exception:
            log(f"a bug, please report it: {traceback.format_exc()}")
            self._send(peer, Refusal(BUG, InternalError.exit_status))
            self._context.take_back(decided)
        else:
            if isinstance(answer, Later):
                self._context.background.run(answer.lane, answer.call, partial(self._go_on, peer, answer))
            elif answer is not None:
                self._reply(peer, answer)

    def _go_on(self, peer: Peer, later: Later, found: object) -> None:
        """What the request needed of a user's folder is known; one whose client has left meanwhile is dropped."""

        def handle() -> Answer | None:
            if peer.is_open:
                return later.then(found, time.time())
            later.give_up()
            return None

        self._answer(peer, handle)
