"""Attempts on a Slurm cluster, through its ordinary commands."""
