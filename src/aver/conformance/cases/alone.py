"""srun outside any job: its own job."""

from __future__ import annotations

from aver.conformance.model import Alone, Command, When, case

CASES = (
    case(
        "alone/0",
        "srun alone succeeds",
        Alone(("sh", "-c", "echo hello")),
        expect="""
            srun      exit 0
            scontrol  COMPLETED 0:0 0:0 None
            sacct     COMPLETED 0:0
            step0     COMPLETED 0:0
            stdout    hello
            messages  none
        """,
    ),
    case(
        "alone/3",
        "srun alone exits 3",
        Alone(("sh", "-c", "exit 3")),
        expect="""
            srun      exit 3
            scontrol  FAILED 3:0 3:0 NonZeroExitCode
            sacct     FAILED 3:0
            step0     FAILED 3:0
            messages  srun: error: NODE: task 0: Exited with exit code 3
        """,
    ),
    case(
        "alone/137",
        "srun alone exits 137",
        Alone(("sh", "-c", "exit 137")),
        expect="""
            srun      exit 137
            scontrol  FAILED 137:0 137:0 NonZeroExitCode
            sacct     FAILED 9:0 => FAILED 137:0 (whole-codes)
            step0     FAILED 9:0 => FAILED 137:0 (whole-codes)
            messages  srun: error: NODE: task 0: Exited with exit code 137
        """,
    ),
    case(
        "alone/200",
        "srun alone exits 200",
        Alone(("sh", "-c", "exit 200")),
        expect="""
            srun      exit 200
            scontrol  FAILED 200:0 200:0 NonZeroExitCode
            sacct     FAILED 72:0 => FAILED 200:0 (whole-codes)
            step0     FAILED 72:0 => FAILED 200:0 (whole-codes)
            messages  srun: error: NODE: task 0: Exited with exit code 200
        """,
    ),
    case(
        "alone/segv",
        "srun alone dies of SIGSEGV",
        Alone(("bash", "-c", "kill -SEGV $$")),
        expect="""
            srun      exit 139
            scontrol  FAILED 0:11 0:11 JobLaunchFailure
            ... => FAILED 0:11 0:11 RaisedSignal:11(Segmentation_fault) (raised-signal)
            sacct     FAILED 0:11
            step0     CANCELLED 0:11
            messages  srun: error: NODE: task 0: Segmentation fault
        """,
    ),
    case(
        "alone/kill",
        "srun alone dies of SIGKILL",
        Alone(("bash", "-c", "kill -KILL $$")),
        expect="""
            srun      exit 137
            scontrol  FAILED 0:9 0:9 JobLaunchFailure => FAILED 0:9 0:9 RaisedSignal:9(Killed) (raised-signal)
            sacct     FAILED 0:9
            step0     CANCELLED 0:9
            messages  srun: Force Terminated StepId={a}.0 / srun: error: NODE: task 0: Killed
        """,
    ),
    case(
        "alone/term",
        "srun alone dies of SIGTERM",
        Alone(("bash", "-c", "kill -TERM $$")),
        expect="""
            srun      exit 143
            scontrol  FAILED 0:15 0:15 JobLaunchFailure
            ... => FAILED 0:15 0:15 RaisedSignal:15(Terminated) (raised-signal)
            sacct     FAILED 0:15
            step0     CANCELLED 0:15
            messages  srun: Force Terminated StepId={a}.0 / srun: error: NODE: task 0: Terminated
        """,
    ),
    case(
        "alone/tasks",
        "srun alone, four tasks, codes 0 to 3",
        Alone(("-n4", "-l", "bash", "-c", "sleep 0.$((SLURM_PROCID * 2 + 1)); echo $SLURM_PROCID; exit $SLURM_PROCID")),
        expect="""
            srun      exit 3
            scontrol  FAILED 3:0 3:0 NonZeroExitCode
            sacct     FAILED 3:0
            step0     FAILED 3:0
            stdout    0: 0 / 1: 1 / 2: 2 / 3: 3
            messages  srun: error: NODE: task 1: Exited with exit code 1 / srun: error: NODE: task 2: Exited
            ... with exit code 2 / srun: error: NODE: task 3: Exited with exit code 3
        """,
    ),
    case(
        "alone/kill-on-bad-exit",
        "srun alone with -K",
        Alone(("-n2", "-K", "bash", "-c", "sleep 0.5; [ $SLURM_PROCID = 1 ] && exit 3; exec sleep 300")),
        expect="""
            srun      exit 143
            scontrol  FAILED 0:15 0:15 JobLaunchFailure => FAILED 3:0 3:0 NonZeroExitCode (killed-for-another)
            sacct     FAILED 0:15 => FAILED 3:0 (killed-for-another)
            step0     CANCELLED 0:15 => FAILED 3:0 (killed-for-another)
        """,
    ),
    case(
        "alone/not-found",
        "srun alone of a command that is not there",
        Alone(("/no/such/command",)),
        expect="""
            srun      exit 2
            scontrol  FAILED 2:0 2:0 NonZeroExitCode
            sacct     FAILED 2:0
            step0     FAILED 2:0
            messages  slurmstepd: error: execve(): /no/such/command: No such file or directory / srun:
            ... error: NODE: task 0: Exited with exit code 2
        """,
    ),
    case(
        "alone/cancelled",
        "srun alone, then scancel",
        Alone(("-o", "{dir}/a.out", "sh", "-c", "echo at=ready; exec sleep 300")),
        When("RUNNING"),
        When(says="at=ready"),
        Command(("scancel", "{a}")),
        expect="""
            srun      exit 143
            scontrol  CANCELLED 0:15 0:15 None
            sacct     CANCELLED-by-user 0:0 => CANCELLED-by-user 0:15 (sacct-as-scontrol)
            step0     CANCELLED 0:15
        """,
    ),
    case(
        "alone/step-cancelled",
        "srun alone, then scancel of its step",
        Alone(("-o", "{dir}/a.out", "sh", "-c", "echo at=ready; exec sleep 300")),
        When("RUNNING"),
        When(says="at=ready"),
        Command(("scancel", "{a}.0")),
        expect="""
            srun      exit 137
            scontrol  FAILED 0:9 0:9 JobLaunchFailure => FAILED 0:9 0:9 RaisedSignal:9(Killed) (raised-signal)
            sacct     FAILED 0:9
            step0     CANCELLED-by-user 0:9
        """,
    ),
    case(
        "alone/pending-cancelled",
        "srun alone, still pending, then scancel",
        Alone(("--begin=now+1hour", "true")),
        When("PENDING"),
        Command(("scancel", "{a}")),
        expect="""
            srun      exit 1
            scontrol  CANCELLED 0:0 0:0 BeginTime
            sacct     CANCELLED-by-user 0:0
            messages  srun: Job has been cancelled / srun: error: Unable to allocate resources: Job/step
            ... already completing or completed
        """,
    ),
    case(
        "alone/unknown-option",
        "srun with an option it does not know",
        Alone(("--no-such-option", "true")),
        expect="""
            srun      exit 255
            messages  srun: unrecognized option '--no-such-option'
        """,
    ),
    case(
        "alone/bad-time",
        "srun with a malformed time",
        Alone(("-t", "soon", "true")),
        expect="""
            srun      exit 255
            messages  srun: error: Invalid --time specification
        """,
    ),
    case(
        "alone/bad-tasks",
        "srun with a malformed number of tasks",
        Alone(("-n", "none", "true")),
        expect="""
            srun      exit 1
            messages  srun: error: Invalid numeric value "none" for --ntasks.
        """,
    ),
    case(
        "alone/no-partition",
        "srun in a partition that is not there",
        Alone(("-p", "nowhere", "true")),
        expect="""
            srun      exit 1 => exit 0 (no-meaning-here)
            messages  srun: error: Unable to allocate resources: Invalid partition name specified / srun:
            ... error: invalid partition specified: nowhere => none (no-meaning-here)
        """,
    ),
)
