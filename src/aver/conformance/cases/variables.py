"""What scripts and tasks find in their environment."""

from __future__ import annotations

from aver.conformance.model import Submit, case, script

CASES = (
    script(
        "variables/batch",
        "What the script sees",
        (
            "for name in SLURM_NTASKS SLURM_NPROCS SLURM_CPUS_ON_NODE SLURM_JOB_CPUS_PER_NODE "
            "SLURM_TASKS_PER_NODE SLURM_JOB_NUM_NODES SLURM_NNODES SLURM_NODEID SLURM_PROCID SLURM_LOCALID "
            "SLURM_JOB_NODELIST SLURM_NODELIST SLURMD_NODENAME SLURM_JOB_UID SLURM_RESTART_COUNT "
            "SLURM_CPUS_PER_TASK SLURM_STEP_ID SLURM_STEPID SLURM_ARRAY_TASK_ID ENVIRONMENT; do\n"
            '  value=${!name-unset}; [ "$name" = SLURM_JOB_UID ] && value=$([ "$value" = "$(id -u)" ] && '
            "echo mine)\n"
            '  echo "var=$name:$value"\n'
            "done\n"
            'echo "same=$([ "$SLURM_JOB_ID" = "$SLURM_JOBID" ] && echo yes)"\n'
            'echo "dir=$([ "$SLURM_SUBMIT_DIR" = "$PWD" ] && echo yes)"'
        ),
        """
            scontrol  COMPLETED 0:0 0:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            said      var=SLURM_NTASKS:2 var=SLURM_NPROCS:2 var=SLURM_CPUS_ON_NODE:4
            ... var=SLURM_JOB_CPUS_PER_NODE:4 var=SLURM_TASKS_PER_NODE:2 var=SLURM_JOB_NUM_NODES:1
            ... var=SLURM_NNODES:1 var=SLURM_NODEID:0 var=SLURM_PROCID:0 var=SLURM_LOCALID:0
            ... var=SLURM_JOB_NODELIST:NODE var=SLURM_NODELIST:NODE var=SLURMD_NODENAME:NODE
            ... var=SLURM_JOB_UID:mine var=SLURM_RESTART_COUNT:unset var=SLURM_CPUS_PER_TASK:2
            ... var=SLURM_STEP_ID:unset var=SLURM_STEPID:unset var=SLURM_ARRAY_TASK_ID:unset
            ... var=ENVIRONMENT:BATCH same=yes dir=yes
        """,
        options="-N1 -n2 -c2",
    ),
    script(
        "variables/task",
        "What a task sees",
        (
            "srun -n2 bash -c 'for name in SLURM_NTASKS SLURM_NPROCS SLURM_PROCID SLURM_LOCALID SLURM_NODEID "
            "SLURM_STEP_ID SLURM_STEPID SLURM_STEP_NUM_TASKS SLURM_STEP_NUM_NODES SLURM_STEP_TASKS_PER_NODE "
            "SLURM_TASKS_PER_NODE SLURM_CPUS_ON_NODE SLURM_STEP_NODELIST; do echo "
            '"var=$SLURM_PROCID:$name:${!name-unset}"; done\' | sort'
        ),
        """
            scontrol  COMPLETED 0:0 0:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     COMPLETED 0:0
            said      var=0:SLURM_CPUS_ON_NODE:2 var=0:SLURM_LOCALID:0 var=0:SLURM_NODEID:0
            ... var=0:SLURM_NPROCS:2 var=0:SLURM_NTASKS:2 var=0:SLURM_PROCID:0 var=0:SLURM_STEPID:0
            ... var=0:SLURM_STEP_ID:0 var=0:SLURM_STEP_NODELIST:NODE var=0:SLURM_STEP_NUM_NODES:1
            ... var=0:SLURM_STEP_NUM_TASKS:2 var=0:SLURM_STEP_TASKS_PER_NODE:2 var=0:SLURM_TASKS_PER_NODE:2
            ... var=1:SLURM_CPUS_ON_NODE:2 var=1:SLURM_LOCALID:1 var=1:SLURM_NODEID:0 var=1:SLURM_NPROCS:2
            ... var=1:SLURM_NTASKS:2 var=1:SLURM_PROCID:1 var=1:SLURM_STEPID:0 var=1:SLURM_STEP_ID:0
            ... var=1:SLURM_STEP_NODELIST:NODE var=1:SLURM_STEP_NUM_NODES:1 var=1:SLURM_STEP_NUM_TASKS:2
            ... var=1:SLURM_STEP_TASKS_PER_NODE:2 var=1:SLURM_TASKS_PER_NODE:2
        """,
        options="-N1 -n2",
    ),
    script(
        "variables/export-none",
        "--export=NONE: nothing of the submitter",
        'echo "mine=${MINE-unset}"\necho "id=${SLURM_JOB_ID:+set}"',
        """
            scontrol  COMPLETED 0:0 0:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            said      mine=unset id=set
        """,
        options="--export=NONE",
    ),
    case(
        "variables/export",
        "--export=ALL,NAME=value",
        Submit('echo "mine=$MINE"\necho "other=$OTHER"', ("--export=ALL,MINE=1",), variables=(("OTHER", "2"),)),
        expect="""
            scontrol  COMPLETED 0:0 0:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            said      mine=1 other=2
        """,
    ),
    case(
        "variables/precedence",
        "A flag beats a variable, a variable beats a line",
        Submit(
            (
                "#!/bin/bash\n"
                "#SBATCH --comment=line\n"
                "#SBATCH --time=7\n"
                "#SBATCH --nice=5\n"
                'scontrol show job $SLURM_JOB_ID | grep -oE "(TimeLimit|Nice|Comment)=\\S+" | sed "s/^/got=/"'
            ),
            ("--time=9",),
            variables=(
                ("SBATCH_TIMELIMIT", "8"),
                ("SBATCH_COMMENT", "variable"),
            ),
        ),
        expect="""
            scontrol  COMPLETED 0:0 0:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            said      got=Nice=5 got=TimeLimit=00:09:00 got=Comment=line
        """,
    ),
)
