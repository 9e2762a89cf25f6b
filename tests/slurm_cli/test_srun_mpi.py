"""A real MPI (Open MPI) in a batch job: exit codes of ranks, and the abort of one, with and without `aver task`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
from slurm_commands import Slurm

pytestmark = pytest.mark.skipif(shutil.which("mpicc") is None, reason="needs Debian's openmpi-bin and libopenmpi-dev")

RANK = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv) {
    int rank, size, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d of %d: %d\n", rank, size, sum);
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!strcmp(argv[1], "abort") && rank == 1) MPI_Abort(MPI_COMM_WORLD, 7);
    if (!strcmp(argv[1], "abort")) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return rank == 1 ? atoi(argv[1]) : 0;
}
"""
RUN = "mpirun --oversubscribe -n 2"
ENV = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
TASK = f"{os.path.dirname(sys.executable)}/aver task --"


@pytest.mark.parametrize("through", ["", TASK], ids=["plain", "task"])
@pytest.mark.parametrize(("how", "shown"), [("0", "COMPLETED|0:0"), ("3", "FAILED|3:0"), ("abort", "FAILED|7:0")])
def test_the_job_ends_as_its_ranks(slurm: Slurm, through: str, how: str, shown: str) -> None:
    (slurm.folder / "rank.c").write_text(RANK)
    subprocess.run(["mpicc", "rank.c", "-o", "rank"], cwd=slurm.folder, check=True)
    script = slurm.script(f"#!/bin/bash\n#SBATCH -n2\nexec {RUN} {through} ./rank {how} 2>mpi.err\n")
    slurm("sbatch", "--wait", "-o", "job.out", script, env=ENV)
    assert sorted(slurm.read("job.out").splitlines())[-2:] == ["rank 0 of 2: 1", "rank 1 of 2: 1"]
    assert slurm("sacct", "-XnPo", "state,exitcode", "-j", "1").out.strip() == shown


def test_ranks_that_srun_starts_would_not_find_each_other(slurm: Slurm) -> None:
    said = slurm("srun", "--mpi=pmix", "-n2", "true")
    assert said.status == 1
    assert said.err.endswith("start the ranks with mpirun inside the job\n")
