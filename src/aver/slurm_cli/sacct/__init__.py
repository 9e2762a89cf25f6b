"""The command `sacct`."""

from aver.slurm_cli.sacct.command import main as main
