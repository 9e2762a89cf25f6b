"""Jobs that run after others by number: every kind, every joint, and the same after a crash of the coordinator."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slurm_commands import Slurm

from aver.model.job import After, AfterKind, Afters
from aver.model.states import State
from aver.spec.sbatch.dependency import parse_dependency

NEVER = "DependencyNeverSatisfied"


def ended(slurm: Slurm, *args: str) -> int:
    """A job that has ended."""
    job = slurm.submit("-o", "/dev/null", *args)
    slurm.until_settled(job)
    return job


def after(slurm: Slurm, dependency: str, *args: str) -> int:
    return slurm.submit("-o", "/dev/null", "-d", dependency, *args, "--wrap", "true")


def test_each_kind_of_a_job_that_has_ended(slurm: Slurm) -> None:
    """afterok, afterany and afternotok of a success and of a failure; those that can't be met say so for ever."""
    good, bad = ended(slurm, "--wrap", "true"), ended(slurm, "--wrap", "exit 3")
    met = [f"afterok:{good}", f"afterany:{good}", f"afterany:{bad}", f"afternotok:{bad}", f"after:{bad}", f"{bad}"]
    met += [f"afterok:{good},afternotok:{bad}", f"afterok:{bad}?afterok:{good}", f"aftercorr:{good}"]
    never = [f"afterok:{bad}", f"afternotok:{good}", f"afterok:{good}:{bad}", f"afterok:{bad}?afternotok:{good}"]
    going = {dependency: after(slurm, dependency) for dependency in met}
    stuck = {dependency: after(slurm, dependency) for dependency in never}
    for dependency, job in going.items():
        assert slurm.until_settled(job).state is State.COMPLETED, dependency
    for dependency, job in stuck.items():
        assert slurm.until_reason(job, NEVER).state is State.PENDING, dependency


def test_a_job_waits_until_the_other_has_ended_well(slurm: Slurm) -> None:
    """PENDING (Dependency) while the other runs; it starts after the other's end."""
    first = slurm.submit("-o", "/dev/null", "--wrap", "while [ ! -e go ]; do sleep 0.02; done; echo 1 >> order")
    second = slurm.submit("-o", "/dev/null", "-d", f"afterok:{first}", "--wrap", "echo 2 >> order")
    slurm.until_state(first, State.RUNNING)
    assert slurm.until_reason(second, "Dependency").state is State.PENDING
    (slurm.folder / "go").touch()
    assert slurm.until_settled(second).state is State.COMPLETED
    assert slurm.read("order") == "1\n2\n"


def test_after_waits_for_the_start_alone(slurm: Slurm) -> None:
    """`after` is met when the other has started; with +1 not within the first minute."""
    first = slurm.submit("--hold", "-o", "/dev/null", "--wrap", "sleep 100")
    second, third = after(slurm, f"after:{first}"), after(slurm, f"after:{first}+1")
    assert slurm.until_reason(second, "Dependency").state is State.PENDING
    slurm("scontrol", "release", str(first))
    assert slurm.until_settled(second).state is State.COMPLETED
    assert slurm.job(third).reason == "Dependency"


def test_a_job_that_can_never_run_is_cancelled_where_it_asks_for_that(slurm: Slurm) -> None:
    """--kill-on-invalid-dep=yes: CANCELLED with the reason; and so on down a chain."""
    bad = slurm.submit("-o", "/dev/null", "--wrap", "exit 1", "--hold")
    first = after(slurm, f"afterok:{bad}", "--kill-on-invalid-dep=yes")
    second = after(slurm, f"afterok:{first}", "--kill-on-invalid-dep=yes")
    slurm("scontrol", "release", str(bad))
    assert (slurm.until_settled(first).state, slurm.job(first).reason) == (State.CANCELLED, NEVER)
    assert (slurm.until_settled(second).state, slurm.job(second).reason) == (State.CANCELLED, NEVER)


def test_arrays_wait_as_a_whole_and_member_by_member(slurm: Slurm) -> None:
    """afterok of an array waits for all of it, of a member for that one; aftercorr for the same index."""
    array = slurm.submit("-o", "/dev/null", "--array=1-2", "--hold", "--wrap", "exit $((SLURM_ARRAY_TASK_ID - 1))")
    whole, member = after(slurm, f"afterok:{array}"), after(slurm, f"afterok:{array}_1")
    each = slurm.submit("-o", "/dev/null", "-d", f"aftercorr:{array}", "--array=1-2", "--wrap", "true")
    slurm("scontrol", "release", str(array))
    assert slurm.until_settled(member).state is State.COMPLETED
    assert slurm.until_reason(whole, NEVER).state is State.PENDING
    one, two = (row.id for row in slurm.jobs(each))
    assert slurm.until_settled(one).state is State.COMPLETED
    assert slurm.until_reason(two, NEVER).state is State.PENDING


def test_a_singleton_waits_for_jobs_of_its_name(slurm: Slurm) -> None:
    """Jobs of another name do not matter."""
    first = slurm.submit("-J", "same", "--hold", "-o", "/dev/null", "--wrap", "true")
    second = slurm.submit("-J", "same", "-d", "singleton", "-o", "/dev/null", "--wrap", "true")
    third = slurm.submit("-J", "other", "-d", "singleton", "-o", "/dev/null", "--wrap", "true")
    assert slurm.until_settled(third).state is State.COMPLETED
    assert slurm.until_reason(second, "Dependency").state is State.PENDING
    slurm("scontrol", "release", str(first))
    assert slurm.until_settled(second).state is State.COMPLETED


def test_a_retried_job_can_still_be_met(slurm: Slurm) -> None:
    """What could never be met is asked again when the other one is begun again and ends well."""
    first = slurm.submit("-o", "/dev/null", "--wrap", "test -e fixed")
    second = after(slurm, f"afterok:{first}")
    slurm.until_reason(second, NEVER)
    (slurm.folder / "fixed").touch()
    assert slurm("scontrol", "requeue", str(first)).status == 0
    assert slurm.until_settled(second).state is State.COMPLETED


def test_a_crash_of_the_coordinator_changes_nothing(slurm: Slurm) -> None:
    """Killed while jobs wait: they wait on, for what is over and for what still runs, and go on as they should."""
    good, bad = ended(slurm, "--wrap", "true"), ended(slurm, "--wrap", "false")
    runs = slurm.submit("-o", "/dev/null", "--wrap", "while [ ! -e go ]; do sleep 0.02; done")
    waits = after(slurm, f"afterok:{good},afterok:{runs}")
    stuck = after(slurm, f"afterok:{bad}")
    slurm.until_state(runs, State.RUNNING)
    slurm.until_reason(stuck, NEVER)
    slurm.kill_coordinator()
    (slurm.folder / "go").touch()
    slurm("scontrol", "hold", str(stuck))  # starts another one
    assert slurm.until_settled(waits).state is State.COMPLETED
    slurm("scontrol", "release", str(stuck))
    assert slurm.until_reason(stuck, NEVER).state is State.PENDING


@pytest.mark.parametrize(
    ("text", "afters"),
    [
        ("singleton", Afters((After(AfterKind.SINGLETON),))),
        ("afterok:1:2", Afters((After(AfterKind.AFTEROK, ((1, None),)), After(AfterKind.AFTEROK, ((2, None),))))),
        (
            "after:1+5?afterany:2_3",
            Afters((After(AfterKind.AFTER, ((1, None),), 300), After(AfterKind.AFTERANY, ((2, 3),))), True),
        ),
    ],
)
def test_dependencies_are_read(text: str, afters: Afters) -> None:
    """Each job that is named is a term; what is written is read again the same."""
    assert parse_dependency(text) == afters
    assert parse_dependency(written(afters)) == afters


def written(afters: Afters) -> str:
    """The dependency as Slurm writes it."""
    terms = []
    for term in afters.terms:
        delay = f"+{term.delay_s // 60}" if term.delay_s else ""
        jobs = [f":{job}{'' if index is None else f'_{index}'}{delay}" for job, index in term.jobs]
        terms.append(f"{term.kind}{''.join(jobs)}")
    return ("?" if afters.is_any else ",").join(terms)


WRONG = (
    "foo", "afterok", "afterok:", "afterok:x", "after:1+x", "afterok:1+5", "a:1", "singleton:1",
)  # fmt: skip


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_dependency(text: str) -> None:
    """What a real Slurm calls a job dependency problem."""
    with pytest.raises(ValueError):
        parse_dependency(text)


@given(
    st.lists(
        st.sampled_from(["afterok", "after", "afterany", "singleton", ":", "1", "2_3", "+5", ",", "?", "x"]), max_size=8
    )
)
def test_any_text_is_a_dependency_or_a_value_error(words: list[str]) -> None:
    """And what is one is written and read again the same."""
    try:
        afters = parse_dependency("".join(words))
    except ValueError:
        return
    assert afters is None or parse_dependency(written(afters)) == afters
