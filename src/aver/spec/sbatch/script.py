"""A batch script of Aver's own commands: its text as it is, and its `#SBATCH` lines as a job.

Options that mean nothing on one machine are kept in `ignored`; unknown ones, and those that would change what runs
and can't be honoured, are mistakes, each at its line. The last of two lines wins, and flags win over lines.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from functools import cache

from aver.model.job import FlowSpec, JobSpec, NotifyRule, Script
from aver.model.record import replace
from aver.spec import getopt
from aver.spec.flags import Overrides, apply, clean_name
from aver.spec.mistakes import Mistakes, Point, did_you_mean, shown
from aver.spec.sbatch import lines
from aver.spec.sbatch.mail import mail_rules
from aver.spec.sbatch.options import USES, Values
from aver.spec.sbatch.table import MEMORY, sbatch_table

_REFUSED = {
    "array": "run it with: aver shell -- sbatch {file}, or write a flow with a matrix",
    "dependency": "run it with: aver shell -- sbatch {file}, or write a flow with needs",
    "wrap": "a script is given already",
}
_READ_AND_IGNORED = frozenset({"nodes", "requeue", "no-requeue"})
_FAULTS = {
    lines.EMPTY: ("Batch script is empty!", ""),
    lines.BLANK: ("Batch script contains only whitespace!", ""),
    lines.NO_INTERPRETER: (
        "This does not look like a batch script. "
        "The first line must start with #! followed by the path to an interpreter.",
        "",
    ),
    lines.TOO_LONG: (
        f"a batch script has at most {lines.LARGEST_BYTES // 2**20} MiB",
        "put data into files of their own",
    ),
    lines.NUL: ("Slurm does not allow scripts that contain a NULL character '\\0'.", ""),
    lines.DOS: (
        "Batch script contains DOS line breaks (\\r\\n) instead of expected UNIX line breaks (\\n).",
        "convert it, for example with dos2unix",
    ),
}
_table = cache(sbatch_table)


def parse_script(
    data: bytes, file: str, overrides: Overrides = Overrides(), *, args: Sequence[str] = (), now: float
) -> FlowSpec:
    """One job that runs the script; raise SpecError with all mistakes."""
    mistakes = Mistakes(file)
    _check(data, mistakes)
    mistakes.refuse_if_any()
    text = lines.text_of(data)
    options = _Options(mistakes, now)
    for number, line in lines.magic_lines(text):
        indent = len(line) - len(line.lstrip())
        options.read(line, Point(number, len(lines.MAGIC) + 1 + indent))
    notify = options.notify()
    mistakes.refuse_if_any()
    spec = options.job(JobSpec(clean_name(os.path.basename(file)), Script(text, tuple(args))))
    job = apply(spec, overrides)
    return FlowSpec(job.name, (job,), is_single=True, notify=notify)


def _check(data: bytes, mistakes: Mistakes) -> None:
    if data.startswith(b"\x7fELF"):
        mistakes.add(None, "this is a program, not a batch script", "put the command after --:  aver run -- PROGRAM")
        return
    fault = lines.fault_of(data)
    if fault is None and not data.partition(b"\n")[0][2:].strip():
        fault = lines.NO_INTERPRETER
    if fault is None:
        return
    text, hint = _FAULTS[fault]
    if fault == lines.NO_INTERPRETER and data.startswith(b"\xef\xbb\xbf#!"):
        hint = "it begins with a byte order mark: save it as UTF-8 without one"
    culprit = {lines.NO_INTERPRETER: 0, lines.NUL: data.find(b"\0"), lines.DOS: data.find(b"\r\n")}.get(fault)
    mistakes.add(None if culprit is None else Point(data.count(b"\n", 0, culprit) + 1, 1), text, hint)


class _Options:
    """Collects the options of all `#SBATCH` lines of a script."""

    def __init__(self, mistakes: Mistakes, now: float) -> None:
        self._mistakes = mistakes
        self._now = now
        self._values = Values()
        self._ignored: dict[str, None] = {}
        self._place = Point(1, 1)

    def read(self, line: str, place: Point) -> None:
        """Take in one line; every mistake is noted at `place`."""
        self._place = place
        parsed = getopt.Parsed()
        try:
            getopt.parse(_table(), lines.split_line(line), into=parsed)
        except lines.OpenQuote:
            self._wrong("no closing quotation in this #SBATCH line")
        except getopt.BadOption as error:
            self._bad_option(error)
        for name, text in parsed.given:
            self._use(name, text or "")
        if parsed.operands:
            self._wrong(f"{shown(parsed.operands[0])} is not an option", "options begin with -")

    def notify(self) -> tuple[NotifyRule, ...]:
        """Who gets a mail; the submitter where no other is named."""
        if "mail-type" not in self._values.said:
            return ()
        import getpass  # few scripts ask for it

        try:
            return mail_rules(self._values.said, getpass.getuser(), is_array=False)
        except (ValueError, KeyError, OSError) as error:
            self._wrong(f"--mail-user: {error}")
            return ()

    def job(self, spec: JobSpec) -> JobSpec:
        """The job with all that the lines say."""
        return replace(self._values.job(spec), ignored=tuple(self._ignored))

    def _wrong(self, text: str, hint: str = "") -> None:
        self._mistakes.add(self._place, text, hint)

    def _bad_option(self, error: getopt.BadOption) -> None:
        if error.problem == getopt.UNKNOWN:
            known = [f"--{name}" for name in _table().names] if error.option.startswith("--") else []
            self._wrong(f'unknown option "{error.option}"', did_you_mean(error.option, known))
        elif error.problem == getopt.AMBIGUOUS:
            self._wrong(str(error))
        else:
            self._wrong(f"{error.option} {error.problem}")

    def _use(self, name: str, value: str) -> None:
        if name in _REFUSED:
            self._wrong(f"--{name} is for sbatch", _REFUSED[name].format(file=shlex.quote(self._mistakes.file)))
            return
        if name in MEMORY and any(other in self._values.said for other in MEMORY if other != name):
            self._wrong("--mem, --mem-per-cpu and --mem-per-gpu are mutually exclusive")
        if name not in USES or name in _READ_AND_IGNORED:
            self._ignored[f"--{name}: means nothing on this machine"] = None
        if name == "export" and "ALL" not in value.split(","):
            self._ignored["--export: the job has the whole environment of its submitter all the same"] = None
        try:
            self._values.take(name, value, self._now)
        except ValueError as error:
            self._wrong(f"--{name}: {error}")
