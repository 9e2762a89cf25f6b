"""Slurm's own commands are called and understood, on the real daemons and on configurations that lead nowhere."""

from __future__ import annotations

import os
import re
import shlex
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from aver.engines.slurm.commands import sacct, scontrol, squeue
from aver.engines.slurm.commands.call import Commands
from aver.engines.slurm.commands.rows import Accounts, Disabled, NoAnswer, Queue, QueueRow
from aver.engines.slurm.commands.scontrol import Facts
from aver.engines.slurm.submit.sbatch_answer import Answer, Busy, Handed, Lost, Refusal, Unreachable, read_submission

if TYPE_CHECKING:
    from conftest import SlurmLab

DEADLINE_S = 60.0


@pytest.fixture
def commands(slurm_lab: SlurmLab) -> Commands:
    """The lab's commands, as its ordinary user."""
    user = slurm_lab.user
    words = [
        "setpriv",
        "--reuid",
        user,
        "--regid",
        user,
        "--init-groups",
        "env",
        f"HOME={slurm_lab.folder}/home/{user}",
    ]
    return Commands(prefix=shlex.join(words), conf=slurm_lab.configuration)


def submit(commands: Commands, *words: str) -> Answer:
    reply = commands.call(["sbatch", "--parsable", "--output=/dev/null", "--chdir=/", *words], timeout_s=60)
    return read_submission(reply)


def taken(commands: Commands, *words: str) -> int:
    answer = submit(commands, *words)
    assert isinstance(answer, Handed), answer
    return answer.id


def poll(commands: Commands, job: int, wanted: Callable[[list[QueueRow]], bool]) -> list[QueueRow]:
    """Ask squeue until the rows are as wanted."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        answer = squeue.read_queue(commands.call(squeue.by_ids([str(job)]), timeout_s=30), asked=1)
        assert isinstance(answer, Queue), answer
        assert answer.is_whole
        if wanted(list(answer.rows)):
            return list(answer.rows)
        assert time.monotonic() < deadline, answer
        time.sleep(0.1)


def test_a_job_from_its_submission_to_its_accounts(commands: Commands) -> None:
    """squeue has the whole exit code and the name as it was given; sacct has its rows."""
    name = "aver | asks  for=it\nand more"
    began = time.time()
    job = taken(commands, f"--job-name={name}", "--wrap=srun sh -c 'exit 7'; exit 137")
    (row,) = poll(commands, job, lambda rows: bool(rows) and rows[0].word == "FAILED")
    assert (row.job, row.exit, row.derived, row.restarts, row.name) == (job, "137:0", "7:0", 0, name)
    assert row.submitted_at is not None
    assert row.ended_at is not None
    assert abs(row.submitted_at - began) < 60
    deadline = time.monotonic() + DEADLINE_S
    while True:
        answer = sacct.read_accounts(commands.call(sacct.by_ids([str(job)], began - 3600), timeout_s=30))
        assert isinstance(answer, Accounts), answer
        rows = {one.step: one for one in answer.rows}
        if "batch" in rows and rows["batch"].ended_at and rows[""].ended_at and not rows[""].is_placeholder:
            break
        assert time.monotonic() < deadline, answer
        time.sleep(0.2)
    version = scontrol.read_version(commands.call(scontrol.version_of("sacct"), timeout_s=30))
    assert version is not None
    code = "137:0" if version >= (25, 11) else "9:0"  # earlier ones take 128 off
    assert (rows["batch"].word, rows["batch"].exit, rows["0"].exit) == ("FAILED", code, "7:0")
    assert rows["batch"].maxrss_bytes


def test_members_that_wait_and_members_by_name(commands: Commands) -> None:
    """Each member has its row while it waits; the same rows are found by the name alone."""
    name = f"aver-{os.getpid()}-{time.monotonic_ns()}"
    job = taken(commands, f"--job-name={name}", "--hold", "--array=1,3,5-9:2%4", "--wrap=true")
    try:
        rows = poll(commands, job, lambda rows: len(rows) == 5)
        assert sorted(row.index or 0 for row in rows) == [1, 3, 5, 7, 9]
        assert {row.word for row in rows} == {"PENDING"}
        named = squeue.read_queue(commands.call(squeue.by_names([name]), timeout_s=30), asked=0)
        assert isinstance(named, Queue)
        assert sorted(row.said for row in named.rows) == sorted(row.said for row in rows)
    finally:
        commands.call(["scancel", str(job)], timeout_s=30)


def test_nobody_there(commands: Commands) -> None:
    """Ids and names that the controller does not know are answers without rows."""
    for ids in (["99999999"], ["99999999", "99999998"]):
        assert squeue.read_queue(commands.call(squeue.by_ids(ids), timeout_s=30), asked=len(ids)) == Queue(())
    assert squeue.read_queue(commands.call(squeue.by_names(["no-such-name"]), timeout_s=30), asked=0) == Queue(())
    assert sacct.read_accounts(commands.call(sacct.by_ids(["99999999"], 0.0), timeout_s=30)) == Accounts(())


def test_facts(commands: Commands) -> None:
    """The site says what it has."""
    facts = scontrol.ask_facts(commands, 30)
    assert isinstance(facts, Facts)
    assert facts.version is not None
    assert (facts.cluster, facts.accounting, facts.max_array_size) == ("lab", "accounting_storage/slurmdbd", 1001)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--partition=nowhere"], "Invalid partition name specified"),
        (["--account=nobody"], "Invalid account"),
        (["--qos=golden"], "Invalid qos specification"),
        (["--mem=100T"], "Requested node configuration is not available"),
        (["--time=soon"], "Invalid --time specification"),
        (["--no-such-option"], "unrecognized option"),
        (["--constraint=nothing"], "Invalid feature specification"),
    ],
)
def test_mistakes_are_refused(commands: Commands, words: list[str], sentence: str) -> None:
    """A mistake is a refusal with Slurm's own sentence."""
    answer = submit(commands, *words, "--wrap=true")
    assert isinstance(answer, Refusal), answer
    assert sentence in answer.text


@contextmanager
def settings(slurm_lab: SlurmLab, **changes: str) -> Iterator[str]:
    """A copy of the lab's configuration with other values (empty: without), which its user may read."""
    text = Path(slurm_lab.configuration).read_text()
    for key, value in {"MessageTimeout": "2", **changes}.items():
        text = re.sub(rf"^{key}=.*$", f"{key}={value}" if value else "", text, flags=re.MULTILINE)
    with TemporaryDirectory(dir=slurm_lab.folder / "home") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "slurm.conf").write_text(text)
        (folder / "cgroup.conf").write_text((Path(slurm_lab.configuration).parent / "cgroup.conf").read_text())
        yield str(folder / "slurm.conf")


@contextmanager
def listener(closes: bool) -> Iterator[int]:
    """A port where somebody takes the connection and what is sent, and answers nothing."""
    server = socket.create_server(("127.0.0.1", 0))
    held: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            if closes:
                connection.recv(1 << 20)
                connection.close()
            else:
                held.append(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield server.getsockname()[1]
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        for connection in held:
            connection.close()
        thread.join(10)


def test_a_controller_that_is_not_there(commands: Commands, slurm_lab: SlurmLab) -> None:
    """Nobody listens: nothing was sent, and nobody was asked."""
    with listener(closes=True) as port:
        pass
    with settings(slurm_lab, SlurmctldPort=str(port)) as conf:
        there = Commands(prefix=commands.prefix, conf=conf)
        answer = submit(there, "--wrap=true")
        assert isinstance(answer, Unreachable), answer
        assert answer.reason == "ControllerUnreachable"
        assert isinstance(squeue.read_queue(there.call(squeue.by_ids(["1"]), timeout_s=60), asked=1), NoAnswer)


@pytest.mark.parametrize("closes", [True, False])
def test_an_answer_that_is_lost(commands: Commands, slurm_lab: SlurmLab, closes: bool) -> None:
    """Somebody took what was sent and did not answer: it may have been submitted."""
    with listener(closes) as port, settings(slurm_lab, SlurmctldPort=str(port)) as conf:
        there = Commands(prefix=commands.prefix, conf=conf)
        answer = submit(there, "--wrap=true")
        assert isinstance(answer, Lost), answer
        assert isinstance(squeue.read_queue(there.call(squeue.by_ids(["1"]), timeout_s=60), asked=1), NoAnswer)


def test_no_munge(commands: Commands, slurm_lab: SlurmLab) -> None:
    """Without a credential nothing is sent."""
    with settings(slurm_lab, AuthInfo="socket=/no/such/socket") as conf:
        answer = submit(Commands(prefix=commands.prefix, conf=conf), "--wrap=true")
    assert isinstance(answer, Unreachable), answer
    assert answer.reason == "Authentication"


def test_accounting_that_is_away_and_accounting_that_is_not_kept(commands: Commands, slurm_lab: SlurmLab) -> None:
    """Two answers: one may come back."""
    call = sacct.by_ids(["1"], 0.0)
    with listener(closes=True) as port:
        pass
    with settings(slurm_lab, AccountingStoragePort=str(port)) as conf:
        assert isinstance(
            sacct.read_accounts(Commands(prefix=commands.prefix, conf=conf).call(call, timeout_s=60)), NoAnswer
        )
    with settings(slurm_lab, AccountingStorageType="accounting_storage/none", AccountingStoreFlags="") as conf:
        assert isinstance(
            sacct.read_accounts(Commands(prefix=commands.prefix, conf=conf).call(call, timeout_s=60)), Disabled
        )


def test_a_limit_on_submissions_is_back_pressure(commands: Commands, slurm_lab: SlurmLab) -> None:
    """A limit on the number of jobs is no mistake of the job's: it is held back with Slurm's word for it."""
    manager = Commands(conf=slurm_lab.configuration)

    def manage(*words: str) -> None:
        manager.call(["sacctmgr", "-iQ", *words], timeout_s=60)

    manage("add", "qos", "averfull", "MaxSubmitJobsPerUser=0")
    manage("modify", "user", slurm_lab.user, "set", "qos+=averfull")
    try:
        deadline = time.monotonic() + DEADLINE_S
        while isinstance(answer := submit(commands, "--hold", "--qos=averfull", "--wrap=true"), (Handed, Refusal)):
            assert time.monotonic() < deadline, answer  # slurmctld hears of it a little later
            time.sleep(0.2)
    finally:
        manage("modify", "user", slurm_lab.user, "set", "qos-=averfull")
        manage("delete", "qos", "averfull")
    assert isinstance(answer, Busy), answer
    assert answer.reason == "QOSMaxSubmitJobPerUserLimit"
