"""The command `scontrol`."""

from aver.slurm_cli.scontrol.command import main as main
