"""What the cluster does to a job."""

from __future__ import annotations

from aver.conformance.model import Command, Look, Operator, Settled, Submit, When, case

CASES = (
    case(
        "nodes/node-fail",
        "The node fails under a job with --no-requeue",
        Submit("echo at=ready\nsleep 300", ("-p", "fragile", "--exclusive", "--no-requeue")),
        When(says="at=ready"),
        Operator(("scontrol", "update", "NodeName=n6", "State=DOWN", "Reason=conformance")),
        When("NODE_FAIL"),
        Operator(("scontrol", "update", "NodeName=n6", "State=RESUME")),
        expect="""
            scontrol  NODE_FAIL 0:0 0:0 NodeDown
            sacct     NODE_FAIL 0:0
            batch     CANCELLED -
        """,
        needs="operator partitions",
    ),
    case(
        "nodes/preempted",
        "A job with a higher partition preempts it",
        Submit("echo at=ready\nsleep 300", ("-p", "low", "--exclusive")),
        When(says="at=ready"),
        Submit("exit 0", ("-p", "high", "--exclusive"), job="b"),
        expect="""
            b:scontrol COMPLETED 0:0 0:0 None
        """,
        needs="partitions",
    ),
    case(
        "nodes/preempted-requeued",
        "… and it goes back to the queue where its partition says so",
        Submit("echo at=ready\nsleep 300", ("-p", "requeue", "--exclusive")),
        When(says="at=ready"),
        Submit("exit 0", ("-p", "high", "--exclusive"), job="b"),
        When("PENDING", reason="BeginTime"),
        Look("requeued"),
        Settled(job="b"),
        Command(("scancel", "{a}")),
        expect="""
            requeued  PENDING 0:0 0:0 BeginTime
            scontrol  CANCELLED 0:0 0:0 BeginTime
            sacct     CANCELLED-by-user 0:0
            attempts  PREEMPTED 0:0 / CANCELLED-by-user 0:0
        """,
        needs="partitions",
    ),
)
