"""The connection is cut at the worst moments: nothing is lost, nothing runs or is submitted twice."""

from __future__ import annotations

import os

import pytest
from fault_desk import BLOCK, OK, SEVEN, until
from ssh_desk import SshHome

from aver.model.job import Matrix, Need, Needs
from aver.model.states import State
from live_home import wait_for

EXPECTED = {
    "good": (State.COMPLETED, OK), "bad": (State.FAILED, SEVEN), "many[n=0]": (State.COMPLETED, OK),
    "many[n=7]": (State.FAILED, SEVEN), "after": (State.COMPLETED, OK),
}  # fmt: skip


def submit(home: SshHome) -> int:
    job = home.ssh_job
    return home.submit(
        job("good", "exit 0"),
        job("bad", "exit 7"),
        job("many", "exit {n}", matrix=Matrix((("n", ("0", "7")),))),
        job("after", "exit 0", needs=Needs((Need("good"),))),
        sync=(".",),
    )


def check(home: SshHome, run: int) -> None:
    home.settle([run], 150)
    home.check(run, EXPECTED)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('out=$($real "$@"); ! once after || cut; echo "$out"', id="taken, and its answer is lost"),
        pytest.param('! once before || { cut; exit 1; }; exec $real "$@"', id="not taken"),
        pytest.param('! once late || { cut; sleep 2; }; exec $real "$@"', id="taken after the cut"),
        pytest.param(
            'out=$($real "$@"); echo "$out"; ! once told || { sleep 0.2; cut; }', id="its answer came through"
        ),
    ],
)
def test_a_cut_while_sbatch_is_called(ssh_home: SshHome, text: str) -> None:
    """Whether Slurm took the job is asked by its name; it is handed over again only when that is certain."""
    ssh_home.configure({"sbatch": ssh_home.wrapper("sbatch", text)}, timeout=4)
    check(ssh_home, submit(ssh_home))


@pytest.mark.parametrize("name", ["squeue", "sacct"])
def test_a_cut_while_the_cluster_is_asked(ssh_home: SshHome, name: str) -> None:
    """Half an answer is none: the question is asked again on a new connection. A job without a record needs both."""
    half = 'if once a || once b; then $real "$@" | head -c 40; cut; exit 0; fi'
    text = f'case "$*" in *--version*) ;; *) {half} ;; esac; exec $real "$@"'
    ssh_home.configure({name: ssh_home.wrapper(name, text)})
    unseen = ssh_home.submit(ssh_home.ssh_job("unseen", BLOCK + "exit 0"))
    check(ssh_home, submit(ssh_home))
    ssh_home.settle([unseen], 150)
    ssh_home.check(unseen, {"unseen": (State.COMPLETED, OK)})
    assert ssh_home.verdict_text(unseen, "unseen").startswith("accounting")
    assert (ssh_home.folder / "once-b").exists(), "two answers were cut"


@pytest.mark.parametrize("way", ["there", "back"])
def test_a_cut_while_files_are_brought(ssh_home: SshHome, way: str) -> None:
    """The transfer goes on from where it stopped, and the job's verdict is not touched by it."""
    (ssh_home.synced / "input").write_bytes(os.urandom(5_000_000))
    rsync = ssh_home.sshd.bin / "rsync"
    some = "dd bs=64k count=800000 iflag=count_bytes 2>/dev/null"  # far less than the file
    part, which = (f'{some} | $real "$@"', "*") if way == "there" else (f'$real "$@" | {some}', "*--sender*")
    kept = ssh_home.folder / "kept"
    where = ssh_home.sshd.home if way == "there" else ssh_home.synced
    look = f"find {where} -path '*/.aver-partial/*' -type f -printf '%s\\n' >>{kept}"
    text = f'case "$*" in {which}) {look}; if once 1 || once 2; then {part}; cut; exit 1; fi ;; esac; exec $real "$@"'
    rsync.symlink_to(ssh_home.wrapper("rsync", text))
    run = ssh_home.submit(ssh_home.ssh_job("size", "wc -c < input > size; cp input output"), sync=(".",))
    ssh_home.settle([run], 120)
    ssh_home.check(run, {"size": (State.COMPLETED, OK)})
    assert (ssh_home.synced / "size").read_text().strip() == "5000000"
    assert (ssh_home.synced / "output").read_bytes() == (ssh_home.synced / "input").read_bytes()
    assert (ssh_home.folder / "once-2").exists()
    first, second = (int(size) for size in kept.read_text().split()[:2])
    assert 0 < first < second < 5_000_000, "what the second cut left has what the first one left in it"
    assert not list(where.rglob(".aver-partial"))


def test_a_host_that_is_away_moves_nothing(ssh_home: SshHome) -> None:
    """A job that runs goes on; one that is pending says why; both are settled rightly when the host is back."""
    gate = ssh_home.folder / "gate"
    first = ssh_home.submit(ssh_home.ssh_job("first", f"{until(gate)} exit 7"), sync=(".",))
    ssh_home.wait_state(first, "first", State.RUNNING)
    ssh_home.sshd.stop()
    gate.touch()
    second = ssh_home.submit(ssh_home.ssh_job("second", "exit 0"))

    def reason() -> str:
        with ssh_home.reader() as reader:
            return next(iter(reader.jobs(run=second))).reason

    wait_for(lambda: reason() in ("HostUnreachable", "Transfer"), "the pending job says why")
    wait_for(lambda: "slurm can't be asked" in ssh_home.log(), "the questions fail")
    assert ssh_home.states(first) == {"first": "RUNNING"}
    ssh_home.sshd.start()
    ssh_home.settle([first, second], 120)
    ssh_home.check(first, {"first": (State.FAILED, SEVEN)})
    ssh_home.check(second, {"second": (State.COMPLETED, OK)})


def test_a_network_that_stalls_moves_nothing(ssh_home: SshHome) -> None:
    """No connection ends, and nothing comes through: calls time out, and what runs meanwhile is settled rightly."""
    ssh_home.configure(timeout=4)
    gate = ssh_home.folder / "gate"
    first = ssh_home.submit(ssh_home.ssh_job("first", f"{until(gate)} exit 7"), sync=(".",))
    ssh_home.wait_state(first, "first", State.RUNNING)
    with ssh_home.sshd.stalled():
        gate.touch()
        second = ssh_home.submit(ssh_home.ssh_job("second", "exit 0"))
        wait_for(lambda: "slurm can't be asked" in ssh_home.log(), "the questions fail")
        assert ssh_home.states(first) == {"first": "RUNNING"}
        assert ssh_home.states(second)["second"] in ("PENDING", "SUBMITTED")
    ssh_home.settle([first, second], 150)
    ssh_home.check(first, {"first": (State.FAILED, SEVEN)})
    ssh_home.check(second, {"second": (State.COMPLETED, OK)})


def test_a_network_that_stalls_while_sbatch_is_called(ssh_home: SshHome) -> None:
    """Slurm has taken the job, and its answer does not come: it is found by its name, and runs once."""
    taken, go = ssh_home.folder / "taken", ssh_home.folder / "go"
    text = f'out=$($real "$@"); touch {taken}; until [ -e {go} ]; do sleep 0.1; done; echo "$out"'
    ssh_home.configure({"sbatch": ssh_home.wrapper("sbatch", text)}, timeout=4)
    run = ssh_home.submit(ssh_home.ssh_job("only", "exit 7"))
    wait_for(taken.exists, "Slurm has the job")
    with ssh_home.sshd.stalled():
        go.touch()
        wait_for(lambda: "slurm can't be asked" in ssh_home.log(), "the questions fail")
    ssh_home.settle([run], 150)
    ssh_home.check(run, {"only": (State.FAILED, SEVEN)})


@pytest.mark.parametrize("point", ["slurm-before-sbatch", "slurm-after-sbatch", "slurm-id-kept", "slurm-before-forget"])
def test_a_coordinator_that_dies_finds_its_jobs_on_the_host(
    ssh_home: SshHome, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one reads what was handed over where, and asks there."""
    ssh_home.configure(timeout=4)
    monkeypatch.setenv("AVER_CRASH_AT", f"{point}:1")
    run = submit(ssh_home)
    pid = ssh_home.coordinator()
    wait_for(lambda: pid is None or ssh_home.coordinator() != pid, f"the death at {point}")
    assert "idle: leaving" not in ssh_home.log(), f"{point} was never reached"
    monkeypatch.delenv("AVER_CRASH_AT")
    ssh_home.connect_again()
    check(ssh_home, run)
