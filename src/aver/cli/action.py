"""What cancel, hold, release, accept and their like share: name things, ask the coordinator, say what it did."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aver.cli.output.documents import Acted, Done
from aver.cli.output.views import answer
from aver.cli.session import Session, user_name
from aver.protocol.messages import Request, Results


def act(op: str, texts: Sequence[str], as_json: bool, request_of: Callable[[tuple[int, ...], str], Request]) -> None:
    """Send the request, made of numbers and who asks, for all that the addresses name; answer with what was done."""
    session = Session()
    reply = session.ask(request_of(tuple(session.ids(texts)), user_name()), Results)
    answer(session.output, Acted(op, tuple(Done(one.id, one.did) for one in reply.results)), as_json)
