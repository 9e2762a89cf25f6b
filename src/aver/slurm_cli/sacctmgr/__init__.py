"""The command `sacctmgr`."""

from aver.slurm_cli.sacctmgr.command import main as main
