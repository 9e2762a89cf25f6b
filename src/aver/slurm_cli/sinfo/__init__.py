"""The command `sinfo`."""

from aver.slurm_cli.sinfo.command import main as main
