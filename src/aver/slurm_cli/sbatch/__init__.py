"""The command `sbatch`."""

from aver.slurm_cli.sbatch.command import main as main
