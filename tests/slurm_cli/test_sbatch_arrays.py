"""Job arrays: which indices there are, what their members see, and how many run at one time."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slurm_commands import Slurm

from aver.model.states import State
from aver.slurm_cli.job_names import parse_job
from aver.spec.sbatch.array import HIGHEST_INDEX, parse_array, step_of


@pytest.mark.parametrize(
    ("text", "values", "limit"),
    [
        ("1-4", (1, 2, 3, 4), None),
        ("0-20:5", (0, 5, 10, 15, 20), None),
        ("3,1,7-9", (1, 3, 7, 8, 9), None),
        ("1-4%2", (1, 2, 3, 4), 2),
        ("1-3%0", (1, 2, 3), None),
        ("1-3%x", (1, 2, 3), None),
        ("1,1", (1,), None),
        ("[1-2]", (1, 2), None),
        ("1000", (1000,), None),
    ],
)
def test_what_slurm_takes(text: str, values: tuple[int, ...], limit: int | None) -> None:
    """Ranges, steps, lists and limits, as measured on a real Slurm."""
    assert parse_array(text) == (values, limit)


@pytest.mark.parametrize("text", ["foo", "5-1", "1-5:0", "1001", "1-1000000", "1-", "-1", "1,,2", "1 2", "١"])
def test_what_slurm_refuses(text: str) -> None:
    """What a real Slurm calls an invalid job array specification."""
    with pytest.raises(ValueError):
        parse_array(text)


@given(st.text(alphabet="0123456789,-:%[] x", max_size=20))
def test_any_text_is_a_list_of_indices_or_a_value_error(text: str) -> None:
    """Indices grow, are in range, and none is twice."""
    try:
        values, limit = parse_array(text)
    except ValueError:
        return
    assert list(values) == sorted(set(values))
    assert 0 <= values[0] <= values[-1] <= HIGHEST_INDEX
    assert limit is None or limit > 0


@given(st.text(alphabet="0123456789,-:_[].*x", max_size=16))
def test_any_word_names_jobs_or_none(text: str) -> None:
    """scancel's words: a number, and maybe indices and a step; anything else is no job."""
    named = parse_job(text)
    assert named is None or named.number >= 0


def test_steps_of_indices() -> None:
    """SLURM_ARRAY_TASK_STEP: the distance, 1 where it is not the same."""
    assert [step_of(values) for values in ((1,), (2, 4, 6), (1, 2, 9), (0, 5))] == [1, 2, 1, 5]


def test_members_see_their_index_and_write_files_of_their_own(slurm: Slurm) -> None:
    """SLURM_ARRAY_*; slurm-%A_%a.out; each is a job of its own, and the array's number is that of the run."""
    run = slurm.submit("--array=2-6:2", "-J", "name", "--wrap", "env | grep ^SLURM_ARRAY | sort; echo $SLURM_JOB_NAME")
    jobs = slurm.jobs(run)
    assert [slurm.until_settled(job.id).state for job in jobs] == [State.COMPLETED] * 3
    for index in (2, 4, 6):
        assert slurm.read(f"slurm-{run}_{index}.out").splitlines() == [
            f"SLURM_ARRAY_JOB_ID={run}", "SLURM_ARRAY_TASK_COUNT=3", f"SLURM_ARRAY_TASK_ID={index}",
            "SLURM_ARRAY_TASK_MAX=6", "SLURM_ARRAY_TASK_MIN=2", "SLURM_ARRAY_TASK_STEP=2", "name",
        ]  # fmt: skip


def test_no_more_than_the_limit_run_at_one_time(slurm: Slurm) -> None:
    """With %1 each member sees that no other one runs."""
    script = "mkdir lock && echo alone > $SLURM_ARRAY_TASK_ID.txt; sleep 0.1; rmdir lock"
    run = slurm.submit("--array=1-4%1", "-o", "/dev/null", "--wrap", script)
    for job in slurm.jobs(run):
        assert slurm.until_settled(job.id).state is State.COMPLETED
    assert [slurm.read(f"{index}.txt") for index in (1, 2, 3, 4)] == ["alone\n"] * 4


def test_some_members_of_an_array_are_cancelled(slurm: Slurm) -> None:
    """`7_[1-2]` and `7_4` are cancelled; the others stay."""
    run = slurm.submit("--array=1-5", "--hold", "--wrap", "true")
    assert slurm("scancel", f"{run}_[1-2]", f"{run}_4").status == 0
    states = [slurm.until(job.id, lambda row: True).state for job in slurm.jobs(run)]
    assert states == [State.CANCELLED, State.CANCELLED, State.PENDING, State.CANCELLED, State.PENDING]
    assert slurm("scontrol", "release", str(run)).status == 0
    assert [slurm.until_settled(job.id).state for job in slurm.jobs(run)][2::2] == [State.COMPLETED] * 2


def test_a_task_that_waits_to_begin_has_the_number_of_its_array(slurm: Slurm) -> None:
    """In squeue, scontrol and sacct, as in Slurm; its own number, which it gets when it begins, is understood too."""
    run = slurm.submit("--array=0-2", "--hold", "-o", "/dev/null", "--wrap", "until [ -e go ]; do sleep 0.02; done")
    own = slurm.jobs(run)[1].id
    for name in (f"{run}_1", str(own)):
        assert f"JobId={run} ArrayJobId={run} ArrayTaskId=1 " in slurm("scontrol", "-o", "show", "job", f"{run}_1").out
        assert slurm("squeue", "-h", "-r", "-j", name, "-o", "%i %A").out == f"{run}_1 {run}\n"
    assert slurm("sacct", "-nXP", "-j", f"{run}_1", "-o", "jobid,jobidraw").out == f"{run}_1|{run}\n"
    slurm("scontrol", "release", f"{run}_1")
    slurm.until_state(own, State.RUNNING)
    assert f"JobId={own} ArrayJobId={run} ArrayTaskId=1 " in slurm("scontrol", "-o", "show", "job", f"{run}_1").out
    assert slurm("squeue", "-h", "-o", "%i %A").out.splitlines() == [f"{run}_[0,2] {run}", f"{run}_1 {own}"]
    (slurm.folder / "go").touch()
    slurm.until_settled(own)
    assert slurm("sacct", "-nXP", "-j", f"{run}_1", "-o", "jobid,jobidraw").out == f"{run}_1|{own}\n"


def test_a_task_that_was_cancelled_before_it_began_is_forgotten(slurm: Slurm) -> None:
    """By squeue and scontrol, at once, as in Slurm; the accounting has it."""
    run = slurm.submit("--array=0-3", "--begin=now+1hour", "--wrap", "true")
    own = slurm.jobs(run)[3].id
    assert slurm("scancel", f"{run}_3").status == 0
    for name in (f"{run}_3", str(own)):
        assert slurm("squeue", "-h", "-t", "all", "-j", name).out == ""
    said = slurm("scontrol", "show", "job", f"{run}_3")
    assert (said.status, said.out) == (1, f"Job {run}_3 not found\n")
    assert slurm("squeue", "-h", "-t", "all", "-o", "%i %t").out == f"{run}_[0-2] PD\n"
    assert f'"{own}"' not in slurm("squeue", "--json").out
    assert slurm("sacct", "-nXP", "-j", f"{run}_3", "-o", "jobidraw,state").out == f"{own}|CANCELLED by {os.getuid()}\n"
    assert slurm("scancel", str(run)).status == 0
    for job in slurm.jobs(run):
        slurm.until_settled(job.id)
    assert slurm("squeue", "-h", "-t", "all", "-o", "%i %A %t").out == f"{run}_[0-2] {run} CA\n"
    assert slurm("squeue", "-h", "-t", "all", "-r", "-o", "%i %A").out.splitlines() == [
        f"{run}_{index} {run}" for index in range(3)
    ]
    assert f"JobId={run} ArrayJobId={run} ArrayTaskId=0-2 " in slurm("scontrol", "-o", "show", "job").out


def test_a_task_that_was_updated_alone_has_its_own_number(slurm: Slurm) -> None:
    """As in Slurm: who changes it again by the number that scontrol shows changes no other task."""
    run = slurm.submit("--array=0-3", "--begin=now+1hour", "-t", "1", "--wrap", "true")
    own = slurm.jobs(run)[2].id
    assert slurm("scontrol", "update", f"JobId={run}_2", "TimeLimit=2").status == 0
    assert f"JobId={own} ArrayJobId={run} ArrayTaskId=2 " in slurm("scontrol", "-o", "show", "job", f"{run}_2").out
    assert slurm("scontrol", "update", f"JobId={own}", "TimeLimit=4").status == 0
    wanted = [f"{run}_2 {own} 4:00", f"{run}_[0-1,3] {run} 1:00"]
    assert sorted(slurm("squeue", "-h", "-o", "%i %A %l").out.splitlines()) == wanted
    assert slurm("scontrol", "update", f"JobId={run}", "TimeLimit=5").status == 0
    assert f"{run}_[0-1,3] {run} 5:00\n" in slurm("squeue", "-h", "-o", "%i %A %l").out
    assert slurm("scancel", f"{run}_2").status == 0
    assert f"{run}_2 {own} CA\n" in slurm("squeue", "-h", "-t", "all", "-o", "%i %A %t").out


@pytest.mark.parametrize("how", [("{run}_[0-2]",), ("--me",), ("-t", "PENDING", "{run}")])
def test_an_array_of_which_all_is_cancelled_is_remembered(slurm: Slurm, how: tuple[str, ...]) -> None:
    """Also where its tasks are named, or chosen by what they have in common."""
    run = slurm.submit("--array=0-2", "--begin=now+1hour", "--wrap", "true")
    assert slurm("scancel", *(word.format(run=run) for word in how)).status == 0
    assert [slurm.until_settled(job.id).state for job in slurm.jobs(run)] == [State.CANCELLED] * 3
    assert slurm("squeue", "-h", "-t", "all", "-o", "%i %t").out == f"{run}_[0-2] CA\n"


def test_a_task_that_began_is_remembered(slurm: Slurm) -> None:
    """Cancelled by itself, it is listed as every job is, under its own number."""
    run = slurm.submit("--array=0-1", "-o", "out.%a", "--wrap", "touch ready.$SLURM_ARRAY_TASK_ID; sleep 100")
    own = slurm.jobs(run)[1].id
    slurm.until_file("ready.1")
    assert slurm("scancel", f"{run}_1").status == 0
    slurm.until_settled(own)
    assert slurm("squeue", "-h", "-t", "CA", "-o", "%i %A %t").out == f"{run}_1 {own} CA\n"
    assert slurm("scancel", str(run)).status == 0


def test_every_task_past_the_limit_says_so(slurm: Slurm) -> None:
    """`%1`: each that waits has JobArrayTaskLimit, asked for alone as well; the last one is a task like any other."""
    text = "until [ -e go.$SLURM_ARRAY_TASK_ID ]; do sleep 0.02; done"
    array = slurm.submit("--array=1-3%1", "-o", "out.%a", "--wrap", text)
    _, second, last = (job.id for job in slurm.jobs(array))
    slurm.until_file("out.1")
    slurm.until_reason(second, "JobArrayTaskLimit")
    for task in ("2", "3"):
        assert " Reason=JobArrayTaskLimit " in slurm("scontrol", "-o", "show", "job", f"{array}_{task}").out
    assert f"{array}_[2-3%1] JobArrayTaskLimit\n" in slurm("squeue", "-h", "-o", "%i %r").out
    (slurm.folder / "go.1").touch()
    slurm.until_file("out.2")
    slurm.until_state(second, State.RUNNING)
    assert f"{array}_3 JobArrayTaskLimit\n" in slurm("squeue", "-h", "-o", "%i %r").out
    (slurm.folder / "go.2").touch()
    (slurm.folder / "go.3").touch()
    assert slurm.until_settled(last).state is State.COMPLETED


def test_a_steps_files_may_name_the_array(slurm: Slurm) -> None:
    """`srun -o %A_%a_%t` is one file for each task of each member."""
    run = slurm.submit("-n", "2", "--array=3-4", "-o", "/dev/null", "--wrap", "srun -n 2 -o %A_%a_%t.txt echo said")
    for job in slurm.jobs(run):
        assert slurm.until_settled(job.id).state is State.COMPLETED
    names = [f"{run}_{index}_{task}.txt" for index in (3, 4) for task in (0, 1)]
    assert [slurm.read(name) for name in names] == ["said\n"] * 4
