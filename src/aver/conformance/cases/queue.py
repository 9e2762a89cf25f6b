"""Waiting: holds, begin times, deadlines, requeues."""

from __future__ import annotations

from aver.conformance.model import Command, Look, Settled, Submit, When, case, script

CASES = (
    case(
        "queue/held",
        "--hold, then release",
        Submit("exit 0", ("--hold",)),
        When("PENDING", reason="JobHeldUser"),
        Look("pending"),
        Command(("scontrol", "release", "{a}")),
        expect="""
            pending   PENDING 0:0 0:0 JobHeldUser
            scontrol  COMPLETED 0:0 0:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
        """,
    ),
    case(
        "queue/hold",
        "scontrol hold of a pending job, then release",
        Submit("exit 0", ("--begin=now+1hour",)),
        When("PENDING", reason="BeginTime"),
        Command(("scontrol", "hold", "{a}")),
        When("PENDING", reason="JobHeldUser"),
        Look("held"),
        Command(("scancel", "{a}")),
        expect="""
            held      PENDING 0:0 0:0 JobHeldUser
            scontrol  CANCELLED 0:0 0:0 JobHeldUser
            sacct     CANCELLED-by-user 0:0
        """,
    ),
    case(
        "queue/begin",
        "--begin in an hour",
        Submit("exit 0", ("--begin=now+1hour",)),
        When("PENDING", reason="BeginTime"),
        Look("pending"),
        Command(("scancel", "{a}")),
        expect="""
            pending   PENDING 0:0 0:0 BeginTime
            scontrol  CANCELLED 0:0 0:0 BeginTime
            sacct     CANCELLED-by-user 0:0
        """,
    ),
    script(
        "queue/begin-soon",
        "--begin in a few seconds: it runs then",
        "exit 0",
        """
            scontrol  COMPLETED 0:0 0:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
        """,
        options="--begin=now+4",
    ),
    case(
        "queue/deadline",
        "No free node: Resources; then it could no longer end before its --deadline",
        Submit("echo at=ready\nsleep 300", ("-p", "narrow", "--exclusive"), job="n"),
        When("RUNNING", job="n"),
        Submit("exit 0", ("-p", "narrow", "--exclusive", "--time=1", "--deadline=now+90"), job="b"),
        When("PENDING", reason="Resources", job="b"),
        Look("pending", job="b"),
        Settled(job="b"),
        Command(("scancel", "{n}")),
        expect="""
            b:pending PENDING 0:0 0:0 Resources
            b:scontrol DEADLINE 0:1 0:0 DeadLine
            b:sacct   DEADLINE 1:0 => DEADLINE 0:1 (whole-signals)
        """,
        needs="partitions",
        is_slow=True,
    ),
    case(
        "queue/deadline-held",
        "A held job does not meet its deadline: it is looked at only when it is released",
        Submit("exit 0", ("--hold", "--time={limit}", "--deadline=now+{deadline}")),
        Submit("sleep {later}\necho at=ready", job="n"),
        When(says="at=ready", job="n"),
        Look("later"),
        Command(("scancel", "{a}")),
        expect="""
            later     PENDING 0:0 0:0 JobHeldUser
        """,
        is_slow=True,
    ),
    case(
        "queue/requeue",
        "scontrol requeue of a running job",
        Submit(
            ('echo restart=$SLURM_RESTART_COUNT\n[ "${SLURM_RESTART_COUNT:-0}" = 0 ] || exit 5\nsleep 300'),
            ("--open-mode=append",),
        ),
        When(says="restart="),
        Command(("scontrol", "requeue", "{a}")),
        When("PENDING", reason="BeginTime"),
        Look("requeued"),
        Command(("scontrol", "update", "JobId={a}", "StartTime=now")),
        expect="""
            requeued  PENDING 0:0 0:0 BeginTime
            scontrol  FAILED 5:0 0:0 NonZeroExitCode
            sacct     FAILED 5:0
            batch     FAILED 5:0
            attempts  REQUEUED 0:0 / FAILED 5:0
            said      restart= restart=1
        """,
        is_slow=True,
    ),
    case(
        "queue/requeuehold",
        "scontrol requeuehold of a running job",
        Submit("echo restart=$SLURM_RESTART_COUNT\nsleep 300"),
        When(says="restart="),
        Command(("scontrol", "requeuehold", "{a}")),
        When("PENDING", reason="job_requeued_in_held_state"),
        Look("requeued"),
        Command(("scancel", "{a}")),
        expect="""
            requeued  PENDING 0:0 0:0 job_requeued_in_held_state
            scontrol  CANCELLED 0:0 0:0 job_requeued_in_held_state
            sacct     CANCELLED-by-user 0:0
            attempts  REQUEUED 0:0 / CANCELLED-by-user 0:0
            said      restart=
        """,
    ),
    case(
        "queue/requeue-settled",
        "scontrol requeue of a job that has failed",
        Submit('[ "${SLURM_RESTART_COUNT:-0}" = 0 ] || exit 0\nexit 5'),
        When("FAILED"),
        Command(("scontrol", "requeue", "{a}"), row="scontrol-requeue"),
        When("PENDING", reason="BeginTime"),
        Command(("scontrol", "update", "JobId={a}", "StartTime=now")),
        expect="""
            scontrol-requeue exit 0
            scontrol  COMPLETED 0:0 0:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            attempts  REQUEUED 5:0 / COMPLETED 0:0
        """,
        is_slow=True,
    ),
    case(
        "queue/no-requeue",
        "scontrol requeue of a job with --no-requeue",
        Submit("echo at=ready\nsleep 300", ("--no-requeue",)),
        When(says="at=ready"),
        Command(("scontrol", "requeue", "{a}"), row="requeue"),
        Command(("scancel", "{a}")),
        expect="""
            requeue   exit 1: Requested operation is presently disabled for job {a}
            scontrol  CANCELLED 0:15 0:0 None
            sacct     CANCELLED-by-user 0:0 => CANCELLED-by-user 0:15 (sacct-as-scontrol)
            batch     CANCELLED 0:15
        """,
    ),
    case(
        "queue/rename",
        "scontrol update of a pending job",
        Submit("exit 0", ("--hold",)),
        When("PENDING"),
        Command(("scontrol", "update", "JobId={a}", "TimeLimit=3", "Comment=hello"), row="update"),
        Command(("squeue", "-h", "-j", "{a}", "-o", "%l %r %t"), row="squeue"),
        Command(("scancel", "{a}")),
        expect="""
            update    exit 0
            squeue    exit 0: 3:00 JobHeldUser PD
            scontrol  CANCELLED 0:0 0:0 JobHeldUser
            sacct     CANCELLED-by-user 0:0
        """,
    ),
)
