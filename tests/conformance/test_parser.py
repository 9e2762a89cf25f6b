"""The parser of case files: what it reads, and the file and line it names for what it can't."""

from __future__ import annotations

import pytest

from aver.conformance.model import Alone, Case, Command, Forgotten, Look, Operator, Row, Settled, Submit, When, cells_of
from aver.conformance.parser import CaseFileError, read_cases, read_differences
from aver.conformance.report import release_of

KNOWN = {"whole-codes": "sacct takes 128 off."}

WHOLE = """\
# A comment.

== x/whole  Every act and mark
@needs memory nodes
@slow
> n: sbatch --hold
| #!/bin/sh
|
|   exit 3
> OTHER=2 A_B='two words' sbatch -o '{dir}/a b'
| true{cr}
|
> b: srun -n2 sh -c "exit 3"
> when RUNNING
> n: when PENDING JobHeldUser
> when says at=ready
> b: look early
> n: settled
> n: forgotten
> run scancel {n}
> run squeue -o '%i %t' -> answer
> operator scontrol reconfigure
answer    exit 0
b:early   RUNNING 0:0 0:0 None
sacct     FAILED 9:0
... => FAILED 137:0 (whole-codes)
# A comment between rows.
n:step12  COMPLETED 0:0
"""

HEAD = "== x/y  Shows\n> sbatch\n| true\n"


def read(text: str) -> tuple[Case, ...]:
    return read_cases("x.cases", "x", text, KNOWN)


def test_a_whole_case() -> None:
    """Every kind of line, as the data that the runner gets."""
    (case,) = read(WHOLE)
    assert case == Case(
        "x/whole",
        "Every act and mark",
        (
            Submit("#!/bin/sh\n\n  exit 3", ("--hold",), "n"),
            Submit("true\r\n", ("-o", "{dir}/a b"), variables=(("OTHER", "2"), ("A_B", "two words"))),
            Alone(("-n2", "sh", "-c", "exit 3"), "b"),
            When("RUNNING"),
            When("PENDING", "JobHeldUser", job="n"),
            When(says="at=ready"),
            Look("early", "b"),
            Settled("n"),
            Forgotten("n"),
            Command(("scancel", "{n}")),
            Command(("squeue", "-o", "%i %t"), "answer"),
            Operator(("scontrol", "reconfigure")),
        ),
        (
            Row("answer", "exit 0", "exit 0", ""),
            Row("b:early", "RUNNING 0:0 0:0 None", "RUNNING 0:0 0:0 None", ""),
            Row("sacct", "FAILED 9:0", "FAILED 137:0", "whole-codes"),
            Row("n:step12", "COMPLETED 0:0", "COMPLETED 0:0", ""),
        ),
        frozenset({"memory", "nodes"}),
        is_slow=True,
    )
    assert cells_of("b:sacct", case.rows[2].aver) == {"b:sacct.state": "FAILED", "b:sacct.exit": "137:0"}


def test_several_cases_of_a_file() -> None:
    """A heading ends the case above it."""
    text = f"{HEAD}sacct A 0:0\n\n== x/z  Shows more\n> run true -> answer\nanswer exit 0\n"
    assert [(case.name, len(case.rows)) for case in read(text)] == [("x/y", 1), ("x/z", 1)]


def test_expectations_by_release() -> None:
    """Each line of a row holds from its release on, until the next; an unmarked line is that of 22.05."""
    text = (
        f"{HEAD}sacct FAILED 9:0 => FAILED 137:0 (whole-codes)\nbatch FAILED 9:0\n"
        "sacct FAILED 10:0 => FAILED 137:0 (whole-codes) [>=23.11]\nsacct FAILED 137:0 [>=25.11]\n"
        "said srun=1 [>=24.05]\n"
    )
    (case,) = read(text)
    seen = {
        version: {row.name: (row.slurm, row.aver) for row in case.at(release_of(version)).rows}
        for version in (None, "21.08.2", "22.05.8", "23.02.1", "23.11.0-1", "24.05.3", "25.11.6", "26.05.0")
    }
    old = {"sacct": ("FAILED 9:0", "FAILED 137:0"), "batch": ("FAILED 9:0", "FAILED 9:0")}
    middle = {**old, "sacct": ("FAILED 10:0", "FAILED 137:0")}
    later = {**middle, "said": ("srun=1", "srun=1")}
    new = {**later, "sacct": ("FAILED 137:0", "FAILED 137:0")}
    assert seen == {
        None: old, "21.08.2": old, "22.05.8": old, "23.02.1": old, "23.11.0-1": middle, "24.05.3": later,
        "25.11.6": new, "26.05.0": new,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("", 1, "no case"),
        ("sacct A 0:0\n", 1, "expected a case"),
        ("== x/y Shows\n", 1, "two spaces"),
        ("== z/y  Shows\n", 1, "called x/…, not z/…"),
        (f"{HEAD}sacct A 0:0\n{HEAD}sacct A 0:0\n", 5, "second case is called x/y"),
        ("== x/y  Shows\nsacct A 0:0\n", 2, "no job and no act of this case gives the row sacct"),
        (HEAD, 1, "x/y has no rows"),
        ("== x/y  Shows\n", 1, "x/y has no acts"),
        ("== x/y  Shows\n> sbatch\nsacct A 0:0\n", 3, "no script"),
        ("== x/y  Shows\n> run true\n| true\n", 3, "below an sbatch"),
        ("== x/y  Shows\n> sbatch\n|true\n", 3, "below an sbatch"),
        ("== x/y  Shows\n@slow\n@slow\n", 3, "each once"),
        ("== x/y  Shows\n@needs luck\n", 2, "memory nodes operator partitions"),
        (f"{HEAD}@slow\n", 4, "marks come before acts"),
        (f"{HEAD}sacct A 0:0\n> settled\n", 5, "acts come before rows"),
        (f"{HEAD}> dance\n", 4, "not an act: dance"),
        (f"{HEAD}> run 'true\n", 4, "can't split"),
        (f"{HEAD}> run -> answer\n", 4, "not an act"),
        (f"{HEAD}> run true -> answer more\n", 4, "not an act"),
        (f"{HEAD}> A=1 settled\n", 4, "not an act"),
        (f"{HEAD}> b: run true\n", 4, "belongs to no job"),
        (f"{HEAD}> sbatch\n| true\n", 4, "second job is called a"),
        (f"{HEAD}> b: settled\n", 4, "no job is called b"),
        (f"{HEAD}... sacct\n", 4, "continues a row"),
        (f"{HEAD}scontrol\n", 4, "expected `row  cells`"),
        (f"{HEAD}sacct A 0:0 => B 0:0\n", 4, "expected `row  cells`"),
        (f"{HEAD}sacct A 0:0 => B 0:0 (no-such)\n", 4, "no difference is called no-such"),
        (f"{HEAD}sacct A 0:0 => A 0:0 (whole-codes)\n", 4, "do not differ"),
        (f"{HEAD}sacct A 0:0 [>=23.10]\n", 4, "only at 23.02, 23.11"),
        (f"{HEAD}sacct A 0:0 [>=22.05]\n", 4, "only at 23.02, 23.11"),
        (f"{HEAD}sacct A 0:0 [>23.11]\n", 4, "expected `row  cells`"),
        (f"{HEAD}sacct A 0:0 [>=23.11] => B 0:0 (whole-codes)\n", 4, "expected `row  cells`"),
        (f"{HEAD}sacct A 0:0\nsacct B 0:0\n", 5, "sacct stands here again"),
        (f"{HEAD}sacct A 0:0 [>=23.11]\nsacct B 0:0\n", 5, "sacct stands here again"),
        (f"{HEAD}sacct A 0:0 [>=23.11]\nsacct B 0:0 [>=23.02]\n", 5, "sacct stands here again"),
        (f"{HEAD}scontol A 0:0\n", 4, "gives the row scontol"),
        (f"{HEAD}b:sacct A 0:0\n", 4, "gives the row b:sacct"),
        (f"{HEAD}sacct A 0:0 \n", 4, "white space at the end"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_file_and_line(text: str, line: int, problem: str) -> None:
    """A mistake in a case file is an error, not a cell that nobody compares."""
    with pytest.raises(CaseFileError) as error:
        read(text)
    assert str(error.value).startswith(f"x.cases:{line}: ")
    assert problem in str(error.value)


def test_differences() -> None:
    """A name and a reason; a second reason for the same name is an error."""
    assert read_differences("d", "one  A reason\n... that goes on.\n") == {"one": "A reason that goes on."}
    with pytest.raises(CaseFileError, match="d:2: expected the name of a new difference"):
        read_differences("d", "one  A reason.\none  Another.\n")
