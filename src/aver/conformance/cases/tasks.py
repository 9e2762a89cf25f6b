"""Steps of several tasks: whose end is the step's."""

from __future__ import annotations

from aver.conformance.model import script

CASES = (
    script(
        "tasks/0-1-2-3",
        "Codes 0, 1, 2, 3, in this order",
        (
            "srun -n4 bash -c 'sleep 0.$((SLURM_PROCID * 2 + 1)); case $SLURM_PROCID in 0) exit 0;; 1) exit "
            "1;; 2) exit 2;; 3) exit 3;; esac'; echo srun=$?\n"
            "exit 0"
        ),
        """
            scontrol  COMPLETED 0:0 3:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     FAILED 3:0
            said      srun=3
            messages  srun: error: NODE: task 1: Exited with exit code 1 / srun: error: NODE: task 2: Exited
            ... with exit code 2 / srun: error: NODE: task 3: Exited with exit code 3
        """,
        options="-N1 -n4",
    ),
    script(
        "tasks/3-0-0-0",
        "Only the first task fails, and ends first",
        (
            "srun -n4 bash -c 'sleep 0.$((SLURM_PROCID * 2 + 1)); case $SLURM_PROCID in 0) exit 3;; 1) exit "
            "0;; 2) exit 0;; 3) exit 0;; esac'; echo srun=$?\n"
            "exit 0"
        ),
        """
            scontrol  COMPLETED 0:0 0:0 None => COMPLETED 0:0 3:0 None (lost-task)
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     COMPLETED 0:0 => FAILED 3:0 (lost-task)
            said      srun=3
            messages  srun: error: NODE: task 0: Exited with exit code 3
        """,
        options="-N1 -n4",
    ),
    script(
        "tasks/0-0-0-3",
        "Only the last task fails",
        (
            "srun -n4 bash -c 'sleep 0.$((SLURM_PROCID * 2 + 1)); case $SLURM_PROCID in 0) exit 0;; 1) exit "
            "0;; 2) exit 0;; 3) exit 3;; esac'; echo srun=$?\n"
            "exit 0"
        ),
        """
            scontrol  COMPLETED 0:0 3:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     FAILED 3:0
            said      srun=3
        """,
        options="-N1 -n4",
    ),
    script(
        "tasks/5-0-9-1",
        "Codes 5, 0, 9, 1, in this order",
        (
            "srun -n4 bash -c 'sleep 0.$((SLURM_PROCID * 2 + 1)); case $SLURM_PROCID in 0) exit 5;; 1) exit "
            "0;; 2) exit 9;; 3) exit 1;; esac'; echo srun=$?\n"
            "exit 0"
        ),
        """
            scontrol  COMPLETED 0:0 1:0 None => COMPLETED 0:0 9:0 None (lost-task)
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     FAILED 1:0 => FAILED 9:0 (lost-task)
            said      srun=9
        """,
        options="-N1 -n4",
    ),
    script(
        "tasks/1-1-1-1",
        "All tasks fail alike",
        (
            "srun -n4 bash -c 'sleep 0.$((SLURM_PROCID * 2 + 1)); case $SLURM_PROCID in 0) exit 1;; 1) exit "
            "1;; 2) exit 1;; 3) exit 1;; esac'; echo srun=$?\n"
            "exit 0"
        ),
        """
            scontrol  COMPLETED 0:0 1:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     FAILED 1:0
            said      srun=1
        """,
        options="-N1 -n4",
    ),
    script(
        "tasks/0-segv-9-0",
        "A signal, a code, then success",
        (
            "srun -n4 bash -c 'sleep 0.$((SLURM_PROCID * 2 + 1)); case $SLURM_PROCID in 0) exit 0;; 1) kill "
            "-SEGV $$;; 2) exit 9;; 3) exit 0;; esac'; echo srun=$?\n"
            "exit 0"
        ),
        """
            scontrol  COMPLETED 0:0 0:11 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     CANCELLED 0:11
            said      srun=139
        """,
        options="-N1 -n4",
    ),
    script(
        "tasks/0-9-0-segv",
        "A code, then a signal, last",
        (
            "srun -n4 bash -c 'sleep 0.$((SLURM_PROCID * 2 + 1)); case $SLURM_PROCID in 0) exit 0;; 1) exit "
            "9;; 2) exit 0;; 3) kill -SEGV $$;; esac'; echo srun=$?\n"
            "exit 0"
        ),
        """
            scontrol  COMPLETED 0:0 0:11 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     CANCELLED 0:11
            said      srun=139
            messages  srun: error: NODE: task 1: Exited with exit code 9 / srun: error: NODE: task 3:
            ... Segmentation fault
        """,
        options="-N1 -n4",
    ),
    script(
        "tasks/term-0-0-0",
        "The first task dies of TERM, others succeed",
        (
            "srun -n4 bash -c 'sleep 0.$((SLURM_PROCID * 2 + 1)); case $SLURM_PROCID in 0) kill -TERM $$;; "
            "1) exit 0;; 2) exit 0;; 3) exit 0;; esac'; echo srun=$?\n"
            "exit 0"
        ),
        """
            scontrol  COMPLETED 0:0 0:15 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     CANCELLED 0:15
            said      srun=143
        """,
        options="-N1 -n4",
    ),
    script(
        "tasks/0-0-0-kill",
        "The last task dies of KILL",
        (
            "srun -n4 bash -c 'sleep 0.$((SLURM_PROCID * 2 + 1)); case $SLURM_PROCID in 0) exit 0;; 1) exit "
            "0;; 2) exit 0;; 3) kill -KILL $$;; esac'; echo srun=$?\n"
            "exit 0"
        ),
        """
            scontrol  COMPLETED 0:0 0:9 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     CANCELLED 0:9
            said      srun=137
            messages  srun: Force Terminated StepId={a}.0 / srun: error: NODE: task 3: Killed
        """,
        options="-N1 -n4",
    ),
    script(
        "tasks/kill-on-bad-exit",
        "-K ends the others when one fails",
        ("srun -n4 -K bash -c 'sleep 0.5; [ $SLURM_PROCID = 1 ] && exit 3; exec sleep 300'; echo srun=$?\nexit 0"),
        """
            scontrol  COMPLETED 0:0 0:15 None => COMPLETED 0:0 3:0 None (killed-for-another)
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     CANCELLED 0:15 => FAILED 3:0 (killed-for-another)
            said      srun=143
        """,
        options="-N1 -n4",
    ),
    script(
        "tasks/kill-on-bad-exit-segv",
        "-K when one dies of a signal",
        (
            "srun -n4 -K bash -c 'sleep 0.5; [ $SLURM_PROCID = 1 ] && kill -SEGV $$; exec sleep 300'; echo "
            "srun=$?\n"
            "exit 0"
        ),
        """
            scontrol  COMPLETED 0:0 0:15 None => COMPLETED 0:0 0:11 None (killed-for-another)
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     CANCELLED 0:15 => CANCELLED 0:11 (killed-for-another)
            said      srun=143
        """,
        options="-N1 -n4",
    ),
    script(
        "tasks/no-kill-on-bad-exit",
        "-K0: the others go on",
        ("srun -n2 -K0 bash -c '[ $SLURM_PROCID = 0 ] && exit 3; sleep 2; exit 0'; echo srun=$?\nexit 0"),
        """
            scontrol  COMPLETED 0:0 0:0 None => COMPLETED 0:0 3:0 None (lost-task)
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     COMPLETED 0:0 => FAILED 3:0 (lost-task)
            said      srun=3
        """,
        options="-N1 -n2",
    ),
    script(
        "tasks/wait",
        "-W ends the others so long after the first end",
        ("srun -n2 -W1 bash -c '[ $SLURM_PROCID = 0 ] && exit 0; exec sleep 300'; echo srun=$?\nexit 0"),
        """
            scontrol  COMPLETED 0:0 0:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     COMPLETED 0:0
            said      srun=137
            messages  slurmstepd: error: *** STEP {a}.0 ON NODE CANCELLED AT TIME *** / srun: First task
            ... exited 1s ago / srun: Job step aborted: Waiting up to N seconds for job step to finish. / srun:
            ... StepId={a}.0 task 0: exited / srun: StepId={a}.0 task 1: running / srun: error: NODE: task 1:
            ... Killed / srun: launch/slurm: _step_signal: Terminating StepId={a}.0
        """,
        options="-N1 -n2",
    ),
    script(
        "tasks/wait-code",
        "-W when the first task failed",
        ("srun -n2 -W1 bash -c '[ $SLURM_PROCID = 0 ] && exit 3; exec sleep 300'; echo srun=$?\nexit 0"),
        """
            scontrol  COMPLETED 0:0 3:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     FAILED 3:0
            said      srun=137
        """,
        options="-N1 -n2",
    ),
    script(
        "tasks/labels",
        "-l puts the rank before each line",
        "srun -n4 -l sh -c 'echo $SLURM_PROCID' | sort | tr -d ' ' | sed 's/^/line=/'",
        """
            scontrol  COMPLETED 0:0 0:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     COMPLETED 0:0
            said      line=0:0 line=1:1 line=2:2 line=3:3
        """,
        options="-N1 -n4",
    ),
    script(
        "tasks/killed-from-outside",
        "One task of two is killed by its sibling",
        (
            "srun -n2 bash -c 'if [ $SLURM_PROCID = 0 ]; then echo $$ >{dir}/pid; exec sleep 300; fi; until "
            "[ -s {dir}/pid ]; do sleep 0.1; done; kill -9 $(cat {dir}/pid)'; echo srun=$?\n"
            "exit 0"
        ),
        """
            scontrol  COMPLETED 0:0 0:9 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     CANCELLED 0:9
            said      srun=137
            messages  srun: Force Terminated StepId={a}.0 / srun: error: NODE: task 0: Killed
        """,
        options="-N1 -n2",
    ),
    script(
        "tasks/two-nodes",
        "Codes of two nodes",
        ("srun -N2 -n2 bash -c 'sleep $SLURM_PROCID; exit $((2 - SLURM_PROCID))'; echo srun=$?\nexit 0"),
        """
            scontrol  COMPLETED 0:0 2:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     FAILED 2:0
            said      srun=2
        """,
        options="-N2 -n2",
        needs="nodes",
    ),
)
