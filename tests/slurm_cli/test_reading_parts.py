"""The small parts of the reading commands: options, times, sizes, host lists, formats, messages."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from queue_past import Call, Past
from recordings import FOLDER

from aver.model.hostlists import compress, expand, ordered
from aver.model.states import State
from aver.slurm_cli import texts, words
from aver.slurm_cli.sacct.fields import parse_fields
from aver.slurm_cli.table.formats import parse_letters, parse_names
from aver.spec.clock import parse_moment, parse_past
from aver.spec.getopt import BadOption, Table, parse

TABLE = Table(flags="noheader:h start", values="states:t format:o", maybe="jobs:j steps:s", aliases="job=jobs")
NOW = time.mktime((2026, 11, 15, 10, 30, 0, 0, 0, -1))


def test_options_alone_together_and_glued() -> None:
    """Short options with values glued or apart, long ones cut or with `=`, operands anywhere, `--` ends them."""
    parsed = parse(TABLE, ["-ht", "PD", "one", "-oX", "--form=Y", "--job=7", "-j8", "--", "-t"])
    assert parsed.given == [
        ("noheader", None), ("states", "PD"), ("format", "X"), ("format", "Y"), ("jobs", "7"), ("jobs", "8"),
    ]  # fmt: skip
    assert parsed.operands == ["one", "-t"]
    assert parse(TABLE, ["-j", "7"]).operands == ["7"]
    assert parse(TABLE, ["a", "-h"], stops_at_operand=True).operands == ["a", "-h"]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--foo=1"], "unrecognized option '--foo=1'"),
        (["-hZ"], "invalid option -- 'Z'"),
        (["--st"], "option '--st' is ambiguous; possibilities: '--start' '--states' '--steps'"),
        (["--noh=3"], "option '--noheader' doesn't allow an argument"),
        (["--format"], "option '--format' requires an argument"),
        (["-o"], "option requires an argument -- 'o'"),
    ],
)
def test_option_mistakes_have_glibcs_words(argv: list[str], said: str) -> None:
    """As every command of Slurm says them."""
    with pytest.raises(BadOption) as caught:
        parse(TABLE, argv)
    assert str(caught.value) == said


@given(st.lists(st.text(max_size=6), max_size=5))
def test_options_are_read_or_refused(argv: list[str]) -> None:
    """No words at all do anything else."""
    try:
        parsed = parse(TABLE, argv)
    except BadOption:
        return
    assert len(parsed.given) + len(parsed.operands) <= sum(len(word) + 1 for word in argv)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("now", (2026, 11, 15, 10, 30, 0)), ("now-2days", (2026, 11, 13, 10, 30, 0)),
        ("now+90", (2026, 11, 15, 10, 31, 30)), ("now-1hour", (2026, 11, 15, 9, 30, 0)),
        ("2026-11-15T10:00", (2026, 11, 15, 10, 0, 0)), ("2026-11-15", (2026, 11, 15, 0, 0, 0)),
        ("2026-01-02T03:04:05", (2026, 1, 2, 3, 4, 5)), ("1115", (2026, 11, 15, 0, 0, 0)),
        ("1116", (2025, 11, 16, 0, 0, 0)), ("111525", (2025, 11, 15, 0, 0, 0)), ("11/14", (2026, 11, 14, 0, 0, 0)),
        ("11.14.25-10:00", (2025, 11, 14, 10, 0, 0)), ("noon", (2026, 11, 15, 12, 0, 0)),
        ("today", (2026, 11, 15, 0, 0, 0)), ("teatime", (2026, 11, 15, 16, 0, 0)), ("8:15", (2026, 11, 15, 8, 15, 0)),
        ("8:15PM", (2026, 11, 15, 20, 15, 0)), ("12:05am", (2026, 11, 15, 0, 5, 0)),
        ("tomorrow", (2026, 11, 16, 0, 0, 0)),
    ],
)  # fmt: skip
def test_times(text: str, moment: tuple[int, ...]) -> None:
    """Slurm's forms of a time, looking back: a date without a year is the last one."""
    assert parse_past(text, NOW) == time.mktime((*moment, 0, 0, -1))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("now+5min", (2026, 11, 15, 10, 35, 0)), ("now+1:30:00", (2026, 11, 15, 12, 0, 0)),
        ("10:30", (2026, 11, 16, 10, 30, 0)), ("10:31", (2026, 11, 15, 10, 31, 0)), ("noon", (2026, 11, 15, 12, 0, 0)),
        ("noon-tomorrow", (2026, 11, 16, 12, 0, 0)), ("teatime-today", (2026, 11, 15, 16, 0, 0)),
        ("midnight", (2026, 11, 16, 0, 0, 0)), ("1114", (2027, 11, 14, 0, 0, 0)), ("11/16", (2026, 11, 16, 0, 0, 0)),
        ("012030", (2030, 1, 20, 0, 0, 0)), ("2030-01-20T12:34", (2030, 1, 20, 12, 34, 0)),
    ],
)  # fmt: skip
def test_times_that_lie_ahead(text: str, moment: tuple[int, ...]) -> None:
    """The same forms for begins and deadlines: a time of day, or a date without a year, is the next one."""
    assert parse_moment(text, NOW) == time.mktime((*moment, 0, 0, -1))  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["foo", "25:00", "2026-02-30", "2026-11-15T", "now-1hour", "now+", "uts5", ""])
def test_what_is_no_time_ahead(text: str) -> None:
    """The sentence has examples of what is one."""
    with pytest.raises(ValueError, match="is not a time of day or a date: give now"):
        parse_moment(text, NOW)


@pytest.mark.parametrize(
    "text", ["foo", "25:00", "2026-13-01", "2026-02-30", "now-", "now-2lightyears", "", "1332", "12:60"]
)
def test_what_is_no_time(text: str) -> None:
    """Slurm's sentence."""
    with pytest.raises(ValueError, match="Invalid time specification"):
        parse_past(text, NOW)


@given(st.text("0123456789-+:/.T nowdaysuhAPM", max_size=20))
def test_any_text_is_a_time_or_is_refused(text: str) -> None:
    """No text does anything else."""
    try:
        found = parse_past(text, NOW)
    except ValueError:
        return
    assert 0 <= found < 1e12


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("n[1-3,07-09],a", ["n1", "n2", "n3", "n07", "n08", "n09", "a"]),
        ("a[1-2]b[3-4]", ["a1b3", "a1b4", "a2b3", "a2b4"]),
        ("n[001-003]", ["n001", "n002", "n003"]),
        ("a[1-2]b[3-4]c[5-6]", ["a1b3c5", "a1b3c6", "a2b3c5", "a2b3c6", "a1b4c5", "a1b4c6", "a2b4c5", "a2b4c6"]),
    ],
)
def test_host_lists_are_expanded_as_slurm_does(text: str, hosts: list[str]) -> None:
    """Ranges, widths and several brackets."""
    assert expand(text) == hosts


def test_host_lists_are_compressed_as_slurm_does() -> None:
    """In the order given; sorted where that is asked for."""
    assert compress("n1 n2 n3 n07 n08 b".split()) == "n[1-3,07-08],b"
    assert compress(["a1", "a2", "a1"]) == "a[1-2,1]"
    assert compress(ordered(["n3", "n1"])) == "n[1,3]"


@pytest.mark.parametrize("text", ["n[3-1]", "n[1-100000]", "n[1", "n]", "n[[1]]", "n[a]", "n[1-3]" * 20])
def test_what_is_no_host_list(text: str) -> None:
    """Refused, and never a list of millions."""
    with pytest.raises(ValueError):
        expand(text)


@given(st.lists(st.from_regex(r"[a-c]{1,2}[0-9]{0,3}", fullmatch=True), min_size=1, max_size=20))
def test_host_lists_come_back(hosts: list[str]) -> None:
    """What was compressed expands to the same names."""
    assert expand(compress(hosts)) == hosts


@pytest.mark.parametrize(
    ("seconds", "short", "full", "cpu"),
    [
        (0, "0:00", "00:00:00", "00:00:00"), (6, "0:06", "00:00:06", "00:00:06"),
        (3600, "1:00:00", "01:00:00", "01:00:00"), (93784, "1-02:03:04", "1-02:03:04", "1-02:03:04"),
        (None, "UNLIMITED", "UNLIMITED", "00:00:00"), (0.0195, "0:00", "00:00:00", "00:00.019"),
        (61.5, "1:01", "00:01:01", "01:01.500"),
    ],
)  # fmt: skip
def test_durations(seconds: float | None, short: str, full: str, cpu: str) -> None:
    """squeue's, scontrol's and sacct's forms."""
    assert (texts.clock(seconds), texts.full_clock(seconds), texts.cpu_clock(seconds)) == (short, full, cpu)


@pytest.mark.parametrize(
    ("value", "unit", "wanted", "shown"),
    [
        (1126400, "", None, "1100K"), (1126400, "", "M", "1.07M"), (200, "M", None, "200M"), (2048, "M", None, "2G"),
        (1536, "M", None, "1.50G"), (1025, "M", None, "1025M"), (0, "M", None, "0"), (1234567, "", None, "1234567"),
        (100, "M", "K", "102400K"),
    ],
)  # fmt: skip
def test_sizes(value: int, unit: str, wanted: str | None, shown: str) -> None:
    """The largest unit in which halves are exact, or the one asked for."""
    assert texts.size(value, unit, wanted) == shown


def test_array_indices() -> None:
    """Ranges; a step only where more than ten lie between the ends."""
    assert texts.index_list([5, 7, 9]) == "5,7,9"
    assert texts.index_list([1, 2, 3, 5]) == "1-3,5"
    assert texts.index_list(range(1, 22, 2)) == "1-21:2"
    assert texts.index_list(range(30)) == "0-29"


@given(st.text("%.#0123456789ij all-", max_size=20), st.text("ij:.0123456789, ", max_size=20))
def test_any_format_prints_lines(letters: str, names: str) -> None:
    """Every format has a header and a line for each row."""
    fields = {"i": ("ID", lambda row: row), "j": ("NAME", lambda row: "n")}
    for form in (parse_letters(letters, fields, "ij"), parse_names(names, fields)):
        assert form.header().endswith("\n")
        assert form.lines([1, 2]).count("\n") == 2


@given(st.text("%-0123456789,abdeijnost", max_size=20))
def test_any_field_list_is_read_or_refused(text: str) -> None:
    """ValueError names what is no field."""
    try:
        fields = parse_fields(text)
    except ValueError:
        return
    assert all(abs(field.width) <= 4096 for field in fields)


def test_every_state_has_a_word() -> None:
    """Each state of ours has a long and a short word of Slurm's; only COMPLETED is shown as a success."""
    for state in State:
        assert words.long_state(state.value) in words.SHORT
        assert words.SHORT[words.long_state(state.value)] == words.short_state(state.value)
        assert (words.short_state(state.value) == "CD") is (state is State.COMPLETED)


HEAVY = {
    "argparse",
    "asyncio",
    "click",
    "dataclasses",
    "inspect",
    "json",
    "msgspec",
    "pathlib",
    "rich",
    "subprocess",
    "typing",
    "yaml",
}


@pytest.mark.parametrize(
    "argv",
    [
        ["squeue"],
        ["squeue", "-h", "-j", "31", "-o", "%T"],
        ["sacct", "-j", "32", "-P"],
        ["scontrol", "show", "job", "31"],
    ],
    ids=" ".join,
)
def test_commands_in_loops_import_little(past: Past, argv: list[str]) -> None:
    """Nothing that costs as much as the interpreter's own start is loaded by what is called in loops."""
    source = Path(texts.__file__).parents[2]
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"/proc/self/fd/{os.open(past.home, os.O_RDONLY)}/sock")
    listener.listen()
    code = (
        f"import sys; sys.path.insert(0, {str(source)!r}); from aver.slurm_cli.{argv[0]} import main; "
        "status = main(sys.argv[1:]); print(' '.join(sys.modules), file=sys.stderr); sys.exit(status)"
    )
    try:
        done = subprocess.run(
            [sys.executable, "-IS", "-c", code, *argv[1:]], capture_output=True, text=True, check=False
        )
    finally:
        listener.close()
        (past.home / "sock").unlink()
    assert done.returncode == 0, done.stderr
    assert not HEAVY & set(done.stderr.split())


def _blocks() -> list[tuple[str, list[str], int]]:
    found = []
    for block in (FOLDER / "messages.txt").read_text().split("$ ")[1:]:
        command, _, output = block.partition("\n")
        *lines, status = output.rstrip("\n").split("\n")
        found.append((command, lines, int(status.removeprefix("rc="))))
    return found


UNLIKE = {  # the lab's own answers: its host, its users, a host list that Slurm misreads, the order of possibilities
    "squeue --st",
    "squeue -o %Z9 %q %y %1 %", "scontrol ping", "scontrol show hostnames n[1-", "scontrol foo", "squeue extra",
    "sacct -S now -E now-1day", "squeue -u 99999", "scontrol show step 9999.0", "scontrol show step 9999",
}  # fmt: skip


@pytest.mark.parametrize(
    ("command", "lines", "status"), _blocks(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_messages_are_slurms(empty_past: Past, call: Call, command: str, lines: list[str], status: int) -> None:
    """Word for word what a real Slurm 22.05.8 said to the same mistakes, with its exit status."""
    if command in UNLIKE:
        pytest.skip("the lab's own")
    program, *argv = command.split(" ")
    reply = call(program, *argv)
    said = sorted(line for line in (reply.out + reply.err).splitlines() if line)
    assert said == sorted(line for line in lines if line)
    assert reply.status == status
