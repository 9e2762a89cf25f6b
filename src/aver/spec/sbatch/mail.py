"""`--mail-type` and `--mail-user` of sbatch, as rules of notifications. On a cluster they are Slurm's own affair.

Of an array there is one mail for all of it, unless ARRAY_TASKS is asked for; then there is one for each task. REQUEUE,
STAGE_OUT and TIME_LIMIT_50 to _90 mean nothing here.
"""

from __future__ import annotations

from collections.abc import Mapping

from aver.model.job import NotifyOn, NotifyRule
from aver.model.notify_target import parse_target

_FAILURES = frozenset({"FAIL", "TIME_LIMIT", "INVALID_DEPEND"})


def mail_rules(said: Mapping[str, str], user: str, is_array: bool) -> tuple[NotifyRule, ...]:
    """Whom to tell of what; `said` has the options' texts. ValueError for an address that is none."""
    kinds = {word.strip().upper() for word in said.get("mail-type", "").split(",")} - {""}
    if not kinds or "NONE" in kinds:
        return ()
    if "ALL" in kinds:
        kinds |= {"BEGIN", "END"}
    is_single = not is_array or "ARRAY_TASKS" in kinds
    occasions = [NotifyOn.STARTED] if "BEGIN" in kinds and is_single else []
    if "END" in kinds:
        occasions.append(NotifyOn.EVERY if is_single else NotifyOn.SETTLED)
    elif not _FAILURES.isdisjoint(kinds):
        occasions.append(NotifyOn.FAILED if is_single else NotifyOn.RUN_FAILED)
    names = [name.strip() for name in (said.get("mail-user") or user).split(",") if name.strip()]
    return tuple(NotifyRule(on, (), to=parse_target(f"mail:{name}")) for on in occasions for name in names)
