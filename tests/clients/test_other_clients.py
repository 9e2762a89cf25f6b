"""Parsl, dask-jobqueue, PSI/J, reportseff and simple_slurm, as PyPI has them: what each reports."""

from __future__ import annotations

import subprocess

from clients_desk import Desk

from aver.model.states import State


def states(desk: Desk) -> dict[str, State]:
    """How each job ended: some clients do not wait for what they cancel."""
    return {str(job.id): job.state for job in desk.until_settled()}


def test_parsl(desk: Desk) -> None:
    """Apps run in a block with their results, errors and files; a block that is over has the state that it had."""
    found = desk.program("parsl_blocks.py")
    assert found["value"] == 42
    assert found["python"] == "ValueError: not this one"
    assert found["bash"] == "BashExitFailure: bash_app leave failed with unix exit code 3"
    assert desk.read("leave.txt") == "a line of the app\n"
    assert found["blocks"] == ["RUNNING"]
    assert found["states"] == {"good": "COMPLETED", "bad": "FAILED", "hungry": "FAILED", "cancelled": "CANCELLED"}
    assert list(states(desk).values()) == [
        State.CANCELLED, State.COMPLETED, State.FAILED, State.OUT_OF_MEMORY, State.CANCELLED,
    ]  # fmt: skip
    assert states(desk)[found["job"]] is State.CANCELLED, "Parsl ends its block"


def test_dask_jobqueue(desk: Desk) -> None:
    """A worker is a job that joins the cluster, computes, and is cancelled when the cluster is scaled down."""
    found = desk.program("dask_cluster.py")
    assert found["sum"] == 30
    assert found["error"] == "ValueError: not this one"
    assert (found["ids"], found["status"]) == ([found["job"]], ["running"])
    assert states(desk) == {found["job"]: State.CANCELLED}
    assert "Starting established connection" in desk.read(f"worker-logs/dask-worker-{found['job']}.err")


def test_psij(desk: Desk) -> None:
    """PSI/J's own states and exit codes of a job that ends well, badly, by a signal, late, and cancelled."""
    found = desk.program("psij_jobs.py")
    numbers = {name: facts.pop() for name, facts in found.items()}
    assert found == {
        "good": ["COMPLETED", 0, None],
        "code": ["FAILED", 3, None],
        "signal": ["FAILED", 137, None],
        "late": ["FAILED", None, "The job exhausted its time limit."],
        "cancelled": ["CANCELED", None, None],
    }
    assert desk.read("good.txt") == f"a line of {numbers['good']}\n"
    assert states(desk)[numbers["late"]] is State.TIMEOUT
    assert states(desk)[numbers["cancelled"]] is State.CANCELLED


def test_simple_slurm(desk: Desk) -> None:
    """Its sbatch gives the number, its squeue the state, its scancel cancels, its arrays have files of their own."""
    found = desk.program("simple_calls.py")
    assert found["text"] == "first\nsecond\n"
    assert found["queue"] == {str(found["job"]): "R"}
    assert found["member"] == "member 4\n"
    desk.until_settled()
    said = desk.run("sacct", "-nXP", "-o", "JobID,State", "-j", f"{found['job']},{found['array']}")
    lines = [line.split(" by ")[0] for line in said.text.splitlines()]
    members = [f"{found['array']}_{index}|COMPLETED" for index in (3, 4, 5)]
    assert lines == [f"{found['job']}|CANCELLED", *members]


OUTCOMES = """
sbatch --wait --mem 200M -t 10 --wrap 'srun python3 -c "block = bytearray(100 << 20); sum(range(30_000_000))"'
sbatch --wait --mem 200M -t 10 --wrap 'exit 137'
sbatch --wait --mem 100M -t 10 --wrap 'python3 -c "import time; block = bytearray(300 << 20); time.sleep(30)"'
sbatch --wait --mem 200M -t 0:02 --wrap 'sleep 60'
sbatch --wait --array=1-2 -t 10 --wrap 'exit $((SLURM_ARRAY_TASK_ID - 1))'
true
"""


def test_reportseff(desk: Desk) -> None:
    """The state of each job, and use that was measured: about half of the memory, all of the time."""
    desk.write("submit.sh", OUTCOMES)
    assert desk.run("sh", "submit.sh").status == 0
    said = desk.run(
        "reportseff", "--format", "JobID,State,ExitCode,MemEff,TimeEff", "--parsable", "1", "2", "3", "4", "5"
    )
    assert said.status == 0, said.text
    rows = {line.split("|")[0]: line.split("|")[1:] for line in said.text.splitlines()}
    found = {number: row[:2] for number, row in rows.items()}
    assert found == {
        "JobID": ["State", "ExitCode"],
        "1": ["COMPLETED", "0:0"],
        "2": ["FAILED", "137:0"],
        "3": ["OUT_OF_MEMORY", "0:125"],
        "4": ["TIMEOUT", "0:15"],
        "5_1": ["COMPLETED", "0:0"],
        "5_2": ["FAILED", "1:0"],
    }
    assert 50.0 <= float(rows["1"][2].rstrip("%")) <= 70.0
    assert float(rows["4"][3].rstrip("%")) >= 100.0  # as long as its limit, and as its end took


def test_the_clients_are_as_pinned() -> None:
    """What is installed is what requirements.txt says, unmodified: pip has nothing to complain about."""
    from clients_desk import CLIENTS, PROGRAMS

    python = CLIENTS / "bin" / "python"
    asked = [python, "-m", "pip", "--disable-pip-version-check", "list", "--format=freeze"]
    installed = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()
    pins = [line for line in (PROGRAMS.parent / "requirements.txt").read_text().splitlines() if "==" in line]
    assert not set(pins) - set(installed)
