"""When another attempt is due, with what, and when."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.model import reasons
from aver.model.evidence import Verdict
from aver.model.exit import ExitStatus
from aver.model.job import Argv, CheckpointRule, JobSpec, Request, RetryRule
from aver.model.record import replace
from aver.model.slurm_options import SlurmOptions
from aver.model.states import SETTLED, State
from aver.plan.retry import MIB, Again, AttemptSummary, Why, decide, requeues

REQUEST = Request(cpus=2, mem_bytes=100 * MIB, time_s=60)


def spec(
    retry: RetryRule | None = None, checkpoint: CheckpointRule | None = None, request: Request = REQUEST
) -> JobSpec:
    return JobSpec("train", Argv(("true",)), request=request, retry=retry, checkpoint=checkpoint)


def verdict(state: State, exit_status: ExitStatus | None = None, reason: str = "None") -> Verdict:
    return Verdict(state, exit_status, reason, True, "witness")


def ended(*states: State, request: Request = REQUEST) -> list[AttemptSummary]:
    return [AttemptSummary(number, request, verdict(state)) for number, state in enumerate(states, 1)]


@pytest.mark.parametrize("state", sorted(SETTLED, key=str))
def test_nothing_is_tried_again_without_a_rule(state: State) -> None:
    """Not even after a lost node or preemption."""
    assert decide(spec(), [], verdict(state), None) is None


@pytest.mark.parametrize("state", sorted(SETTLED - {State.COMPLETED}, key=str))
def test_a_listed_state_is_tried_again_up_to_max(state: State) -> None:
    """`max` counts further attempts: with 2 there are at most 3 in all."""
    job = spec(RetryRule(max=2, states=(state,)))
    assert decide(job, [], verdict(state), None) is not None
    assert decide(job, ended(state), verdict(state), None) is not None
    assert decide(job, ended(state, state), verdict(state), None) is None


def test_an_unlisted_state_is_not_tried_again() -> None:
    """The rule says on what."""
    assert decide(spec(RetryRule(max=2, states=(State.TIMEOUT,))), [], verdict(State.FAILED), None) is None


def test_a_job_whose_deadline_passed_while_it_ran_is_not_tried_again() -> None:
    """Another attempt would be past the deadline from its start. A time limit that passed is another matter."""
    job = spec(RetryRule(max=2, states=(State.TIMEOUT,), signals=(15,)))
    assert decide(job, [], verdict(State.TIMEOUT, ExitStatus(0, 15), reasons.DEADLINE), None) is None
    assert decide(job, [], verdict(State.TIMEOUT, ExitStatus(0, 15), reasons.TIME_LIMIT), None) is not None


def test_completed_is_never_tried_again() -> None:
    """Whatever the rule lists."""
    rule = RetryRule(max=2, states=(State.COMPLETED,), codes=(0,), reasons=("None",))
    assert decide(spec(rule), [], verdict(State.COMPLETED, ExitStatus()), None) is None


def test_a_signal_is_not_exit_0() -> None:
    """`exit:0` is for what ended with 0 and failed otherwise; what a signal ended has no code."""
    rule = RetryRule(max=1, codes=(0,))
    assert decide(spec(rule), [], verdict(State.FAILED, ExitStatus(0)), None) is not None
    assert decide(spec(rule), [], verdict(State.FAILED, ExitStatus(0, 9)), None) is None


@pytest.mark.parametrize(("asked", "again"), [(None, True), (True, True), (False, False)])
def test_a_batch_script_says_whether_it_is_tried_again_when_its_node_is_lost(asked: bool | None, again: bool) -> None:
    """--no-requeue holds on a cluster too; `requeue` of the job itself says more."""
    job = replace(spec(), slurm=SlurmOptions(requeue=asked))
    assert requeues(job, may_lose_nodes=True, by_default=False) is again
    assert requeues(replace(job, requeue=True), may_lose_nodes=True, by_default=False)
    assert not requeues(replace(job, requeue=False), may_lose_nodes=True, by_default=False)


def test_losses_on_a_cluster_use_up_no_retries() -> None:
    """A node that was lost is tried again by itself; the rule's attempts are still all there."""
    job = spec(RetryRule(max=1, states=(State.FAILED,)))
    lost = ended(State.NODE_FAIL, State.PREEMPTED)
    assert decide(job, lost, verdict(State.FAILED), None, is_requeued=True) is not None
    assert decide(job, [*lost, *ended(State.FAILED)], verdict(State.FAILED), None, is_requeued=True) is None


def test_an_exit_code_is_not_a_signal() -> None:
    """`exit 137` and SIGKILL, exit:9 and signal:9, are four different things."""
    by_code = spec(RetryRule(max=1, codes=(137, 9)))
    by_signal = spec(RetryRule(max=1, signals=(9,)))
    code, signal, nine = ExitStatus(code=137), ExitStatus(signal=9), ExitStatus(code=9)
    assert decide(by_code, [], verdict(State.FAILED, code), None) is not None
    assert decide(by_code, [], verdict(State.FAILED, signal), None) is None
    assert decide(by_signal, [], verdict(State.FAILED, signal), None) is not None
    assert decide(by_signal, [], verdict(State.FAILED, nine), None) is None


def test_an_unknown_exit_matches_no_code() -> None:
    """Unknown is None, never 0."""
    assert decide(spec(RetryRule(max=1, codes=(0,))), [], verdict(State.UNVERIFIED, None), None) is None


def test_a_reason_matches_whole_or_by_its_word() -> None:
    """`RaisedSignal` is any signal; `RaisedSignal:7(Bus_error)` is that one."""
    segv = verdict(State.FAILED, ExitStatus(signal=11), reasons.raised_signal(11))
    assert decide(spec(RetryRule(max=1, reasons=("RaisedSignal",))), [], segv, None) is not None
    assert decide(spec(RetryRule(max=1, reasons=(reasons.raised_signal(11),))), [], segv, None) is not None
    assert decide(spec(RetryRule(max=1, reasons=(reasons.raised_signal(7),))), [], segv, None) is None


def test_a_cancelled_job_is_tried_again_only_if_its_state_is_listed() -> None:
    """Not for its exit code, signal or reason: somebody wanted it to end."""
    cancelled = verdict(State.CANCELLED, ExitStatus(signal=15), "None")
    rule = RetryRule(max=3, states=(State.FAILED,), signals=(15,), reasons=("None",))
    assert decide(spec(rule), [], cancelled, None) is None
    assert decide(spec(RetryRule(max=3, states=(State.CANCELLED,))), [], cancelled, None) is not None


def test_the_budget_of_the_run_ends_retries() -> None:
    """With none left the job is settled; no budget is no limit."""
    job = spec(RetryRule(max=9, states=(State.FAILED,)))
    assert decide(job, [], verdict(State.FAILED), 1) is not None
    assert decide(job, [], verdict(State.FAILED), 0) is None


def test_memory_grows_after_out_of_memory_and_time_after_timeout() -> None:
    """Only what was too little grows."""
    job = spec(RetryRule(max=3, states=(State.OUT_OF_MEMORY, State.TIMEOUT, State.FAILED), grow_mem=2.0, grow_time=1.5))
    oom = decide(job, [], verdict(State.OUT_OF_MEMORY), None)
    assert oom == Again(Request(cpus=2, mem_bytes=200 * MIB, time_s=60), 0.0, Why.RETRY)
    timeout = decide(job, [], verdict(State.TIMEOUT), None)
    assert timeout == Again(Request(cpus=2, mem_bytes=100 * MIB, time_s=90), 0.0, Why.RETRY)
    failed = decide(job, [], verdict(State.FAILED), None)
    assert failed == Again(REQUEST, 0.0, Why.RETRY)


def test_growth_goes_on_from_the_last_attempt() -> None:
    """100, 200, 400 MiB; given, or worked out from the attempt before."""
    job = spec(RetryRule(max=3, states=(State.OUT_OF_MEMORY,), grow_mem=2.0))
    before = ended(State.OUT_OF_MEMORY)
    again = decide(job, before, verdict(State.OUT_OF_MEMORY), None)
    assert again is not None
    assert again.request.mem_bytes == 400 * MIB
    assert again == decide(job, before, verdict(State.OUT_OF_MEMORY), None, Request(2, 0, 200 * MIB, 60))


def test_growth_stops_at_the_ceiling_and_the_retries_go_on() -> None:
    """Up to `max`, with the ceiling; a request that was above it is not lowered."""
    rule = RetryRule(max=3, states=(State.OUT_OF_MEMORY,), grow_mem=2.0, mem_ceiling_bytes=150 * MIB)
    at_ceiling = Request(mem_bytes=150 * MIB)
    again = decide(spec(rule), ended(State.OUT_OF_MEMORY), verdict(State.OUT_OF_MEMORY), None, at_ceiling)
    assert again == Again(at_ceiling, 0.0, Why.RETRY)
    above = Request(mem_bytes=300 * MIB)
    assert decide(spec(rule), [], verdict(State.OUT_OF_MEMORY), None, above) == Again(above, 0.0, Why.RETRY)


@given(st.integers(1, 1 << 50), st.floats(1.0, 16.0))
def test_grown_memory_is_whole_mib_and_never_less(mem_bytes: int, factor: float) -> None:
    """Rounded up to what an engine can be asked for."""
    job = spec(RetryRule(max=1, states=(State.OUT_OF_MEMORY,), grow_mem=factor), request=Request(mem_bytes=mem_bytes))
    again = decide(job, [], verdict(State.OUT_OF_MEMORY), None)
    assert again is not None
    grown = again.request.mem_bytes
    assert grown is not None
    assert grown >= mem_bytes
    assert grown == mem_bytes or grown % MIB == 0


def test_growth_stops_at_what_the_machine_has() -> None:
    """A retry that no machine could ever hold would wait for ever."""
    job = spec(RetryRule(max=3, states=(State.OUT_OF_MEMORY,), grow_mem=4.0, mem_ceiling_bytes=900 * MIB))
    again = decide(job, [], verdict(State.OUT_OF_MEMORY), None, most_bytes=250 * MIB)
    assert again is not None
    assert again.request.mem_bytes == 250 * MIB
    again = decide(job, ended(State.OUT_OF_MEMORY), verdict(State.OUT_OF_MEMORY), None, again.request, False, 250 * MIB)
    assert again is not None
    assert again.request.mem_bytes == 250 * MIB


def test_no_limit_stays_no_limit() -> None:
    """None does not grow."""
    job = spec(RetryRule(max=1, states=(State.OUT_OF_MEMORY,), grow_mem=2.0), request=Request())
    assert decide(job, [], verdict(State.OUT_OF_MEMORY), None) == Again(Request(), 0.0, Why.RETRY)


def test_backoff_grows_with_each_retry_and_has_an_end() -> None:
    """30, 60, 120 s; never more than a day."""
    job = spec(RetryRule(max=5000, states=(State.FAILED,), backoff_s=30.0))
    delays = []
    for before in (0, 1, 2, 3000):
        again = decide(job, ended(*[State.FAILED] * before), verdict(State.FAILED), None)
        assert again is not None
        delays.append(again.delay_s)
    assert delays == [30.0, 60.0, 120.0, 86400.0]


def test_a_checkpoint_is_continued_at_once_and_uses_no_retry() -> None:
    """Three continuations later a failure still has all its retries, and the budget is untouched."""
    job = spec(RetryRule(max=1, states=(State.FAILED,), backoff_s=5.0), CheckpointRule(rounds=10))
    assert decide(job, [], verdict(State.CHECKPOINTED), 0) == Again(REQUEST, 0.0, Why.CHECKPOINT)
    history = ended(State.CHECKPOINTED, State.CHECKPOINTED, State.CHECKPOINTED)
    assert decide(job, history, verdict(State.FAILED), None) == Again(REQUEST, 5.0, Why.RETRY)
    assert decide(job, ended(State.CHECKPOINTED, State.FAILED), verdict(State.FAILED), None) is None


def test_a_checkpoint_is_settled_when_its_rounds_are_used_up() -> None:
    """CHECKPOINTED is then the job's own state, and retries in between do not count as rounds."""
    job = spec(RetryRule(max=5, states=(State.FAILED,)), CheckpointRule(rounds=2))
    history = ended(State.CHECKPOINTED, State.FAILED)
    assert decide(job, history, verdict(State.CHECKPOINTED), None) is not None
    history = ended(State.CHECKPOINTED, State.FAILED, State.CHECKPOINTED)
    assert decide(job, history, verdict(State.CHECKPOINTED), None) is None


def test_the_pending_reason_is_the_word_of_the_reasons() -> None:
    """One word, one meaning."""
    assert (str(Why.RETRY), str(Why.CHECKPOINT)) == (reasons.RETRY, reasons.CHECKPOINT)
