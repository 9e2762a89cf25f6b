"""Arrays: each member is a job."""

from __future__ import annotations

from aver.conformance.model import Command, Look, Submit, When, case, script

CASES = (
    script(
        "arrays/each-its-own",
        "Every member has its own end",
        "exit $SLURM_ARRAY_TASK_ID",
        """
            a_0:scontrol COMPLETED 0:0 0:0 None
            a_0:sacct COMPLETED 0:0
            a_0:batch COMPLETED 0:0
            a_1:scontrol FAILED 1:0 0:0 NonZeroExitCode
            a_1:sacct FAILED 1:0
            a_1:batch FAILED 1:0
            a_2:scontrol FAILED 2:0 0:0 NonZeroExitCode
            a_2:sacct FAILED 2:0
            a_2:batch FAILED 2:0
        """,
        options="--array=0-2 -o {dir}/a.%a.out",
    ),
    script(
        "arrays/steps",
        "A range with a step: 0, 3, 6",
        (
            "echo index=$SLURM_ARRAY_TASK_ID min=$SLURM_ARRAY_TASK_MIN max=$SLURM_ARRAY_TASK_MAX "
            "count=$SLURM_ARRAY_TASK_COUNT step=$SLURM_ARRAY_TASK_STEP\n"
            "exit $((SLURM_ARRAY_TASK_ID * 40))"
        ),
        """
            a_0:scontrol COMPLETED 0:0 0:0 None
            a_0:sacct COMPLETED 0:0
            a_0:said  index=0 min=0 max=6 count=3 step=3
            a_3:scontrol FAILED 120:0 0:0 NonZeroExitCode
            a_3:sacct FAILED 120:0
            a_3:said  index=3 min=0 max=6 count=3 step=3
            a_6:scontrol FAILED 240:0 0:0 NonZeroExitCode
            a_6:sacct FAILED 112:0 => FAILED 240:0 (whole-codes)
            a_6:said  index=6 min=0 max=6 count=3 step=3
        """,
        options="--array=0-6:3 -o {dir}/a.%a.out",
    ),
    case(
        "arrays/limit",
        "%1: one at a time, the others wait for the array",
        Submit("until [ -e {dir}/go ]; do sleep 0.2; done", ("--array=1-2%1", "-o", "{dir}/a.%a.out")),
        When("PENDING", reason="JobArrayTaskLimit", job="a_2"),
        Look("pending", job="a_2"),
        Command(("touch", "{dir}/go")),
        expect="""
            a_1:scontrol COMPLETED 0:0 0:0 None
            a_2:pending PENDING 0:0 0:0 JobArrayTaskLimit
            a_2:scontrol COMPLETED 0:0 0:0 None
            a_2:sacct COMPLETED 0:0
        """,
    ),
    case(
        "arrays/cancel-member",
        "scancel of one member",
        Submit(
            ("echo at=ready\n[ $SLURM_ARRAY_TASK_ID = 1 ] && sleep 300\nexit 0"),
            ("--array=1-2", "-o", "{dir}/a.%a.out"),
        ),
        When(says="at=ready", job="a_1"),
        Command(("scancel", "{a}_1")),
        expect="""
            a_1:scontrol CANCELLED 0:15 0:0 None
            a_1:sacct CANCELLED-by-user 0:0 => CANCELLED-by-user 0:15 (sacct-as-scontrol)
            a_2:scontrol COMPLETED 0:0 0:0 None
            a_2:sacct COMPLETED 0:0
        """,
    ),
    case(
        "arrays/cancel-all",
        "scancel of the whole array",
        Submit("echo at=ready\nsleep 300", ("--array=1-2", "-o", "{dir}/a.%a.out")),
        When(says="at=ready", job="a_1"),
        When(says="at=ready", job="a_2"),
        Command(("scancel", "{a}")),
        expect="""
            a_1:scontrol CANCELLED 0:15 0:0 None
            a_1:sacct CANCELLED-by-user 0:0 => CANCELLED-by-user 0:15 (sacct-as-scontrol)
            a_2:scontrol CANCELLED 0:15 0:0 None
            a_2:sacct CANCELLED-by-user 0:0 => CANCELLED-by-user 0:15 (sacct-as-scontrol)
        """,
    ),
    script(
        "arrays/signals",
        "Members that die of signals",
        "[ $SLURM_ARRAY_TASK_ID = 1 ] && kill -TERM $$\nkill -KILL $$",
        """
            a_1:scontrol FAILED 0:15 0:0 JobLaunchFailure
            ... => FAILED 0:15 0:0 RaisedSignal:15(Terminated) (raised-signal)
            a_1:sacct FAILED 0:15
            a_2:scontrol FAILED 0:9 0:0 JobLaunchFailure => FAILED 0:9 0:0 RaisedSignal:9(Killed) (raised-signal)
            a_2:sacct FAILED 0:9
        """,
        options="--array=1-2 -o {dir}/a.%a.out",
    ),
)
