"""Well-known lines of programs' output, and which of them the end of a log has.

Pure. A hint is a quotation with a name. It is never evidence: no verdict, no reason and no correction rests on one,
and every surface calls it a hint. The table is the whole knowledge; the first row that fits counts, so what
says more stands before what says less.
"""

from __future__ import annotations

import re

from aver.model.record import Record

LONGEST_QUOTE = 200
LAST_LINES = 200  # of a log's end are looked at


class Hint(Record):
    """`line` is as the program wrote it, cut to a sensible length; `advice` is what it usually means."""

    name: str
    line: str
    advice: str

    @property
    def key(self) -> str:
        """The same for lines that differ in their figures only."""
        return f"{self.name}: {_FIGURES.sub('#', self.line)}"


class Known(Record):
    """A row of the table: a line fits that has one of the words and, where there is one, fits the pattern."""

    name: str
    words: tuple[str, ...]
    advice: str
    pattern: str = ""


KNOWN: tuple[Known, ...] = (
    Known("CUDA out of memory", ("CUDA out of memory", "CUDA error: out of memory", "CUDA_ERROR_OUT_OF_MEMORY",
          "HIP out of memory", "cudaErrorMemoryAllocation"), "the gpu's memory, not mem: try a smaller batch"),
    Known("no CUDA device", ("no CUDA-capable device", "No CUDA GPUs are available", "cudaErrorNoDevice",
          "CUDA driver version is insufficient"), "did the job ask for gpus?"),
    Known("NCCL timeout", ("Watchdog caught collective operation timeout", "NCCL timeout", "NCCL watchdog",
          "NCCL error", "ncclSystemError", "ncclUnhandledCudaError", "ncclRemoteError"),
          "one rank fell behind or was lost: look at the others' logs"),
    Known("no space left", ("No space left on device", "ENOSPC"), "a file system is full"),
    Known("disk quota exceeded", ("Disk quota exceeded", "EDQUOT", "quota exceeded"), "a quota is used up"),
    Known("JVM out of memory", ("java.lang.OutOfMemoryError",), "the JVM's own limit, -Xmx"),
    Known("memory refused", ("MemoryError", "std::bad_alloc", "Cannot allocate memory", "cannot allocate memory",
          "cannot allocate vector of size"), "it asked for memory that it was not given"),
    Known("killed for memory", ("oom-kill", "oom_kill", "Out Of Memory", "Exceeded job memory", "Exceeded step memory"),
          "something was killed for memory"),
    Known("time limit", ("DUE TO TIME LIMIT",), "a limit of the scheduler passed"),
    Known("MPI_Abort", ("MPI_ABORT was invoked", "MPI_Abort"), "one rank gave up and took the others with it"),
    Known("MPI failure", ("mpirun has exited", "mpirun noticed", "mpiexec noticed", "PMIX ERROR", "ORTE_ERROR_LOG",
          "UCX  ERROR"), "the cause is usually in the first rank that ended"),
    Known("missing module", ("ModuleNotFoundError: ", "ImportError: ", "there is no package called"),
          "is the right environment loaded in the job?"),
    Known("missing library", ("error while loading shared libraries", "undefined symbol", "cannot open shared object",
          "GLIBC"), "a library is missing where the job runs", r"shared|undefined|GLIBC\w*_[\d.]+' not found"),
    Known("command not found", ("command not found", ": not found", "Unable to locate a modulefile"),
          "PATH or modules are not those of your shell", r"command not found|: not found$|modulefile"),
    Known("too many open files", ("Too many open files", "EMFILE"), "raise `ulimit -n`, or close files"),
    Known("too many processes", ("Resource temporarily unavailable", "fork: retry", "can't start new thread"),
          "raise `ulimit -u`, or start fewer"),
    Known("stale file handle", ("Stale file handle", "ESTALE"), "a network file system lost a file: often gone later"),
    Known("input/output error", ("Input/output error",), "a disk or a file system has trouble"),
    Known("read-only file system", ("Read-only file system",), "it may not write there"),
    Known("network", ("Connection refused", "Connection timed out", "Connection reset by peer",
          "Could not resolve host", "Temporary failure in name resolution", "No route to host",
          "Network is unreachable"), "a service could not be reached: often gone later"),
    Known("licence", ("icense checkout failed", "No license", "no license", "FLEXlm error", "FLEXnet"),
          "no licence was free"),
    Known("permission denied", ("Permission denied", "PermissionError"), "it may not read, write or run something"),
    Known("missing file", ("No such file or directory", "FileNotFoundError", "cannot open file"),
          "a file or folder is not there"),
    Known("bus error", ("Bus error",), "a mapped file was cut, or /dev/shm is full"),
    Known("segmentation fault", ("egmentation fault", "egmentation violation", "SIGSEGV"),
          "it touched memory that is not its own"),
    Known("floating point exception", ("Floating point exception", "SIGFPE"), "a division by zero or an overflow"),
    Known("assertion", ("AssertionError", "ssertion", "panicked at"), "a check of the program failed",
          r"AssertionError|ssertion .*failed|panicked at"),
    Known("syntax error", ("SyntaxError: ", "syntax error near", "IndentationError: "), "the program can't be read"),
    Known("exception", ("Error", "Exception", "KeyboardInterrupt"), "an exception ended it",
          r"^[A-Za-z_][\w.]*(Error|Exception|Interrupt)(: |:?$)"),
    Known("Traceback", ("Traceback (most recent call last)",), "an exception ended it"),
    Known("aborted", ("Aborted", "core dumped"), "the program ended itself by a signal"),
    Known("killed", ("Killed",), "somebody sent KILL: often the kernel, for memory", r"(^|[\s:])Killed(\s|$)"),
    Known("error", ("fatal", "FATAL", "Fatal", "error", "ERROR", "Error"), "the program's own words",
          r"^(\S+: )?(fatal|error)\b[: ]"),
)  # fmt: skip

_ROWS = tuple((known, re.compile(known.pattern, re.IGNORECASE) if known.pattern else None) for known in KNOWN)
_FIGURES = re.compile(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)?")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")


def find_hint(tail: bytes) -> Hint | None:
    """The best hint in the end of a log: the first row of the table that any line fits, and of its lines the last."""
    text = tail.decode("utf-8", "replace")
    lines: list[str] | None = None
    for known, pattern in _ROWS:
        if not any(word in text for word in known.words):
            continue
        lines = _lines(text) if lines is None else lines
        for line in reversed(lines):
            if any(word in line for word in known.words) and (pattern is None or pattern.search(line)):
                return Hint(known.name, _quoted(line), known.advice)
    return None


def _lines(text: str) -> list[str]:
    """The last lines; of what a progress bar wrote over itself only what it wrote last."""
    rows = [_ESCAPES.sub("", row).rstrip() for row in text.split("\n")[-LAST_LINES:]]
    return [row.rpartition("\r")[2].strip() for row in rows]


def _quoted(line: str) -> str:
    return line if len(line) <= LONGEST_QUOTE else f"{line[: LONGEST_QUOTE - 1]}…"
