"""The planner: events in, instructions out."""

from __future__ import annotations

import pytest

from aver.model.job import Argv, Condition, FlowSpec, JobSpec, Matrix, Need, Needs, Outcome
from aver.model.reasons import counts_as_success
from aver.model.states import SETTLED, State
from aver.plan.planner import Cancel, Instruction, Plan, RunCancel, Skip, Start, Unskip

COMPLETED, FAILED, CANCELLED, SKIPPED = State.COMPLETED, State.FAILED, State.CANCELLED, State.SKIPPED


def job(
    name: str,
    *needs: str | Need,
    any_of: tuple[tuple[Need, ...], ...] = (),
    condition: Condition = Condition.NEEDS,
    members: int | None = None,
    background: bool = False,
) -> JobSpec:
    all_of = tuple(Need(need) if isinstance(need, str) else need for need in needs)
    matrix = None if members is None else Matrix((("seed", tuple(str(n) for n in range(members))),))
    return JobSpec(
        name,
        Argv(("true",)),
        needs=Needs(all_of, any_of),
        condition=condition,
        matrix=matrix,
        background=background,
    )


def flow(*jobs: JobSpec) -> FlowSpec:
    return FlowSpec("flow", jobs)


def begun(*jobs: JobSpec) -> Plan:
    plan = Plan(flow(*jobs))
    plan.begin()
    return plan


def skip(number: int, reason: str) -> tuple[int, str]:
    return number, reason


def skips(told: list[Instruction]) -> list[tuple[int, str]]:
    return [(one.job, one.reason) for one in told if isinstance(one, Skip)]


def test_a_job_without_needs_starts_at_once_and_a_dependent_when_its_need_is_completed() -> None:
    """Start is given at the moment when the needs are settled as required, and once."""
    plan = Plan(flow(job("a"), job("b", "a")))
    assert plan.begin() == [Start(0)]
    assert plan.waits_for(1) == ["a"]
    assert plan.settle(0, COMPLETED) == [Start(1)]
    assert plan.waits_for(1) == []
    assert plan.settle(1, COMPLETED) == []
    assert plan.run_state() is COMPLETED


def test_no_waves_a_fast_chain_does_not_wait_behind_a_slow_sibling() -> None:
    """daft's wave loop held fast chains up behind slow ones; here a chain goes on while its sibling still runs."""
    plan = begun(job("slow"), job("fast"), job("next", "fast"), job("last", "next"))
    assert plan.settle(1, COMPLETED) == [Start(2)]
    assert plan.settle(2, COMPLETED) == [Start(3)]
    assert plan.state(0) is None


def test_daft_bg_dependent_waits_for_dep_to_finish() -> None:
    """Needs between background jobs are honoured."""
    plan = Plan(flow(job("a", background=True), job("b", "a", background=True)))
    assert plan.begin() == [Start(0)]
    assert plan.settle(0, COMPLETED) == [Start(1)]


def test_daft_bg_dependent_skipped_when_dep_fails() -> None:
    """A background job whose need failed never starts, is SKIPPED, and names the need."""
    plan = begun(job("a", background=True), job("b", "a", background=True))
    told = plan.settle(0, FAILED)
    assert told == [Skip(1, "NeedFailed:a(FAILED)", "a, which it needs, is FAILED")]
    assert plan.state(1) is SKIPPED


def test_daft_bg_dependent_skipped_when_dep_cancelled() -> None:
    """Cancelling one job skips its dependents; its siblings go on."""
    plan = begun(job("a", background=True), job("b", "a", background=True), job("sibling", background=True))
    assert skips(plan.settle(0, CANCELLED)) == [skip(1, "NeedFailed:a(CANCELLED)")]
    assert plan.state(2) is None


def test_daft_skip_cascades_through_the_whole_chain_and_skipped_jobs_stay_visible() -> None:
    """Each job below has a state of its own, SKIPPED, and the job just above it as the cause: none is absent."""
    plan = begun(job("a"), job("b", "a"), job("c", "b"), job("d", "c"))
    assert skips(plan.settle(0, State.OUT_OF_MEMORY)) == [
        skip(1, "NeedFailed:a(OUT_OF_MEMORY)"),
        skip(2, "NeedSkipped:b(SKIPPED)"),
        skip(3, "NeedSkipped:c(SKIPPED)"),
    ]
    assert [plan.state(number) for number in range(4)] == [State.OUT_OF_MEMORY, SKIPPED, SKIPPED, SKIPPED]
    assert plan.is_settled
    assert plan.run_state() is State.OUT_OF_MEMORY


def test_daft_bg_cycle_in_needs_returns_error() -> None:
    """A cycle is an error with its path, not jobs that all start."""
    with pytest.raises(ValueError, match="a -> b -> a"):
        Plan(flow(job("a", "b", background=True), job("b", "a", background=True)))


def test_daft_bg_missing_dep_in_needs_returns_error() -> None:
    """A need that no job has as its name is an error, not a job that starts."""
    with pytest.raises(ValueError, match='job "b" needs "nobody", but this flow has no such job'):
        Plan(flow(job("b", "nobody", background=True)))


def test_daft_cancelling_a_run_leaves_no_pending_job_skipped() -> None:
    """daft called such jobs Skipped; here what had not started is CANCELLED, through the whole chain."""
    plan = begun(job("a"), job("b", "a"), job("c", "b"))
    assert plan.cancel_run(RunCancel.FINISHERS_RUN) == [Cancel(1), Cancel(2)]
    assert plan.cancel_run(RunCancel.FINISHERS_RUN) == []
    assert plan.settle(0, CANCELLED) == []
    assert plan.run_state() is CANCELLED


@pytest.mark.parametrize("state", sorted(State, key=str))
def test_scripthut_nothing_but_a_settled_verdict_releases_dependents(state: State) -> None:
    """SETTLING (and any other unsettled state) is not done: it can't be told to the plan, and releases nothing."""
    plan = begun(job("a"), job("b", "a"))
    if state in SETTLED and state is not SKIPPED:
        plan.settle(0, state)
        assert plan.settled_count == (1 if state is COMPLETED else 2)
    else:
        with pytest.raises(ValueError, match="settled"):
            plan.settle(0, state)
        assert plan.settled_count == 0


def test_scripthut_a_settling_job_is_neither_started_again_nor_done_after_a_restart() -> None:
    """A job that is SETTLING in the store holds its dependents, and the run is not settled."""
    plan = Plan(flow(job("a"), job("b", "a")))
    assert plan.restore([State.SETTLING, None]) == []
    assert plan.is_started(0)
    assert plan.settled_count == 0
    assert plan.run_state() is None
    assert plan.settle(0, COMPLETED) == [Start(1)]


@pytest.mark.parametrize("state", sorted(SETTLED - {COMPLETED, SKIPPED}, key=str))
def test_every_end_but_completed_skips_a_success_edge(state: State) -> None:
    """UNVERIFIED and CHECKPOINTED are no success either; UNVERIFIED has a word of its own."""
    plan = begun(job("a"), job("b", "a"))
    word = "NeedUnverified" if state is State.UNVERIFIED else "NeedFailed"
    assert skips(plan.settle(0, state)) == [skip(1, f"{word}:a({state})")]


def test_a_group_is_met_when_all_members_are_completed() -> None:
    """A need on a matrix waits for all its members."""
    plan = begun(job("train", members=3), job("eval", "train"))
    assert plan.settle(2, COMPLETED) == []
    assert plan.settle(0, COMPLETED) == []
    assert plan.settle(1, COMPLETED) == [Start(3)]


def test_a_group_skips_its_dependents_as_soon_as_one_member_fails_and_names_it() -> None:
    """The first member that ended otherwise is the cause; later ones change nothing."""
    plan = begun(job("train", members=3), job("eval", "train"))
    assert skips(plan.settle(2, State.OUT_OF_MEMORY)) == [skip(3, "NeedFailed:train[seed=2](OUT_OF_MEMORY)")]
    assert plan.settle(0, FAILED) == []


def test_addresses_and_globs_are_needs() -> None:
    """An address is one member; a glob is all that fit."""
    plan = begun(
        job("train", members=3), job("one", "train[seed=2]"), job("all", "train[seed=*]"), job("both", "tr*", "o*")
    )
    assert plan.settle(2, COMPLETED) == [Start(3)]
    plan.settle(0, COMPLETED)
    assert plan.settle(1, COMPLETED) == [Start(4)]
    assert plan.settle(3, COMPLETED) == [Start(5)]


def test_an_any_edge_runs_however_its_need_ended() -> None:
    """`needs: {a: any}` takes failure, cancellation and a skip alike."""
    plan = begun(job("a"), job("b", "a"), job("c", Need("b", Outcome.ANY)))
    assert [type(one) for one in plan.settle(0, FAILED)] == [Skip, Start]


def test_a_failure_edge_runs_as_soon_as_one_member_failed() -> None:
    """It does not wait for the other members."""
    plan = begun(job("train", members=3), job("mend", Need("train", Outcome.FAILURE)))
    assert plan.settle(1, State.TIMEOUT) == [Start(3)]


def test_a_failure_edge_of_a_need_that_succeeded_is_a_skip_that_counts_as_success() -> None:
    """The condition simply did not apply."""
    plan = begun(job("a"), job("mend", Need("a", Outcome.FAILURE)))
    told = plan.settle(0, COMPLETED)
    assert skips(told) == [skip(1, "NeedSucceeded:a(COMPLETED)")]
    assert isinstance(told[0], Skip)
    assert counts_as_success(told[0].reason)
    assert plan.run_state() is COMPLETED


@pytest.mark.parametrize("state", [CANCELLED, State.UNVERIFIED])
def test_cancelled_and_unverified_are_no_failure(state: State) -> None:
    """A failure edge does not run for what a person ended, nor for what nobody knows."""
    plan = begun(job("a"), job("mend", Need("a", Outcome.FAILURE)))
    told = plan.settle(0, state)
    assert isinstance(told[0], Skip)
    assert not counts_as_success(told[0].reason)


def test_a_list_of_states_is_exact() -> None:
    """All members must end in one of the listed states."""
    states = (COMPLETED, State.TIMEOUT)
    plan = begun(job("a", members=2), job("b", Need("a", states=states)))
    assert plan.settle(0, State.TIMEOUT) == []
    assert plan.settle(1, COMPLETED) == [Start(2)]
    plan = begun(job("a", members=2), job("b", Need("a", states=states)))
    assert skips(plan.settle(0, FAILED)) == [skip(2, "NeedFailed:a[seed=0](FAILED)")]


def test_any_of_runs_with_the_first_and_is_skipped_with_the_last() -> None:
    """One of the group is enough; only when none can be met is the job skipped."""
    group = ((Need("a"), Need("b")),)
    plan = begun(job("a"), job("b"), job("c", any_of=group))
    assert plan.settle(0, FAILED) == []
    assert plan.settle(1, COMPLETED) == [Start(2)]
    plan = begun(job("a"), job("b"), job("c", any_of=group))
    assert plan.settle(1, FAILED) == []
    assert skips(plan.settle(0, State.TIMEOUT)) == [skip(2, "NeedFailed:a(TIMEOUT)")]


def test_a_finisher_runs_when_all_its_needs_are_settled_however_they_ended() -> None:
    """`if: always` waits for every need, also after the first has failed."""
    plan = begun(job("a"), job("b"), job("report", "a", "b", condition=Condition.ALWAYS))
    assert plan.settle(0, FAILED) == []
    assert plan.settle(1, CANCELLED) == [Start(2)]


def test_if_failure_runs_after_a_failure_above_skipped_needs() -> None:
    """What failed may be above a need that was skipped for it."""
    plan = begun(job("a"), job("b", "a"), job("c", "b"), job("mend", "c", condition=Condition.FAILURE))
    assert plan.settle(0, FAILED)[-1] == Start(3)


def test_if_failure_waits_for_what_is_above_an_early_skip() -> None:
    """A need may be skipped for a cancelled job while another one above it still runs, and may yet fail."""
    jobs = (job("a"), job("b"), job("c", "a", "b"), job("mend", "c", condition=Condition.FAILURE))
    plan = begun(*jobs)
    assert skips(plan.settle(0, CANCELLED)) == [skip(2, "NeedFailed:a(CANCELLED)")]
    assert plan.state(3) is None
    assert plan.settle(1, FAILED) == [Start(3)]
    plan = begun(*jobs)
    plan.settle(0, CANCELLED)
    assert skips(plan.settle(1, COMPLETED)) == [skip(3, "ConditionNotMet")]


def test_if_failure_is_skipped_as_success_when_nothing_failed() -> None:
    """Its dependents are skipped too, as in GitHub Actions, and the run is COMPLETED."""
    plan = begun(job("a"), job("mend", "a", condition=Condition.FAILURE), job("after", "mend"))
    told = plan.settle(0, COMPLETED)
    assert skips(told) == [skip(1, "ConditionNotMet"), skip(2, "NeedSkipped:mend(SKIPPED)")]
    assert plan.run_state() is COMPLETED


def test_finishers_run_after_a_cancelled_run_unless_now() -> None:
    """They start when what still runs has ended; `cancel --now` cancels them too."""
    jobs = (job("a"), job("b", "a"), job("report", "b", "a", condition=Condition.ALWAYS))
    plan = begun(*jobs)
    assert plan.cancel_run(RunCancel.FINISHERS_RUN) == [Cancel(1)]
    assert plan.settle(0, CANCELLED) == [Start(2)]
    plan = begun(*jobs)
    assert plan.cancel_run(RunCancel.NOW) == [Cancel(1), Cancel(2)]
    plan = begun(*jobs)
    plan.cancel_run(RunCancel.FINISHERS_RUN)
    assert plan.cancel_run(RunCancel.NOW) == [Cancel(2)]


def test_cancelling_a_pending_job_never_starts_it_and_twice_is_harmless() -> None:
    """It is CANCELLED, its dependents are skipped, and its needs change nothing afterwards."""
    plan = begun(job("a"), job("b", "a"), job("c", "b"))
    told = plan.cancel(1)
    assert told[0] == Cancel(1)
    assert skips(told) == [skip(2, "NeedFailed:b(CANCELLED)")]
    assert plan.cancel(1) == []
    assert plan.settle(0, COMPLETED) == []


def test_a_corrected_verdict_brings_skipped_dependents_back() -> None:
    """Late evidence or `accept` makes UNVERIFIED COMPLETED: what was skipped waits again, and the first may start."""
    plan = begun(job("a"), job("b", "a"), job("c", "b"))
    plan.settle(0, State.UNVERIFIED)
    assert plan.settle(0, COMPLETED) == [Unskip(1), Unskip(2), Start(1)]
    assert plan.settle(0, COMPLETED) == []


def test_a_verdict_corrected_to_another_failure_renames_the_cause_only() -> None:
    """What was skipped stays so with the new verdict in its reason; what names a skipped job is not told again."""
    plan = begun(job("a"), job("b", "a"), job("c", "b"))
    plan.settle(0, FAILED)
    assert skips(plan.settle(0, State.OUT_OF_MEMORY)) == [skip(1, "NeedFailed:a(OUT_OF_MEMORY)")]
    assert plan.state(2) is SKIPPED


def test_a_dependent_stays_skipped_while_another_need_is_the_cause() -> None:
    """Only the last cause that goes brings it back; when the named one goes, the reason names the other."""
    plan = begun(job("a"), job("b"), job("c", "a", "b"))
    plan.settle(0, FAILED)
    plan.settle(1, State.TIMEOUT)
    assert skips(plan.settle(0, COMPLETED)) == [skip(2, "NeedFailed:b(TIMEOUT)")]
    assert plan.settle(1, COMPLETED) == [Unskip(2), Start(2)]


def test_a_reopened_job_starts_again_and_its_skipped_dependents_wait_for_it() -> None:
    """`aver retry`: the chain below comes back, and runs on when the retry succeeds."""
    plan = begun(job("a"), job("b", "a"), job("c", "b"))
    plan.settle(0, FAILED)
    assert plan.reopen_all([0]) == [Unskip(1), Unskip(2), Start(0)]
    assert plan.settled_count == 0
    assert plan.settle(0, COMPLETED) == [Start(1)]


def test_jobs_reopened_together_wait_for_each_other() -> None:
    """`aver reinit`: a job and all below it; only the top starts."""
    plan = begun(job("a"), job("b", "a"), job("c", "b"))
    for number in range(3):
        plan.settle(number, COMPLETED)
    assert plan.below(0) == [1, 2]
    assert plan.reopen_all([2, 1, 0]) == [Start(0)]
    assert plan.settle(0, COMPLETED) == [Start(1)]


def test_a_skipped_job_that_is_reopened_without_its_need_is_skipped_again() -> None:
    """It is said again, since its caller has called it PENDING meanwhile."""
    plan = begun(job("a"), job("b", "a"))
    plan.settle(0, FAILED)
    assert skips(plan.reopen_all([1])) == [skip(1, "NeedFailed:a(FAILED)")]


def test_a_cancel_after_cancel_now_takes_nothing_back() -> None:
    """Whatever is generated later is cancelled too, finishers as well."""
    plan = begun(job("a"))
    plan.cancel_run(RunCancel.NOW)
    plan.cancel_run(RunCancel.FINISHERS_RUN)
    assert plan.add(flow(job("z", condition=Condition.ALWAYS))) == [Cancel(1)]


def test_reopening_ends_the_cancellation_of_a_run() -> None:
    """A cancelled run can be continued."""
    plan = begun(job("a"), job("b", "a"))
    plan.cancel_run(RunCancel.FINISHERS_RUN)
    plan.settle(0, CANCELLED)
    assert plan.reopen_all([0, 1]) == [Start(0)]
    assert plan.settle(0, COMPLETED) == [Start(1)]


def test_foreground_is_settled_while_background_goes_on() -> None:
    """`background: true` holds nobody up; the run is settled only with it."""
    plan = begun(job("a"), job("page", "a", background=True))
    plan.settle(0, COMPLETED)
    assert plan.is_foreground_settled
    assert not plan.is_settled
    assert plan.promoted == frozenset()


def test_a_background_job_that_a_foreground_job_needs_is_promoted() -> None:
    """Also through other background jobs, and it counts as foreground."""
    plan = begun(job("x", background=True), job("y", "x", background=True), job("z", "y"), job("w", background=True))
    assert plan.promoted == {"x", "y"}
    assert plan.is_foreground(0)
    assert not plan.is_foreground(3)
    plan.settle(3, COMPLETED)
    assert not plan.is_foreground_settled


def test_generated_jobs_may_need_any_job_and_start_at_once() -> None:
    """They are numbered on; needs that are settled already count."""
    plan = begun(job("a"), job("gen"))
    plan.settle(0, COMPLETED)
    told = plan.add(flow(job("more", "a", members=2), job("last", "more", "gen")))
    assert told == [Start(2), Start(3)]
    assert [plan.name(number) for number in range(2, 5)] == ["more[seed=0]", "more[seed=1]", "last"]
    plan.settle(2, COMPLETED)
    plan.settle(3, COMPLETED)
    assert plan.settle(1, COMPLETED) == [Start(4)]


def test_generated_jobs_below_a_failure_are_skipped_at_once() -> None:
    """A failed need is as certain for a job that comes later."""
    plan = begun(job("a"), job("gen"))
    plan.settle(0, FAILED)
    told = plan.add(flow(job("b", "a"), job("mend", "b", condition=Condition.FAILURE)))
    assert skips(told) == [skip(2, "NeedFailed:a(FAILED)")]
    assert told[-1] == Start(3)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (flow(job("fine"), job("a")), 'duplicate job name "a"'),
        (flow(job("fine"), job("x", "nobody")), 'job "x" needs "nobody"'),
        (flow(job("fine"), job("x", "y"), job("y", "x")), "x -> y -> x"),
        (flow(job("fine"), job("x", "x")), 'job "x" needs itself'),
    ],
)
def test_a_wrong_batch_of_generated_jobs_changes_nothing(more: FlowSpec, words: str) -> None:
    """All or nothing: the plan is as it was, and the right batch can still be added."""
    plan = begun(job("a"))
    with pytest.raises(ValueError, match=words):
        plan.add(more)
    assert plan.count == 1
    assert plan.add(flow(job("fine", "a"))) == []
    assert plan.settle(0, COMPLETED) == [Start(1)]


def test_restore_gives_what_is_outstanding() -> None:
    """Start again for what is PENDING with its needs met, Skip that was never stored, nothing for what runs."""
    plan = Plan(flow(job("a"), job("b", "a"), job("c", "a"), job("d"), job("e", "d"), job("f", "e")))
    told = plan.restore([COMPLETED, State.PENDING, State.RUNNING, FAILED, SKIPPED, State.PENDING])
    assert told == [Start(1), Skip(5, "NeedSkipped:e(SKIPPED)", "e, which it needs, is SKIPPED")]


def test_restore_brings_back_what_was_skipped_for_a_need_that_is_open_again() -> None:
    """The crash came between the retry and the return of its dependents."""
    plan = Plan(flow(job("a"), job("b", "a")))
    assert plan.restore([State.PENDING, SKIPPED]) == [Unskip(1), Start(0)]


def test_restore_of_a_cancelled_run_cancels_what_had_not_started() -> None:
    """Also when the crash came before the cancels were stored; finishers still run."""
    plan = Plan(flow(job("a"), job("b", "a"), job("report", "a", condition=Condition.ALWAYS)))
    assert plan.restore([CANCELLED, None, None], RunCancel.FINISHERS_RUN) == [Cancel(1), Start(2)]


def test_restore_is_for_new_plans_with_a_state_for_each_job() -> None:
    """Anything else is a mistake of the caller."""
    with pytest.raises(ValueError, match="1 states for 2 jobs"):
        Plan(flow(job("a"), job("b"))).restore([None])
    plan = begun(job("a"))
    with pytest.raises(ValueError, match="begun"):
        plan.restore([None])


def test_a_long_chain_of_skips_does_not_overflow() -> None:
    """Cascades are loops, not recursion."""
    plan = begun(job("j0"), *(job(f"j{n}", f"j{n - 1}") for n in range(1, 20_000)))
    assert len(plan.settle(0, FAILED)) == 19_999
    assert len(plan.settle(0, COMPLETED)) == 20_000
    assert plan.settled_count == 1


def test_a_barrier_is_one_count_per_job() -> None:
    """Of 1,000 x 1,000 needs, each settled job touches one counter of its need and one of its trouble."""
    plan = begun(job("a", members=1000), job("b", "a", members=1000), job("c", "b"))
    counted = 0
    for number in range(1000):
        told = plan.settle(number, COMPLETED)
        counted += len(told)
        assert bool(told) == (number == 999)
    assert counted == 1000
    assert len(plan._gates._good) <= 6  # counters: as many as needs that are written, not as pairs of jobs


def test_waits_for_names_needs_as_written_and_is_capped() -> None:
    """A matrix is named once, not member by member."""
    plan = begun(job("train", members=50), *(job(f"x{n}") for n in range(20)), job("end", "train", "x*", "x1"))
    assert plan.waits_for(70) == ["train", "x*", "x1"]
    assert plan.waits_for(70, cap=2) == ["train", "x*"]


def test_an_empty_flow_is_settled() -> None:
    """No job, nothing to do, COMPLETED."""
    plan = Plan(flow())
    assert plan.begin() == []
    assert plan.run_state() is COMPLETED


def test_a_skip_names_the_need_as_its_own_job_wrote_it() -> None:
    """Two texts that mean the same jobs share a counter, not a name."""
    by_glob, by_name = Need("train[seed=*]", Outcome.FAILURE), Need("train", Outcome.FAILURE)
    plan = begun(job("train", members=1), job("x", by_glob), job("y", by_name))
    assert plan.waits_for(2) == ["train"]
    assert skips(plan.settle(0, COMPLETED)) == [
        skip(1, "NeedSucceeded:train[seed=*](COMPLETED)"),
        skip(2, "NeedSucceeded:train(COMPLETED)"),
    ]


def test_when_the_named_member_is_corrected_the_reason_names_the_next_bad_one() -> None:
    """A reason never names a job that is COMPLETED by now."""
    plan = begun(job("train", members=3), job("eval", "train"))
    plan.settle(0, FAILED)
    plan.settle(2, State.TIMEOUT)
    assert skips(plan.settle(0, COMPLETED)) == [skip(3, "NeedFailed:train[seed=2](TIMEOUT)")]


def test_if_failure_forgets_a_failure_that_was_corrected() -> None:
    """A retry that succeeded is no failure."""
    plan = begun(job("a"), job("b"), job("mend", "a", "b", condition=Condition.FAILURE))
    plan.settle(0, FAILED)
    plan.reopen_all([0])
    plan.settle(0, COMPLETED)
    assert skips(plan.settle(1, COMPLETED)) == [skip(2, "ConditionNotMet")]
