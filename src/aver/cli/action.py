"""What cancel, hold, release, accept and their like share: name things, ask the coordinator, say what it did."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from aver.cli.output.documents import Acted, Done
from aver.cli.output.views import answer
from aver.cli.session import Session, user_name
from aver.protocol.messages import Request, ResultCode, Results

REFUSED_STATUS = 1


def act(
    op: str,
    texts: Sequence[str],
    as_json: bool,
    request_of: Callable[[tuple[int, ...], str], Request],
    words: Mapping[ResultCode, str] = {},
) -> int:
    """Send the request, made of numbers and who asks, for all that the addresses name; answer with what was done.

    `words` are said instead of the coordinator's. Return the exit status: 0 where all is as was asked, also where it
    was so before.
    """
    session = Session()
    reply = session.ask(request_of(tuple(session.ids(texts)), user_name()), Results)
    results = tuple(Done(one.id, words.get(one.code, one.did), one.code.is_so, one.code.value) for one in reply.results)
    answer(session.output, Acted(op, results), as_json)
    return 0 if all(one.done for one in results) else REFUSED_STATUS
