"""Signals by number, by name and by Slurm's text, for Linux's 1 to 64.

The numbers are those of Linux on x86 and ARM and do not depend on the machine that runs this
code. Real-time signals count from 34, as in glibc, which keeps 32 and 33 for itself.
"""

from __future__ import annotations

HIGHEST = 64
_RTMIN = 34

_TABLE = (
    ("HUP", "Hangup"),
    ("INT", "Interrupt"),
    ("QUIT", "Quit"),
    ("ILL", "Illegal instruction"),
    ("TRAP", "Trace/breakpoint trap"),
    ("ABRT", "Aborted"),
    ("BUS", "Bus error"),
    ("FPE", "Floating point exception"),
    ("KILL", "Killed"),
    ("USR1", "User defined signal 1"),
    ("SEGV", "Segmentation fault"),
    ("USR2", "User defined signal 2"),
    ("PIPE", "Broken pipe"),
    ("ALRM", "Alarm clock"),
    ("TERM", "Terminated"),
    ("STKFLT", "Stack fault"),
    ("CHLD", "Child exited"),
    ("CONT", "Continued"),
    ("STOP", "Stopped (signal)"),
    ("TSTP", "Stopped"),
    ("TTIN", "Stopped (tty input)"),
    ("TTOU", "Stopped (tty output)"),
    ("URG", "Urgent I/O condition"),
    ("XCPU", "CPU time limit exceeded"),
    ("XFSZ", "File size limit exceeded"),
    ("VTALRM", "Virtual timer expired"),
    ("PROF", "Profiling timer expired"),
    ("WINCH", "Window changed"),
    ("IO", "I/O possible"),
    ("PWR", "Power failure"),
    ("SYS", "Bad system call"),
)

_NUMBERS = {name: number for number, (name, _) in enumerate(_TABLE, start=1)} | {
    "IOT": 6,
    "CLD": 17,
    "POLL": 29,
    "RTMIN": _RTMIN,
    "RTMAX": HIGHEST,
}
_NUMBERS |= {f"RTMIN+{offset}": _RTMIN + offset for offset in range(HIGHEST - _RTMIN + 1)}
_NUMBERS |= {f"RTMAX-{offset}": HIGHEST - offset for offset in range(HIGHEST - _RTMIN + 1)}


def signal_name(number: int) -> str:
    """`SIGSEGV` for 11, `SIGRTMIN+2` for 36, `SIG32` for the two that have no name."""
    _check(number)
    if number <= len(_TABLE):
        return f"SIG{_TABLE[number - 1][0]}"
    if number < _RTMIN:
        return f"SIG{number}"
    return "SIGRTMIN" if number == _RTMIN else f"SIGRTMIN+{number - _RTMIN}"


def signal_words(number: int) -> str:
    """`Segmentation fault` for 11: what the C library calls it."""
    _check(number)
    if number <= len(_TABLE):
        return _TABLE[number - 1][1]
    return f"Unknown signal {number}" if number < _RTMIN else f"Real-time signal {number - _RTMIN}"


def slurm_text(number: int) -> str:
    """`Segmentation_fault` for 11: what Slurm writes in `RaisedSignal:11(…)`."""
    return signal_words(number).replace(" ", "_")


def parse_signal(text: str) -> int:
    """Read `USR1`, `SIGUSR1`, `usr1`, `RTMIN+2` or `10`; raise ValueError for anything else."""
    name = text.strip().upper()
    if name.startswith("SIG"):
        name = name[3:]
    if name in _NUMBERS:
        return _NUMBERS[name]
    if name.isascii() and name.isdigit() and len(name) <= 2 and 1 <= int(name) <= HIGHEST:
        return int(name)
    raise ValueError(f"{text!r} is not a signal: give a name such as USR1 or SIGUSR1, or a number from 1 to {HIGHEST}")


def _check(number: int) -> None:
    if not 1 <= number <= HIGHEST:
        raise ValueError(f"{number} is not a signal: Linux has 1 to {HIGHEST}")
