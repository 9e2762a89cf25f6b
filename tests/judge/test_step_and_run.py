"""From tasks to a run: the folds of OUTCOMES 4 and the exit statuses of OUTCOMES 5."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.judge.local import judge
from aver.judge.run import WORST_FIRST, exit_status_of, fold_run, return_code
from aver.judge.step import (
    JudgedTask,
    Lost,
    NotBegun,
    Running,
    Task,
    TaskEnd,
    as_own_step,
    fold_derived,
    fold_step,
    judge_step,
    step_raw,
    task_summary,
    with_step_warnings,
)
from aver.model import reasons
from aver.model.evidence import Act, ActKind, LaunchFailure, Rules, Verdict, WitnessRecord
from aver.model.exit import ExitStatus
from aver.model.reasons import CONDITION_NOT_MET, need_reason
from aver.model.states import SETTLED, UNSETTLED, State

EXITS = st.one_of(
    st.builds(ExitStatus, code=st.integers(0, 255)),
    st.builds(ExitStatus, signal=st.integers(1, 64), core=st.booleans()),
)


def code(number: int) -> ExitStatus:
    return ExitStatus(code=number)


def signal(number: int, core: bool = False) -> ExitStatus:
    return ExitStatus(signal=number, core=core)


def tasks(*ends: ExitStatus) -> list[Task]:
    return [Task(rank, end, ended_at=float(rank)) for rank, end in enumerate(ends)]


@pytest.mark.parametrize(
    ("ends", "step", "srun"),
    [
        ((code(0), code(1), code(2), code(3)), "3:0", 3),
        ((code(3), code(0), code(0), code(0)), "3:0", 3),
        ((code(5), code(0), code(9), code(1)), "9:0", 9),
        ((code(0), signal(11), code(9), code(0)), "0:11", 139),
        ((code(0), code(0)), "0:0", 0),
        ((signal(9), code(137)), "0:9", 137),
        ((signal(15), code(200)), "200:0", 200),
    ],
)
def test_step_exit(ends: tuple[ExitStatus, ...], step: str, srun: int) -> None:
    """The task with the highest shell code gives the step's exit, whichever task it is: no failure is lost."""
    folded = fold_step(tasks(*ends))
    assert (str(folded.exit), folded.srun_code) == (step, srun)


def test_kill_on_bad_exit() -> None:
    """Tasks ended because another failed are left out, the first failure is named, and srun still exits 143."""
    ended = [Task(rank, signal(15), 2.0, because_of_another=True) for rank in (0, 2, 3)]
    folded = fold_step([*ended, Task(1, code(3), 1.0)])
    assert (str(folded.exit), folded.first_failed, folded.srun_code) == ("3:0", 1, 143)


def test_the_first_failure_is_by_time() -> None:
    """The task that failed first in time is named; without times, the lowest rank."""
    assert fold_step([Task(0, code(1), 9.0), Task(1, code(2), 3.0), Task(2, code(0), 1.0)]).first_failed == 1
    assert fold_step([Task(5, code(1)), Task(4, code(2))]).first_failed == 4
    assert fold_step(tasks(code(0))).first_failed is None


@pytest.mark.parametrize(("errno", "srun"), [(2, 2), (13, 13)])
def test_launch_failure_of_a_step(errno: int, srun: int) -> None:
    """`srun /no/such/command` exits 2 and `srun /etc/passwd` 13, as Slurm's does."""
    folded = fold_step([Task(0, LaunchFailure("exec", errno, "/x"))])
    assert (str(folded.exit), folded.srun_code) == (f"{srun}:0", srun)


@pytest.mark.parametrize("end", [Running(), Lost()])
def test_an_unknown_task_is_not_zero(end: Running | Lost) -> None:
    """While a task runs, or if one is lost, the step has no exit; a failure is named all the same."""
    folded = fold_step([Task(0, code(3), 1.0), Task(1, end)])
    assert (folded.exit, folded.srun_code, folded.first_failed) == (None, None, 0)
    assert fold_step([]).exit is None


@given(st.lists(EXITS, min_size=1, max_size=6).flatmap(lambda ends: st.permutations(tasks(*ends))))
def test_a_step_does_not_depend_on_the_order_of_reports(shuffled: list[Task]) -> None:
    """Whoever reports first, the step ends the same, and a failure is never folded into success."""
    folded = fold_step(shuffled)
    assert folded == fold_step(sorted(shuffled, key=lambda task: task.rank))
    assert folded.exit is not None
    ends = [task.exit for task in shuffled if task.exit is not None]
    assert folded.exit.is_success == all(end.is_success for end in ends)
    assert folded.srun_code == max(end.shell_code for end in ends)


@pytest.mark.parametrize(
    ("steps", "derived"),
    [
        pytest.param([code(7), code(3), code(2)], "7:0", id="Spur: steps 7,3,2"),
        pytest.param([code(2), code(3), code(7)], "7:0", id="Spur: steps 2,3,7"),
        pytest.param([], "0:0", id="Spur: no srun, exit 6"),
        pytest.param([code(7), code(0)], "7:0", id="step 7, then true"),
        pytest.param([signal(15), code(0)], "0:15", id="step killed by TERM"),
        pytest.param([signal(9)], "0:9", id="step killed by KILL"),
        pytest.param([code(7), signal(11, core=True)], "7:0", id="exit 7, then SEGV"),
        pytest.param([signal(11, core=True), code(7)], "7:0", id="SEGV, then exit 7"),
        pytest.param([signal(11, core=True), signal(15)], "0:15", id="the core bit does not count"),
    ],
)
def test_derived(steps: list[ExitStatus], derived: str) -> None:
    """DerivedExitCode is the highest raw wait status of the steps, without the core bit."""
    raw = fold_derived(step_raw(step, State.FAILED) for step in steps)
    assert raw is not None
    assert str(ExitStatus.from_wait(raw)) == derived


def test_derived_of_a_step_out_of_memory() -> None:
    """A step that was out of memory counts as Slurm's 0:125; a code still beats it."""
    raw = step_raw(signal(9), State.OUT_OF_MEMORY)
    assert raw is not None
    assert (raw >> 8, raw & 0x7F) == (0, 125)
    assert fold_derived([raw, step_raw(code(1), State.FAILED)]) == 1 << 8
    assert fold_derived([raw, step_raw(signal(15), State.FAILED)]) == raw
    assert step_raw(None, State.OUT_OF_MEMORY) == raw


def test_derived_has_no_core_bit() -> None:
    """A raw wait status with a core dump counts as its signal: 7:0 is higher than every signal."""
    assert fold_derived([11 | 0x80]) == 11
    assert fold_derived([11 | 0x80, 15]) == 15


def test_derived_is_unknown_with_a_step_that_nobody_saw_end() -> None:
    """It may have been higher than all that are known: never 0, and never the others' maximum."""
    assert step_raw(None, State.UNVERIFIED) is None
    assert fold_derived([None]) is None
    assert fold_derived([7 << 8, None, 0]) is None


@given(st.lists(EXITS, max_size=8))
def test_derived_only_grows(steps: list[ExitStatus]) -> None:
    """Step by step it never falls, and it is what folding all at once gives, in any order."""
    so_far = 0
    for step in steps:
        grown = fold_derived([so_far, step_raw(step, State.COMPLETED)])
        assert grown >= so_far
        so_far = grown
    assert so_far == fold_derived(step_raw(step, State.COMPLETED) for step in reversed(steps))


def test_precedence_of_outcomes_2() -> None:
    """The worst is by the order that OUTCOMES 2 gives, and every failing state is in it."""
    order = (
        "OUT_OF_MEMORY FAILED DEADLINE NODE_FAIL BOOT_FAIL PREEMPTED TIMEOUT CANCELLED UNVERIFIED CHECKPOINTED".split()
    )
    assert [state.value for state in WORST_FIRST] == order
    assert set(WORST_FIRST) == SETTLED - {State.COMPLETED, State.SKIPPED}


@given(st.lists(st.sampled_from([*WORST_FIRST, State.COMPLETED]), min_size=1, max_size=8))
def test_a_run_is_the_worst_of_its_jobs(states: list[State]) -> None:
    """All COMPLETED, or the worst; order does not matter; and a job SKIPPED for a failed need adds nothing."""
    rank = [*WORST_FIRST, State.COMPLETED]
    worst = min(states, key=rank.index)
    jobs = [(state, "x") for state in states]
    assert fold_run(jobs) is fold_run(reversed(jobs)) is worst
    if worst is not State.COMPLETED:
        assert fold_run([*jobs, (State.SKIPPED, need_reason("a", worst))]) is worst


@pytest.mark.parametrize(
    ("jobs", "state"),
    [
        ([(State.COMPLETED, "None"), (State.SKIPPED, CONDITION_NOT_MET)], State.COMPLETED),
        ([(State.COMPLETED, "None"), (State.SKIPPED, need_reason("prep", State.COMPLETED))], State.COMPLETED),
        ([(State.SKIPPED, CONDITION_NOT_MET), (State.SKIPPED, need_reason("a", State.SKIPPED))], State.COMPLETED),
        ([(State.FAILED, ""), (State.SKIPPED, need_reason("a", State.FAILED))], State.FAILED),
        ([(State.SKIPPED, need_reason("a", State.FAILED))], State.SKIPPED),
        ([(State.SKIPPED, need_reason("a", State.SKIPPED))], State.SKIPPED),
        ([(State.COMPLETED, ""), (State.SKIPPED, need_reason("a", State.FAILED))], State.SKIPPED),
        ([], State.COMPLETED),
    ],
)
def test_skipped_jobs_of_a_run(jobs: list[tuple[State, str]], state: State) -> None:
    """A condition that did not apply counts as success; a skip without its need never looks like success."""
    assert fold_run(jobs) is state


@pytest.mark.parametrize("unsettled", sorted(UNSETTLED))
def test_a_run_is_not_settled_before_its_jobs(unsettled: State) -> None:
    """One unsettled job keeps the run unsettled, whatever the others are."""
    assert fold_run([(State.FAILED, ""), (unsettled, "")]) is State.RUNNING
    assert fold_run([(unsettled, ""), (unsettled, "")]) is (
        State.PENDING if unsettled is State.PENDING else State.RUNNING
    )


OUTCOMES_5 = {
    State.COMPLETED: 0,
    State.FAILED: 1,
    State.TIMEOUT: 3,
    State.OUT_OF_MEMORY: 4,
    State.CANCELLED: 5,
    State.NODE_FAIL: 6,
    State.BOOT_FAIL: 6,
    State.PREEMPTED: 6,
    State.DEADLINE: 6,
    State.UNVERIFIED: 7,
    State.CHECKPOINTED: 8,
    State.SKIPPED: 9,
}


def test_exit_statuses() -> None:
    """Each settled state has the exit status of OUTCOMES 5; an unsettled one has none."""
    assert {state: exit_status_of(state) for state in SETTLED} == OUTCOMES_5
    for state in UNSETTLED:
        with pytest.raises(ValueError, match="not settled"):
            exit_status_of(state)


@pytest.mark.parametrize(
    ("state", "end", "shown"),
    [
        (State.FAILED, code(3), 3),
        (State.FAILED, signal(11), 139),
        (State.OUT_OF_MEMORY, code(0), 137),
        (State.TIMEOUT, code(0), 152),
        (State.CANCELLED, signal(15), 143),
        (State.UNVERIFIED, None, None),
        (State.COMPLETED, code(0), 0),
        (State.RUNNING, code(0), None),
    ],
)
def test_return_codes(state: State, end: ExitStatus | None, shown: int | None) -> None:
    """Code or 128+signal, 137 for OUT_OF_MEMORY, 152 for TIMEOUT, and unknown or unsettled stays unknown."""
    assert return_code(state, end) == shown


def test_return_codes_can_be_set() -> None:
    """Both special return codes are settings."""
    assert return_code(State.OUT_OF_MEMORY, None, out_of_memory=200) == 200
    assert return_code(State.TIMEOUT, None, timeout=124) == 124


def test_the_summary_of_outcomes_4() -> None:
    """The Task Exit Code Summary is exactly the one in OUTCOMES 4."""
    ends: list[TaskEnd] = [code(0), code(1), code(0), signal(11, core=True), code(0), code(2), Running(), code(0)]
    assert task_summary("7.0", [Task(rank, end) for rank, end in enumerate(ends)]) == (
        "Task Exit Code Summary: step 7.0, 8 tasks: 4 completed, 2 failed, 1 signalled, 1 running\n"
        "  task  1          failed with exit code 1\n"
        "  task  3          terminated by signal 11 (SIGSEGV, core dumped)\n"
        "  task  5          failed with exit code 2\n"
        "  task  6          running\n"
        "  tasks 0,2,4,7    completed"
    )


def test_a_summary_of_everything_else() -> None:
    """Equal ends are grouped, rows of ranks are ranges, and launch failures, ended and lost tasks are said."""
    ends = [
        Task(0, LaunchFailure("exec", 2, "/x")),
        Task(1, code(3), 1.0),
        Task(2, code(3), 2.0),
        Task(3, signal(15), 2.0, because_of_another=True),
        Task(4, Lost()),
        *[Task(rank, code(0)) for rank in (5, 6, 7, 9)],
    ]
    assert task_summary("8.1", ends) == (
        "Task Exit Code Summary: step 8.1, 9 tasks: 4 completed, 3 failed, 1 ended, 1 lost\n"
        "  task  0        could not start: exec /x: No such file or directory (errno 2)\n"
        "  tasks 1,2      failed with exit code 3\n"
        "  task  3        ended: task 1 failed\n"
        "  task  4        lost: nobody saw how it ended\n"
        "  tasks 5-7,9    completed"
    )


def test_small_summaries() -> None:
    """One task, no task, and a task ended for a failure that is not among them."""
    assert task_summary("1.0", [Task(0, code(0))]) == (
        "Task Exit Code Summary: step 1.0, 1 task: 1 completed\n  task  0    completed"
    )
    assert task_summary("1.0", []) == "Task Exit Code Summary: step 1.0, 0 tasks"
    alone = task_summary("1.0", [Task(0, signal(15), because_of_another=True)])
    assert alone.endswith("ended: another task had ended")


def test_a_job_warns_of_its_steps() -> None:
    """The first few as they are, the rest counted."""
    said = [f"step 1.{number} (a): task 0: odd" for number in range(9)]
    verdict = judge([WitnessRecord("k", 5, ExitStatus(), 1.0, 1.0)], Rules())
    assert verdict is not None
    assert with_step_warnings(verdict, []) is verdict
    assert with_step_warnings(verdict, said[:1]).warnings == (said[0],)
    assert with_step_warnings(verdict, said).warnings == (*said[:5], "4 more of its steps")


@pytest.mark.parametrize("state", [State.COMPLETED, State.FAILED, State.CANCELLED, State.TIMEOUT])
def test_a_job_that_is_one_step_lacked_the_memory_that_its_step_lacked(state: State) -> None:
    """Whatever its srun exits with; a cancellation and a time limit are causes of their own."""
    verdict = Verdict(state, ExitStatus(1), reasons.NONE, True, "witness")
    is_plain = state in (State.COMPLETED, State.FAILED)
    assert as_own_step(verdict, True).state is (State.OUT_OF_MEMORY if is_plain else state)
    assert as_own_step(verdict, True).exit == verdict.exit
    assert as_own_step(verdict, False) == verdict


def judged_task(rank: int, end: ExitStatus, because: bool, *acts: ActKind) -> JudgedTask:
    record = WitnessRecord("k", 5, end, 1.0, 1.0, acts=tuple(Act(kind, 1.0, 9) for kind in acts))
    return JudgedTask(Task(rank, end, 1.0 + rank, because), judge([record], Rules()))


@pytest.mark.parametrize(
    ("first", "step", "derived", "first_failed"),
    [(code(0), "CANCELLED 0:9", 9, None), (code(3), "FAILED 3:0", 3 << 8, 0), (signal(11), "FAILED 0:11", 11, 0)],
)
def test_a_task_that_wait_ended_counts_unless_another_failed(
    first: ExitStatus, step: str, derived: int, first_failed: int | None
) -> None:
    """No task attests that a step completed whose other task was killed."""
    late = judged_task(1, signal(9), True, ActKind.CANCEL)
    found = judge_step([judged_task(0, first, False), late], is_open=False)
    assert f"{found.verdict.state} {found.verdict.exit}" == step
    assert (found.derived, found.first_failed, found.srun_code) == (derived, first_failed, max(137, first.shell_code))


@pytest.mark.parametrize(
    ("others", "exit_status", "srun_code"),
    [
        pytest.param([Task(1, NotBegun(), 2.0, True)], ExitStatus(5), 143, id="ended because of task 0"),
        pytest.param([Task(1, NotBegun(), 2.0)], ExitStatus(5), 5, id="cancelled"),
        pytest.param([Task(1, NotBegun(True), 2.0)], ExitStatus(5), 5, id="refused"),
        pytest.param([Task(1, Lost(), 2.0)], None, None, id="lost"),
    ],
)
def test_a_task_that_never_began_leaves_nothing_unknown(
    others: list[Task], exit_status: ExitStatus | None, srun_code: int | None
) -> None:
    """Unlike one whose end nobody saw."""
    folded = fold_step([Task(0, ExitStatus(5), 1.0), *others])
    assert (folded.exit, folded.srun_code) == (exit_status, srun_code)


def test_a_step_of_which_nothing_began() -> None:
    """Srun exits with 1; nobody has to have seen anything."""
    assert fold_step([Task(0, NotBegun()), Task(1, NotBegun(True))]).srun_code == 1
    text = task_summary("7.0", [Task(0, ExitStatus(), 1.0), Task(1, NotBegun(True), 2.0), Task(2, NotBegun(), 2.0)])
    assert text.splitlines()[0] == "Task Exit Code Summary: step 7.0, 3 tasks: 1 completed, 1 failed, 1 not begun"
    assert "  task  1    could not start" in text
    assert "nobody saw" not in text


def test_a_task_that_never_began_is_no_success_of_its_step() -> None:
    """Also where all others ended with 0; a code of theirs counts as ever."""
    assert fold_step([Task(0, ExitStatus(), 1.0), Task(1, NotBegun(), 2.0)]).srun_code == 1
    assert fold_step([Task(0, ExitStatus(signal=9), 1.0), Task(1, NotBegun(), 2.0)]).srun_code == 137
