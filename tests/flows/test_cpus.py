"""CPUs of jobs on this machine: sets of their own, fractions, threads, hidden GPUs, and what holds after kill -9."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
from flow_lab import Lab, states, wait_for_file

from aver.engines.local.cpu_sets import parse_cpu_list

ALLOWED = "sed -n 's/^Cpus_allowed_list:\\t//p' /proc/self/status"
OWN = sorted(os.sched_getaffinity(0))

needs_two = pytest.mark.skipif(len(OWN) < 2, reason="this machine has one CPU")


@pytest.fixture
def whole(lab: Lab) -> Lab:
    """A lab whose coordinator hands out all CPUs that it may use, and no more."""
    (lab.folder.parent / "config.toml").write_text("kill_wait = 1\n")
    return lab


@pytest.fixture
def restricted() -> Iterator[int]:
    """This process, and what it starts, on one CPU."""
    os.sched_setaffinity(0, {OWN[-1]})
    yield OWN[-1]
    os.sched_setaffinity(0, OWN)


def cpus_of(lab: Lab, name: str) -> set[int]:
    lab.wait_for(name)
    return set(parse_cpu_list((lab.folder / name).read_text()))


def says_its_cpus(name: str, then: str) -> str:
    return f"{ALLOWED} > {name}.tmp; nproc > {name}.nproc; mv {name}.tmp {name}; {then}"


@needs_two
def test_jobs_that_run_at_once_have_cpus_of_their_own_also_after_kill_9(whole: Lab) -> None:
    """Who runs while the coordinator is killed keeps its CPU: those that start later get others."""
    later = "\n".join(
        f'  later{at}: {{needs: first, run: "{says_its_cpus(f"later{at}", wait_for_file("go"))}"}}'
        for at in range(len(OWN) - 1)
    )
    run = whole.submit(
        f'jobs:\n  stays: {{run: "{says_its_cpus("stays", wait_for_file("go"))}"}}\n'
        f'  first: {{run: "{says_its_cpus("first", wait_for_file("next"))}"}}\n{later}\n'
    )
    stays, first = cpus_of(whole, "stays"), cpus_of(whole, "first")
    assert (len(stays), len(first), len(stays | first)) == (1, 1, 2)
    assert whole.lines("stays.nproc") == ["1"]
    whole.kill()
    whole("runs")
    whole.let_go("next")
    sets = [stays, *(cpus_of(whole, f"later{at}") for at in range(len(OWN) - 1))]
    assert sorted(cpu for one in sets for cpu in one) == OWN
    whole.let_go("go")
    assert run.wait(60) == "COMPLETED"


@needs_two
def test_several_cpus_and_the_steps_of_srun(whole: Lab) -> None:
    """`nproc` says what was asked for; steps run on the CPUs of their job."""
    run = whole.run(
        f'jobs:\n  a: {{cpus: 2, run: "{says_its_cpus("a", f"srun -n 2 {ALLOWED} > steps")}"}}\n'
        f'  b: {{cpus: 1, needs: a, run: "{says_its_cpus("b", f"srun {ALLOWED} > step")}"}}\n'
    )
    assert states(run) == {"a": "COMPLETED", "b": "COMPLETED"}
    assert [len(cpus_of(whole, "a")), len(cpus_of(whole, "b"))] == [2, 1]
    assert whole.lines("a.nproc") == ["2"]
    assert whole.lines("steps") == whole.lines("a") * 2
    assert whole.lines("step") == whole.lines("b")


def test_fractions_share_and_0_never_waits(lab: Lab) -> None:
    """Ten tenths are exactly one CPU; 0 starts where none is free."""
    (lab.folder.parent / "config.toml").write_text("kill_wait = 1\ncpus = 1\n")
    tenth = says_its_cpus("at{n}", wait_for_file("go"))
    lab.submit(
        "jobs:\n"
        f'  tenth: {{cpus: 0.1, matrix: {{n: 1..10}}, run: "{tenth}"}}\n'
        f'  download: {{cpus: 0, run: "touch download; {wait_for_file("go")}"}}\n'
        "  whole: {run: touch whole}\n"
    )
    lab.wait_for("download")
    assert all(sorted(cpus_of(lab, f"at{n}")) == OWN for n in range(1, 11))
    assert not (lab.folder / "whole").exists()
    why = lab("why", "1/whole").out
    assert "1 CPU" in why, why
    shown = lab("show", "1/tenth[n=1]", "--json").document
    assert shown["asked"]["cpus"] == 0.1
    lab.let_go("go")
    assert lab("watch", "1").status == 0


def test_mistakes_in_cpus(lab: Lab) -> None:
    answer = lab("check", str(lab.write("jobs:\n  a: {cpus: -1, run: x}\n  b: {cpus: 0.0001, run: x}\n")))
    assert answer.status == 2
    assert answer.out.count("is not a number of cpus: give a number such as 4, 0.25 or 0") == 2
    assert (
        lab("run", "--cpus", "0.5", "--", "sh", "-c", 'test "$AVER_CPUS" = 0.5 && test "$OMP_NUM_THREADS" = 1').status
        == 0
    )


def test_threads_unless_set(whole: Lab) -> None:
    """Libraries start as many threads as the job has CPUs; what the user or the flow says stays."""
    show = "echo $OMP_NUM_THREADS $OPENBLAS_NUM_THREADS $MKL_NUM_THREADS $NUMEXPR_NUM_THREADS"
    whole.write(f"jobs:\n  a: {{run: '{show} > a'}}\n  b: {{env: {{OMP_NUM_THREADS: 7}}, run: '{show} > b'}}\n")
    assert whole("run", "flow.yaml", env={"MKL_NUM_THREADS": "5"}).status == 0
    assert (whole.lines("a"), whole.lines("b")) == (["1", "1", "5", "1"], ["7", "1", "5", "1"])


def test_gpus_are_hidden_from_jobs_that_ask_for_none(whole: Lab) -> None:
    """The job's own word counts; a setting leaves it alone."""
    show = "echo [${CUDA_VISIBLE_DEVICES-none}]"
    whole.write(f"jobs:\n  a: {{run: '{show} >> a'}}\n  b: {{env: {{CUDA_VISIBLE_DEVICES: 3}}, run: '{show} >> b'}}\n")
    assert whole("run", "flow.yaml", env={"CUDA_VISIBLE_DEVICES": "0"}).status == 0
    assert whole("stop").status == 0
    (whole.folder.parent / "config.toml").write_text("kill_wait = 1\nhide_gpus = false\n")
    assert whole("run", "flow.yaml", env={"CUDA_VISIBLE_DEVICES": "0"}).status == 0
    assert (whole.lines("a"), whole.lines("b")) == (["[]", "[0]"], ["[3]", "[3]"])


@needs_two
def test_a_restricted_coordinator_hands_out_its_own_cpus(whole: Lab, restricted: int) -> None:
    """As with taskset, or in a container with a cpuset."""
    answer = whole("run", "--cpus", "2", "--", "true")
    assert "asks for 2 cpus, and this machine has 1" in answer.err
    assert whole("run", "--", "sh", "-c", f"{ALLOWED} > a").status == 0
    assert cpus_of(whole, "a") == {restricted}


@needs_two
def test_a_coordinator_that_a_job_started_has_the_whole_machine(whole: Lab) -> None:
    """The job's CPU is not the coordinator's; nor are its threads those of the jobs that it submits."""
    whole.write(f"{says_its_cpus('inner', 'echo $OMP_NUM_THREADS > threads')}\n", "inner.sh")
    inner = f"{sys.executable} -m aver submit --cpus {len(OWN)} -- sh inner.sh > submitted"
    run = whole.submit(f'jobs:\n  a: {{run: "touch begun; {wait_for_file("go")}; {inner}"}}\n')
    whole.wait_for("begun")
    whole.kill()
    whole.let_go("go")
    assert sorted(cpus_of(whole, "inner")) == OWN
    assert run.wait(60) == "COMPLETED"
    assert whole("watch", *whole.lines("submitted")).status == 0
    assert whole.lines("threads") == [str(len(OWN))]


def test_doctor_says_what_is_enforced(whole: Lab) -> None:
    def cpus() -> dict[str, str]:
        return next(one for one in whole("doctor", "--json").document["checks"] if one["name"] == "cpus")

    assert (cpus()["status"], "affinity" in cpus()["fact"]) == ("ok", True)
    (whole.folder.parent / "config.toml").write_text(f"cpus = {len(OWN) + 1}\n")
    assert cpus()["status"] == "limited"
    assert "jobs share them" in cpus()["fact"]
