"""What cancel, hold, release, accept and retry share: name things, ask the coordinator, say what it did."""

from __future__ import annotations

from collections.abc import Sequence

from aver.cli.output.documents import Acted, Done
from aver.cli.output.views import answer
from aver.cli.session import Session, user_name
from aver.errors import InternalError


def act(op: str, texts: Sequence[str], as_json: bool, **arguments: object) -> None:
    """Ask for `op` on all that the addresses name, and answer with what was done to each."""
    session = Session()
    ids = session.ids(texts)
    reply = session.call(op, ids=ids, by=user_name(), **arguments)
    answer(session.output, Acted(op, done_list(reply.get("results"))), as_json)


def done_list(results: object) -> tuple[Done, ...]:
    """Read the coordinator's list of results."""
    if not isinstance(results, list):
        raise InternalError("the coordinator's answer has no results")
    return tuple(Done(int(result["id"]), str(result["did"])) for result in results)
