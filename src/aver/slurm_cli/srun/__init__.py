"""The command `srun`."""

from aver.slurm_cli.srun.command import main as main
