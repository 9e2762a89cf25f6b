"""The options of srun, read with no imports to speak of. What means nothing on one machine is taken and left alone.

Precedence: flag, then srun's environment variable, then the job's own.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class BadOption(Exception):
    """What srun says before it ends with exit status 1."""


class Options:
    """What was asked for. Texts are as typed; None: not given."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.flags: set[str] = set()
        self.command: list[str] = []

    def get(self, name: str) -> str | None:
        return self.values.get(name)


# name: short letter or "", and "value" (needs one), "maybe" (may have one after =), "flag"
TABLE: dict[str, tuple[str, str]] = {
    "account": ("A", "value"), "begin": ("b", "value"), "chdir": ("D", "value"), "comment": ("", "value"),
    "constraint": ("C", "value"), "contiguous": ("", "flag"), "core-spec": ("S", "value"), "cpu-bind": ("", "value"),
    "cpus-per-gpu": ("", "value"), "cpus-per-task": ("c", "value"), "deadline": ("", "value"),
    "dependency": ("d", "value"), "disable-status": ("X", "flag"), "distribution": ("m", "value"),
    "error": ("e", "value"), "exact": ("", "flag"), "exclude": ("x", "value"), "exclusive": ("", "maybe"),
    "export": ("", "value"), "gpus": ("G", "value"), "gpus-per-node": ("", "value"), "gpus-per-task": ("", "value"),
    "gres": ("", "value"), "het-group": ("", "value"), "hint": ("", "value"), "hold": ("H", "flag"),
    "immediate": ("I", "maybe"), "input": ("i", "value"), "interactive": ("", "flag"), "job-name": ("J", "value"),
    "jobid": ("", "value"), "kill-on-bad-exit": ("K", "maybe"), "label": ("l", "flag"), "licenses": ("L", "value"),
    "mem": ("", "value"), "mem-bind": ("", "value"), "mem-per-cpu": ("", "value"), "mpi": ("", "value"),
    "msg-timeout": ("", "value"), "multi-prog": ("", "flag"), "nice": ("", "maybe"), "no-kill": ("k", "maybe"),
    "nodelist": ("w", "value"), "nodes": ("N", "value"), "ntasks": ("n", "value"), "ntasks-per-core": ("", "value"),
    "ntasks-per-node": ("", "value"), "ntasks-per-socket": ("", "value"), "open-mode": ("", "value"),
    "output": ("o", "value"), "overcommit": ("O", "flag"), "overlap": ("", "flag"), "oversubscribe": ("s", "flag"),
    "partition": ("p", "value"), "preserve-env": ("E", "flag"), "priority": ("", "value"), "prolog": ("", "value"),
    "pty": ("", "maybe"), "qos": ("q", "value"), "quiet": ("Q", "flag"), "quit-on-interrupt": ("", "flag"),
    "relative": ("r", "value"), "reservation": ("", "value"), "signal": ("", "value"), "task-epilog": ("", "value"),
    "task-prolog": ("", "value"), "thread-spec": ("", "value"), "threads": ("T", "value"),
    "threads-per-core": ("", "value"), "time": ("t", "value"), "time-min": ("", "value"), "tmp": ("", "value"),
    "unbuffered": ("u", "flag"), "verbose": ("v", "flag"), "wait": ("W", "value"), "wckey": ("", "value"),
    "x11": ("", "maybe"), "help": ("h", "flag"), "usage": ("", "flag"), "version": ("V", "flag"),
    "as-job": ("", "flag"),
}  # fmt: skip

ENVIRONMENT = {
    "SRUN_CPUS_PER_TASK": "cpus-per-task", "SLURM_NTASKS": "ntasks", "SLURM_NPROCS": "ntasks",
    "SLURM_STDOUTMODE": "output", "SLURM_STDERRMODE": "error", "SLURM_STDINMODE": "input",
    "SLURM_LABELIO": "label", "SLURM_KILL_BAD_EXIT": "kill-on-bad-exit", "SLURM_WAIT": "wait",
    "SLURM_OVERLAP": "overlap", "SLURM_EXACT": "exact", "SLURM_UNBUFFEREDIO": "unbuffered",
    "SLURM_OPEN_MODE": "open-mode", "SRUN_EXPORT_ENV": "export", "SLURM_WORKING_DIR": "chdir",
    "SLURM_STEP_MEM": "mem", "SLURM_OVERCOMMIT": "overcommit",
}  # fmt: skip

NOT_SERVED = {"pty": "--pty", "multi-prog": "--multi-prog", "dependency": "--dependency", "begin": "--begin"}

_SHORT = {short: name for name, (short, _) in TABLE.items() if short}


def parse(arguments: Sequence[str], environ: Mapping[str, str]) -> Options:
    """Read the arguments up to the command; BadOption has the sentences that Slurm's srun prints."""
    options = Options()
    at = 0
    while at < len(arguments):
        word = arguments[at]
        if word == "--":
            at += 1
            break
        if not word.startswith("-") or word == "-":
            break
        at += 1
        if word.startswith("--"):
            at = _long(options, word[2:], arguments, at)
        else:
            at = _letters(options, word[1:], arguments, at)
    options.command = list(arguments[at:])
    for variable, name in ENVIRONMENT.items():
        value = environ.get(variable)
        if value and name not in options.values and name not in options.flags:
            if TABLE[name][1] == "value":
                options.values[name] = value
            elif value not in ("0", "no"):
                options.flags.add(name)
    return options


def _long(options: Options, word: str, arguments: Sequence[str], at: int) -> int:
    name, equals, value = word.partition("=")
    found = [name] if name in TABLE else [one for one in TABLE if one.startswith(name)]
    if len(found) != 1:
        raise BadOption(f"option '--{name}' is ambiguous" if found else f"unrecognized option '--{name}'")
    kind = TABLE[found[0]][1]
    if kind == "flag":
        if equals:
            raise BadOption(f"option '--{found[0]}' doesn't allow an argument")
        options.flags.add(found[0])
    elif kind == "maybe":
        options.flags.add(found[0])
        if equals:
            options.values[found[0]] = value
    elif equals:
        options.values[found[0]] = value
    elif at < len(arguments):
        options.values[found[0]] = arguments[at]
        return at + 1
    else:
        raise BadOption(f"option '--{found[0]}' requires an argument")
    return at


def _letters(options: Options, letters: str, arguments: Sequence[str], at: int) -> int:
    while letters:
        letter, letters = letters[0], letters[1:]
        name = _SHORT.get(letter)
        if name is None:
            raise BadOption(f"invalid option -- '{letter}'")
        kind = TABLE[name][1]
        if kind == "flag":
            options.flags.add(name)
        elif kind == "maybe":
            options.flags.add(name)
            if letters:
                options.values[name] = letters
                letters = ""
        elif letters:
            options.values[name] = letters
            letters = ""
        elif at < len(arguments):
            options.values[name] = arguments[at]
            at += 1
        else:
            raise BadOption(f"option requires an argument -- '{letter}'")
    return at


def number(text: str | None, what: str, least: int = 1, most: int = 1_000_000) -> int | None:
    """A count, or BadOption as Slurm says it."""
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()) or not least <= int(text) <= most:
        raise BadOption(f'error: Invalid numeric value "{text}" for {what}.')
    return int(text)
