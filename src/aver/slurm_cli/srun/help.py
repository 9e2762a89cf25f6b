"""The help of srun on one machine."""

HELP = """\
Usage: srun [OPTIONS...] executable [args...]

Runs tasks as a step of the job that it is called in, or, called alone, as a job of its own.

  -n, --ntasks=N              number of tasks
  -c, --cpus-per-task=N       cpus of each task
      --mem=SIZE              memory of the step: 512 (MiB), 2G
  -t, --time=TIME             time limit of the step: 10 (minutes), 1:30:00, 1-12
      --signal=SIG[@SECONDS]  warn the tasks before their time limit
  -K, --kill-on-bad-exit[=0|1]  the first task that fails ends the others
  -W, --wait=SECONDS          after the first task's end the others have this long
  -l, --label                 the task's number before each line
  -o, --output=FILE           stdout of the tasks: %j %x %u %N %s %t are replaced; none
  -e, --error=FILE            stderr of the tasks
  -i, --input=FILE            stdin of the tasks; none
  -D, --chdir=FOLDER          where the tasks run
      --export=NAMES          environment of the tasks: ALL, NONE, NAME, NAME=VALUE
      --exact                 take just the cpus asked for, so that other steps run beside
      --overlap               take no cpus at all
  -b, --begin=TIME            alone: not before 16:00, now+1hour, 2030-01-20T12:00
  -d, --dependency=LIST       alone: afterok:7, afterany:7:8, singleton
  -J, --job-name=NAME         name of the step
  -Q, --quiet  -v, --verbose  -V, --version  -h, --help

Example:
  srun -n 4 -l python rank.py
"""
