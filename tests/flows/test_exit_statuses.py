"""The exit statuses of `aver run flow.yaml` and `aver watch --exit-status`, one by one, and the run's precedence."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from flow_lab import DEADLINE_S, Lab

JOBS = {
    "COMPLETED": (0, "run: 'true'"),
    "FAILED": (1, "run: exit 7"),
    "TIMEOUT": (3, "run: sleep 100, time: 1s"),
    "OUT_OF_MEMORY": (4, "run: 'python3 -c \"x = bytearray(300 << 20); import time; time.sleep(9)\"', mem: 60M"),
    "DEADLINE": (6, "run: 'true', needs: b, deadline: now+1seconds"),
    "UNVERIFIED": (7, "run: 'kill -KILL $PPID; sleep 100'"),
    "CHECKPOINTED": (
        8,
        "run: 'trap \"exit 0\" USR1; while :; do sleep 0.02; done', "
        "time: 60s, signal: USR1@59s, checkpoint: {rounds: 1}",
    ),
}
BY_WEIGHT = ["OUT_OF_MEMORY", "FAILED", "DEADLINE", "TIMEOUT", "CANCELLED", "UNVERIFIED", "CHECKPOINTED", "COMPLETED"]


@pytest.mark.parametrize("state", JOBS)
def test_each_outcome(lab: Lab, state: str) -> None:
    """`aver run` exits as OUTCOMES.md 5 says, `watch --exit-status` says the same later, plain `watch` exits 0."""
    status, keys = JOBS[state]
    lab.write(f"jobs:\n  a: {{{keys}}}\n  b: {{run: sleep {2 if state == 'DEADLINE' else 0}}}\n")
    answer = lab("run", "flow.yaml")
    assert answer.status == status, answer
    assert f"run 1 {state}" in answer.err
    assert lab("watch", "1", "--exit-status").status == status
    assert lab("watch", "1").status == 0


def test_precedence_of_many(lab: Lab) -> None:
    """Of many, the worst by the order of OUTCOMES.md 2: seven outcomes in one run, taken away one by one."""
    names = [name for name in BY_WEIGHT if name in JOBS]
    jobs = "".join(f"  {name.lower()}: {{{JOBS[name][1]}}}\n" for name in names)
    run = lab.run(f"jobs:\n{jobs}  b: {{run: sleep 2}}\n")
    assert {job.name.upper(): str(job.state) for job in run if job.name != "b"} == {name: name for name in names}
    assert run.state == "OUT_OF_MEMORY"
    ids = [str(run[name.lower()].number) for name in names]
    for place in (1, 3, 4, 5):
        answer = lab("watch", "--exit-status", "--quiet", *ids[place:])
        assert answer.status == JOBS[names[place]][0], (names[place:], answer)


def test_usage_and_a_wrong_flow(lab: Lab) -> None:
    """2: no such file, a flow with mistakes (all of them said), a flag that there is not."""
    assert lab("run", "nothing.yaml").status == 2
    lab.write("jobs:\n  a: {run: 'true', needs: b, mems: 3}\n")
    answer = lab("run", "flow.yaml")
    assert answer.status == 2
    assert '"mems"' in answer.err
    assert '"b"' in answer.err
    assert lab("run", "--nothing").status == 2
    assert lab("watch", "99", "--exit-status").status == 2


def test_a_watch_that_gives_up(lab: Lab) -> None:
    """124: the watch's own timeout passed, and nothing is cancelled; then 5: somebody cancelled the run."""
    run = lab.submit("jobs:\n  a: {run: sleep 100}\n")
    number = str(run.number)
    assert lab("watch", number, "--exit-status", "--timeout", "1s").status == 124
    assert not run.state.is_settled
    run.cancel()
    assert lab("watch", number, "--exit-status").status == 5


def test_the_home_can_not_be_written(lab: Lab) -> None:
    """73: nothing can be kept, so nothing is run."""
    lab.write("jobs:\n  a: {run: touch ran}\n")
    (lab.folder / "file").touch()
    assert lab("run", "flow.yaml", env={"AVER_HOME": str(lab.folder / "file" / "home")}).status == 73
    assert not (lab.folder / "ran").exists()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_cancels_the_run(lab: Lab, number: signal.Signals, status: int) -> None:
    """Ctrl-C and TERM cancel the run, wait for its end (finishers run), and exit 130 and 143."""
    lab.write("jobs:\n  a: {run: touch begun; sleep 100}\n  z: {needs: a, if: always, run: touch cleaned}\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "aver", "run", "flow.yaml"],
        cwd=lab.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        process_group=0,
    )
    lab.wait_for("begun")
    process.send_signal(number)
    out, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == status, (out, err)
    assert b"CANCELLED" in err
    assert (lab.folder / "cleaned").exists()
