"""Allocations on a cluster behind ssh: a real Slurm, a real sshd."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from fault_desk import OK, SEVEN, until
from ssh_desk import SshHome

from aver.model.codec import encode
from aver.model.events import Observed
from aver.model.job import Allocation, FlowSpec, JobSpec, Matrix, Need, Needs, Request
from aver.model.record import replace
from aver.model.states import State
from live_home import wait_for

SMALL = ("-N1", "-n1", "-c2", "--mem=600", "-t20")
WIDE = ("-N2", "--ntasks-per-node=1", "-c2", "--mem=600", "-t20")
MIB = 1 << 20


def submit_in(
    home: SshHome, jobs: Sequence[JobSpec], words: Sequence[str] = SMALL, sync: tuple[str, ...] = (".",)
) -> int:
    plain = home.submission(FlowSpec("flow", tuple(jobs), sync=sync))
    wish = Allocation(tuple(words), 1, 120)
    with home.client() as client:
        whole = encode(replace(plain, engine="allocation", allocation=wish))
        return int(client.call("submit", submission=whole, env=home.environment())["run"])


def queued(home: SshHome, run: int) -> list[str]:
    """Allocations of the run that Slurm has."""
    listed = home.lab.call("squeue", "-h", "-a", "-O", "Name:200,State:30").splitlines()
    return [line for line in listed if line.startswith(f"aver.{run}.") and "COMPLETING" not in line]


def flow(home: SshHome) -> list[JobSpec]:
    job = home.ssh_job
    return [
        job("good", "tr a-z A-Z <input >output"),
        job("bad", "exit 7"),
        job("many", "exit {n}", matrix=Matrix((("n", ("0", "7")),))),
        job("after", "grep -q HELLO output", needs=Needs((Need("good"),))),
    ]


EXPECTED = {
    "good": (State.COMPLETED, OK), "bad": (State.FAILED, SEVEN), "many[n=0]": (State.COMPLETED, OK),
    "many[n=7]": (State.FAILED, SEVEN), "after": (State.COMPLETED, OK),
}  # fmt: skip


def check(home: SshHome, run: int) -> None:
    home.settle([run], 150)
    home.check(run, EXPECTED)
    assert (home.synced / "output").read_text() == "HELLO\n"
    wait_for(lambda: not queued(home, run), "the allocation is given back", 60)
    wait_for(lambda: not folder_there(home, run).exists(), "the run's folder on the host is removed", 60)
    wait_for(lambda: not list(folder_there(home, run).parent.glob(".*")), "and all that was in it")


def folder_there(home: SshHome, run: int) -> Path:
    (base,) = home.sshd.home.glob(".local/state/aver/slurm-*")
    return base / "alloc" / str(run)


def test_a_flow_in_an_allocation_over_ssh(ssh_home: SshHome) -> None:
    """Its jobs are steps of one allocation there; files are brought there and back; records tell the exits."""
    (ssh_home.synced / "input").write_text("hello\n")
    run = submit_in(ssh_home, flow(ssh_home))
    check(ssh_home, run)
    assert ssh_home.count_calls("sbatch") == 1
    assert ssh_home.verdict_text(run, "bad").startswith("witness")
    with ssh_home.reader() as reader:
        events = [one.event for one in reader.events(run=run)]
    ids = {event.allocation for event in events if isinstance(event, Observed) and event.allocation is not None}
    assert len(ids) == 1


def test_a_run_goes_on_after_its_folder_was_removed(ssh_home: SshHome) -> None:
    """`aver retry` takes an allocation again, whose executor finds its orders."""
    (ssh_home.synced / "input").write_text("hello\n")
    run = submit_in(ssh_home, [ssh_home.ssh_job("bad", "exit 7")])
    ssh_home.settle([run], 120)
    wait_for(lambda: not folder_there(ssh_home, run).exists(), "the run's folder on the host is removed", 60)
    with ssh_home.client() as client:
        client.call("retry", ids=[run], by="tester")
    ssh_home.settle([run], 120)
    assert ssh_home.states(run) == {"bad": "FAILED"}
    with ssh_home.reader() as reader:
        (job,) = reader.jobs(run=run)
        assert [one.exit for one in reader.attempts(job.id)] == [SEVEN, SEVEN]
    wait_for(lambda: not folder_there(ssh_home, run).exists(), "and removed again", 60)


def test_a_job_on_two_nodes(ssh_home: SshHome) -> None:
    """Its steps are heard of as well."""
    text = "srun sh -c 'exit $((7 * SLURM_NODEID))'"
    spec = ssh_home.ssh_job("ranks", text, request=Request(cpus=1, mem_bytes=300 * MIB))
    run = submit_in(ssh_home, [replace(spec, slurm_options=("--nodes=2",))], WIDE)
    ssh_home.settle([run], 120)
    ssh_home.check(run, {"ranks": (State.FAILED, SEVEN)})
    with ssh_home.reader() as reader:
        (row,) = reader.jobs(run=run)
        (step,) = reader.steps(row.id)
        assert {task.task: task.exit for task in reader.tasks(row.id, 1, step.step)} == {0: OK, 1: SEVEN}


def test_cancelled_jobs(ssh_home: SshHome) -> None:
    """One that runs is ended, one that waits is taken back; both are CANCELLED, and the other goes on."""
    gate = ssh_home.folder / "gate"
    jobs = [
        ssh_home.ssh_job("runs", "exec sleep 600"),
        ssh_home.ssh_job("other", f"{until(gate)} exit 7"),
        ssh_home.ssh_job("waits", "exit 0"),
    ]
    run = submit_in(ssh_home, jobs)
    for name in ("runs", "other"):
        ssh_home.wait_state(run, name, State.RUNNING, deadline_s=90)
    with ssh_home.client() as client:
        client.call("cancel", ids=[run + 3], by="tester", signal=None, now=False)
    ssh_home.wait_state(run, "waits", State.CANCELLED)
    with ssh_home.client() as client:
        client.call("cancel", ids=[run + 1], by="tester", signal=None, now=False)
    ssh_home.wait_state(run, "runs", State.CANCELLED)
    gate.touch()
    ssh_home.settle([run], 60)
    assert ssh_home.states(run) == {"runs": "CANCELLED", "other": "FAILED", "waits": "CANCELLED"}
    assert "waits" not in {name for name, states in ssh_home.shown(run).items() if "RUNNING" in states}


def test_a_host_that_is_away(ssh_home: SshHome) -> None:
    """What was sent runs meanwhile, and is heard of afterwards; what comes meanwhile says why it waits."""
    gate = ssh_home.folder / "gate"
    (ssh_home.synced / "input").write_text("hello\n")
    first = submit_in(ssh_home, [ssh_home.ssh_job("first", f"{until(gate)} exit 7")])
    ssh_home.wait_state(first, "first", State.RUNNING, deadline_s=90)
    ssh_home.sshd.stop()
    gate.touch()
    second = submit_in(ssh_home, flow(ssh_home))
    wait_for(lambda: "can't be asked" in ssh_home.log(), "the questions fail")
    assert ssh_home.states(first) == {"first": "RUNNING"}
    ssh_home.sshd.start()
    ssh_home.settle([first], 120)
    ssh_home.check(first, {"first": (State.FAILED, SEVEN)})
    check(ssh_home, second)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('$real "$@"; status=$?; ! once after || cut; exit $status', id="put, and the answer is lost"),
        pytest.param('! once before || { cut; exit 1; }; exec $real "$@"', id="not put"),
    ],
)
def test_a_cut_while_orders_are_put(ssh_home: SshHome, text: str) -> None:
    """Nothing is lost, and nothing runs twice."""
    (ssh_home.synced / "input").write_text("hello\n")
    ssh_home.configure(timeout=2)
    only = f'case "$*" in */alloc/*/in/*) {text} ;; *) exec $real "$@" ;; esac'
    (ssh_home.sshd.bin / "mv").symlink_to(ssh_home.wrapper("mv", only))
    ssh_home.sshd.prepend_path(ssh_home.sshd.bin)
    run = submit_in(ssh_home, flow(ssh_home))
    check(ssh_home, run)
    assert list(ssh_home.folder.glob("once-*")), "it was cut"


def test_a_coordinator_that_is_killed(ssh_home: SshHome) -> None:
    """The next one goes on with what runs there, and runs nothing twice."""
    gate = ssh_home.folder / "gate"
    jobs = [ssh_home.ssh_job(name, f"{until(gate)} exit 7") for name in ("a", "b", "c")]
    run = submit_in(ssh_home, jobs)
    wait_for(lambda: list(ssh_home.states(run).values()).count("RUNNING") == 2, "two of them run", 90)
    ssh_home.kill_coordinator()
    gate.touch()
    ssh_home.connect_again()
    ssh_home.settle([run], 150)
    ssh_home.check(run, dict.fromkeys(("a", "b", "c"), (State.FAILED, SEVEN)))
    wait_for(lambda: not folder_there(ssh_home, run).exists(), "the run's folder on the host is removed", 90)
