"""The names under which this machine appears in Slurm's commands and variables. Data only."""

CLUSTER = "aver"
PARTITION = "main"
QOS = "normal"
VERSION = "slurm 22.05.8"  # whose messages and exit statuses the commands have; clients read `slurm MAJOR.MINOR`
HIGHEST_INDEX = 1000  # of an array: MaxArraySize is 1001, as usual
STEP_CANCEL = "cancel step"  # what a person asked for with `scancel JOB.STEP`
