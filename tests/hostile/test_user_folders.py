"""Folders of users may hang, and files that jobs generate may be anything: the coordinator goes on."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
from pathlib import Path

import pytest

from aver.model.codec import encode
from aver.model.evidence import Verdict
from aver.model.job import FlowSpec, JobSpec, RetryRule, Streams
from aver.model.record import replace
from aver.model.slurm_options import SlurmOptions
from aver.model.states import State
from hanging_folder import hanging
from live_home import LiveHome, is_alive, pids, shell_job, wait_for

READER = b"aver.coordinator.order.generated_reader"


def maker(text: str, **fields: object) -> JobSpec:
    return shell_job("gen", text, generates="more.yaml", **fields)


def verdict_of(live: LiveHome, run: int, name: str = "gen") -> Verdict:
    with live.reader() as reader:
        job = next(job for job in reader.jobs(run=run) if job.name == name)
        verdict = reader.attempts(job.id)[-1].verdict
    assert verdict is not None
    assert (job.state, job.reason) == (verdict.state, verdict.reason)
    return verdict


def readers() -> list[int]:
    """Processes that read what a job generated."""
    found = []
    for pid in pids():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if READER in words and is_alive(pid):
            found.append(pid)
    return found


ALIASES = "\n".join(["a0: &a0 {run: x}"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 30)}]" for n in range(1, 12)])
PRODUCT = ", ".join(f"a{n}: 1..1000" for n in range(30))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mkfifo more.yaml", "is not a regular file"),
        ("ln -s /dev/zero more.yaml", "is not a regular file"),
        ("mkdir more.yaml", "is not a regular file"),
        ("truncate -s 1T more.yaml", "has more than"),
        ("ln -s more.yaml more.yaml", "can't read"),
        ("""echo '{a: {run: "echo {n}", matrix: {n: 1..1000000}}}' > more.yaml""", "more than 100000 values"),
        ("""printf '{a: {run: "echo {a0}", matrix: {%s}}}' '""" + PRODUCT + "' > more.yaml", "the most is 100000"),
        (f"{sys.executable} -c 'print(chr(91) * 200000)' > more.yaml", "nested more than"),
        (f"cat > more.yaml <<'END'\n{ALIASES}\nEND", "unfold to too many values"),
        ("head -c 100000 /dev/urandom > more.yaml", "more.yaml"),
    ],
    ids=["fifo", "device", "folder", "huge", "loop", "million", "product", "deep", "aliases", "noise"],
)
def test_what_a_job_generated_is_its_own_trouble(live: LiveHome, text: str, said: str) -> None:
    """The job is FAILED with a sentence, and the same coordinator runs the next job."""
    run = live.submit(maker(text), shell_job("other", "true"))
    live.settle([run])
    verdict = verdict_of(live, run)
    assert (verdict.state, verdict.reason, str(verdict.exit)) == (State.FAILED, "GeneratedJobs", "0:0")
    assert said in verdict.detail
    assert verdict_of(live, run, "other").state is State.COMPLETED
    assert live.home.log.read_text().count("ready, pid") == 1


def test_a_batch_that_is_small_as_text_and_large_as_jobs(live: LiveHome) -> None:
    """3,000 jobs that share one list of 3,000 needs: what reads them may run out of memory, and nobody else."""
    first = [f"  j{n}: {{run: x}}" for n in range(3000)]
    needs = f"  k0: {{run: x, needs: &x [{', '.join(f'j{n}' for n in range(3000))}]}}"
    others = [f"  k{n}: {{run: x, needs: *x}}" for n in range(1, 3000)]
    (live.folder / "large.yaml").write_text("\n".join(["defaults: {}", "jobs:", *first, needs, *others]))
    run = live.submit(maker("cp large.yaml more.yaml"), shell_job("other", "true"))
    live.settle([run])
    verdict = verdict_of(live, run)
    assert verdict.reason == "GeneratedJobs"
    assert "MiB of" in verdict.detail
    assert live.home.log.read_text().count("ready, pid") == 1


def test_a_job_that_fails_for_what_it_generated_is_tried_again(live: LiveHome) -> None:
    """The attempt has that verdict, so its rule applies: the second attempt's jobs come to be, once."""
    batch = json.dumps({"grown": {"run": 'echo "$AVER_KEY" >> "$RAN"'}})
    text = f"""[ "$AVER_ATTEMPT" = 2 ] && echo '{batch}' > more.yaml || echo '{{' > more.yaml"""
    run = live.submit(maker(text, retry=RetryRule(max=1, states=(State.FAILED,))), shell_job("other", "true"))
    live.settle([run])
    with live.reader() as reader:
        jobs = {job.name: job for job in reader.jobs(run=run)}
        verdicts = [attempt.verdict for attempt in reader.attempts(jobs["gen"].id)]
    assert [(one.state, one.reason) for one in verdicts if one is not None] == [
        (State.FAILED, "GeneratedJobs"), (State.COMPLETED, "None"),
    ]  # fmt: skip
    assert jobs["grown"].state is State.COMPLETED
    assert len(live.keys_run()) == 1
    live.assert_store_is_whole()


def test_a_file_that_hangs_is_waited_for_by_its_job_alone(live: LiveHome) -> None:
    """Others are taken, run and settle meanwhile; its cancellation ends the wait."""
    (live.folder / "slow").mkdir()
    with hanging(live.folder / "slow"):
        run = live.submit(shell_job("gen", "true", generates="slow/more.yaml"), shell_job("other", "true"))
        wait_for(readers, "a process that reads the file")
        other = live.run_text("true")
        live.settle([other])
        with live.reader() as reader:
            gen = next(job for job in reader.jobs(run=run) if job.name == "gen")
        assert gen.state is State.COMPLETING
        with live.client() as client:
            client.call("cancel", ids=[gen.id], by="tester")
        live.settle([run])
        verdict = verdict_of(live, run)
        assert (verdict.state, str(verdict.exit)) == (State.CANCELLED, "0:0")
        assert "cancelled by tester before the jobs that it generated were read" in verdict.detail


@pytest.mark.parametrize("how", ["reader", "coordinator"])
def test_killed_while_the_file_is_read(live: LiveHome, how: str) -> None:
    """Whoever is killed while a generated file is read: it is read again, and its jobs run once."""
    grown = live.folder / "more.yaml"
    batch = json.dumps({"grown": {"run": 'echo "$AVER_KEY" >> "$RAN"'}})
    (live.folder / "slow").mkdir()
    with hanging(live.folder / "slow"):
        text = f"echo '{batch}' > kept.yaml; ln -s slow/more.yaml more.yaml"
        run = live.submit(maker(text), shell_job("other", "true"))
        first = wait_for(readers, "a process that reads the file")
        grown.unlink()
        (live.folder / "kept.yaml").rename(grown)
        if how == "coordinator":
            live.kill_coordinator()
        for pid in first:
            if is_alive(pid):
                os.kill(pid, signal.SIGKILL)
        live.connect_again()
        live.settle([run])
    with live.reader() as reader:
        jobs = {job.name: job for job in reader.jobs(run=run)}
        assert len(reader.attempts(jobs["gen"].id)) == 1
    assert {name: job.state for name, job in jobs.items()} == dict.fromkeys(("gen", "other", "grown"), State.COMPLETED)
    assert len(live.keys_run()) == 1
    live.assert_store_is_whole()


def test_submitting_from_a_folder_that_hangs(live: LiveHome) -> None:
    """Its submitter waits; nobody else does, and no number is given twice."""
    slow = live.folder / "slow"
    slow.mkdir()
    live.connect_again()
    flow = FlowSpec("slow", (shell_job("c", "true"), shell_job("d", "true")))
    submission = live.submission(flow)
    submission = replace(submission, origin=replace(submission.origin, folder=str(slow)))
    request = {"op": "submit", "submission": encode(submission), "env": live.environment()}
    with socket.socket(socket.AF_UNIX) as client, hanging(slow):
        client.connect(str(live.home.path / "sock"))
        client.sendall(json.dumps(request).encode() + b"\n")
        live.connect_again()  # requests are taken in the order in which they come
        runs = [live.run_text("true"), live.submit(shell_job("a", "true"), shell_job("b", "true"))]
        live.settle(runs)
        assert runs[0] > 3, "the numbers that the first one was promised are not given to others"
        assert not select.select([client], [], [], 0)[0], "the submitter was answered"
        reply_to = client.dup()
    with reply_to:
        reply = json.loads(reply_to.makefile().readline())
    assert (reply["ok"], reply["status"]) == (False, 73)
    assert "can't write the job's output" in reply["error"]
    live.settle([live.run_text("true")])
    live.assert_store_is_whole()


def test_an_output_folder_that_hangs(live: LiveHome) -> None:
    """A job of sbatch whose output lies there does not hold up those that come after it."""
    slow = live.folder / "slow"
    slow.mkdir()
    with hanging(slow):
        job = shell_job("job", "true", streams=Streams(None, "slow/%j.out"), slurm=SlurmOptions(command="x"))
        waiting = live.submit(job)
        live.settle([live.run_text("true")])
        assert not live.job(waiting).state.is_settled
    live.settle([waiting])


def test_inputs_that_hang_before_the_start(live: LiveHome) -> None:
    """The job is being started, can be cancelled, and never runs; others do meanwhile."""
    slow = live.folder / "slow"
    slow.mkdir()
    with hanging(slow):
        stuck = live.submit(shell_job("stuck", "touch ran", inputs=("slow/*",)))

        def reason() -> str:
            with live.reader() as reader:
                return reader.jobs(run=stuck)[0].reason

        wait_for(lambda: reason() == "Starting", "it is being started")
        live.settle([live.submit(shell_job("quick", "true"))])
        with live.client() as client:
            client.call("cancel", ids=[stuck], by="me")
        live.settle([stuck])
    with live.reader() as reader:
        assert reader.jobs(run=stuck)[0].state is State.CANCELLED
    assert not (live.folder / "ran").exists()


def test_inputs_that_hang(live: LiveHome) -> None:
    """Fingerprints of other folders are taken meanwhile."""
    slow = live.folder / "slow"
    slow.mkdir()
    (slow / "data").write_text("x")
    text = "touch begun; until test -e go; do sleep 0.02; done"
    stuck = live.submit(shell_job("stuck", text, inputs=("slow/*",)))
    wait_for((live.folder / "begun").exists, "the job begins")
    with hanging(slow):
        (live.folder / "go").touch()
        live.settle([stuck])
        live.folder, kept = live.folder / "there", live.folder
        live.folder.mkdir()
        (live.folder / "data").write_text("x")
        run = live.submit(shell_job("quick", "true", inputs=("data",)))
        live.settle([run])

        def marked() -> bool:
            with live.reader() as reader:
                return bool(reader.fingerprints(run))

        wait_for(marked, "a fingerprint")
        live.folder = kept
