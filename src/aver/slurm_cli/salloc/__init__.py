"""The command `salloc`."""

from aver.slurm_cli.salloc.command import main as main
