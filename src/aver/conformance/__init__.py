"""What Slurm says of a job's end, as cases that run against any set of Slurm's commands.

A room of its own: it knows the commands on PATH and nothing of the rest of Aver but its errors.
"""
