"""The judge compares: what a record says was used with what was allowed, and who was really reached."""

from __future__ import annotations

import pytest

from aver.judge.local import judge
from aver.judge.step import JudgedTask, Task, TaskRules, judge_step, judge_task
from aver.model.evidence import Act, ActKind, MemoryWatch, Rules, Verdict, WitnessRecord, WitnessVanished
from aver.model.exit import ExitStatus
from aver.model.record import replace
from aver.model.states import State

MIB = 1 << 20
CLEAN = WitnessRecord("k", 2, ExitStatus(), 100.0, 41.0)
SAMPLED = replace(CLEAN, watch=MemoryWatch.SAMPLED, limit_bytes=60 * MIB)


def verdict_on(record: WitnessRecord, rules: Rules = Rules()) -> Verdict:
    verdict = judge([record], rules)
    assert verdict is not None
    return verdict


@pytest.mark.parametrize(
    ("peak", "maxrss", "said"),
    [
        (96 * MIB, None, "peak 96 MiB of 60 MiB"),
        (1 * MIB, 96 * MIB, "peak 96 MiB of its largest process of 60 MiB"),
        (None, 96 * MIB, "peak 96 MiB of its largest process of 60 MiB"),
    ],
)
@pytest.mark.parametrize("code", [0, 3])
def test_a_limit_that_was_not_enforced(peak: int | None, maxrss: int | None, said: str, code: int) -> None:
    """A job whose peak is over its limit and that ended by itself has a warning, whoever measured the peak."""
    record = replace(SAMPLED, peak_bytes=peak, maxrss_bytes=maxrss, exit=ExitStatus(code))
    verdict = verdict_on(record)
    warning = f"exceeded its memory limit: {said}; the limit could not be enforced here"
    assert (verdict.state, verdict.warnings) == (State.FAILED if code else State.COMPLETED, (warning,))


@pytest.mark.parametrize(
    "record",
    [
        replace(SAMPLED, peak_bytes=50 * MIB, maxrss_bytes=60 * MIB),
        replace(SAMPLED, watch=MemoryWatch.CGROUP1, peak_bytes=50 * MIB, maxrss_bytes=96 * MIB),  # mapped files
        replace(CLEAN, maxrss_bytes=96 * MIB),
    ],
)
def test_no_warning_where_the_limit_held(record: WitnessRecord) -> None:
    verdict = verdict_on(record)
    assert (verdict.state, verdict.warnings) == (State.COMPLETED, ())


def test_its_own_kill_for_memory_needs_no_warning() -> None:
    """Sampling that killed did enforce the limit."""
    killed = replace(SAMPLED, exit=ExitStatus(0, 9), peak_bytes=96 * MIB, acts=(Act(ActKind.MEMORY, 1.0, 9),))
    verdict = verdict_on(killed)
    assert (verdict.state, verdict.warnings) == (State.OUT_OF_MEMORY, ())


def test_elapsed_over_its_limit_is_a_timeout() -> None:
    """Whatever kept its witness from acting: the times in the record decide. Suspended time does not count."""
    assert verdict_on(replace(CLEAN, time_limit_s=40.0)).state is State.TIMEOUT
    assert verdict_on(replace(CLEAN, time_limit_s=40.0, suspended_s=2.0)).state is State.COMPLETED
    cancelled = replace(CLEAN, time_limit_s=40.0, acts=(Act(ActKind.CANCEL, 1.0, 15),))
    assert verdict_on(cancelled).state is State.CANCELLED


def test_kills_that_are_not_for_the_jobs_limit() -> None:
    """For the limit of a cgroup that the job made: a warning. By systemd-oomd: OUT_OF_MEMORY."""
    verdict = verdict_on(replace(CLEAN, inner_oom_kills=2))
    said = "the kernel killed 2 processes for the memory limit of a cgroup that the job itself made"
    assert (verdict.state, verdict.warnings) == (State.COMPLETED, (said,))
    killed = replace(CLEAN, exit=ExitStatus(0, 9), oomd_kills=3)
    assert verdict_on(killed).state is State.OUT_OF_MEMORY


AROUND = (
    "the kernel killed 1 process for memory around the job, which has no cgroup of its own: "
    "whether it was one of the job's is unknown"
)


@pytest.mark.parametrize(
    ("end", "state"), [(ExitStatus(), State.COMPLETED), (ExitStatus(3), State.FAILED), (ExitStatus(0, 9), State.FAILED)]
)
def test_kills_that_may_have_been_the_jobs_are_a_warning(end: ExitStatus, state: State) -> None:
    """Nobody knows whose they were: no cause, and on every surface."""
    verdict = verdict_on(replace(CLEAN, exit=end, around_oom_kills=1, host_oom_kills=1))
    assert (verdict.state, verdict.warnings, "elsewhere" in verdict.detail) == (state, (AROUND,), False)


def test_kills_in_no_cgroup_of_the_jobs_were_elsewhere() -> None:
    verdict = verdict_on(replace(CLEAN, exit=ExitStatus(0, 9), host_oom_kills=1))
    assert (verdict.state, verdict.warnings, "elsewhere" in verdict.detail) == (State.FAILED, (), True)


def test_what_could_not_be_ended_is_said() -> None:
    verdict = verdict_on(replace(CLEAN, stays=1))
    assert verdict.warnings == ("1 process of it could not be ended and may still run",)
    vanished = judge([WitnessVanished(1.0, 7, 0, 2)], Rules())
    assert vanished is not None
    assert vanished.warnings == ("2 processes of it could not be ended and may still run",)
    task = judge_task([replace(CLEAN, stays=1)], TaskRules())
    assert task is not None
    step = judge_step([JudgedTask(Task(3, ExitStatus()), task)], is_open=False)
    assert step.verdict.warnings == ("task 3: 1 process of it could not be ended and may still run",)


@pytest.mark.parametrize(
    ("reached", "state"), [(0, State.COMPLETED), (1, State.CHECKPOINTED), (None, State.CHECKPOINTED)]
)
def test_a_warning_that_nobody_got_makes_no_checkpoint(reached: int | None, state: State) -> None:
    """Finished work is not to be continued: no process was there to hear the warning."""
    record = replace(CLEAN, acts=(Act(ActKind.WARN, 1.0, 15, reached=reached),))
    assert verdict_on(record, Rules(checkpoint_codes=(0,))).state is state


def test_the_highest_known_peak_counts() -> None:
    """All sources count, and it is said whose it is."""
    assert replace(CLEAN, peak_bytes=5, maxrss_bytes=900).highest == (900, True)
    assert replace(CLEAN, peak_bytes=901, maxrss_bytes=900).highest == (901, False)
    assert replace(CLEAN, peak_bytes=None, maxrss_bytes=0).highest is None


@pytest.mark.parametrize(("code", "state"), [(0, State.FAILED), (3, State.FAILED)])
def test_a_limit_that_was_not_enforced_fails_where_the_settings_say_so(code: int, state: State) -> None:
    """`memory_overrun: fail`; whatever failed by itself keeps its own reason."""
    record = replace(SAMPLED, peak_bytes=96 * MIB, exit=ExitStatus(code))
    verdict = verdict_on(record, Rules(overrun_fails=True))
    said = "exceeded its memory limit: peak 96 MiB of 60 MiB; the limit could not be enforced here"
    assert verdict.state is state
    if code == 0:
        assert (verdict.reason, verdict.detail, verdict.warnings) == ("MemoryOverrun", said, ())
    else:
        assert (verdict.reason, verdict.warnings) == ("NonZeroExitCode", (said,))


def test_the_machines_own_memory_was_used_up() -> None:
    """Killed by the kernel, and not for a limit of the job: OUT_OF_MEMORY, told as such."""
    killed = replace(CLEAN, exit=ExitStatus(0, 9), limit_bytes=600 * MIB, oom_kills=1, beyond_oom_kills=1)
    verdict = verdict_on(replace(killed, watch=MemoryWatch.CGROUP2))
    assert (verdict.state, "no limit of the job was reached" in verdict.detail) == (State.OUT_OF_MEMORY, True)


def test_systemd_oomd_killed_the_witness_too() -> None:
    """A job without a limit is in its witness's cgroup: the mark on that says who ended both."""
    verdict = judge([WitnessVanished(1.0, 7, oomd_kills=2)], Rules())
    assert verdict is not None
    assert (verdict.state, verdict.exit, verdict.verified) == (State.OUT_OF_MEMORY, None, True)
    assert verdict.detail.startswith("systemd-oomd ended all processes in its cgroup, its witness (pid 7) among them")


def test_processes_that_it_could_not_start() -> None:
    verdict = verdict_on(replace(CLEAN, refused_forks=3))
    said = "could not start a process 3 times: it had as many as max_processes of the settings allows"
    assert verdict.warnings == (said,)
