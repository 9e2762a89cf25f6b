"""`#PBS` lines of a batch script: read after `#SBATCH` lines, before variables and flags, as Slurm translates them."""

from __future__ import annotations

import pytest
from slurm_commands import Slurm

from aver.spec.sbatch.pbs import lsf_options, pbs_options


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("-N name", [("job-name", "name")]),
        ("-l walltime=00:07:00,mem=512mb", [("time", "00:07:00"), ("mem", "512m")]),
        ("-l nodes=2:ppn=4", [("nodes", "2"), ("ntasks", "8")]),
        ("-l nodes=3+ppn=2,mem=1024MB", [("nodes", "3"), ("ntasks", "6"), ("mem", "1024M")]),
        (
            "-l select=1:ncpus=4:mpiprocs=2:mem=4gb",
            [("nodes", "1"), ("mincpus", "4"), ("ntasks-per-node", "2"), ("mem", "4g"), ("cpus-per-task", "2")],
        ),
        ("-q batch -A me -h", [("partition", "batch"), ("account", "me"), ("hold", None)]),
        ("-m abe -M a@b", [("mail-type", "BEGIN,END,FAIL"), ("mail-user", "a@b")]),
        ("-W depend=afterok:7 -W umask=022 -j oe -V", [("dependency", "afterok:7")]),
        ("-t 1-3", [("array", "1-3")]),
    ],
)
def test_what_a_line_asks_for(line: str, options: list[tuple[str, str | None]]) -> None:
    assert pbs_options(f"#!/bin/sh\n#PBS {line}\ntrue\n") == options


SCRIPT = "#!/bin/sh\n#SBATCH -J slurm\n#PBS -N pbs\n#PBS -l walltime=00:07:00\ntrue\n"


@pytest.mark.parametrize(
    ("flags", "env", "shown"),
    [
        ([], {}, "pbs|7:00"),
        ([], {"SBATCH_IGNORE_PBS": "0"}, "pbs|7:00"),
        (["-J", "typed"], {}, "typed|7:00"),
        (["--ignore-pbs"], {}, "slurm|UNLIMITED"),
        ([], {"SBATCH_IGNORE_PBS": "1"}, "slurm|UNLIMITED"),
    ],
)
def test_their_place_among_other_options(slurm: Slurm, flags: list[str], env: dict[str, str], shown: str) -> None:
    assert slurm("sbatch", "--hold", *flags, slurm.script(SCRIPT), env=env).status == 0
    assert slurm("squeue", "-ho", "%j|%l").out.strip() == shown


def test_a_line_that_cant_be_read_is_refused(slurm: Slurm) -> None:
    said = slurm("sbatch", slurm.script("#!/bin/sh\n#PBS -Y\n"))
    assert said.status == 255
    assert said.err.startswith("sbatch: invalid option -- 'Y'\n")


@pytest.mark.parametrize(
    ("line", "options"),
    [
        (
            "-o out -e err -J name -W 7 -q main",
            ["output=out", "error=err", "job-name=name", "time=7", "partition=main"],
        ),
        ('-m "n1 n2" -x -cwd /tmp', ["nodelist=n1,n2", "exclusive=", "chdir=/tmp"]),
        ("-M2048", ["mem-per-cpu=2048K"]),
        ("-M 2G -n 2,4", ["mem-per-cpu=2G", "ntasks=4"]),
    ],
)
def test_what_a_line_of_lsf_asks_for(line: str, options: list[str]) -> None:
    """As Slurm translates it: memory is in KB, and of two numbers of tasks the second counts."""
    found = lsf_options(f"#!/bin/sh\n#BSUB {line}\ntrue\n")
    assert [f"{name}={text or ''}" for name, text in found] == options


def test_a_script_with_lines_of_lsf(slurm: Slurm) -> None:
    """They hold, unless --ignore-pbs says otherwise; #PBS lines beside them are not read."""
    slurm.script("#!/bin/sh\n#BSUB -J lsf -W 7\n#PBS -N pbs\ntrue\n")
    for flags, shown in (([], "lsf|7:00"), (["--ignore-pbs"], "job.sh|UNLIMITED")):
        job = slurm.submit("-H", *flags, "job.sh")
        assert slurm("squeue", "-h", "-j", str(job), "-o", "%j|%l").out.strip() == shown
