"""Time limits and warnings. Slurm checks limits about every 30 s."""

from __future__ import annotations

from aver.conformance.model import script

CASES = (
    script(
        "limits/plain",
        "The time limit passes",
        "sleep 300",
        """
            scontrol  TIMEOUT 0:15 0:0 TimeLimit
            sacct     TIMEOUT 0:0 => TIMEOUT 0:15 (sacct-as-scontrol)
            batch     CANCELLED 0:15
            messages  slurmstepd: error: *** JOB {a} ON NODE CANCELLED AT TIME DUE TO TIME LIMIT ***
            ... => none (own-output)
        """,
        options="--time={limit}",
        is_slow=True,
    ),
    script(
        "limits/trapped-0",
        "… TERM is trapped, the script exits 0",
        "trap 'echo got=TERM; exit 0' TERM\nsleep 300 & wait",
        """
            scontrol  TIMEOUT 0:0 0:0 TimeLimit
            sacct     TIMEOUT 0:0
            batch     COMPLETED 0:0
            said      got=TERM
        """,
        options="--time={limit}",
        is_slow=True,
    ),
    script(
        "limits/trapped-3",
        "… TERM is trapped, the script exits 3",
        "trap 'exit 3' TERM\nsleep 300 & wait",
        """
            scontrol  TIMEOUT 3:0 0:0 TimeLimit
            sacct     TIMEOUT 0:0 => TIMEOUT 3:0 (sacct-as-scontrol)
            batch     FAILED 3:0
        """,
        options="--time={limit}",
        is_slow=True,
    ),
    script(
        "limits/ignored",
        "… TERM is ignored: KILL after KillWait",
        "trap '' TERM\nwhile :; do sleep 1; done",
        """
            scontrol  TIMEOUT 0:9 0:0 TimeLimit
            sacct     TIMEOUT 0:0 => TIMEOUT 0:9 (sacct-as-scontrol)
            batch     CANCELLED 0:9
        """,
        options="--time={limit}",
        is_slow=True,
    ),
    script(
        "limits/with-step",
        "… while a step runs",
        ("trap 'exit 4' TERM\nsrun sleep 300 &\nwhile :; do sleep 1; done"),
        """
            scontrol  TIMEOUT 4:0 0:15 TimeLimit
            sacct     TIMEOUT 0:0 => TIMEOUT 4:0 (sacct-as-scontrol)
            batch     FAILED 4:0
            step0     CANCELLED 0:15
        """,
        options="--time={limit}",
        is_slow=True,
    ),
    script(
        "limits/warned-exit-0",
        "--signal=B: reaches the script, which ends by itself",
        "trap 'echo got=USR1; exit 0' USR1\nsleep 300 & wait",
        """
            scontrol  COMPLETED 0:0 0:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            said      got=USR1
        """,
        options="--time={limit} --signal=B:USR1@{lead}",
        is_slow=True,
    ),
    script(
        "limits/warned-exit-7",
        "… and exits 7",
        "trap 'echo got=USR1; exit 7' USR1\nsleep 300 & wait",
        """
            scontrol  FAILED 7:0 0:0 NonZeroExitCode
            sacct     FAILED 7:0
            batch     FAILED 7:0
            said      got=USR1
        """,
        options="--time={limit} --signal=B:USR1@{lead}",
        is_slow=True,
    ),
    script(
        "limits/warned-untrapped",
        "… untrapped: the script dies of it",
        "exec sleep 300",
        """
            scontrol  FAILED 0:10 0:0 JobLaunchFailure
            ... => FAILED 0:10 0:0 RaisedSignal:10(User_defined_signal_1) (raised-signal)
            sacct     FAILED 0:10
            batch     CANCELLED 0:10
        """,
        options="--time={limit} --signal=B:USR1@{lead}",
        is_slow=True,
    ),
    script(
        "limits/warned-steps-only",
        "--signal without B: reaches steps only",
        ("trap 'echo got=TERM; exit 0' TERM\nsrun sleep 300; echo srun=$?\nexit 0"),
        """
            scontrol  COMPLETED 0:0 0:15 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     CANCELLED 0:15
            said      srun=143
            messages  slurmstepd: error: *** STEP {a}.0 ON NODE CANCELLED AT TIME *** / srun: Force
            ... Terminated StepId={a}.0 / srun: error: NODE: task 0: Terminated ;; srun: Force
            ... Terminated StepId={a}.0 / srun: error: NODE: task 0: Terminated
            ... => slurmstepd: error: *** STEP {a}.0 ON NODE CANCELLED AT TIME *** / srun: Force
            ... Terminated StepId={a}.0 / srun: error: NODE: task 0: Terminated (message-of-the-moment)
        """,
        options="--time={limit} --signal=TERM@{lead}",
        is_slow=True,
    ),
    script(
        "limits/step-limit",
        "A step has its own time limit",
        "srun --time={limit} sleep 300; echo srun=$?\nexit 0",
        """
            scontrol  COMPLETED 0:0 0:15 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     TIMEOUT 0:15
            said      srun=143
            messages  slurmstepd: error: *** STEP {a}.0 ON NODE CANCELLED AT TIME DUE TO TIME LIMIT *** /
            ... srun: Force Terminated StepId={a}.0 / srun: error: NODE: task 0: Terminated
        """,
        options="--time=5",
        is_slow=True,
    ),
    script(
        "limits/step-script-trapped",
        "… in a step; the script traps TERM and goes on",
        "trap : TERM\nsrun sleep 300; echo srun=$?\nexit 0",
        """
            scontrol  TIMEOUT 0:0 0:15 TimeLimit
            sacct     TIMEOUT 0:0
            batch     COMPLETED 0:0
            step0     CANCELLED 0:15
            said      srun=143
        """,
        options="--time={limit}",
        is_slow=True,
    ),
    script(
        "limits/step-script-ignored",
        "… in a step; the script ignores TERM",
        "trap '' TERM\nsrun sleep 300; echo srun=$?\nexit 0",
        """
            scontrol  TIMEOUT 0:0 0:15 TimeLimit
            sacct     TIMEOUT 0:0
            batch     COMPLETED 0:0
            step0     CANCELLED 0:15
            said      srun=143
        """,
        options="--time={limit}",
        is_slow=True,
    ),
    script(
        "limits/step-trapped-0",
        "… the step traps TERM and exits 0",
        "trap '' TERM\nsrun bash -c 'trap \"exit 0\" TERM; sleep 300 & wait'; echo srun=$?\nexit 0",
        """
            scontrol  TIMEOUT 0:0 0:0 TimeLimit
            sacct     TIMEOUT 0:0
            batch     COMPLETED 0:0
            step0     COMPLETED 0:0 => CANCELLED 0:0 (ended-with-its-job)
            said      srun=0
        """,
        options="--time={limit}",
        is_slow=True,
    ),
    script(
        "limits/step-trapped-3",
        "… the step traps TERM and exits 3",
        "trap '' TERM\nsrun bash -c 'trap \"exit 3\" TERM; sleep 300 & wait'; echo srun=$?\nexit 0",
        """
            scontrol  TIMEOUT 0:0 3:0 TimeLimit
            sacct     TIMEOUT 0:0
            batch     COMPLETED 0:0
            step0     FAILED 3:0 => CANCELLED 3:0 (ended-with-its-job)
            said      srun=3
        """,
        options="--time={limit}",
        is_slow=True,
    ),
    script(
        "limits/step-ignored",
        "… the step ignores TERM: KILL after KillWait",
        "srun bash -c 'trap \"\" TERM; while :; do sleep 1; done'; echo srun=$?\nexit 0",
        """
            scontrol  TIMEOUT 0:15 0:9 TimeLimit
            sacct     TIMEOUT 0:0 => TIMEOUT 0:15 (sacct-as-scontrol)
            batch     CANCELLED 0:15
            step0     CANCELLED 0:9
        """,
        options="--time={limit}",
        is_slow=True,
    ),
    script(
        "limits/step-limit-later",
        "… before that of its step",
        "trap '' TERM\nsrun --time=4 sleep 300; echo srun=$?\nexit 0",
        """
            scontrol  TIMEOUT 0:0 0:15 TimeLimit
            sacct     TIMEOUT 0:0
            batch     COMPLETED 0:0
            step0     CANCELLED 0:15
            said      srun=143
        """,
        options="--time={limit}",
        is_slow=True,
    ),
    script(
        "limits/step-limit-trapped",
        "A step's own limit; it traps TERM and exits 3",
        "srun --time={limit} bash -c 'trap \"exit 3\" TERM; sleep 300 & wait'; echo srun=$?\nexit 0",
        """
            scontrol  COMPLETED 0:0 3:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     TIMEOUT 3:0
            said      srun=3
        """,
        options="--time=5",
        is_slow=True,
    ),
    script(
        "limits/step-limit-ignored",
        "… it ignores TERM: KILL after KillWait",
        "srun --time={limit} bash -c 'trap \"\" TERM; while :; do sleep 1; done'; echo srun=$?\nexit 0",
        """
            scontrol  COMPLETED 0:0 0:9 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     TIMEOUT 0:9
            said      srun=137
        """,
        options="--time=5",
        is_slow=True,
    ),
)
