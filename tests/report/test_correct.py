"""The rules of correction: each bound at, above and below it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.model.job import Request
from aver.model.states import State
from aver.model.units import parse_size, parse_time
from aver.report.correction.rules import (
    Blocked,
    Change,
    Group,
    correct,
    grow,
    value_text,
    whole_memory,
    whole_time,
)
from aver.report.measure import GIB, MIB, Mark, Measured, Resource, Rules, mem_mark, time_mark

HOUR = 3600
MINUTE = 60
RULES = Rules()


def ended(state: str = "COMPLETED", **figures: float | None) -> Measured:
    """An attempt of an hour's limit and 8 GiB that used half of everything."""
    known = {
        "cpus": 1, "mem_bytes": 8 * GIB, "time_s": HOUR, "elapsed_s": 1800.0, "cpu_s": 1800.0, "peak_bytes": 6 * GIB,
    }  # fmt: skip
    return Measured(state, **(known | figures))  # type: ignore[arg-type]


def group(*attempts: Measured, is_whole: bool = True, lead_s: int = 0, request: Request | None = None) -> Group:
    first = attempts[0]
    return Group(request or Request(first.cpus, 0, first.mem_bytes, first.time_s), attempts, is_whole, lead_s)


def new(found: Group, resource: Resource, rules: Rules = RULES) -> int | None:
    """What this resource becomes; None if it stays."""
    changes = [one for one in correct(found, rules) if isinstance(one, Change) and one.resource is resource]
    assert len(changes) <= 1
    return changes[0].new if changes else None


# ---- memory that was not enough ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("peak", "becomes"),
    [
        (4 * GIB, 6 * GIB),  # at the limit: × 1.5
        (int(4 * GIB * 0.95) + 1, 6 * GIB),  # as near as samples are
        (int(4 * GIB * 0.95) - MIB, 5 * GIB),  # below it: peak × 1.2, rounded up
        (int(3.5 * GIB), 5 * GIB),
        (3 * GIB, 6 * GIB),  # × 1.2 would be less than what was not enough
        (6 * GIB, 8 * GIB),  # sampled above the limit: peak × 1.2 is more than limit × 1.5
        (None, 6 * GIB),  # nobody measured: the limit alone is known
    ],
)
def test_memory_after_out_of_memory(peak: int | None, becomes: int) -> None:
    """At least peak × 1.2, or the old limit × 1.5 where the peak hit it."""
    assert new(group(ended("OUT_OF_MEMORY", mem_bytes=4 * GIB, peak_bytes=peak)), Resource.MEM) == becomes


def test_a_matrix_is_corrected_together() -> None:
    """One member that ran out is enough, and the highest need of all counts."""
    attempts = [ended(mem_bytes=4 * GIB, peak_bytes=GIB)] * 5 + [
        ended("OUT_OF_MEMORY", mem_bytes=4 * GIB, peak_bytes=4 * GIB)
    ]
    assert new(group(*attempts), Resource.MEM) == 6 * GIB
    grown = ended(mem_bytes=16 * GIB, peak_bytes=10 * GIB)
    assert new(group(*attempts, grown), Resource.MEM) == 12 * GIB


def test_the_words_do_not_move_attempts_to_another_limit() -> None:
    """Attempts with different limits did not all fail at the highest one."""
    low, high = (ended("OUT_OF_MEMORY", mem_bytes=size, peak_bytes=size) for size in (4 * GIB, 6 * GIB))
    (change,) = correct(group(low, high, request=Request(1, 0, 6 * GIB, HOUR)), RULES)
    assert change.why == "2 of 2 attempts ran out of memory at up to 6 GiB"
    (change,) = correct(group(low, low), RULES)
    assert change.why == "2 of 2 attempts ran out of memory at 4 GiB"


def test_a_request_that_has_grown_since_stays() -> None:
    """An attempt that failed with less than what is asked for now changes nothing."""
    old = ended("OUT_OF_MEMORY", mem_bytes=4 * GIB, peak_bytes=4 * GIB)
    assert new(group(old, request=Request(1, 0, 6 * GIB, HOUR)), Resource.MEM) is None
    assert grow(group(old, request=Request(1, 0, 6 * GIB, HOUR)), Rules(mem_ceiling_bytes=GIB)) == ()


def test_out_of_memory_without_a_limit() -> None:
    """Its peak is asked for from now on; without a peak there is nothing to go by, and it is said."""
    assert new(group(ended("OUT_OF_MEMORY", mem_bytes=None, peak_bytes=10 * GIB)), Resource.MEM) == 12 * GIB
    (blocked,) = grow(group(ended("OUT_OF_MEMORY", mem_bytes=None, peak_bytes=None)), RULES)
    assert isinstance(blocked, Blocked)


@pytest.mark.parametrize(("ceiling", "becomes"), [(6 * GIB, 6 * GIB), (5 * GIB, 5 * GIB), (6 * GIB - 1, 6 * GIB - 1)])
def test_a_ceiling_cuts(ceiling: int, becomes: int) -> None:
    """More than was not enough, and no more than may be asked for."""
    one = group(ended("OUT_OF_MEMORY", mem_bytes=4 * GIB, peak_bytes=4 * GIB))
    assert new(one, Resource.MEM, Rules(mem_ceiling_bytes=ceiling)) == becomes


@pytest.mark.parametrize("ceiling", [4 * GIB, 2 * GIB])
def test_a_ceiling_that_was_reached_blocks(ceiling: int) -> None:
    """Another attempt with what was not enough would fail again."""
    one = group(ended("OUT_OF_MEMORY", mem_bytes=4 * GIB, peak_bytes=4 * GIB))
    (blocked,) = grow(one, Rules(mem_ceiling_bytes=ceiling))
    assert isinstance(blocked, Blocked)
    assert "4 GiB" in blocked.why


# ---- time that was not enough -----------------------------------------------------------------------


@pytest.mark.parametrize(("limit", "becomes"), [(HOUR, 84 * MINUTE), (10 * MINUTE, 14 * MINUTE), (2, MINUTE)])
def test_time_after_timeout(limit: int, becomes: int) -> None:
    """× 1.4, in whole minutes."""
    assert new(group(ended("TIMEOUT", time_s=limit, elapsed_s=limit + 1)), Resource.TIME) == becomes


def test_time_is_enough_for_who_took_longer_and_completed() -> None:
    """A member that completed with a longer limit says what is needed."""
    late, long = ended("TIMEOUT", time_s=10 * MINUTE), ended(time_s=HOUR, elapsed_s=30.0 * MINUTE)
    assert new(group(late, long), Resource.TIME) == 42 * MINUTE


@pytest.mark.parametrize("state", ["OUT_OF_MEMORY", "TIMEOUT"])
def test_a_limit_that_is_gone_since_is_not_set_again(state: str) -> None:
    """Somebody has taken it away: there is nothing to raise."""
    assert grow(group(ended(state), request=Request(1, 0, None, None)), RULES) == ()


@pytest.mark.parametrize(("ceiling", "becomes"), [(HOUR + 1, HOUR + 1), (HOUR, None)])
def test_a_ceiling_of_time(ceiling: int, becomes: int | None) -> None:
    """As that of memory."""
    assert new(group(ended("TIMEOUT")), Resource.TIME, Rules(time_ceiling_s=ceiling)) == becomes


# ---- cpus -----------------------------------------------------------------------------------------


def test_a_deadline_asks_for_no_more_time() -> None:
    """The job was ended within its own limit, which says nothing of how long it takes."""
    assert new(group(ended("TIMEOUT")), Resource.TIME) is not None
    assert new(group(ended("TIMEOUT", is_past_deadline=True)), Resource.TIME) is None
    assert time_mark(ended("TIMEOUT"), RULES) is Mark.OVER
    assert time_mark(ended("TIMEOUT", is_past_deadline=True), RULES) is Mark.FINE


@pytest.mark.parametrize(
    ("busy", "becomes"),
    [(2.0, None), (2.2, None), (2.21, 3), (3.0, 3), (3.01, 4)],
)
def test_over_used_cpus_go_up(busy: float, becomes: int | None) -> None:
    """More than 1.1 times what was asked for is over-use; what was busy, rounded up, is asked for."""
    one = ended(cpus=2, elapsed_s=1000.0, cpu_s=busy * 1000)
    assert new(group(one, is_whole=False), Resource.CPUS) == becomes


@pytest.mark.parametrize(("elapsed", "becomes"), [(9.99, None), (10.0, 3), (11.0, 3)])
def test_a_short_attempt_says_nothing_about_cpus(elapsed: float, becomes: int | None) -> None:
    """Under ten seconds start-up counts too much."""
    assert new(group(ended(elapsed_s=elapsed, cpu_s=elapsed * 3), is_whole=False), Resource.CPUS) == becomes


# ---- less -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "becomes"),
    [
        (3 * GIB + 1, 2 * GIB),  # saves more than 1 GiB
        (3 * GIB, None),  # just 1 GiB
        (3 * GIB - 1, None),
        (100 * GIB, 2 * GIB),
        (None, None),
    ],
)
def test_memory_shrinks_when_it_is_worth_it(asked: int | None, becomes: int | None) -> None:
    """1.5 GiB × 1.2 is 2 GiB in whole units; the saving must be more than 1 GiB."""
    one = ended(mem_bytes=asked, peak_bytes=int(1.5 * GIB))
    assert new(group(one), Resource.MEM) == becomes


@pytest.mark.parametrize(
    ("asked", "becomes"),
    [(44 * MINUTE + 1, 14 * MINUTE), (44 * MINUTE, None), (44 * MINUTE - 1, None), (10 * HOUR, 14 * MINUTE)],
)
def test_time_shrinks_when_it_is_worth_it(asked: int, becomes: int | None) -> None:
    """10 min × 1.4 is 14 min; the saving must be more than 30 min."""
    assert new(group(ended(time_s=asked, elapsed_s=600.0)), Resource.TIME) == becomes


@pytest.mark.parametrize(("asked", "becomes"), [(2, None), (3, None), (4, 2), (64, 2)])
def test_cpus_shrink_when_it_is_worth_it(asked: int, becomes: int | None) -> None:
    """Two are busy; the saving must be more than one."""
    one = ended(cpus=asked, elapsed_s=100.0, cpu_s=200.0)
    assert new(group(one), Resource.CPUS) == becomes


@pytest.mark.parametrize(
    ("floor", "becomes"), [(2 * GIB - 1, 2 * GIB), (2 * GIB, 2 * GIB), (2 * GIB + 1, 2 * GIB + 1), (9 * GIB, None)]
)
def test_never_below_the_floor_of_memory(floor: int, becomes: int | None) -> None:
    """The floor counts where it is above the need; a floor near the request leaves nothing to save."""
    one = ended(mem_bytes=10 * GIB, peak_bytes=int(1.5 * GIB))
    assert new(group(one), Resource.MEM, Rules(mem_floor_bytes=floor)) == becomes


def test_never_below_the_floors_of_time_and_cpus() -> None:
    """Nor below twice the lead of a warning, which must come before the limit."""
    one = group(ended(cpus=8, time_s=10 * HOUR, elapsed_s=60.0, cpu_s=60.0))
    assert new(one, Resource.TIME) == RULES.time_floor_s
    assert new(one, Resource.CPUS, Rules(cpu_floor=4)) == 4
    warned = group(ended(time_s=10 * HOUR, elapsed_s=60.0), lead_s=900)
    assert new(warned, Resource.TIME) == 1800


@pytest.mark.parametrize("state", sorted(set(State) - {State.COMPLETED, State.OUT_OF_MEMORY, State.TIMEOUT}))
def test_another_failure_changes_nothing(state: str) -> None:
    """A member that failed by itself: nothing grows for it, and nothing shrinks."""
    idle = ended(mem_bytes=100 * GIB, peak_bytes=GIB, time_s=100 * HOUR, cpus=16)
    assert correct(group(idle, idle._replace(state=state)), RULES) == ()
    assert correct(group(ended(state, peak_bytes=8 * GIB, elapsed_s=float(HOUR), cpu_s=9.0 * HOUR)), RULES) == ()


def test_nothing_shrinks_with_a_member_missing() -> None:
    """A member that was skipped, goes on or has no attempt: the data is not complete."""
    idle = ended(mem_bytes=100 * GIB, peak_bytes=GIB)
    assert new(group(idle, is_whole=True), Resource.MEM) == 2 * GIB
    assert new(group(idle, is_whole=False), Resource.MEM) is None


@pytest.mark.parametrize(
    ("figure", "resource"),
    [("peak_bytes", Resource.MEM), ("elapsed_s", Resource.TIME), ("cpu_s", Resource.CPUS)],
)
def test_nothing_shrinks_with_a_figure_missing(figure: str, resource: Resource) -> None:
    """One member whose figure nobody measured might be the largest."""
    idle = ended(mem_bytes=100 * GIB, peak_bytes=GIB, time_s=100 * HOUR, cpus=16, cpu_s=1800.0)
    assert new(group(idle, idle), resource) is not None
    assert new(group(idle, idle._replace(**{figure: None})), resource) is None


def test_nothing_shrinks_where_an_attempt_failed_before() -> None:
    """A retry with more memory that completed does not make the first request too large."""
    tried = ended("OUT_OF_MEMORY", mem_bytes=4 * GIB, peak_bytes=4 * GIB, time_s=100 * HOUR)
    found = correct(group(tried, ended(mem_bytes=8 * GIB, peak_bytes=5 * GIB, time_s=100 * HOUR)), RULES)
    assert [(one.resource, one.new) for one in found if isinstance(one, Change)] == [(Resource.MEM, 6 * GIB)]


# ---- what always holds --------------------------------------------------------------------------------


measured = st.builds(
    Measured,
    state=st.sampled_from(["COMPLETED", "OUT_OF_MEMORY", "TIMEOUT", "FAILED", "CANCELLED", "NODE_FAIL"]),
    cpus=st.integers(1, 64),
    mem_bytes=st.none() | st.integers(MIB, 1024 * GIB),
    time_s=st.none() | st.integers(1, 100 * HOUR),
    elapsed_s=st.none() | st.floats(0, 1e6),
    cpu_s=st.none() | st.floats(0, 1e7),
    peak_bytes=st.none() | st.integers(0, 2048 * GIB),
)


@given(st.lists(measured, min_size=1, max_size=6), st.booleans())
def test_what_a_correction_may_do(attempts: list[Measured], is_whole: bool) -> None:
    """It grows only with a member that ran out, shrinks only when all completed, and is written exactly."""
    one = group(*attempts, is_whole=is_whole)
    states = {attempt.state for attempt in attempts}
    for change in correct(one, RULES):
        if isinstance(change, Blocked):
            continue
        assert change.new != change.old
        if change.old is not None and change.new < change.old:
            assert states == {"COMPLETED"}
            assert is_whole
        elif change.resource is Resource.MEM:
            assert "OUT_OF_MEMORY" in states
        elif change.resource is Resource.TIME:
            assert "TIMEOUT" in states
        text = value_text(change.resource, change.new)
        read = {Resource.MEM: parse_size, Resource.TIME: parse_time, Resource.CPUS: int}[change.resource]
        assert read(text) == change.new


@given(st.floats(1, 1e15))
def test_rounding_is_upwards_and_whole(amount: float) -> None:
    """Whole GiB above one, whole MiB below, whole minutes; never less than what is needed."""
    size = whole_memory(amount)
    assert size >= int(amount * 0.999999)
    assert size % (GIB if amount > GIB else MIB) == 0
    assert whole_time(amount) % MINUTE == 0


def test_memory_is_not_saved_by_the_largest_task_alone() -> None:
    """Accounting knows the peak of one task: all of them together may have had more. Time is saved all the same."""
    small = ended(peak_bytes=GIB, time_s=10 * HOUR)
    assert new(group(small), Resource.MEM) == 2 * GIB
    by_accounting = small._replace(is_peak_whole=False)
    assert new(group(small, by_accounting), Resource.MEM) is None
    assert new(group(by_accounting), Resource.TIME) is not None
    assert mem_mark(small, RULES) is Mark.UNDER
    assert mem_mark(by_accounting, RULES) is Mark.FINE
