"""After a run on a real Slurm: numbers are those of the kernel and of sacct; what ran out of memory is recovered."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Protocol

import pytest
from both_engines import Place, last_run, make_place

MIB = 1 << 20
TOUCH = "python3 -c 'import time; x = bytearray(300 << 20); time.sleep(3)'"
BURN = "python3 -c 'import time\nwhile time.process_time() < 2: pass'"
EAT = "python3 -c 'x = bytearray(120 << 20)'"
RANK = r"""
#include <mpi.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (argc == 1 && rank == 1) MPI_Abort(MPI_COMM_WORLD, 7);
    if (argc == 1) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return rank == 1 ? atoi(argv[1]) : 0;
}
"""
MPIRUN = "mpirun --mca plm isolated --mca ras ^slurm --oversubscribe"
AS_ROOT = "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"


class Lab(Protocol):
    @property
    def environment(self) -> dict[str, str]: ...


@pytest.fixture
def place(slurm_lab: Lab, tmp_path: Path) -> Place:
    return make_place("slurm", tmp_path, slurm_lab.environment)


def flow(place: Place, text: str) -> int:
    place.write("flow.yaml", text)
    place("run", "--engine", "slurm", "flow.yaml")
    return last_run(place)


def attempts(place: Place, run: int) -> dict[str, dict[str, Any]]:
    """The last attempt of each job."""
    rows = json.loads(place("results", str(run), "--json").out)["results"]
    return {row["name"]: row for row in sorted(rows, key=lambda row: row["attempt"] or 0)}


def accounted(environment: dict[str, str], key: str) -> dict[str, str]:
    """What sacct has of the script of the job with this key in its name, once it has it."""
    end = time.monotonic() + 60
    words = ["sacct", "-n", "-P", "-S", "now-1hour", "-o", "JobName%200,JobID,MaxRSS,ElapsedRaw,TotalCPU,State"]
    while time.monotonic() < end:
        lines = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()
        rows = [line.split("|") for line in lines]
        jobs = {row[1] for row in rows if key in row[0]}
        found = next((row for row in rows if row[0] == "batch" and row[1].removesuffix(".batch") in jobs), None)
        if found is not None and found[2]:
            return dict(zip(("name", "id", "maxrss", "elapsed", "cpu", "state"), found, strict=True))
        time.sleep(0.5)
    pytest.fail(f"sacct never had {key}")


def test_the_numbers_are_the_kernels_and_saccts(slurm_lab: Lab, place: Place) -> None:
    """300 MB touched for 3 s and 2 s of cpu burnt are what results and usage say, as sacct does within its sampling."""
    text = f"jobs:\n  touch: {{run: {json.dumps(TOUCH)}, mem: 1G}}\n  burn: {{run: {json.dumps(BURN)}, mem: 200M}}\n"
    run = flow(place, text)
    rows = attempts(place, run)
    touch, burn = rows["touch"], rows["burn"]
    assert [touch["state"], burn["state"]] == ["COMPLETED", "COMPLETED"]
    assert 300 * MIB <= touch["peak_bytes"] <= 340 * MIB
    assert 3.0 <= touch["elapsed_s"] <= 30.0
    assert 2.0 <= burn["cpu_s"] <= 3.5
    assert touch["node"], touch
    usage = json.loads(place("usage", str(run), "--json").out)
    assert {tuple(group["measured_by"]) for group in usage["groups"]} == {("witness",)}
    said = accounted(slurm_lab.environment, key_of(place, touch["job"]))
    assert abs(int(said["elapsed"]) - touch["elapsed_s"]) <= 3
    unit = {"K": 1024, "M": MIB}[said["maxrss"][-1]]  # sacct writes whole MiB as such
    assert int(said["maxrss"][:-1]) * unit <= touch["peak_bytes"] + 40 * MIB
    burnt = accounted(slurm_lab.environment, key_of(place, burn["job"]))
    minutes, _, seconds = burnt["cpu"].rpartition(":")
    assert abs(int(minutes or 0) * 60 + float(seconds) - burn["cpu_s"]) <= 1.0


def key_of(place: Place, job: int) -> str:
    return str(json.loads(place("show", str(job), "--json").out)["attempts"][-1]["key"])


def test_what_ran_out_of_memory_completes_on_the_next_recover(place: Place) -> None:
    """recover corrects the flow, keeps its comments, runs again only what must, and the run completes."""
    text = (
        "# the whole evening\njobs:\n"
        f"  hungry: {{run: {json.dumps(EAT)}, mem: 100M}}  # too little\n"
        f"  fine: {{run: 'echo x >> ran'}}\n"
        "  after: {run: echo after, needs: hungry}\n"
    )
    run = flow(place, text)
    rows = attempts(place, run)
    assert (rows["hungry"]["state"], rows["hungry"]["return_code"]) == ("OUT_OF_MEMORY", 137)
    dry = place("recover", str(run), "--dry-run")
    assert dry.status == 0, dry.err
    assert (place.folder / "flow.yaml").read_text() == text
    done = place("recover", str(run), "--yes")
    assert done.status == 0, done.err
    assert place("watch", str(run), "--exit-status").status == 0
    corrected = (place.folder / "flow.yaml").read_text()
    assert "mem: 150M}  # too little" in corrected
    assert corrected.replace("150M", "100M") == text
    assert (place.folder / "ran").read_text() == "x\n", "what was done ran again"
    assert {name: row["state"] for name, row in attempts(place, run).items()} == dict.fromkeys(
        ("hungry", "fine", "after"), "COMPLETED"
    )


@pytest.mark.skipif(shutil.which("mpicc") is None, reason="needs Debian's openmpi-bin and libopenmpi-dev")
def test_the_ranks_of_an_mpirun_are_tasks_of_a_step(place: Place) -> None:
    """With `aver task` each rank has its own verdict: one that fails, and one that aborts the others."""
    place.write("rank.c", RANK)
    subprocess.run(["mpicc", "rank.c", "-o", "rank"], cwd=place.folder, check=True)
    task = f"{os.path.dirname(sys.executable)}/aver task --"
    lines = (AS_ROOT, f"{MPIRUN} -n 3 {task} ./rank 5 || :", f"{MPIRUN} -n 2 {task} ./rank || :")
    place.write("flow.yaml", f"jobs:\n  ranks: {{cpus: 2, run: {json.dumps('; '.join(lines))}}}\n")
    place("run", "--engine", "slurm", "flow.yaml")
    document = json.loads(place("show", "last/ranks", "--json").out)
    assert (document["job"]["state"], document["job"]["derived_exit"]) == ("COMPLETED", "7:0")
    steps = sorted(document["steps"], key=lambda step: step["started_at"])
    assert [(step["name"], step["tasks"], step["exit"]["text"]) for step in steps] == [
        ("rank", 3, "5:0"),
        ("rank", 2, "7:0"),
    ]
    assert [end["exit"]["text"] for end in steps[0]["task_ends"]] == ["0:0", "5:0", "0:0"]
    assert steps[1]["task_ends"][0]["because"], "rank 0 was ended since rank 1 aborted"
