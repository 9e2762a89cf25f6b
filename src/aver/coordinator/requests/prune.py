"""`prune`: cut old logs, in a thread; the reply comes from there."""

from __future__ import annotations

from aver.config import Retention
from aver.coordinator.requests.context import Context
from aver.coordinator.requests.dispatch import serves
from aver.coordinator.server import Peer
from aver.protocol.messages import Prune


@serves(Prune)
def prune(context: Context, peer: Peer, request: Prune, _: float) -> None:
    older_s, last, most = request.older_than_s, request.keep_last, request.max_bytes
    has_rules = not (older_s is None and last is None and most is None)
    rules = Retention(older_s, last or 0, most) if has_rules else None
    context.upkeep.prune(peer, rules, request.by, request.dry_run)
