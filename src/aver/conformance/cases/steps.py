"""Steps of one task: what they do to the job."""

from __future__ import annotations

from aver.conformance.model import Command, Look, Submit, When, case, script

CASES = (
    script(
        "steps/7-3-2",
        "Steps fail with 7, 3, 2; the last srun decides the job",
        "srun sh -c 'exit 7'\nsrun sh -c 'exit 3'\nsrun sh -c 'exit 2'",
        """
            scontrol  FAILED 2:0 7:0 NonZeroExitCode
            sacct     FAILED 2:0
            batch     FAILED 2:0
            step0     FAILED 7:0
            step1     FAILED 3:0
            step2     FAILED 2:0
        """,
    ),
    script(
        "steps/2-3-7",
        "Steps fail with 2, 3, 7",
        "srun sh -c 'exit 2'\nsrun sh -c 'exit 3'\nsrun sh -c 'exit 7'",
        """
            scontrol  FAILED 7:0 7:0 NonZeroExitCode
            sacct     FAILED 7:0
            batch     FAILED 7:0
            step0     FAILED 2:0
            step1     FAILED 3:0
            step2     FAILED 7:0
        """,
    ),
    script(
        "steps/7-then-true",
        "A failed step, then success",
        "srun sh -c 'exit 7'\ntrue",
        """
            scontrol  COMPLETED 0:0 7:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     FAILED 7:0
        """,
    ),
    script(
        "steps/0-0",
        "All steps succeed",
        ("srun sh -c 'exit 0'; echo srun=$?\nsrun sh -c 'exit 0'; echo srun=$?"),
        """
            scontrol  COMPLETED 0:0 0:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     COMPLETED 0:0
            step1     COMPLETED 0:0
            said      srun=0 srun=0
        """,
    ),
    script(
        "steps/hup",
        "A step dies of SIGHUP; the script goes on",
        "srun bash -c 'kill -HUP $$'; echo srun=$?\nexit 0",
        """
            scontrol  COMPLETED 0:0 0:1 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     CANCELLED 0:1
            said      srun=129
            messages  srun: error: NODE: task 0: Hangup
        """,
    ),
    script(
        "steps/int",
        "A step dies of SIGINT; the script goes on",
        "srun bash -c 'kill -INT $$'; echo srun=$?\nexit 0",
        """
            scontrol  COMPLETED 0:0 0:2 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     CANCELLED 0:2
            said      srun=130
            messages  srun: error: NODE: task 0: Interrupt
        """,
    ),
    script(
        "steps/quit",
        "A step dies of SIGQUIT; the script goes on",
        "srun sh -c 'kill -QUIT $$'; echo srun=$?\nexit 0",
        """
            scontrol  COMPLETED 0:0 0:3 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     CANCELLED 0:3
            said      srun=131
            messages  srun: error: NODE: task 0: Quit
        """,
    ),
    script(
        "steps/abrt",
        "A step dies of SIGABRT; the script goes on",
        "srun bash -c 'kill -ABRT $$'; echo srun=$?\nexit 0",
        """
            scontrol  COMPLETED 0:0 0:6 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     CANCELLED 0:6
            said      srun=134
            messages  srun: error: NODE: task 0: Aborted
        """,
    ),
    script(
        "steps/kill",
        "A step dies of SIGKILL; the script goes on",
        "srun bash -c 'kill -KILL $$'; echo srun=$?\nexit 0",
        """
            scontrol  COMPLETED 0:0 0:9 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     CANCELLED 0:9
            said      srun=137
            messages  srun: Force Terminated StepId={a}.0 / srun: error: NODE: task 0: Killed
        """,
    ),
    script(
        "steps/segv",
        "A step dies of SIGSEGV; the script goes on",
        "srun bash -c 'kill -SEGV $$'; echo srun=$?\nexit 0",
        """
            scontrol  COMPLETED 0:0 0:11 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     CANCELLED 0:11
            said      srun=139
            messages  srun: error: NODE: task 0: Segmentation fault
        """,
    ),
    script(
        "steps/term",
        "A step dies of SIGTERM; the script goes on",
        "srun bash -c 'kill -TERM $$'; echo srun=$?\nexit 0",
        """
            scontrol  COMPLETED 0:0 0:15 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     CANCELLED 0:15
            said      srun=143
            messages  srun: Force Terminated StepId={a}.0 / srun: error: NODE: task 0: Terminated
        """,
    ),
    script(
        "steps/usr1",
        "A step dies of SIGUSR1; the script goes on",
        "srun bash -c 'kill -USR1 $$'; echo srun=$?\nexit 0",
        """
            scontrol  COMPLETED 0:0 0:10 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     CANCELLED 0:10
            said      srun=138
            messages  srun: error: NODE: task 0: User defined signal 1
        """,
    ),
    script(
        "steps/pipe",
        "A step dies of SIGPIPE; the script goes on",
        "srun bash -c 'kill -PIPE $$'; echo srun=$?\nexit 0",
        """
            scontrol  COMPLETED 0:0 0:13 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     CANCELLED 0:13
            said      srun=141
            messages  srun: error: NODE: task 0: Broken pipe
        """,
    ),
    script(
        "steps/kill-last",
        "A step dies of SIGKILL, last",
        "srun bash -c 'kill -KILL $$'",
        """
            scontrol  FAILED 137:0 0:9 NonZeroExitCode
            sacct     FAILED 9:0 => FAILED 137:0 (whole-codes)
            batch     FAILED 9:0 => FAILED 137:0 (whole-codes)
            step0     CANCELLED 0:9
        """,
    ),
    script(
        "steps/segv-last",
        "A step dies of SIGSEGV, last",
        "srun bash -c 'kill -SEGV $$'",
        """
            scontrol  FAILED 139:0 0:11 NonZeroExitCode
            sacct     FAILED 11:0 => FAILED 139:0 (whole-codes)
            batch     FAILED 11:0 => FAILED 139:0 (whole-codes)
            step0     CANCELLED 0:11
        """,
    ),
    script(
        "steps/7-segv",
        "A code, then a signal",
        ("srun sh -c 'exit 7'; echo srun=$?\nsrun bash -c 'kill -SEGV $$'; echo srun=$?\nexit 0"),
        """
            scontrol  COMPLETED 0:0 7:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     FAILED 7:0
            step1     CANCELLED 0:11
            said      srun=7 srun=139
        """,
    ),
    script(
        "steps/segv-7",
        "A signal, then a code",
        ("srun bash -c 'kill -SEGV $$'; echo srun=$?\nsrun sh -c 'exit 7'; echo srun=$?\nexit 0"),
        """
            scontrol  COMPLETED 0:0 7:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     CANCELLED 0:11
            step1     FAILED 7:0
            said      srun=139 srun=7
        """,
    ),
    script(
        "steps/term-kill",
        "The higher of two signals",
        ("srun bash -c 'kill -KILL $$'; echo srun=$?\nsrun bash -c 'kill -TERM $$'; echo srun=$?\nexit 0"),
        """
            scontrol  COMPLETED 0:0 0:15 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     CANCELLED 0:9
            step1     CANCELLED 0:15
            said      srun=137 srun=143
        """,
    ),
    script(
        "steps/1-term",
        "The smallest code beats a signal",
        ("srun sh -c 'exit 1'; echo srun=$?\nsrun bash -c 'kill -TERM $$'; echo srun=$?\nexit 0"),
        """
            scontrol  COMPLETED 0:0 1:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     FAILED 1:0
            step1     CANCELLED 0:15
            said      srun=1 srun=143
        """,
    ),
    script(
        "steps/exit-126",
        "A step exits 126",
        "srun sh -c 'exit 126'; echo srun=$?\nexit 0",
        """
            scontrol  COMPLETED 0:0 126:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     FAILED 126:0
            said      srun=126
            messages  srun: error: NODE: task 0: Exited with exit code 126
        """,
    ),
    script(
        "steps/exit-128",
        "A step exits 128",
        "srun sh -c 'exit 128'; echo srun=$?\nexit 0",
        """
            scontrol  COMPLETED 0:0 128:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     FAILED 0:0 => FAILED 128:0 (whole-codes)
            said      srun=128
            messages  srun: error: NODE: task 0: Exited with exit code 128
        """,
    ),
    script(
        "steps/exit-137",
        "A step exits 137",
        "srun sh -c 'exit 137'; echo srun=$?\nexit 0",
        """
            scontrol  COMPLETED 0:0 137:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     FAILED 9:0 => FAILED 137:0 (whole-codes)
            said      srun=137
            messages  srun: error: NODE: task 0: Exited with exit code 137
        """,
    ),
    script(
        "steps/exit-200",
        "A step exits 200",
        "srun sh -c 'exit 200'; echo srun=$?\nexit 0",
        """
            scontrol  COMPLETED 0:0 200:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     FAILED 72:0 => FAILED 200:0 (whole-codes)
            said      srun=200
            messages  srun: error: NODE: task 0: Exited with exit code 200
        """,
    ),
    script(
        "steps/exit-255",
        "A step exits 255",
        "srun sh -c 'exit 255'; echo srun=$?\nexit 0",
        """
            scontrol  COMPLETED 0:0 255:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     FAILED 127:0 => FAILED 255:0 (whole-codes)
            said      srun=255
            messages  srun: error: NODE: task 0: Exited with exit code 255
        """,
    ),
    script(
        "steps/parallel",
        "Two steps at the same time",
        ("srun --exact -n1 sh -c 'sleep 2; exit 4' &\nsleep 1\nsrun --exact -n1 sh -c 'exit 6' &\nwait\nexit 0"),
        """
            scontrol  COMPLETED 0:0 6:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     FAILED 4:0
            step1     FAILED 6:0
        """,
        options="-n2",
    ),
    script(
        "steps/set-e",
        "set -e ends the script at a failed step",
        "set -e\nsrun sh -c 'exit 4'\necho after=1",
        """
            scontrol  FAILED 4:0 4:0 NonZeroExitCode
            sacct     FAILED 4:0
            batch     FAILED 4:0
            step0     FAILED 4:0
        """,
    ),
    script(
        "steps/in-a-pipe",
        "srun in a pipe: its code is lost to the script",
        "srun sh -c 'exit 4' | cat",
        """
            scontrol  COMPLETED 0:0 4:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     FAILED 4:0
        """,
    ),
    script(
        "steps/none",
        "No step: derived is 0:0",
        "exit 3",
        """
            scontrol  FAILED 3:0 0:0 NonZeroExitCode
            sacct     FAILED 3:0
            batch     FAILED 3:0
        """,
    ),
    case(
        "steps/derived-live",
        "DerivedExitCode is seen while the job runs",
        Submit("srun sh -c 'exit 7'\nsleep 2\necho at=ready\nsleep 300"),
        When(says="at=ready"),
        Look("live"),
        Command(("scancel", "{a}")),
        expect="""
            live      RUNNING 0:0 7:0 None
            scontrol  CANCELLED 0:15 7:0 None
            sacct     CANCELLED-by-user 0:0 => CANCELLED-by-user 0:15 (sacct-as-scontrol)
            batch     CANCELLED 0:15
            step0     FAILED 7:0
        """,
    ),
    script(
        "steps/derived-in-sacct",
        "sacct has DerivedExitCode as well, of the steps that ended well before the job",
        "srun sh -c 'exit 7'\nsleep 3\nexit 0",
        """
            scontrol  COMPLETED 0:0 7:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     FAILED 7:0
            derived   7:0
        """,
    ),
    script(
        "steps/exec-trap",
        "A step that traps TERM and exits 5",
        ("srun bash -c 'trap \"exit 5\" TERM; kill -TERM $$; sleep 5'; echo srun=$?\nexit 0"),
        """
            scontrol  COMPLETED 0:0 5:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     FAILED 5:0
            said      srun=5
        """,
    ),
    script(
        "steps/script-ends-first",
        "The script ends while a step runs",
        "srun sleep 300 &\nsleep 3\nexit 0",
        """
            scontrol  COMPLETED 0:0 0:15 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
            step0     CANCELLED 0:15
            messages  none
        """,
    ),
    script(
        "steps/script-fails-first",
        "The script fails while a step runs",
        "srun sleep 300 &\nsleep 3\nexit 4",
        """
            scontrol  FAILED 4:0 0:15 NonZeroExitCode
            sacct     FAILED 4:0
            batch     FAILED 4:0
            step0     CANCELLED 0:15
        """,
    ),
)
