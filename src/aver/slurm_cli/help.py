"""The help pages and usage lines of Slurm's commands, laid out as Slurm lays them out. Only a call for them needs it.

Letters and values come from each command's own table. A word list has lines of `name=value | sentence` under headings;
a page shows those that its command has, and says which of them mean nothing here.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from aver.spec.getopt import FLAG, MAYBE, Table

_WIDTH = 30  # of the column with the options
_LINE = 80
_JOB = """
Parallel run options:
array=indexes | members of an array: 1-10, 0-20:5, 1,3,7-9; %N behind it: at most N at once
account=name | account of the job
acctg-freq=list | how often use is measured
batch=features | features of the batch script's node
bb=spec | burst buffer
bbf=file | burst buffer of a file
bcast=path | copy the program there first
bcast-exclude=paths | libraries that are not copied
begin=time | do not start before: 16:00, now+1hour, 2030-01-20T12:00
bell | ring when the allocation is there
no-bell | do not ring
chdir=path | working folder
cluster-constraint=list | features of clusters
clusters=names | clusters to run on
comment=text | comment of the job
compress=library | compress what --bcast copies
container=path | container to run in
cpu-freq=range | frequency of the CPUs
cpus-per-task=n | CPUs of each task
deadline=time | end, or remove, the job at this time
delay-boot=minutes | wait before nodes are rebooted
dependency=list | afterok:7, afterany:7:8, singleton; `,` is and, `?` is or
disable-status | Ctrl-C goes to the tasks
distribution=method | how tasks are placed on nodes
epilog=program | run by srun after the step
error=file | standard error
export=names | environment: ALL, NONE, NAME, NAME=VALUE
export-file=file | environment from a file
get-user-env=seconds | environment of a login
gid=group | group to run as
gres=list | generic resources: gpu:2
gres-flags=options | how generic resources are chosen
het-group=list | parts of a heterogeneous job
hold | hold the job until scontrol release
ignore-pbs | do not read #PBS lines
immediate=seconds | give up if it is not there by then
input=file | standard input
interactive | step of an interactive shell
job-name=name | name of the job or step
jobid=id | run the step in this job
kill-command=signal | end the command when the allocation is gone
kill-on-bad-exit=0|1 | the first task that fails ends the others
kill-on-invalid-dep=yes|no | cancel the job if its dependency can never hold
label | number of the task before each line
licenses=names | licenses
mail-type=events | mail on BEGIN, END, FAIL, REQUEUE, ALL
mail-user=address | address of these mails
mcs-label=label | multi-category security label
mpi=type | type of MPI: none, list
msg-timeout=seconds | time limit of messages
multi-prog | the operand is a file with a program for each task
network=type | network of the step
nice=value | lower the priority by this
no-allocate | run without an allocation
no-kill | keep the job when a node fails
no-requeue | never begin the job again
no-shell | take the allocation and run nothing; srun --jobid=N uses it
nodes=N | number of nodes: this machine is one
ntasks=n | number of tasks
ntasks-per-node=n | number of tasks on each node
ntasks-per-tres=n | number of tasks for each GPU
oom-kill-step=0|1 | end all tasks of a step that is out of memory
open-mode=append|truncate | how files of the output are opened
output=file | standard output; %j %A %a %x %u %N %s %t are replaced
overcommit | more tasks than CPUs
parsable | print the number of the job alone
partition=partition | partition
power=flags | power management
preserve-env | leave SLURM_NNODES and SLURM_NTASKS as they are
priority=value | priority of the job
profile=value | what is profiled
prolog=program | run by srun before the step
propagate=rlimits | soft limits that the tasks have: all, or by name
pty | the first task has a terminal
qos=qos | quality of service
quit-on-interrupt | Ctrl-C ends the tasks at once
quiet | say less
reboot | reboot nodes first
relative=n | first node of the step in its job
requeue | begin the job again after the machine was lost
resv-ports=n | reserve ports
segment=n | size of a segment of nodes
send-libs=yes|no | copy the program's libraries too
signal=[B:]sig@seconds | warn the tasks, or with B: the script, before the time limit
slurmd-debug=level | debug level of the node
spread-job | use as many nodes as possible
spread-segments | keep segments apart
consolidate-segments | keep segments together
stepmgr | steps are managed on the node
switches=count@time | switches between nodes
task-epilog=program | run after each task
task-prolog=program | run before each task
test-only | check, and submit nothing
thread-spec=n | threads of each node for the system
threads=n | threads that launch the tasks
time=time | time limit: 10 (minutes), 1:30:00, 1-12
time-min=time | least time limit
tres-bind=list | binding of tasks to resources
tres-per-task=list | resources of each task: cpu:2
uid=user | user to run as
unbuffered | pass output on as it comes
use-min-nodes | use as few nodes as possible
verbose | say more; may be given several times
wait=seconds | wait for the end of the job, and exit as it did; srun: what other tasks have after the first one's end
wait-all-nodes=0|1 | wait until all nodes are up
wait-for-children | a task ends with all of its processes
wckey=name | workload characterization key
wrap=command | a command instead of a script
x11=all | forward X11

Constraint options:
cluster-constraint=list | features of clusters
constraint=list | features of nodes
contiguous | nodes must follow each other
exclude=nodes | nodes that are not used
mem=MB | memory of the job or step: 512 (MiB), 2G
mincpus=n | least CPUs of each node
nodefile=file | nodes to use, from a file
nodelist=nodes | nodes to use
prefer=list | features that are preferred
reservation=name | reservation to use
tmp=MB | least temporary disk space

Consumable resources related options:
core-spec=n | cores of each node for the system
exact | take only the CPUs that are asked for, so that other steps run beside
exclusive=user|mcs | take the whole machine; srun in a job: as --exact
mem-per-cpu=MB | memory of each CPU
overlap | take no CPUs of the job at all
oversubscribe | share resources with other jobs

Affinity/Multi-core options:
accel-bind=flags | binding of tasks to accelerators
cores-per-socket=n | cores of each socket
cpu-bind=type | binding of tasks to CPUs
extra-node-info=S:C:T | sockets, cores and threads of each node
hint=hint | placement for compute_bound or memory_bound programs
mem-bind=type | binding of tasks to memory
ntasks-per-core=n | tasks on each core
ntasks-per-socket=n | tasks on each socket
sockets-per-node=n | sockets of each node
threads-per-core=n | threads of each core

GPU scheduling options:
cpus-per-gpu=n | CPUs of each GPU
gpu-bind=type | binding of tasks to GPUs
gpu-freq=range | frequency of the GPUs
gpus=n | GPUs of the job
gpus-per-node=n | GPUs of each node
gpus-per-socket=n | GPUs of each socket
gpus-per-task=n | GPUs of each task
mem-per-gpu=n | memory of each GPU
ntasks-per-gpu=n | tasks of each GPU

Help options:
help | show this page
usage | show a short usage message

Other options:
version | show the version
"""
_READING = """
account=accounts | only jobs of these accounts
accounts=accounts | only jobs of these accounts
all | hidden and other partitions too
allclusters | jobs of all clusters
allocations | jobs alone, without their steps
allsteps | all steps of the jobs
allusers | jobs of all users
array | a line for each member of an array
array-unique | a line for each member of an array that differs
associations=ids | only jobs of these associations
batch | signal the batch script alone
batch-script | print the script of the job
brief | JobID, State and ExitCode
clusters=names | clusters to ask
completion | ask the completion log
constraints=list | only jobs with these constraints
cron | cancel cron jobs
ctld | send signals by the controller
dead | only nodes that do not answer
delimiter=characters | separator with -p and -P
duplicates | requeued jobs with all their records
endtime=time | only jobs that were there before
env-vars | print the environment of the job
exact | do not group nodes
expand-patterns | files of the job in place of the patterns of their names
federation | jobs of a federation
file=file | read records of a file
flags=flags | only jobs with these flags
format=format | fields and their widths
Format=format | fields by name
full | signal the script and all steps
future | nodes in the FUTURE state too
gid=groups | only jobs of these groups
helpFormat | list the names for -O
helpformat | list the fields
helpstate | list the states
hide | leave hidden partitions out
hurry | do not stage data out
interactive | ask before each job
iterate=seconds | show again after this time
jobname=name | only jobs of this name
jobs=ids | only these jobs, or their steps
json=version | as JSON
licenses=names | only jobs that use these licenses
list-reasons | why nodes are down
local | this cluster alone
long | more fields
me | only your own jobs
name=names | only jobs of these names
ncpus=range | only jobs with so many CPUs
nnodes=range | only jobs with so many nodes
noconvert | leave units of numbers as they are
Node | a line for each node
nodelist=nodes | only jobs on these nodes
nodes=nodes | only these nodes
noheader | no header line
notme | only jobs of other users
only-job-state | number and state of jobs alone
parsable | with `|` between fields and at the end
parsable2 | with `|` between fields
partition=partitions | only these partitions
pidformat | processes of the steps
priority | by partition and priority
qos=qos | only jobs of these QOSes
quiet | say nothing of what could not be done
reason=reasons | only jobs with these reasons
reservation=name | only jobs of this reservation
responding | only nodes that answer
sibling=id | jobs of another cluster
signal=name|integer | send this signal; nothing is cancelled unless it is KILL
sort=fields | order of the lines
start | expected start of waiting jobs
starttime=time | only jobs that were there since
state=states | only jobs in these states
states=states | only jobs or nodes in these states
steps=ids | steps instead of jobs
summarize | states of the nodes in one line
timelimit-max=time | only jobs with at most this time limit
timelimit-min=time | only jobs with at least this time limit
truncate | times within --starttime and --endtime
uid=users | only jobs of these users
units=unit | unit of sizes: K, M, G, T, P
use-local-uid | names of users as they are here
user=users | only jobs of these users
verbose | say more
version | show the version
wckey=key | only jobs of this key
wckeys=keys | only jobs of these keys
whole-hetjob=yes|no | all parts of a heterogeneous job
yaml=version | as YAML

Help options:
help | show this page
usage | show a short usage message
"""


def page(table: Table, synopsis: str, idle: Sequence[str], about: str = "", *, reads: bool = False) -> str:
    """The help page: what the command does, then its options in groups. `idle`: without meaning here."""
    lines = [f"Usage: {synopsis}", *(["", *textwrap.wrap(about, _LINE)] if about else [])]
    for heading, options in _groups(table, _READING if reads else _JOB):
        lines += ["", *([heading] if heading else [])]
        for name, value, words in options:
            lines += _entry(_flags(table, name, value), f"{words} (no effect here)" if name in idle else words)
    return "\n".join(lines) + "\n"


def listing(table: Table, synopsis: str, idle: Sequence[str], not_served: Sequence[str] = ()) -> str:
    """The help page as sacct and sstat have it: each option with a colon, its words below."""
    lines = [synopsis, "    Valid <OPTION> values are:"]
    for _, options in _groups(table, _READING):
        for name, _, words in options:
            notes = " (no effect here)" if name in idle else " (not supported here)" if name in not_served else ""
            lines += [f"     {_flags(table, name, '').strip()}:", f"                   {words}{notes}"]
    return "\n".join(lines) + "\n"


def usage(table: Table, command: str, operands: str = "", *, reads: bool = False) -> str:
    """`Usage: squeue [-hlrv] [-A accounts] … [--usage]`, and the operands."""
    options = [one for _, group in _groups(table, _READING if reads else _JOB) for one in group]
    letters = {name: letter for letter, name in table.letters.items()}
    together = "".join(sorted(letters[name] for name, _, _ in options if not table.takes[name] and name in letters))
    words = [f"[-{together}]"] if together else []
    for name, value, _ in options:
        takes = table.takes[name]
        bare = value.replace("[", "").replace("]", "")
        if name in letters and takes:
            words.append(f"[-{letters[name]} {bare}]")
        elif name not in letters:
            words.append(f"[--{name}={bare}]" if takes else f"[--{name}]")
    indent = " " * (len(f"Usage: {command}") + 1)
    lines = [f"Usage: {command}"]
    for word in [*words, *([operands] if operands else [])]:
        if len(lines[-1]) + 1 + len(word) > _LINE:
            lines.append(indent + word)
        else:
            lines[-1] += f" {word}"
    return "\n".join(lines) + "\n"


def _groups(table: Table, words: str) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Each heading with the options of the command below it, each once: name, value, words."""
    seen: set[str] = set()
    for block in words.strip().split("\n\n"):
        lines = block.splitlines()
        heading = lines.pop(0) if lines[0].endswith(":") else ""
        found = []
        for line in lines:
            option, _, text = line.partition(" | ")
            name, _, value = option.partition("=")
            if name in table.takes and name not in seen:
                seen.add(name)
                found.append((name, value, text))
        if found:
            yield heading, found


def _flags(table: Table, name: str, value: str) -> str:
    letter = next((one for one, named in table.letters.items() if named == name), None)
    front = f"  -{letter}, --{name}" if letter else f"      --{name}"
    if table.takes[name] == FLAG or not value:
        return front
    return f"{front}[={value}]" if table.takes[name] == MAYBE else f"{front}={value}"


def _entry(flags: str, words: str) -> list[str]:
    if len(flags) < _WIDTH:
        return [f"{flags:<{_WIDTH}}{words}"]
    return [flags, " " * _WIDTH + words]
