"""The help of sbatch on one machine."""

USAGE = "Usage: sbatch [OPTIONS...] script [args...]\n"

HELP = """\
Usage: sbatch [OPTIONS...] script [args...]

Submits a batch script to this machine. Options come from the command line, else from SBATCH_* variables,
else from the script's #SBATCH lines. Other options of Slurm's sbatch are accepted; they mean nothing here.

  -J, --job-name=NAME         name of the job
  -o, --output=FILE           its stdout (slurm-%j.out; of an array slurm-%A_%a.out); %j %A %a %x %u %N are replaced
  -e, --error=FILE            file for stderr (default: same as stdout)
  -i, --input=FILE            file for stdin (default: empty)
      --open-mode=append|truncate
  -D, --chdir=FOLDER          where it runs
      --export=ALL|NONE|NAMES what it inherits of this environment; NAME=VALUE sets
  -n, --ntasks=N              number of tasks for srun
      --ntasks-per-node=N     the same of each node
  -N, --nodes=N               number of nodes: this machine is one
  -c, --cpus-per-task=N       cpus of each task
      --mem=SIZE              memory limit: 512 (MiB), 2G
      --mem-per-cpu=SIZE      the same of each cpu
  -G, --gpus=N, --gres=gpu:N  gpus
  -t, --time=TIME             time limit: 10 (minutes), 1:30:00, 1-12
      --signal=[B:]SIG[@S]    warn it S seconds before its time limit: B: the script, else its steps
  -a, --array=INDICES         1-10, 0-20:5, 1,3,7-9; %N behind it: at most N at one time
  -d, --dependency=LIST       after:JOB[+MINUTES], afterok, afterany, afternotok, aftercorr,
                              singleton; , is and, ? is or
      --kill-on-invalid-dep=yes|no
      --begin=TIME            not before: 16:00, now+1hour, 2030-01-20T12:00
      --deadline=TIME         give up if it has not started by then
  -H, --hold                  hold it until scontrol release
      --requeue, --no-requeue begin it again after the machine was restarted; refuse scontrol requeue
      --comment=TEXT
  -p, --partition=NAME, -A, --account=NAME, -q, --qos=NAME
                              are shown, and mean nothing here
      --wrap=COMMAND          a command instead of a script
  -W, --wait                  wait for its end, and exit as it did
      --parsable              print the number alone
      --test-only             check, and submit nothing
  -Q, --quiet
  -v, --verbose
  -h, --help
  -V, --version
"""
