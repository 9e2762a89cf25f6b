"""The folder with Slurm's commands, for those in this room: see `aver.coordinator.commands`."""

from aver.coordinator.commands import install

__all__ = ["install"]
