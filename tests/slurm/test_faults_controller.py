"""The controller away: slurmctld or munge stopped while jobs are submitted, run and end; and one that forgets."""

from __future__ import annotations

import re

import pytest
from fault_desk import BLOCK, OK, SEVEN, ClusterHome, job, until

from aver.model.job import Matrix, Need, Needs
from aver.model.states import State
from live_home import wait_for


def _controller_goes(cluster: ClusterHome, daemon: str, calls: int) -> None:
    cluster.configure(timeout=2)
    go = cluster.folder / "go"
    run = cluster.submit(
        job("good", until(go) + "exit 0"),
        job("bad", until(go) + "exit 7"),
        job("unseen", until(go) + BLOCK + "exit 0"),
        job("after", "exit 0", needs=Needs((Need("good"),))),
        job("never", "exit 0", needs=Needs((Need("bad"),))),
    )
    for name in ("good", "bad", "unseen"):
        cluster.wait_state(run, name, State.RUNNING)
    before = cluster.states(run)
    cluster.lab.stop(daemon)
    go.touch()
    wait_for(lambda: len(cluster.keys_run()) == 3, "the jobs run")
    later = cluster.submit(job("late", "exit 0"), job("late-bad", "exit 7"))
    asked = cluster.count_calls("squeue")
    wait_for(lambda: cluster.count_calls("squeue") >= asked + calls, "Slurm is asked in vain", 200)
    assert cluster.states(run) == before
    assert set(cluster.states(later).values()) == {"PENDING"}
    cluster.lab.heal()
    cluster.settle([run, later], 120)
    attempts = {name: cluster.attempt_states(run, name) for name in ("good", "bad", "unseen")}
    lost = {state for states in attempts.values() for state in states[:-1]}
    assert lost <= {State.NODE_FAIL}, "without munge the controller loses its nodes after a while"
    cluster.check(
        run,
        {
            "good": (State.COMPLETED, OK),
            "bad": (State.FAILED, SEVEN),
            "unseen": (State.COMPLETED, OK),
            "after": (State.COMPLETED, OK),
            "never": (State.SKIPPED, None),
        },
        {name: len(states) for name, states in attempts.items()},
    )
    cluster.check(later, {"late": (State.COMPLETED, OK), "late-bad": (State.FAILED, SEVEN)})


@pytest.mark.parametrize("daemon", ["slurmctld", "munged"])
def test_a_controller_that_does_not_answer_moves_nothing(cluster: ClusterHome, daemon: str) -> None:
    """Jobs keep their last state, new ones wait, and all have their verdict when it is back; nothing is twice."""
    _controller_goes(cluster, daemon, 2)


@pytest.mark.long
@pytest.mark.parametrize("daemon", ["slurmctld", "munged"])
def test_a_controller_that_is_away_for_a_minute(cluster: ClusterHome, daemon: str) -> None:
    """The same for at least a minute, longer than every wait of settling."""
    _controller_goes(cluster, daemon, 18)


def _forgotten(cluster: ClusterHome, age_s: int) -> None:
    """MinJobAge passes while Aver is down: of jobs that ended well and badly, with and without a record."""
    cluster.lab.set_min_job_age(age_s)
    go = cluster.folder / "go"
    run = cluster.submit(
        job("good", until(go) + "exit 0"),
        job("bad", until(go) + "exit 7"),
        job("unseen", until(go) + BLOCK + "exit 0"),
        job("unseen-bad", until(go) + BLOCK + "exit 7"),
    )
    for name in cluster.states(run):
        cluster.wait_state(run, name, State.RUNNING)
    cluster.kill_coordinator()
    go.touch()
    cluster.wait_forgotten(run)
    cluster.connect_again()
    cluster.settle([run], 60)
    whole = SEVEN if cluster.lab.has_whole_codes else None
    cluster.check(
        run,
        {
            "good": (State.COMPLETED, OK),
            "bad": (State.FAILED, SEVEN),
            "unseen": (State.COMPLETED, OK),
            "unseen-bad": (State.FAILED, whole),
        },
    )
    assert whole is not None or "exit code 7 or 135" in cluster.verdict_text(run, "unseen-bad")
    assert cluster.verdict_text(run, "unseen").startswith("accounting")


def test_a_controller_that_forgot_the_jobs(cluster: ClusterHome) -> None:
    """By the witness's record, or else by accounting, which takes 128 off: that is said, not guessed."""
    _forgotten(cluster, 2)


@pytest.mark.long
def test_a_controller_that_forgot_the_jobs_after_its_usual_time(cluster: ClusterHome) -> None:
    """The same with the lab's own MinJobAge."""
    _forgotten(cluster, 20)


def test_forgotten_by_all(cluster: ClusterHome) -> None:
    """The controller has forgotten it and there is no accounting: the record decides, else it is UNVERIFIED.

    Not FAILED with `the scheduler has no record of it`: it was seen running.
    """
    cluster.lab.set_min_job_age(2)
    disabled = cluster.wrapper("sacct", 'echo "Slurm accounting storage is disabled" >&2; exit 1')
    cluster.configure({"sacct": disabled}, long=3)
    go = cluster.folder / "go"
    run = cluster.submit(
        job("good", until(go) + "exit 0"),
        job("bad", until(go) + "exit 7"),
        job("unseen", until(go) + BLOCK + "exit 0"),
    )
    for name in cluster.states(run):
        cluster.wait_state(run, name, State.RUNNING)
    cluster.kill_coordinator()
    go.touch()
    cluster.wait_forgotten(run)
    cluster.connect_again()
    cluster.settle([run], 60)
    cluster.check(
        run, {"good": (State.COMPLETED, OK), "bad": (State.FAILED, SEVEN), "unseen": (State.UNVERIFIED, None)}
    )
    assert re.search("accounting was disabled: its witness alone", cluster.verdict_text(run, "bad"))


@pytest.mark.parametrize("has_accounting", [False, pytest.param(True, marks=pytest.mark.long)])
def test_lost_and_forgotten(cluster: ClusterHome, has_accounting: bool) -> None:
    """sbatch's answers are lost, and Aver comes back when the controller has forgotten the jobs: none is run again.

    A record or accounting tells that it ran, and how it ended; with neither nobody can know, and it is UNVERIFIED.
    """
    cluster.lab.set_min_job_age(2)
    hold = cluster.folder / "controller-is-away"
    commands = {
        "sbatch": cluster.wrapper("sbatch", '"$real" "$@" >/dev/null; echo "sbatch: error: what now" >&2; exit 1'),
        "squeue": cluster.wrapper("squeue", f'[ ! -e {hold} ] || exit 1; exec "$real" "$@"'),
    }
    if not has_accounting:
        commands["sacct"] = cluster.wrapper("sacct", 'echo "Slurm accounting storage is disabled" >&2; exit 1')
    cluster.configure(commands, long=10 if has_accounting else 4)
    hold.touch()
    run = cluster.submit(
        job("good", "exit 0"),
        job("bad", "exit 7"),
        job("unseen", BLOCK + "exit 0"),
        job("many", f"[ {{n}} = 7 ] || {BLOCK} exit {{n}}", matrix=Matrix((("n", ("0", "7")),))),
    )
    wait_for(lambda: len(cluster.keys_run()) == 5, "all jobs run")
    assert set(cluster.states(run).values()) <= {"PENDING", "RUNNING"}  # RUNNING: its record is there
    cluster.kill_coordinator()
    cluster.wait_forgotten(run)
    hold.unlink()
    cluster.connect_again()
    cluster.settle([run], 60)
    unseen = (State.COMPLETED, OK) if has_accounting else (State.UNVERIFIED, None)
    cluster.check(
        run,
        {
            "good": (State.COMPLETED, OK),
            "bad": (State.FAILED, SEVEN),
            "unseen": unseen,
            "many[n=0]": unseen,
            "many[n=7]": (State.FAILED, SEVEN),
        },
    )
    assert cluster.count_calls("sbatch") == 4
