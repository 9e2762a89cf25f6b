"""Record what a real Slurm prints, for those who write the same commands without one at hand.

python tests/slurm/record.py, as root, with the lab running (scripts/slurm-lab start). Writes recorded/*.txt: blocks
of a line `$ command`, what it printed on both streams, and `[exit N]`. Folders and host names of the machine become
/lab, /home/alice and `host`. The files are read by people and tests; nothing runs this in CI.
"""
# ruff: noqa: E501
# A command is one line, however long.

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
USER = "alice"
LAB = Path(os.environ["SLURM_CONF"]).parent.parent

JOBS: dict[str, tuple[str, str]] = {
    "running": ("-n2 -N1 --comment=hello", "srun -n2 sleep 300 &\nsleep 1\nsrun -n1 --overlap sh -c 'exit 3'\nwait"),
    "plain": ("--mem=64M -t 5", "sleep 300"),
    "held": ("--hold", "true"),
    "later": ("--begin=now+1hour", "true"),
    "ok": ("", "srun true\nsrun hostname"),
    "failed": ("-n2", "srun -n2 sh -c 'exit 7'\nexit 3"),
    "code137": ("", "exit 137"),
    "signalled": ("", "kill -SEGV $$"),
    "cancelled": ("", "srun sleep 300"),
    "memory": ("--mem=50M", "x=$(head -c 150M /dev/zero | tr '\\0' x)"),
    "limit": ("--time=1", "srun sleep 300"),
    "array": ("--array=1-4%1", "[ $SLURM_ARRAY_TASK_ID = 1 ] && exit 2; sleep 300"),
    "waits": ("--dependency=afterok:{plain}", "true"),
    "never": ("--dependency=afterok:{failed}", "true"),
    "occupies": ("-p narrow --exclusive", "sleep 300"),
    "resources": ("-p narrow --exclusive", "true"),
    "priority": ("-p narrow --exclusive", "true"),
    "toomany": ("-N 1000", "true"),
    "requeued": ("", "sleep 300"),
}

COMMANDS: dict[str, str] = {
    "squeue": """
        squeue
        squeue -h
        squeue -l
        squeue -r
        squeue -s
        squeue -j {running}
        squeue -j {running} -l
        squeue -j {array} -r
        squeue -j {running},{held}
        squeue -t PD
        squeue -t R,PD -S i
        squeue -t all -S i
        squeue -t F,CA,TO,OOM -o "%i %T %t %r %R"
        squeue -u alice -S -i -h -o "%i|%j|%u|%t|%M|%l|%D|%C|%R"
        squeue --me -h
        squeue -n held,later
        squeue -p narrow
        squeue --start
        squeue -o "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
        squeue -j {running} -o "%a|%A|%b|%B|%c|%C|%d|%D|%e|%E|%f|%F|%g|%G|%h|%H|%i|%I|%j|%J|%k|%K|%l|%L|%m|%M|%n|%N|%o|%O|%p|%P|%q|%Q|%r|%R|%S|%t|%T|%u|%U|%v|%V|%w|%W|%x|%X|%y|%Y|%z|%Z"
        squeue -j {array} -o "%i %A %F %K %t %r"
        squeue -j {waits} -o "%i %E %r"
        squeue -O jobid,name,state,reason
        squeue -O jobid:10,name:20,username:8,statecompact:4,timeused:12,timelimit:12,reasonlist:30
        squeue -h -O "JobID:.12,Name:.12,exit_code:.12,derived_ec:.12,RestartCnt:.4"
        squeue -h -j {failed} -t all -O jobid,state,exit_code,derived_ec,reason
        squeue -j {running} -s -o "%i %j %P %u %M %N"
        squeue -o "%i %5t|%.5t|%-5t"
        squeue -o "%Z %no"
        squeue -o "nothing"
        squeue -j 99999999
        squeue -h -j 99999998,99999999
        squeue -j abc
        squeue -t SLEEPING
        squeue -u nosuchuser
        squeue -O nosuchfield
        squeue -S nosuch
        squeue --no-such-option
        squeue --help
        squeue --usage
        squeue --version
    """,
    "sacct": """
        sacct -j {all}
        sacct -X -j {all}
        sacct -b -j {all}
        sacct -n -j {all}
        sacct -P -j {all}
        sacct -p -j {failed}
        sacct -j {running}
        sacct -j {failed} -o JobID,JobName,State,ExitCode,DerivedExitCode
        sacct -j {code137} -o JobID,State,ExitCode,DerivedExitCode
        sacct -j {signalled},{memory},{cancelled},{limit} -o JobID%20,State%30,ExitCode,Reason%30,Elapsed,ElapsedRaw
        sacct -j {array} -o JobID%20,JobIDRaw,State,ExitCode
        sacct -j {array} -X -n -P -o JobID,State
        sacct -D -j {requeued} -o JobID,State,ExitCode,Start,End
        sacct -j {running} -o JobID,MaxRSS,AveRSS,MaxVMSize,TotalCPU,UserCPU,SystemCPU,CPUTime,CPUTimeRAW,AllocCPUS,ReqMem,ReqCPUS,NTasks,NNodes,NodeList
        sacct -j {ok} -P -o JobID,Submit,Eligible,Start,End,Elapsed,Timelimit,TimelimitRaw,Partition,Account,User,UID,Group,GID,Cluster
        sacct -j {ok} -P -o JobID,AllocTRES,ReqTRES,TRESUsageInMax,WorkDir,Comment,Flags,QOS,Priority,SubmitLine
        sacct -j {held},{later} -o JobID,State,Start,End,Elapsed,Reason
        sacct -j {all} -s F -X -o JobID,State
        sacct -j {all} -s CA,TO,OOM -S now-1hour -E now -X -o JobID,State
        sacct -S now-1hour -E now -s R -X -j {all}
        sacct -u alice -j {all} -X -o JobID%-12,JobName%-5,State%-20,ExitCode%5
        sacct -l -P -j {failed}
        sacct -l -j {ok}
        sacct --helpformat
        sacct -n -j 99999999
        sacct -j abc
        sacct -o nosuchfield
        sacct -o JobID%abc
        sacct -S whenever
        sacct -s SLEEPING
        sacct -u nosuchuser
        sacct --no-such-option
        sacct --usage
        sacct --version
    """,
    "scontrol": """
        scontrol show job {running}
        scontrol -d show job {running}
        scontrol -o show job {running}
        scontrol -d -o show job {failed}
        scontrol show job {plain}
        scontrol show job {held}
        scontrol show job {later}
        scontrol show job {waits}
        scontrol show job {never}
        scontrol show job {resources}
        scontrol show job {array}
        scontrol -o show job {array}_2
        scontrol -d show job {failed}
        scontrol -d show job {signalled}
        scontrol -d show job {cancelled}
        scontrol -d show job {memory}
        scontrol -d show job {limit}
        scontrol -d show job {requeued}
        scontrol show step {running}
        scontrol show step {running}.0
        scontrol -o show step {running}.0
        scontrol show step {held}
        scontrol show node n1
        scontrol -o show node n1
        scontrol show partition main
        scontrol -o show partition
        scontrol show hostnames n[1-3,5],x
        scontrol show hostlist n1,n2,n3,x7
        scontrol show hostlistsorted n3,n1,n2
        scontrol ping
        scontrol version
        scontrol write batch_script {failed} -
        scontrol hold {later}
        scontrol release {later}
        scontrol update JobId={held} TimeLimit=7
        scontrol update JobId={held} JobName=renamed Comment=hi
        scontrol update JobId={held} TimeLimit=soon
        scontrol update JobId={held} NoSuch=5
        scontrol update JobId={running} TimeLimit=+5
        scontrol update JobId=99999999 TimeLimit=5
        scontrol suspend {running}
        scontrol requeue {held}
        scontrol requeue 99999999
        scontrol hold 99999999
        scontrol hold {failed}
        scontrol release {running}
        scontrol top {held}
        scontrol show job 99999999
        scontrol show job abc
        scontrol show step 99999999
        scontrol show node nosuch
        scontrol show partition nowhere
        scontrol show nonsense
        scontrol dance
        scontrol show config
        scontrol --no-such-option
    """,
    "sinfo": """
        sinfo
        sinfo -h
        sinfo -N
        sinfo -l
        sinfo -N -l
        sinfo -s
        sinfo -p main
        sinfo -o "%P %a %l %D %t %N"
        sinfo -h -N -o "%N %t %T %c %m %C %e %O %f %G %E"
        sinfo -O partition,available,time,nodes,statecompact,nodelist
        sinfo -R
        sinfo -t idle
        sinfo -n n1
        sinfo -p nowhere
        sinfo -t sleepy
        sinfo --no-such-option
        sinfo --version
    """,
    "scancel": """
        scancel -v {priority}
        scancel -v {plain}.7
        scancel -s USR1 -v {running}.0
        scancel -v {array}_[3-4]
        scancel -v {array}_99
        scancel {ok}
        scancel -v {ok}
        scancel -Q {ok}
        scancel 99999999
        scancel -v 99999999
        scancel 99999999.0
        scancel abc
        scancel
        scancel -s NOSUCH {plain}
        scancel -t SLEEPING
        scancel -u nosuchuser
        scancel -n held -v
        scancel --no-such-option
        scancel --usage
        scancel --version
    """,
    "sbatch": """
        sbatch --parsable --wrap true
        sbatch --wrap true
        sbatch -Q --wrap true
        sbatch -v --wrap true
        sbatch --wait --wrap "exit 3"
        sbatch --test-only --wrap true
        sbatch --test-only -N 1000 --wrap true
        sbatch --hold --array=1,3,5-9:2%2 --parsable --wrap true
        sbatch noline.sh
        sbatch empty.sh
        sbatch dos.sh
        sbatch badline.sh
        sbatch unknownline.sh
        sbatch missing.sh
        sbatch .
        sbatch --wrap true extra
        sbatch --no-such-option --wrap true
        sbatch -z --wrap true
        sbatch --time=soon --wrap true
        sbatch --time=1:2:3:4 --wrap true
        sbatch --time=1-2-3 --wrap true
        sbatch --time= --wrap true
        sbatch --mem=lots --wrap true
        sbatch --mem=10X --wrap true
        sbatch --mem=100T --wrap true
        sbatch --mem-per-cpu=x --wrap true
        sbatch --array=x --wrap true
        sbatch --array=5-1 --wrap true
        sbatch --array=1-1000000 --wrap true
        sbatch --array=1-3:0 --wrap true
        sbatch --dependency=whenever --wrap true
        sbatch --dependency=afterok: --wrap true
        sbatch --dependency=afterok:abc --wrap true
        sbatch --dependency=afterwards:1 --wrap true
        sbatch -w nosuchnode --wrap true
        sbatch -w n[1- --wrap true
        sbatch -N many --wrap true
        sbatch -N 4-2 --wrap true
        sbatch -n 0 --wrap true
        sbatch -n many --wrap true
        sbatch -c many --wrap true
        sbatch -c 100 --wrap true
        sbatch -p nowhere --wrap true
        sbatch -A nobody --wrap true
        sbatch -q golden --wrap true
        sbatch --signal=NOSUCH@10 --wrap true
        sbatch --signal=B:USR1@soon --wrap true
        sbatch --begin=whenever --wrap true
        sbatch --deadline=whenever --wrap true
        sbatch --deadline=2020-01-01 --wrap true
        sbatch --gres=nosuch:1 --wrap true
        sbatch --gpus=1 --wrap true
        sbatch --open-mode=sideways --wrap true
        sbatch --kill-on-invalid-dep=perhaps --wrap true
        sbatch --export=NONE --parsable --wrap true
        sbatch --usage
        sbatch --version
    """,
    "srun": """
        srun true
        srun false
        srun sh -c "exit 137"
        srun bash -c "kill -SEGV $$"
        srun -n3 -l hostname
        srun -n2 -N1 bash -c "[ $SLURM_PROCID = 0 ] || exit 3"
        srun -n4 -N1 -K bash -c "[ $SLURM_PROCID = 1 ] && sleep 1 && exit 3; sleep 60"
        srun -n2 -N1 -W1 bash -c "[ $SLURM_PROCID = 0 ] && exit 0; sleep 60"
        srun /no/such/command
        srun /etc/passwd
        srun -o /proc/none/out true
        srun -i /no/such/file cat
        srun -D /no/such/folder pwd
        srun -t soon true
        srun -n none true
        srun -n 0 true
        srun -N many true
        srun --mem=lots true
        srun -p nowhere true
        srun -w nosuchnode true
        srun --signal=NOSUCH@1 true
        srun -c many true
        srun --jobid=99999999 true
        srun --no-such-option true
        srun
        srun -v true
        srun --usage
        srun --version
    """,
}


def run(words: list[str], folder: Path, seconds: float = 60) -> tuple[int, str]:
    """Run as the user and return the exit status and both streams together."""
    as_user = ["setpriv", "--reuid", USER, "--regid", USER, "--init-groups"]
    kept = ("PATH", "SLURM_CONF")
    environment = {
        **{key: os.environ[key] for key in kept},
        "HOME": "/home/alice",
        "USER": USER,
        "TZ": "UTC",
        "LC_ALL": "C",
    }
    try:
        done = subprocess.run(
            [*as_user, *words],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        return 124, (late.stdout or b"").decode(errors="replace") + "(it hangs)\n"
    return done.returncode, done.stdout


def scrub(text: str, folder: Path) -> str:
    """Without the folders and the name of this machine."""
    text = text.replace(str(folder), "/home/alice").replace(str(LAB), "/lab")
    return re.sub(rf"\b{re.escape(os.uname().nodename)}\b", "host", text)


def submit_jobs(folder: Path) -> dict[str, str]:
    """Submit one job of each sort and bring each to where it belongs."""
    ids: dict[str, str] = {}
    for name, (options, script) in JOBS.items():
        (folder / f"{name}.sh").write_text(f"#!/bin/bash\n{script}\n")
        words = shlex.split(options.format(**ids))
        status, out = run(["sbatch", "--parsable", "-J", name, *words, f"{name}.sh"], folder)
        if status != 0:
            raise SystemExit(f"{name}: {out}")
        ids[name] = out.strip()
    return ids


def wait_for(ids: dict[str, str], name: str, state: str, folder: Path) -> None:
    deadline = time.monotonic() + 150
    while state not in run(["scontrol", "show", "job", ids[name]], folder)[1]:
        if time.monotonic() > deadline:
            raise SystemExit(f"{name} is not {state}")
        time.sleep(0.3)


def record(folder: Path) -> None:
    for name, text in (
        ("noline", "echo hello\n"),
        ("empty", ""),
        ("dos", "#!/bin/bash\r\ntrue\r\n"),
        ("badline", "#!/bin/bash\n#SBATCH --time=soon\ntrue\n"),
        ("unknownline", "#!/bin/bash\n#SBATCH --no-such-option=1\ntrue\n"),
    ):
        (folder / f"{name}.sh").write_bytes(text.encode())
    ids = submit_jobs(folder)
    ids["all"] = ",".join(ids.values())
    wait_for(ids, "requeued", "JobState=RUNNING", folder)
    wait_for(ids, "cancelled", "JobState=RUNNING", folder)
    run(["scontrol", "requeuehold", ids["requeued"]], folder)
    run(["scancel", ids["cancelled"]], folder)
    # Ended jobs are asked about first, before slurmctld forgets them; the time limit takes longest of all.
    write("scontrol", ids, folder, only=("{failed}", "{signalled}", "{cancelled}", "{memory}", "{requeued}", "{array}"))
    wait_for(ids, "limit", "JobState=TIMEOUT", folder)
    for page in COMMANDS:
        write(page, ids, folder)
    run(["scancel", "-u", USER], folder)


SEEN: dict[str, str] = {}


def write(page: str, ids: dict[str, str], folder: Path, only: tuple[str, ...] = ()) -> None:
    """Write a page, or with `only` remember the answers to the commands that name such a job."""
    blocks = []
    for line in (line.strip() for line in COMMANDS[page].strip().splitlines()):
        if only and not (line.startswith(("scontrol show job", "scontrol -")) and line.endswith(only)):
            continue
        filled = re.sub(r"\{(\w+)\}", lambda found: ids[found[1]], line)
        if line in SEEN:
            blocks.append(SEEN[line])
            continue
        status, out = run(shlex.split(filled), folder)
        block = (
            f"$ {filled}\n{scrub(out, folder)}{'' if not out or out.endswith(chr(10)) else chr(10)}[exit {status}]\n"
        )
        if only:
            SEEN[line] = block
        blocks.append(block)
    if not only:
        named = ", ".join(f"{name} {key}" for name, key in ids.items() if name != "all")
        (HERE / "recorded" / f"{page}.txt").write_text(f"# Slurm 22.05.8. Jobs: {named}\n\n" + "\n".join(blocks))


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="aver-record-") as name:
        folder = Path(name)
        folder.chmod(0o777)
        record(folder)


if __name__ == "__main__":
    main()
