"""The command `sstat`."""

from aver.slurm_cli.sstat.command import main as main
