"""Memory limits: the script's own kill, a step's kill."""

from __future__ import annotations

from aver.conformance.model import script

CASES = (
    script(
        "memory/script",
        "The script itself needs too much",
        "x=$(head -c 150M /dev/zero | tr '\\0' x)\nsleep 5\nexit 0",
        """
            scontrol  OUT_OF_MEMORY 0:125 0:0 OutOfMemory
            sacct     OUT_OF_MEMORY 0:125
            batch     OUT_OF_MEMORY 0:125
            messages  slurmstepd: error: Detected 1 oom-kill event(s) in StepId={a}.batch. Some of your
            ... processes may have been killed by the cgroup out-of-memory handler. => none (own-output)
        """,
        options="--mem=50M",
        needs="memory",
    ),
    script(
        "memory/child-then-0",
        "A child is killed for memory, the script exits 0",
        ("bash -c \"x=\\$(head -c 150M /dev/zero | tr '\\0' x); sleep 5\"\necho child=$?\nexit 0"),
        """
            scontrol  OUT_OF_MEMORY 0:125 0:0 OutOfMemory
            sacct     OUT_OF_MEMORY 0:125
            batch     OUT_OF_MEMORY 0:125
            said      child=137
        """,
        options="--mem=50M",
        needs="memory",
    ),
    script(
        "memory/step-then-0",
        "A step is killed for memory, the script exits 0",
        ("srun bash -c 'x=$(head -c 150M /dev/zero | tr \"\\0\" x); sleep 5'; echo srun=$?\nexit 0"),
        """
            scontrol  COMPLETED 0:0 0:125 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     OUT_OF_MEMORY 0:125
            said      srun=1
            messages  slurmstepd: error: Detected 1 oom-kill event(s) in StepId={a}.0. Some of your
            ... processes may have been killed by the cgroup out-of-memory handler. / srun: error: NODE: task 0:
            ... Out Of Memory
        """,
        options="--mem=50M",
        needs="memory",
    ),
    script(
        "memory/step-last",
        "A step is killed for memory, last",
        "srun bash -c 'x=$(head -c 150M /dev/zero | tr \"\\0\" x); sleep 5'",
        """
            scontrol  FAILED 1:0 0:125 NonZeroExitCode
            sacct     FAILED 1:0
            batch     FAILED 1:0
            step0     OUT_OF_MEMORY 0:125
        """,
        options="--mem=50M",
        needs="memory",
    ),
    script(
        "memory/step-child-then-0",
        "A child of a step is killed for memory, the step exits 0",
        (
            'srun sh -c \'bash -c "x=\\$(head -c 150M /dev/zero | tr \\"\\\\0\\" x); sleep 5"; exit 0\'; echo '
            "srun=$?\n"
            "exit 0"
        ),
        """
            scontrol  COMPLETED 0:0 0:125 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     OUT_OF_MEMORY 0:125
            said      srun=1
        """,
        options="--mem=50M",
        needs="memory",
    ),
    script(
        "memory/one-task-of-two",
        "One task of two is killed for memory",
        (
            'srun -n2 --mem=50M bash -c \'if [ $SLURM_PROCID = 0 ]; then x=$(head -c 150M /dev/zero | tr "\\0" '
            "x); sleep 5; fi; sleep 1; exit 0'; echo srun=$?\n"
            "exit 0"
        ),
        """
            scontrol  COMPLETED 0:0 0:125 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     OUT_OF_MEMORY 0:125
            said      srun=1
        """,
        options="-N1 -n2 --mem=50M",
        needs="memory",
    ),
)
