"""scancel, with and without signals."""

from __future__ import annotations

from aver.conformance.model import Command, Submit, When, case

CASES = (
    case(
        "cancels/running",
        "scancel of a running job",
        Submit("echo at=ready\nsleep 300"),
        When(says="at=ready"),
        Command(("scancel", "{a}"), row="scancel"),
        expect="""
            scancel   exit 0
            scontrol  CANCELLED 0:15 0:0 None
            sacct     CANCELLED-by-user 0:0 => CANCELLED-by-user 0:15 (sacct-as-scontrol)
            batch     CANCELLED 0:15
            messages  slurmstepd: error: *** JOB {a} ON NODE CANCELLED AT TIME *** => none (own-output)
        """,
    ),
    case(
        "cancels/pending",
        "scancel of a pending job",
        Submit("true", ("--hold",)),
        When("PENDING"),
        Command(("scancel", "{a}")),
        expect="""
            scontrol  CANCELLED 0:0 0:0 JobHeldUser
            sacct     CANCELLED-by-user 0:0
        """,
    ),
    case(
        "cancels/trapped-0",
        "scancel; the script traps TERM and exits 0",
        Submit("trap 'exit 0' TERM\necho at=ready\nsleep 300 & wait"),
        When(says="at=ready"),
        Command(("scancel", "{a}")),
        expect="""
            scontrol  CANCELLED 0:0 0:0 None
            sacct     CANCELLED-by-user 0:0
            batch     COMPLETED 0:0
        """,
    ),
    case(
        "cancels/trapped-3",
        "scancel; the script traps TERM and exits 3",
        Submit("trap 'exit 3' TERM\necho at=ready\nsleep 300 & wait"),
        When(says="at=ready"),
        Command(("scancel", "{a}")),
        expect="""
            scontrol  CANCELLED 3:0 0:0 None
            sacct     CANCELLED-by-user 0:0 => CANCELLED-by-user 3:0 (sacct-as-scontrol)
            batch     FAILED 3:0
        """,
    ),
    case(
        "cancels/ignored",
        "scancel; the script ignores TERM",
        Submit("trap '' TERM\necho at=ready\nwhile :; do sleep 1; done"),
        When(says="at=ready"),
        Command(("scancel", "{a}")),
        expect="""
            scontrol  CANCELLED 0:9 0:0 None
            sacct     CANCELLED-by-user 0:0 => CANCELLED-by-user 0:9 (sacct-as-scontrol)
            batch     CANCELLED 0:9
        """,
    ),
    case(
        "cancels/with-step",
        "scancel while a step runs",
        Submit("trap 'exit 4' TERM\nsrun sh -c 'echo at=ready; exec sleep 300' &\nwhile :; do sleep 1; done"),
        When(says="at=ready"),
        Command(("scancel", "{a}")),
        expect="""
            scontrol  CANCELLED 4:0 0:15 None
            sacct     CANCELLED-by-user 0:0 => CANCELLED-by-user 4:0 (sacct-as-scontrol)
            batch     FAILED 4:0
            step0     CANCELLED 0:15
        """,
    ),
    case(
        "cancels/step",
        "scancel of a step; the script goes on",
        Submit("srun sh -c 'echo at=ready; exec sleep 300'; echo srun=$?\nexit 0"),
        When(says="at=ready"),
        Command(("scancel", "{a}.0"), row="scancel"),
        expect="""
            scancel   exit 0
            scontrol  COMPLETED 0:0 0:9 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     CANCELLED-by-user 0:9
            said      at=ready srun=137
            messages  slurmstepd: error: *** STEP {a}.0 ON NODE CANCELLED AT TIME *** / srun: Job step
            ... aborted: Waiting up to N seconds for job step to finish. / srun: error: NODE: task 0: Killed
        """,
    ),
    case(
        "cancels/step-last",
        "scancel of a step that is the last command",
        Submit("srun sh -c 'echo at=ready; exec sleep 300'"),
        When(says="at=ready"),
        Command(("scancel", "{a}.0")),
        expect="""
            scontrol  FAILED 137:0 0:9 NonZeroExitCode
            sacct     FAILED 9:0 => FAILED 137:0 (whole-codes)
            batch     FAILED 9:0 => FAILED 137:0 (whole-codes)
            step0     CANCELLED-by-user 0:9
        """,
    ),
    case(
        "cancels/step-usr1",
        "A signal to a step",
        Submit("srun bash -c 'trap \"exit 6\" USR1; echo at=ready; sleep 300 & wait'; echo srun=$?\nexit 0"),
        When(says="at=ready"),
        Command(("scancel", "-s", "USR1", "{a}.0")),
        expect="""
            scontrol  COMPLETED 0:0 6:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     FAILED 6:0
            said      at=ready srun=6
        """,
    ),
    case(
        "cancels/batch-usr1",
        "--batch -s USR1, untrapped",
        Submit("echo at=ready\nsleep 300"),
        When(says="at=ready"),
        Command(("scancel", "--batch", "-s", "USR1", "{a}"), row="scancel"),
        expect="""
            scancel   exit 0
            scontrol  FAILED 0:10 0:0 JobLaunchFailure
            ... => FAILED 0:10 0:0 RaisedSignal:10(User_defined_signal_1) (raised-signal)
            sacct     FAILED 0:10
            batch     CANCELLED 0:10
        """,
    ),
    case(
        "cancels/batch-usr1-trapped",
        "--batch -s USR1, trapped",
        Submit("trap 'exit 4' USR1\necho at=ready\nsleep 300 & wait"),
        When(says="at=ready"),
        Command(("scancel", "--batch", "-s", "USR1", "{a}")),
        expect="""
            scontrol  FAILED 4:0 0:0 NonZeroExitCode
            sacct     FAILED 4:0
            batch     FAILED 4:0
        """,
    ),
    case(
        "cancels/batch-term",
        "--batch -s TERM",
        Submit("echo at=ready\nexec sleep 300"),
        When(says="at=ready"),
        Command(("scancel", "--batch", "-s", "TERM", "{a}")),
        expect="""
            scontrol  FAILED 0:15 0:0 JobLaunchFailure => FAILED 0:15 0:0 RaisedSignal:15(Terminated) (raised-signal)
            sacct     FAILED 0:15
            batch     CANCELLED 0:15
        """,
    ),
    case(
        "cancels/signal-steps-only",
        "-s USR1 without --batch reaches the steps, not the script",
        Submit(
            "trap 'echo got=USR1' USR1\n"
            "srun bash -c 'trap \"exit 6\" USR1; echo at=ready; sleep 300 & wait'; echo srun=$?\n"
            "exit 0"
        ),
        When(says="at=ready"),
        Command(("scancel", "-s", "USR1", "{a}")),
        expect="""
            scontrol  COMPLETED 0:0 6:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     FAILED 6:0
            said      at=ready srun=6
        """,
    ),
    case(
        "cancels/full-usr1",
        "--full -s USR1 reaches both",
        Submit(
            "trap 'echo got=USR1' USR1\n"
            "srun bash -c 'trap \"exit 6\" USR1; echo at=ready; sleep 300 & wait'; echo srun=$?\n"
            "exit 0"
        ),
        When(says="at=ready"),
        Command(("scancel", "--full", "-s", "USR1", "{a}")),
        expect="""
            scontrol  COMPLETED 0:0 6:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     FAILED 6:0
            said      at=ready got=USR1 srun=6
        """,
    ),
    case(
        "cancels/kill",
        "-s KILL ends the job as cancelled",
        Submit("echo at=ready\nsleep 300"),
        When(says="at=ready"),
        Command(("scancel", "-s", "KILL", "{a}")),
        expect="""
            scontrol  CANCELLED 0:15 0:0 None
            sacct     CANCELLED-by-user 0:0 => CANCELLED-by-user 0:15 (sacct-as-scontrol)
            batch     CANCELLED 0:15
        """,
    ),
    case(
        "cancels/by-name",
        "scancel by name and state",
        Submit("echo at=ready\nsleep 300", ("-J", "{token}-byname")),
        When(says="at=ready"),
        Command(("scancel", "-n", "{token}-byname", "-t", "RUNNING")),
        expect="""
            scontrol  CANCELLED 0:15 0:0 None
            sacct     CANCELLED-by-user 0:0 => CANCELLED-by-user 0:15 (sacct-as-scontrol)
            batch     CANCELLED 0:15
        """,
    ),
    case(
        "cancels/settled",
        "scancel of a job that has settled",
        Submit("exit 3"),
        When("FAILED"),
        Command(("scancel", "{a}"), row="scancel"),
        Command(("scancel", "-v", "{a}"), row="verbose"),
        expect="""
            scancel   exit 0
            verbose   exit 0: scancel: Terminating job {a} / scancel: error: Kill job error on job id {a}:
            ... Job/step already completing or completed
            scontrol  FAILED 3:0 0:0 NonZeroExitCode
            sacct     FAILED 3:0
            batch     FAILED 3:0
        """,
    ),
)
