"""Why an order of an allocation waits: the words that people are shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from aver.engines.api import AllocationAsk
from aver.engines.slurm.allocation.folder import Allocation, Asked, RunFolder, Size
from aver.engines.slurm.allocation.request import reason_for
from aver.model import reasons

ONE = Size(1, 0, 0)
REFUSAL = "unrecognized option '--bogus'"


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    made = RunFolder(tmp_path / "7")
    made.make()
    return made


def asked(name: str, *allocations: Allocation, refused: str = "") -> Asked:
    ask = AllocationAsk(7, name, ("-N", "1"), max(1, len(allocations)), 120, None, "/", 0o22)
    return Asked(ask, list(allocations), refused)


def test_a_refused_wish_is_named_beside_what_there_is(folder: RunFolder) -> None:
    """sbatch refused what a person asked for later: whoever waits hears it, until another wish is taken."""
    first = asked("r1", Allocation("a", 0.0, id=1, word="PENDING", reason="Priority"))
    refused = asked("p1", refused=REFUSAL)
    taken = asked("p2", Allocation("b", 0.0, id=2, word="PENDING", reason="Priority"))
    assert REFUSAL not in reason_for(folder, [first])(ONE)[1]
    assert REFUSAL in reason_for(folder, [first, refused])(ONE)[1]
    assert REFUSAL not in reason_for(folder, [first, refused, taken])(ONE)[1]


def test_the_second_of_a_wish_waits_for_the_first(folder: RunFolder) -> None:
    """Slurm's `Dependency` of the second says nothing of why the first one does not begin."""
    first, second = Allocation("a", 0.0, id=1), Allocation("b", 0.0, id=2, reason="Dependency")
    wish = asked("r1", first, second)
    assert reason_for(folder, [wish])(ONE) == (reasons.ALLOCATION_PENDING, "its allocation waits in the queue")
    first.reason = "PartitionConfig"
    assert reason_for(folder, [wish])(ONE)[1] == "its allocation waits in the queue: PartitionConfig"


def test_the_time_that_a_job_wants_is_named(folder: RunFolder) -> None:
    """A job that asks for more time than an allocation has left waits for the next: the sentence says how much."""
    (folder.path / "allocs" / "1").write_text("n1 8 800 0\n")
    wish = asked("r1", Allocation("a", 0.0, id=1, word="RUNNING"))
    reason, text = reason_for(folder, [wish])(Size(1, 0, 0, 14400))
    assert (reason, "4 h" in text) == (reasons.RESOURCES, True)
    assert reason_for(folder, [wish])(Size(1, 3072, 0))[0] == reasons.ALLOCATION_TOO_SMALL
