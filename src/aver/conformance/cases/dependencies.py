"""Jobs that wait for other jobs."""

from __future__ import annotations

from aver.conformance.model import Command, Forgotten, Look, Settled, Submit, When, case

CASES = (
    case(
        "dependencies/afterok-0",
        "afterok of a success: it runs",
        Submit("exit 0", job="n"),
        Submit("exit 0", ("--dependency=afterok:{n}",), job="b"),
        expect="""
            b:scontrol COMPLETED 0:0 0:0 None
            b:sacct   COMPLETED 0:0
            n:scontrol COMPLETED 0:0 0:0 None
        """,
    ),
    case(
        "dependencies/afterok-waits",
        "A dependent waits with the reason Dependency",
        Submit("until [ -e {dir}/go ]; do sleep 0.2; done", job="n"),
        Submit("exit 0", ("--dependency=afterok:{n}",), job="b"),
        When("PENDING", reason="Dependency", job="b"),
        Look("pending", job="b"),
        Command(("touch", "{dir}/go")),
        expect="""
            b:pending PENDING 0:0 0:0 Dependency
            b:scontrol COMPLETED 0:0 0:0 None
        """,
    ),
    case(
        "dependencies/afterok-1",
        "afterok of a failure: it never runs",
        Submit("exit 1", job="n"),
        Submit("exit 0", ("--dependency=afterok:{n}",), job="b"),
        When("PENDING", reason="DependencyNeverSatisfied", job="b"),
        Look("pending", job="b"),
        Command(("scancel", "{b}")),
        expect="""
            b:pending PENDING 0:0 0:0 DependencyNeverSatisfied
            b:scontrol CANCELLED 0:0 0:0 DependencyNeverSatisfied
            b:sacct   CANCELLED-by-user 0:0
        """,
    ),
    case(
        "dependencies/afterok-1-kill",
        "… with --kill-on-invalid-dep=yes: it is cancelled",
        Submit("exit 1", job="n"),
        Submit("exit 0", ("--dependency=afterok:{n}", "--kill-on-invalid-dep=yes"), job="b"),
        expect="""
            b:scontrol CANCELLED 0:0 0:0 DependencyNeverSatisfied
            b:sacct   CANCELLED 0:0
        """,
    ),
    case(
        "dependencies/afterok-step-failed",
        "A failed step does not make the need fail",
        Submit("srun sh -c 'exit 7'\nexit 0", job="n"),
        Submit("exit 0", ("--dependency=afterok:{n}",), job="b"),
        expect="""
            b:scontrol COMPLETED 0:0 0:0 None
            n:scontrol COMPLETED 0:0 7:0 None
        """,
    ),
    case(
        "dependencies/afterok-signal",
        "afterok of a job that died of a signal",
        Submit("kill -TERM $$", job="n"),
        Submit("exit 0", ("--dependency=afterok:{n}", "--kill-on-invalid-dep=yes"), job="b"),
        expect="""
            b:scontrol CANCELLED 0:0 0:0 DependencyNeverSatisfied
            b:sacct   CANCELLED 0:0
        """,
    ),
    case(
        "dependencies/afterok-cancelled",
        "afterok of a cancelled job",
        Submit("sleep 300", ("--hold",), job="n"),
        Submit("exit 0", ("--dependency=afterok:{n}", "--kill-on-invalid-dep=yes"), job="b"),
        Command(("scancel", "{n}")),
        expect="""
            b:scontrol CANCELLED 0:0 0:0 DependencyNeverSatisfied
            b:sacct   CANCELLED 0:0
            n:scontrol CANCELLED 0:0 0:0 JobHeldUser
        """,
    ),
    case(
        "dependencies/afterany-1",
        "afterany of a failure: it runs",
        Submit("exit 1", job="n"),
        Submit("exit 0", ("--dependency=afterany:{n}",), job="b"),
        expect="""
            b:scontrol COMPLETED 0:0 0:0 None
            b:sacct   COMPLETED 0:0
        """,
    ),
    case(
        "dependencies/afternotok-1",
        "afternotok of a failure: it runs",
        Submit("exit 1", job="n"),
        Submit("exit 0", ("--dependency=afternotok:{n}",), job="b"),
        expect="""
            b:scontrol COMPLETED 0:0 0:0 None
            b:sacct   COMPLETED 0:0
        """,
    ),
    case(
        "dependencies/afternotok-0",
        "afternotok of a success: it never runs",
        Submit("exit 0", job="n"),
        Submit("exit 0", ("--dependency=afternotok:{n}",), job="b"),
        When("PENDING", reason="DependencyNeverSatisfied", job="b"),
        Look("pending", job="b"),
        Command(("scancel", "{b}")),
        expect="""
            b:pending PENDING 0:0 0:0 DependencyNeverSatisfied
            b:scontrol CANCELLED 0:0 0:0 DependencyNeverSatisfied
        """,
    ),
    case(
        "dependencies/after",
        "after: once the other has started",
        Submit("until [ -e {dir}/go ]; do sleep 0.2; done\nexit 5", job="n"),
        Submit("exit 0", ("--dependency=after:{n}",), job="b"),
        Settled(job="b"),
        Look("then", job="n"),
        Command(("touch", "{dir}/go")),
        expect="""
            b:scontrol COMPLETED 0:0 0:0 None
            n:then    RUNNING 0:0 0:0 None
            n:scontrol FAILED 5:0 0:0 NonZeroExitCode
        """,
    ),
    case(
        "dependencies/and",
        "Two needs, both ok",
        Submit("exit 0", job="n"),
        Submit("exit 0", job="m"),
        Submit("exit 0", ("--dependency=afterok:{n}:{m}",), job="b"),
        expect="""
            b:scontrol COMPLETED 0:0 0:0 None
        """,
    ),
    case(
        "dependencies/and-one-fails",
        "Two needs with a comma, one fails",
        Submit("exit 0", job="n"),
        Submit("exit 1", job="m"),
        Submit("exit 0", ("--dependency=afterok:{n},afterok:{m}", "--kill-on-invalid-dep=yes"), job="b"),
        expect="""
            b:scontrol CANCELLED 0:0 0:0 DependencyNeverSatisfied
            b:sacct   CANCELLED 0:0
        """,
    ),
    case(
        "dependencies/or",
        "Two needs with ?, the first fails",
        Submit("exit 1", job="n"),
        Submit("exit 0", job="m"),
        Submit("exit 0", ("--dependency=afterok:{n}?afterok:{m}", "--kill-on-invalid-dep=yes"), job="b"),
        expect="""
            b:scontrol COMPLETED 0:0 0:0 None
            b:sacct   COMPLETED 0:0
        """,
    ),
    case(
        "dependencies/or-none",
        "Two needs with ?, both fail",
        Submit("exit 1", job="n"),
        Submit("exit 1", job="m"),
        Submit("exit 0", ("--dependency=afterok:{n}?afterok:{m}", "--kill-on-invalid-dep=yes"), job="b"),
        expect="""
            b:scontrol CANCELLED 0:0 0:0 DependencyNeverSatisfied
            b:sacct   CANCELLED 0:0
        """,
    ),
    case(
        "dependencies/singleton",
        "singleton: after all of the same name",
        Submit("until [ -e {dir}/go ]; do sleep 0.2; done", ("-J", "{token}-single"), job="n"),
        Submit("exit 0", ("-J", "{token}-single", "--dependency=singleton"), job="b"),
        When("PENDING", reason="Dependency", job="b"),
        Look("pending", job="b"),
        Command(("touch", "{dir}/go")),
        expect="""
            b:pending PENDING 0:0 0:0 Dependency
            b:scontrol COMPLETED 0:0 0:0 None
            n:scontrol COMPLETED 0:0 0:0 None
        """,
    ),
    case(
        "dependencies/afterok-array",
        "afterok of an array of which one member fails",
        Submit("exit $SLURM_ARRAY_TASK_ID", ("--array=0-1", "-o", "{dir}/n.%a.out"), job="n"),
        Submit("exit 0", ("--dependency=afterok:{n}", "--kill-on-invalid-dep=yes"), job="b"),
        expect="""
            b:scontrol CANCELLED 0:0 0:0 DependencyNeverSatisfied
            b:sacct   CANCELLED 0:0
        """,
    ),
    case(
        "dependencies/afterany-array",
        "afterany of an array of which one member fails",
        Submit("exit $SLURM_ARRAY_TASK_ID", ("--array=0-1", "-o", "{dir}/n.%a.out"), job="n"),
        Submit("exit 0", ("--dependency=afterany:{n}",), job="b"),
        expect="""
            b:scontrol COMPLETED 0:0 0:0 None
        """,
    ),
    case(
        "dependencies/aftercorr",
        "aftercorr: member by member",
        Submit("exit $SLURM_ARRAY_TASK_ID", ("--array=0-1", "-o", "{dir}/n.%a.out"), job="n"),
        Submit(
            "exit 0",
            ("--dependency=aftercorr:{n}", "--array=0-1", "--kill-on-invalid-dep=yes", "-o", "{dir}/b.%a.out"),
            job="b",
        ),
        expect="""
            b_0:scontrol COMPLETED 0:0 0:0 None
            b_1:scontrol CANCELLED 0:0 0:0 DependencyNeverSatisfied
            b_1:sacct CANCELLED 0:0
        """,
    ),
    case(
        "dependencies/settled-1",
        "afterok of a job that has failed before",
        Submit("exit 1", job="n"),
        When("FAILED", job="n"),
        Submit("exit 0", ("--dependency=afterok:{n}", "--kill-on-invalid-dep=yes"), job="b"),
        expect="""
            b:sbatch  exit 0: Submitted batch job {b}
            b:scontrol CANCELLED 0:0 0:0 DependencyNeverSatisfied;Resources
                ... => CANCELLED 0:0 0:0 DependencyNeverSatisfied (reason-of-the-moment)
            b:sacct   CANCELLED 0:0
        """,
    ),
    case(
        "dependencies/forgotten-1",
        "afterok of a failed job that slurmctld has forgotten",
        Submit("exit 1", job="n"),
        Settled(job="n"),
        Forgotten(job="n"),
        Submit("exit 0", ("--dependency=afterok:{n}", "--kill-on-invalid-dep=yes"), job="b"),
        expect="""
            b:sbatch  exit 0: Submitted batch job {b}
            b:scontrol COMPLETED 0:0 0:0 None => CANCELLED 0:0 0:0 DependencyNeverSatisfied (forgotten-need)
            b:sacct   COMPLETED 0:0 => CANCELLED 0:0 (forgotten-need)
        """,
        is_slow=True,
    ),
    case(
        "dependencies/chain",
        "A chain: a failure passes through afterany",
        Submit("exit 1", job="n"),
        Submit("exit 0", ("--dependency=afterany:{n}",), job="m"),
        Submit("exit 0", ("--dependency=afterok:{m}",), job="b"),
        expect="""
            b:scontrol COMPLETED 0:0 0:0 None
            m:scontrol COMPLETED 0:0 0:0 None
        """,
    ),
)
