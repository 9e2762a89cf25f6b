"""What can not be started, or only in part."""

from __future__ import annotations

from aver.conformance.model import script

CASES = (
    script(
        "launch/no-interpreter",
        "The interpreter is not there",
        "#!/no/such/interpreter\ntrue",
        """
            scontrol  FAILED 2:0 0:0 NonZeroExitCode => FAILED 2:0 0:0 JobLaunchFailure (launch-failure)
            sacct     FAILED 2:0
            batch     FAILED 2:0
            messages  slurmstepd: error: execve(): bad interpreter(/no/such/interpreter): No such file or directory
            ... => none (own-output)
        """,
    ),
    script(
        "launch/interpreter-not-executable",
        "The interpreter is not executable",
        "#!/etc/passwd\ntrue",
        """
            scontrol  FAILED 13:0 0:0 NonZeroExitCode => FAILED 13:0 0:0 JobLaunchFailure (launch-failure)
            sacct     FAILED 13:0
            batch     FAILED 13:0
        """,
    ),
    script(
        "launch/output",
        "The output file can not be opened",
        "exit 0",
        """
            scontrol  FAILED 0:53 0:0 JobLaunchFailure
            sacct     FAILED 0:53
            batch     CANCELLED 0:53
        """,
        options="-o /no/such/folder/out",
    ),
    script(
        "launch/error",
        "The error file can not be opened",
        "exit 0",
        """
            scontrol  FAILED 0:53 0:0 JobLaunchFailure
            sacct     FAILED 0:53
            batch     CANCELLED 0:53
        """,
        options="-e /no/such/folder/err",
    ),
    script(
        "launch/input",
        "The input file is not there",
        "cat; echo cat=$?",
        """
            scontrol  FAILED 0:53 0:0 JobLaunchFailure
            sacct     FAILED 0:53
            batch     CANCELLED 0:53
        """,
        options="-i /no/such/file",
    ),
    script(
        "launch/chdir",
        "The folder is not there: Slurm goes elsewhere",
        "echo at=ready\nexit 0",
        """
            scontrol  COMPLETED 0:0 0:0 None => FAILED 2:0 0:0 JobLaunchFailure (missing-folder)
            sacct     COMPLETED 0:0 => FAILED 2:0 (missing-folder)
            batch     COMPLETED 0:0 => FAILED 2:0 (missing-folder)
            messages  slurmstepd: error: couldn't chdir to `/no/such/folder': No such file or directory:
            ... going to /tmp instead => none (missing-folder)
        """,
        options="-D /no/such/folder",
    ),
    script(
        "launch/step-not-found",
        "srun of a command that is not there",
        "srun /no/such/command; echo srun=$?\nexit 0",
        """
            scontrol  COMPLETED 0:0 2:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     FAILED 2:0
            said      srun=2
            messages  slurmstepd: error: execve(): /no/such/command: No such file or directory / srun:
            ... error: NODE: task 0: Exited with exit code 2
        """,
    ),
    script(
        "launch/step-not-executable",
        "srun of a file that is not executable",
        "srun /etc/passwd; echo srun=$?\nexit 0",
        """
            scontrol  COMPLETED 0:0 13:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     FAILED 13:0
            said      srun=13
            messages  slurmstepd: error: execve(): /etc/passwd: Permission denied / srun: error: NODE: task
            ... 0: Exited with exit code 13
        """,
    ),
    script(
        "launch/step-folder",
        "srun of a folder",
        "srun /tmp; echo srun=$?\nexit 0",
        """
            scontrol  COMPLETED 0:0 13:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     FAILED 13:0
            said      srun=13
            messages  slurmstepd: error: execve(): /tmp: Permission denied / srun: error: NODE: task 0:
            ... Exited with exit code 13
        """,
    ),
    script(
        "launch/step-no-interpreter",
        "srun of a script without its interpreter",
        ("printf '#!/no/such/interpreter\\n' >{dir}/x; chmod +x {dir}/x; srun {dir}/x; echo srun=$?\nexit 0"),
        """
            scontrol  COMPLETED 0:0 2:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     FAILED 2:0
            said      srun=2
            messages  slurmstepd: error: execve(): bad interpreter(/no/such/interpreter): No such file or
            ... directory / srun: error: NODE: task 0: Exited with exit code 2
        """,
    ),
    script(
        "launch/step-output",
        "The step's output can not be opened",
        "srun -o /no/such/folder/out true; echo srun=$?\nexit 0",
        """
            scontrol  COMPLETED 0:0 0:126 None => COMPLETED 0:0 0:0 None (never-launched)
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            said      srun=1
            messages  srun: error: Could not open stdout file: No such file or directory
        """,
    ),
    script(
        "launch/step-input",
        "The step's input is not there",
        "srun -i /no/such/file cat; echo srun=$?\nexit 0",
        """
            scontrol  COMPLETED 0:0 0:126 None => COMPLETED 0:0 0:0 None (never-launched)
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            said      srun=1
            messages  srun: error: Could not open stdin file: No such file or directory
        """,
    ),
    script(
        "launch/step-chdir",
        "The step's folder is not there",
        ("srun -D /no/such/folder pwd | sed s/^/pwd=/; echo srun=${PIPESTATUS[0]}\nexit 0"),
        """
            scontrol  COMPLETED 0:0 0:0 None => COMPLETED 0:0 2:0 None (missing-folder)
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     COMPLETED 0:0 => FAILED 2:0 (missing-folder)
            said      pwd=/tmp srun=0 => srun=2 (missing-folder)
            messages  slurmstepd: error: couldn't chdir to `/no/such/folder': No such file or directory:
            ... going to /tmp instead => slurmstepd: error: couldn't chdir to `/no/such/folder': No such file or
            ... directory / srun: error: NODE: task 0: Exited with exit code 2 (missing-folder)
        """,
    ),
    script(
        "launch/step-too-many-tasks",
        "More tasks than the job has",
        "srun -n64 true; echo srun=$?\nexit 0",
        """
            scontrol  COMPLETED 0:0 0:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            said      srun=1
            messages  srun: error: Unable to create step for job {a}: More processors requested than permitted
        """,
    ),
    script(
        "launch/step-too-many-nodes",
        "More nodes than the job has",
        "srun -N64 true; echo srun=$?\nexit 0",
        """
            scontrol  COMPLETED 0:0 0:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            said      srun=1
            messages  srun: error: Only allocated 1 nodes asked for 64
        """,
    ),
    script(
        "launch/step-unknown-option",
        "An option that srun does not know",
        "srun --no-such-option true; echo srun=$?\nexit 0",
        """
            scontrol  COMPLETED 0:0 0:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            said      srun=255
            messages  srun: unrecognized option '--no-such-option'
        """,
    ),
    script(
        "launch/step-no-command",
        "srun without a command",
        "srun; echo srun=$?\nexit 0",
        """
            scontrol  COMPLETED 0:0 0:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            said      srun=1
            messages  srun: fatal: No command given to execute.
        """,
    ),
)
