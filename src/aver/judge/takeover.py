"""The verdict on a job that is not run, since an earlier run has done its work.

Pure. The evidence is the earlier verdict, and the new one names where that is.
"""

from __future__ import annotations

from aver.model.evidence import TakenOver, Verdict
from aver.model.record import replace
from aver.model.states import State


def judge_taken(said: TakenOver) -> Verdict | None:
    """The earlier verdict with the run and job that it is of; None if that is not a completion."""
    verdict = said.verdict
    if verdict.state is not State.COMPLETED:
        return None
    detail = f"taken over from run {said.origin.run} (job {said.origin.job}), as attested there by {verdict.source}"
    return replace(verdict, reason=str(said.origin), detail=detail)
