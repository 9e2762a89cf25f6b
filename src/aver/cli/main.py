"""The edge of the command line: from arguments to an exit status.

Every error that a user can cause leaves here as one line on stderr and its exit status. Anything
else is a bug in Aver: one line, the traceback in a file, exit status 70. A command's module is
imported only when that command is called.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from aver.cli.catalog import SYNONYMS
from aver.errors import AverError, CantWriteError
from aver.printable import one_line, printable
from aver.process_end import leave

TAKES_A_COMMAND = frozenset({"run", "submit", "shell", "task"})
EXITS_AS_JOBS = frozenset({"run", "watch", "recover"})
UNREADABLE_STATUS = 69
BUG_STATUS = 70
PIPE_STATUS = 141  # what a shell shows for a process that SIGPIPE ended


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit; `argv` is without the program's name."""
    _open_streams()
    leave(invoke(list(sys.argv[1:] if argv is None else argv)))


def invoke(argv: list[str]) -> int:
    """Run one command and return its exit status. Never raises but for SystemExit of an interpreter's end."""
    try:
        return _invoke(argv)
    except AverError as error:
        if isinstance(error, CantWriteError):
            _forget_stdout()
        _show_traceback()
        _complain(str(error))
        return _status(error, argv)
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        _show_traceback()
        return _report_bug(error)


def _invoke(argv: list[str]) -> int:
    import click

    from aver.cli.group import Invocation, make_group
    from aver.cli.output import ReaderLeft

    head, tail = split_command(argv)
    if _name(argv) not in TAKES_A_COMMAND and any(word[:1] == "-" and word[1:2].isdigit() for word in head):
        from aver.cli.address import typed_address  # few name a run so

        head = [typed_address(word) for word in head]
    invocation = Invocation(typed=("aver", *argv), command=tail)
    try:
        result = make_group().main(args=head, prog_name="aver", standalone_mode=False, obj=invocation)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return 2
    except click.UsageError as error:
        _complain(_usage_sentence(error))
        return 2
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.Abort:
        return 130
    except ReaderLeft:
        _forget_stdout()
        return PIPE_STATUS
    sys.stdout.flush()
    return result if isinstance(result, int) else 0


def split_command(argv: list[str]) -> tuple[list[str], tuple[str, ...] | None]:
    """Cut at the first `--` of `run`, `submit`, `shell` and `task`: what follows is the command, untouched."""
    if _name(argv) not in TAKES_A_COMMAND or "--" not in argv:
        return argv, None
    cut = argv.index("--")
    return argv[:cut], tuple(argv[cut + 1 :])


def _name(argv: list[str]) -> str | None:
    word = next((word for word in argv if not word.startswith("-")), None)
    return SYNONYMS.get(word or "", (word,))[0]


def _status(error: AverError, argv: list[str]) -> int:
    """Where 1 says that a job is FAILED, what could not be read is something else."""
    is_verdict = error.exit_status == AverError.exit_status and _name(argv) in EXITS_AS_JOBS
    return UNREADABLE_STATUS if is_verdict else error.exit_status


def _usage_sentence(error: object) -> str:
    import click

    assert isinstance(error, click.UsageError)
    text = error.format_message().strip().rstrip(".")
    text = text[:1].lower() + text[1:] if text[1:2].islower() else text
    path = error.ctx.command_path if error.ctx is not None else "aver"
    return " ".join(f"{text}; `{path} --help` explains".split())


def _complain(text: str) -> None:
    spelled = printable if sys.stderr.isatty() else one_line
    line = "".join(f"aver: {spelled(line)}\n" for line in text.splitlines() or [""])
    try:
        sys.stderr.buffer.write(line.encode("utf-8", "surrogateescape"))
        sys.stderr.buffer.flush()
    except OSError:
        pass  # nobody is there to read it; the exit status still says it


def _show_traceback() -> None:
    """With AVER_DEBUG: where the error came from, before the line that says it."""
    if os.environ.get("AVER_DEBUG"):
        import traceback

        try:
            traceback.print_exc()
        except OSError:
            pass  # as in _complain


def _open_streams() -> None:
    """Put /dev/null where a standard stream is closed: no file or socket of ours may take its place."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free, which is this one
    if sys.stdout is None:
        sys.stdout = open(1, "w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w")  # noqa: SIM115


def _forget_stdout() -> None:
    """Keep the interpreter from complaining about what it can't write when it flushes at its end."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
    except (OSError, ValueError):
        pass  # it is no file: a test has put something else there


def _report_bug(error: Exception) -> int:
    import tempfile
    import traceback

    text = "".join(traceback.format_exception(error))
    what = f"{type(error).__name__}: {error}"
    for folder in _bug_folders():
        try:
            handle, path = tempfile.mkstemp(prefix="aver-bug-", suffix=".txt", dir=folder)
        except OSError:
            continue
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        _complain(f"a bug in Aver: {what}; the traceback is in {path}")
        return BUG_STATUS
    _complain(f"a bug in Aver: {what}; its traceback could not be written anywhere")
    return BUG_STATUS


def _bug_folders() -> list[str | None]:
    from aver.home import Home

    home = Home.find().path
    return [str(home), None] if home.is_dir() else [None]
