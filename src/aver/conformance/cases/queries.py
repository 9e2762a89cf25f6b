"""What the other commands say of things that are not there, and of mistakes."""

from __future__ import annotations

from aver.conformance.model import Command, case

QUERIES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("squeue-unknown", ("squeue", "-j", "99999999"), "exit 1: slurm_load_jobs error: Invalid job id specified"),
    ("squeue-two-unknown", ("squeue", "-h", "-j", "99999998,99999999"), "exit 0"),
    ("squeue-word", ("squeue", "-j", "abc"), "exit 1: squeue: error: Invalid job id: abc"),
    (
        "squeue-state",
        ("squeue", "-t", "SLEEPING"),
        "exit 1: squeue: error: Invalid job state specified: SLEEPING / squeue: error: Valid job "
        "states include: PENDING,RUNNING,SUSPENDED,COMPLETED,CANCELLED,FAILED,TIMEOUT,NODE_FAIL,"
        "PREEMPTED,BOOT_FAIL,DEADLINE,OUT_OF_MEMORY,COMPLETING,CONFIGURING,RESIZING,"
        "RESV_DEL_HOLD,REQUEUED,REQUEUE_FED,REQUEUE_HOLD,REVOKED,SIGNALING,SPECIAL_EXIT,"
        "STAGE_OUT,STOPPED",
    ),
    (
        "squeue-user",
        ("squeue", "-u", "nosuchuser"),
        "exit 0: squeue: error: Invalid user: nosuchuser /              JOBID PARTITION     NAME "
        "    USER ST       TIME  NODES NODELIST(REASON)",
    ),
    (
        "squeue-option",
        ("squeue", "--no-such-option"),
        "exit 1: squeue: unrecognized option '--no-such-option' / Try \"squeue --help\" for more information",
    ),
    (
        "squeue-format",
        ("squeue", "-h", "-O", "nosuchfield"),
        "exit 0: squeue: error: Invalid job format specification: nosuchfield",
    ),
    ("sacct-unknown", ("sacct", "-n", "-j", "99999999"), "exit 0"),
    ("sacct-word", ("sacct", "-n", "-j", "abc"), "exit 1: sacct: fatal: Bad job/step specified: abc"),
    ("sacct-field", ("sacct", "-o", "nosuchfield"), 'exit 1: sacct: error: Invalid field requested: "nosuchfield"'),
    ("sacct-time", ("sacct", "-S", "whenever"), "exit 1: Invalid time specification (pos=0): whenever"),
    ("sacct-state", ("sacct", "-s", "SLEEPING"), "exit 1: sacct: fatal: unrecognized job state value 'SLEEPING'"),
    ("sacct-option", ("sacct", "--no-such-option"), "exit 1: sacct: unrecognized option '--no-such-option'"),
    (
        "scontrol-unknown",
        ("scontrol", "show", "job", "99999999"),
        "exit 1: slurm_load_jobs error: Invalid job id specified",
    ),
    ("scontrol-word", ("scontrol", "show", "job", "abc"), "exit 1: scontrol_print_job error: Invalid job id specified"),
    ("scontrol-verb", ("scontrol", "dance"), "exit 1: invalid keyword: dance"),
    ("scontrol-entity", ("scontrol", "show", "nonsense"), "exit 1: invalid entity:nonsense for keyword:show"),
    (
        "scontrol-hold",
        ("scontrol", "hold", "99999999"),
        "exit 1: Invalid job id specified for job ID / slurm_suspend error: Invalid job id specified",
    ),
    (
        "scontrol-release",
        ("scontrol", "release", "99999999"),
        "exit 1: Invalid job id specified for job ID / slurm_suspend error: Invalid job id specified",
    ),
    ("scontrol-requeue", ("scontrol", "requeue", "99999999"), "exit 1: Invalid job id specified for job ID"),
    (
        "scontrol-update",
        ("scontrol", "update", "JobId=99999999", "TimeLimit=5"),
        "exit 1: Invalid job id specified for job ID",
    ),
    (
        "scontrol-update-key",
        ("scontrol", "update", "JobId=99999999", "NoSuch=5"),
        "exit 1: Update of this parameter is not supported: NoSuch=5 / Request aborted",
    ),
    ("scontrol-node", ("scontrol", "show", "node", "nosuchnode"), "exit 1: Node nosuchnode not found"),
    ("scontrol-partition", ("scontrol", "show", "partition", "nowhere"), "exit 1: Partition nowhere not found"),
    ("scontrol-hostnames", ("scontrol", "show", "hostnames", "a[1-3,5],b"), "exit 0: a1 / a2 / a3 / a5 / b"),
    ("scontrol-hostlist", ("scontrol", "show", "hostlist", "a1,a2,a3,b"), "exit 0: a[1-3],b"),
    ("scancel-unknown", ("scancel", "99999999"), "exit 0"),
    ("scancel-word", ("scancel", "abc"), "exit 1: scancel: error: Invalid job id abc"),
    ("scancel-nothing", ("scancel",), "exit 1: scancel: error: No job identification provided"),
    ("scancel-signal", ("scancel", "-s", "NOSUCH", "99999999"), "exit 1: Unknown job signal: NOSUCH"),
    (
        "scancel-step",
        ("scancel", "99999999.0"),
        "exit 1: scancel: error: Kill job error on job step id 99999999.0: Invalid job id specified",
    ),
    (
        "scancel-option",
        ("scancel", "--no-such-option"),
        "exit 1: scancel: unrecognized option '--no-such-option' / Try \"scancel --help\" for more information",
    ),
    (
        "scancel-state",
        ("scancel", "-t", "SLEEPING"),
        "exit 1: Invalid job state specified: SLEEPING / Valid job states are PENDING, RUNNING, and SUSPENDED",
    ),
    ("sstat-nothing", ("sstat",), "exit 1: sstat: error: You didn't give me any jobs to stat."),
    ("sstat-word", ("sstat", "-j", "abc"), "exit 1: sstat: fatal: Bad job/step specified: abc"),
    ("sstat-option", ("sstat", "--no-such-option"), "exit 1: sstat: unrecognized option '--no-such-option'"),
    (
        "sacctmgr-option",
        ("sacctmgr", "--no-such-option"),
        "exit 1: sacctmgr: unrecognized option '--no-such-option' / Try \"sacctmgr --help\" for more information",
    ),
    (
        "salloc-option",
        ("salloc", "--no-such-option"),
        "exit 255: salloc: unrecognized option '--no-such-option' / Try \"salloc --help\" for more information",
    ),
    ("salloc-time", ("salloc", "-t", "whenever", "true"), "exit 255: salloc: error: Invalid --time specification"),
    ("salloc-exit", ("salloc", "-Q", "sh", "-c", "exit 3"), "exit 3"),
    (
        "multi-prog-file",
        ("srun", "--multi-prog", "/no/such/file"),
        "exit 1: srun: error: Could not open multi_prog config file /no/such/file",
    ),
)
"""A name, the command, and the answer."""

CASES = tuple(
    case(f"queries/{name}", " ".join(words), Command(words, row="answer"), expect=f"answer {answer}")
    for name, words, answer in QUERIES
)
