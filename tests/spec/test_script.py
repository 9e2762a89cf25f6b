"""Batch scripts: their text, their #SBATCH lines, and flags that win over them."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.model.job import JobSpec, Request, Scope, Script, Streams, WarningSignal
from aver.model.slurm_options import SlurmOptions
from aver.spec.flags import Overrides, parse_overrides
from aver.spec.mistakes import SpecError
from aver.spec.sbatch.script import parse_script
from aver.spec.sbatch.table import sbatch_table

NOW = 1_900_000_000.0
M = 1024**2
TABLE = sbatch_table()


def script(lines: str, overrides: Overrides = Overrides(), args: tuple[str, ...] = ()) -> JobSpec:
    data = f"#!/bin/bash\n{lines}".encode("utf-8", "surrogateescape")
    flow = parse_script(data, "dir/train.sh", overrides, args=args, now=NOW)
    assert flow.is_single
    assert flow.name == flow.jobs[0].name
    return flow.jobs[0]


def complaints(data: bytes) -> list[str]:
    with pytest.raises(SpecError) as caught:
        parse_script(data, "t.sh", now=NOW)
    return str(caught.value).splitlines()


def test_the_text_is_kept() -> None:
    """Text and arguments stay as they are, bytes that are not UTF-8 included; the name is the file's."""
    spec = script("echo \udce4\n", args=("1", "a b"))
    kept = Script("#!/bin/bash\necho \udce4\n", ("1", "a b"))
    assert spec == JobSpec("train.sh", kept, slurm=SlurmOptions())


def test_options() -> None:
    """Short and long forms, with = and with a blank, and several on a line."""
    spec = script(
        """\
#SBATCH -J "my job" -o out-%j.txt   # a comment
#SBATCH --error=err.txt --input in.txt
#SBATCH -D/work -n4 -c 2
# a comment
#SBATCH --time=1-12:00:00

#SBATCH --mem-per-cpu=100 --gres=gpu:a100:2,license:1
#SBATCH --signal=B:USR1@120 --open-mode=append --hold
#SBATCH --begin=now+1hour --deadline now+2hours --comment='a # b' --priority=7
#SBATCH --export=ALL,FOO=bar
#SBATCH -p big --exclusive -N 2 --requeue
echo hello
#SBATCH --mem=1
"""
    )
    assert spec.name == "my job"
    assert spec.request == Request(cpus=8, gpus=2, mem_bytes=800 * M, time_s=36 * 3600)
    assert spec.streams == Streams("in.txt", "out-%j.txt", "err.txt", True)
    assert (spec.folder, spec.hold, spec.comment, spec.priority) == ("/work", True, "a # b", 7)
    assert spec.warning == WarningSignal(10, 120, Scope.SCRIPT)
    assert (spec.begin_at, spec.deadline_at, spec.env) == (NOW + 3600, NOW + 7200, (("FOO", "bar"),))
    assert spec.ignored == tuple(
        f"--{name}: means nothing on this machine" for name in ("partition", "nodes", "requeue")
    )


def test_a_number_sign_inside_a_word_is_part_of_it() -> None:
    """Only a `#` at the start of a word begins a comment; the options behind the word still count."""
    spec = script("#SBATCH --comment=a#b --mem=2G # --mem=1G\n")
    assert (spec.comment, spec.request.mem_bytes) == ("a#b", 2048 * M)


def test_a_warning_without_b_is_for_the_steps() -> None:
    """As in Slurm, which also has a default lead of 60 s."""
    assert script("#SBATCH --signal=TERM\n").warning == WarningSignal(15, 60, Scope.STEPS)


def test_flags_win_over_lines() -> None:
    """Also a flag that lifts a limit."""
    flags = parse_overrides(now=NOW, time="0", mem="2G", name="other", cpus="3")
    spec = script("#SBATCH -t 5 --mem=1G -J x -n 2 -o keep\n", flags)
    assert spec.request == Request(cpus=3, mem_bytes=2048 * M)
    assert (spec.name, spec.streams.stdout) == ("other", "keep")


def test_an_environment_that_is_not_cut_is_said() -> None:
    """`--export=NONE` can't be honoured; the job says so instead of keeping silent."""
    said = ("--export: the job has the whole environment of its submitter all the same",)
    assert script("#SBATCH --export=NONE\n").ignored == said
    assert script("#SBATCH --export=ALL\n").ignored == ()


def test_lines_that_are_no_options() -> None:
    """Other comments, and lines after the first command, mean nothing."""
    assert script("##SBATCH -n 4\n# SBATCH -n 4\n#SBATCHES\n  \nx\n#SBATCH -n 4\n").request == Request()


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("#SBATCH --tiem=3", 't.sh:2:9: unknown option "--tiem"; did you mean "--time"?'),
        ("#SBATCH  -z", 't.sh:2:10: unknown option "-z"'),
        ("#SBATCH --time", "t.sh:2:9: --time needs a value"),
        (
            "#SBATCH --mem=1G --mem-per-cpu=1G",
            "t.sh:2:9: --mem, --mem-per-cpu and --mem-per-gpu are mutually exclusive",
        ),
        ("#SBATCH --hold=1", "t.sh:2:9: --hold takes no value"),
        ("#SBATCH hello", 't.sh:2:9: "hello" is not an option; options begin with -'),
        ("#SBATCH -J 'x", "t.sh:2:9: no closing quotation in this #SBATCH line"),
        (
            "#SBATCH --array=1-3",
            "t.sh:2:9: --array is for sbatch; run it with: aver shell -- sbatch t.sh, or write a flow with a matrix",
        ),
        ("#SBATCH --open-mode=x", "t.sh:2:9: --open-mode: 'x' is neither append nor truncate"),
    ],
)
def test_mistakes_of_lines(line: str, complaint: str) -> None:
    """Each has its line."""
    assert complaints(f"#!/bin/sh\n{line}\n".encode()) == [complaint]


def test_all_lines_are_read() -> None:
    """Several mistakes are shown together."""
    found = complaints(b"#!/bin/sh\n#SBATCH -t soon\n#SBATCH -n 0\n")
    assert [line.split(": ")[:2] for line in found] == [["t.sh:2:9", "--time"], ["t.sh:3:9", "--ntasks"]]


@pytest.mark.parametrize(
    ("data", "start"),
    [
        (b"", "t.sh: Batch script is empty!"),
        (b" \n\n", "t.sh: Batch script contains only whitespace!"),
        (
            b"echo\n",
            "t.sh:1:1: This does not look like a batch script. The first line must start with #! followed by the",
        ),
        (b"#!\n", "t.sh:1:1: This does not look like a batch script."),
        (b"#!/bin/sh\necho\r\n", "t.sh:2:1: Batch script contains DOS line breaks"),
        (b"#!/bin/sh\n\0\n", "t.sh:2:1: Slurm does not allow scripts that contain a NULL character"),
        (b"\x7fELF\x02", "t.sh: this is a program, not a batch script; put the command after --:"),
        (b"#!/bin/sh\n" + b"x" * 2**22, "t.sh: a batch script has at most 4 MiB"),
    ],
)
def test_what_is_no_script(data: bytes, start: str) -> None:
    """Slurm's messages where Slurm has one."""
    (complaint,) = complaints(data)
    assert complaint.startswith(start)


@given(
    st.lists(
        st.sampled_from(
            [*(f"--{name}" for name in TABLE.takes), *(f"-{letter}" for letter in TABLE.letters), "=", "1", "x", "'"]
        )
    )
)
def test_any_line_is_read_or_has_mistakes(words: list[str]) -> None:
    """Never another error."""
    with contextlib.suppress(SpecError):
        parse_script(f"#!/bin/sh\n#SBATCH {' '.join(words)}\n#SBATCH {''.join(words)}".encode(), "t.sh", now=NOW)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_script_or_have_mistakes(data: bytes) -> None:
    """Never another error."""
    with contextlib.suppress(SpecError):
        parse_script(b"#!/bin/sh\n#SBATCH " + data, "t.sh", now=NOW)
