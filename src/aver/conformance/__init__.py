"""What Slurm prints about the end of a job, as cases that run against any set of Slurm's commands.

Of the rest of Aver it imports only the errors, so that it shares no code with the commands that it tests.
"""
