"""The command `squeue`."""

from aver.slurm_cli.squeue.command import main as main
