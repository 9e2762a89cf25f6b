"""How a script ends by itself: its exit code."""

from __future__ import annotations

from aver.conformance.model import script

CASES = (
    script(
        "exit/0",
        "Success",
        "exit 0",
        """
            scontrol  COMPLETED 0:0 0:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
        """,
    ),
    script(
        "exit/1",
        "The plainest failure",
        "exit 1",
        """
            scontrol  FAILED 1:0 0:0 NonZeroExitCode
            sacct     FAILED 1:0
            batch     FAILED 1:0
        """,
    ),
    script(
        "exit/2",
        "A failure with another code",
        "exit 2",
        """
            scontrol  FAILED 2:0 0:0 NonZeroExitCode
            sacct     FAILED 2:0
            batch     FAILED 2:0
        """,
    ),
    script(
        "exit/126",
        'The code that shells use for "can not execute"',
        "exit 126",
        """
            scontrol  FAILED 126:0 0:0 NonZeroExitCode
            sacct     FAILED 126:0
            batch     FAILED 126:0
        """,
    ),
    script(
        "exit/127",
        'The code that shells use for "not found"',
        "exit 127",
        """
            scontrol  FAILED 127:0 0:0 NonZeroExitCode
            sacct     FAILED 127:0
            batch     FAILED 127:0
        """,
    ),
    script(
        "exit/128",
        "The first code whose top bit is set",
        "exit 128",
        """
            scontrol  FAILED 128:0 0:0 NonZeroExitCode
            sacct     FAILED 0:0 => FAILED 128:0 (whole-codes)
            batch     FAILED 0:0 => FAILED 128:0 (whole-codes)
        """,
    ),
    script(
        "exit/129",
        "A code that looks like SIGHUP",
        "exit 129",
        """
            scontrol  FAILED 129:0 0:0 NonZeroExitCode
            sacct     FAILED 1:0 => FAILED 129:0 (whole-codes)
            batch     FAILED 1:0 => FAILED 129:0 (whole-codes)
        """,
    ),
    script(
        "exit/137",
        "A code that looks like SIGKILL and is none",
        "exit 137",
        """
            scontrol  FAILED 137:0 0:0 NonZeroExitCode
            sacct     FAILED 9:0 => FAILED 137:0 (whole-codes)
            batch     FAILED 9:0 => FAILED 137:0 (whole-codes)
        """,
    ),
    script(
        "exit/143",
        "A code that looks like SIGTERM",
        "exit 143",
        """
            scontrol  FAILED 143:0 0:0 NonZeroExitCode
            sacct     FAILED 15:0 => FAILED 143:0 (whole-codes)
            batch     FAILED 15:0 => FAILED 143:0 (whole-codes)
        """,
    ),
    script(
        "exit/200",
        "A code above all 128+n",
        "exit 200",
        """
            scontrol  FAILED 200:0 0:0 NonZeroExitCode
            sacct     FAILED 72:0 => FAILED 200:0 (whole-codes)
            batch     FAILED 72:0 => FAILED 200:0 (whole-codes)
        """,
    ),
    script(
        "exit/255",
        "The highest code",
        "exit 255",
        """
            scontrol  FAILED 255:0 0:0 NonZeroExitCode
            sacct     FAILED 127:0 => FAILED 255:0 (whole-codes)
            batch     FAILED 127:0 => FAILED 255:0 (whole-codes)
        """,
    ),
    script(
        "exit/256",
        "The shell keeps eight bits: 256 is 0",
        "exit 256",
        """
            scontrol  COMPLETED 0:0 0:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
        """,
    ),
    script(
        "exit/minus-1",
        "The shell keeps eight bits: -1 is 255",
        "exit -1",
        """
            scontrol  FAILED 255:0 0:0 NonZeroExitCode
            sacct     FAILED 127:0 => FAILED 255:0 (whole-codes)
            batch     FAILED 127:0 => FAILED 255:0 (whole-codes)
        """,
    ),
    script(
        "exit/last-command",
        "The last command decides",
        "true\nfalse",
        """
            scontrol  FAILED 1:0 0:0 NonZeroExitCode
            sacct     FAILED 1:0
            batch     FAILED 1:0
        """,
    ),
    script(
        "exit/earlier-command",
        "A failure before the last command is not seen",
        "false\ntrue",
        """
            scontrol  COMPLETED 0:0 0:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
        """,
    ),
    script(
        "exit/set-e",
        "set -e ends the script at the first failure",
        'set -e\nsh -c "exit 6"\necho after=1\nexit 0',
        """
            scontrol  FAILED 6:0 0:0 NonZeroExitCode
            sacct     FAILED 6:0
            batch     FAILED 6:0
            said      none
        """,
    ),
    script(
        "exit/not-found",
        "A command that is not there, last",
        "/no/such/command",
        """
            scontrol  FAILED 127:0 0:0 NonZeroExitCode
            sacct     FAILED 127:0
            batch     FAILED 127:0
        """,
    ),
    script(
        "exit/not-executable",
        "A file that is not executable, last",
        "/etc/passwd",
        """
            scontrol  FAILED 126:0 0:0 NonZeroExitCode
            sacct     FAILED 126:0
            batch     FAILED 126:0
        """,
    ),
    script(
        "exit/syntax-error",
        "The shell can not read its script",
        "if true; then\n",
        """
            scontrol  FAILED 2:0 0:0 NonZeroExitCode
            sacct     FAILED 2:0
            batch     FAILED 2:0
        """,
    ),
    script(
        "exit/pipefail",
        "A pipe fails where any part of it fails",
        'set -o pipefail\nsh -c "exit 4" | cat',
        """
            scontrol  FAILED 4:0 0:0 NonZeroExitCode
            sacct     FAILED 4:0
            batch     FAILED 4:0
        """,
    ),
    script(
        "exit/child-segv",
        "A child dies of SIGSEGV; the shell makes it 139",
        "bash -c 'kill -SEGV $$'",
        """
            scontrol  FAILED 139:0 0:0 NonZeroExitCode
            sacct     FAILED 11:0 => FAILED 139:0 (whole-codes)
            batch     FAILED 11:0 => FAILED 139:0 (whole-codes)
        """,
    ),
    script(
        "exit/child-kill",
        "A child dies of SIGKILL; the shell makes it 137",
        "bash -c 'kill -KILL $$'",
        """
            scontrol  FAILED 137:0 0:0 NonZeroExitCode
            sacct     FAILED 9:0 => FAILED 137:0 (whole-codes)
            batch     FAILED 9:0 => FAILED 137:0 (whole-codes)
        """,
    ),
    script(
        "exit/child-term",
        "A child dies of SIGTERM; the shell makes it 143",
        "bash -c 'kill -TERM $$'",
        """
            scontrol  FAILED 143:0 0:0 NonZeroExitCode
            sacct     FAILED 15:0 => FAILED 143:0 (whole-codes)
            batch     FAILED 15:0 => FAILED 143:0 (whole-codes)
        """,
    ),
    script(
        "exit/exec",
        "The script becomes another program",
        "exec sh -c 'exit 9'",
        """
            scontrol  FAILED 9:0 0:0 NonZeroExitCode
            sacct     FAILED 9:0
            batch     FAILED 9:0
        """,
    ),
    script(
        "exit/other-interpreter",
        "The interpreter of the first line runs the script",
        "#!/bin/sh -e\nfalse\nexit 0",
        """
            scontrol  FAILED 1:0 0:0 NonZeroExitCode
            sacct     FAILED 1:0
            batch     FAILED 1:0
        """,
    ),
    script(
        "exit/only-a-first-line",
        "A script with nothing but its first line",
        "#!/bin/bash\n",
        """
            scontrol  COMPLETED 0:0 0:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
        """,
    ),
    script(
        "exit/background-left",
        "A process that the script left behind is ended",
        "sleep 300 &\nexit 0",
        """
            scontrol  COMPLETED 0:0 0:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
        """,
    ),
    script(
        "exit/trap-exit",
        "An EXIT trap changes the code",
        "trap 'exit 9' EXIT\nexit 3",
        """
            scontrol  FAILED 9:0 0:0 NonZeroExitCode
            sacct     FAILED 9:0
            batch     FAILED 9:0
        """,
    ),
    script(
        "exit/trap-exit-keeps",
        "An EXIT trap that only cleans up keeps the code",
        "trap 'true' EXIT\nexit 3",
        """
            scontrol  FAILED 3:0 0:0 NonZeroExitCode
            sacct     FAILED 3:0
            batch     FAILED 3:0
        """,
    ),
    script(
        "exit/trap-term",
        "A trapped signal, then a code",
        "trap 'exit 5' TERM\nkill -TERM $$\nexit 0",
        """
            scontrol  FAILED 5:0 0:0 NonZeroExitCode
            sacct     FAILED 5:0
            batch     FAILED 5:0
        """,
    ),
    script(
        "exit/ignored-term",
        "An ignored signal changes nothing",
        "trap '' TERM\nkill -TERM $$\nexit 0",
        """
            scontrol  COMPLETED 0:0 0:0 None
            sacct     COMPLETED 0:0
            batch     COMPLETED 0:0
        """,
    ),
)
