"""squeue, against what a real Slurm printed for the same jobs."""

from __future__ import annotations

import getpass
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from queue_past import Call, Past
from recordings import recorded
from slurm_commands import Slurm

from aver.model.events import JobMoved, Observed, RunMoved
from aver.model.evidence import Verdict
from aver.model.job import Request
from aver.model.states import State

QUEUE = recorded("squeue")
NAMES = recorded("squeue-names")
OURS = {  # values that differ from the lab's for a reason: who submitted, where, when, on what cluster
    "a", "e", "g", "G", "M", "L", "o", "S", "u", "U", "V", "Z", "m",
}  # fmt: skip


def as_bob(lines: list[str]) -> list[str]:
    """Our lines with the lab's user in the place of whoever runs the test."""
    me = getpass.getuser()
    return [line.replace(f"{me[:8]:>8}", "     bob") for line in lines]


def by_id(lines: list[str]) -> list[str]:
    return sorted(re.sub(r"\d:\d\d", "0:00", line) for line in lines)


@pytest.mark.parametrize("flags", [(), ("-r",), ("-t", "all", "-S", "i")])
def test_default_listing_is_slurms(past: Past, call: Call, flags: tuple[str, ...]) -> None:
    """Header, columns, widths, states, reasons and array forms are those of a real squeue, line by line."""
    want = QUEUE[" ".join(["squeue --me", *flags])]
    got = as_bob(call("squeue", "--me", *flags).lines)
    assert got[0] == want[0]
    assert by_id(got[1:]) == by_id(want[1:])


def test_long_listing_starts_with_the_date(past: Past, call: Call) -> None:
    """-l prints the time, then its own columns."""
    got = as_bob(call("squeue", "--me", "-l").lines)
    want = QUEUE["squeue --me -l"]
    assert re.fullmatch(r"\w{3} \w{3} \d\d \d\d:\d\d:\d\d \d{4}", got[0])
    assert got[1] == want[1]
    assert by_id(got[2:]) == by_id(want[2:])


def test_start_lists_pending_jobs_only(past: Past, call: Call) -> None:
    """--start has Slurm's columns, and no job that runs."""
    got = call("squeue", "--start").lines
    want = QUEUE["squeue --me --start"]
    assert got[0] == want[0]
    assert [line.split()[0] for line in got[1:]] == ["35", "33", "34", "36_[5,7,9%2]"]
    assert {line.split()[-1] for line in got[1:]} == {line.split()[-1] for line in want[1:]}


def test_steps_are_slurms_but_for_extern(past: Past, call: Call) -> None:
    """-s lists running steps and batch scripts; there is no extern step here."""
    got = by_id(as_bob(call("squeue", "-s").lines))
    assert got == by_id([line for line in QUEUE["squeue --me -s"] if "extern" not in line])


@pytest.mark.parametrize("letter", "aAbBcCdDeEfFgGhHiIjJkKlLmMnNoOpPqQrRsStTuUvVwWxXyYzZ")
def test_every_letter_has_slurms_header_and_form(past: Past, call: Call, letter: str) -> None:
    """Each letter of -o prints Slurm's header, and for the same job the same value or one of the same form."""
    want = QUEUE[f"squeue --me -S i -o [%{letter}]"]
    got = call("squeue", "-S", "i", "-o", f"[%{letter}]").lines
    assert got[0] == want[0]
    assert len(got) == len(want)
    if letter not in OURS and letter != "A":
        assert got == want
    blur = re.compile(r"\d+")
    if letter in "eLMSV":
        assert [blur.sub("9", line) for line in got] == [blur.sub("9", line) for line in want]


@pytest.mark.parametrize("command", sorted(NAMES))
def test_every_name_has_slurms_header(past: Past, call: Call, command: str) -> None:
    """Each name of -O prints Slurm's header in the width that was asked for."""
    asked = command.split(" -O ")[1].split(" ")[0]
    got = call("squeue", "-O", asked, "-S", "i")
    assert got.err == ""
    assert got.lines[0] == NAMES[command][0]
    assert all(len(line) >= 40 for line in got.lines)


@pytest.mark.parametrize("asked", ["JobID,State", "jobid:8|,state:.12", "JobArrayID: ,Name:5"])
def test_widths_and_suffixes_of_names(past: Past, call: Call, asked: str) -> None:
    """-O takes widths, a dot for the right, and suffixes, as Slurm does."""
    want = QUEUE[f"squeue --me -O {asked}"]
    got = call("squeue", "-O", asked).lines
    assert got[0] == want[0]
    wanted = [line for line in want if not re.match(r"3[89]", line)]  # Slurm numbers an array's tasks otherwise
    assert {line for line in got if not re.match(r"3[89]", line)} == set(wanted)


def test_derived_exit_code_is_live(past: Past, call: Call) -> None:
    """A running job already shows what its steps ended with."""
    assert call("squeue", "-h", "-j", "31", "-O", "DerivedEC:6").out == "7:0   \n"


def test_unknown_numbers(past: Past, call: Call) -> None:
    """One unknown number is an error, several are silence."""
    one = call("squeue", "-j", "99999")
    assert (one.status, one.out, one.err) == (1, "", "slurm_load_jobs error: Invalid job id specified\n")
    assert call("squeue", "-h", "-j", "99999,99998").out == ""
    assert call("squeue", "-h", "-j", "99999,99998").status == 0


def test_settled_jobs_only_where_asked(past: Past, call: Call) -> None:
    """A settled job is gone from the queue at once; -t shows it, in either form of the state's name."""
    assert call("squeue", "-h", "-j", "32").out == ""
    assert call("squeue", "-h", "-j", "32", "-t", "failed", "-o", "%i %t %r").out == "32 F NonZeroExitCode\n"
    assert call("squeue", "-h", "-t", "ca", "-o", "%i %T").out == "37 CANCELLED\n"


def test_what_ended_long_ago_is_listed_by_its_number_only(empty_past: Past, call: Call) -> None:
    """-t all lists what ended within MinJobAge."""
    empty_past.commit(*empty_past.single(5, "old", 0, ago=4000.0))
    assert call("squeue", "-h", "-t", "all").out == ""
    assert call("squeue", "-h", "-t", "all", "-j", "5", "-o", "%T").out == "COMPLETED\n"


def test_filters(past: Past, call: Call) -> None:
    """Jobs can be chosen by name, state, partition, user, number and array index."""
    assert call("squeue", "-h", "-n", "held,later", "-o", "%i", "-S", "i").lines == ["34", "35"]
    assert call("squeue", "-h", "-p", "nowhere").out == ""
    assert call("squeue", "-h", "-t", "R", "-o", "%i", "-S", "i").lines == ["31", "36_1", "36_3"]
    assert call("squeue", "-h", "-j", "36_7", "-o", "%i %K").out == "36_7 7\n"
    assert call("squeue", "-h", "-j36", "-o", "%i", "-S", "i").lines == ["36_1", "36_3", "36_[5,7,9%2]"]
    assert call("squeue", "-h", "-u", getpass.getuser(), "-o", "%i").status == 0


def test_the_environment_gives_the_format(past: Past, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQUEUE_FORMAT is the format unless -o is given; SLURM_TIME_FORMAT is that of times."""
    monkeypatch.setenv("SQUEUE_FORMAT", "%i;%j")
    assert call("squeue", "-h", "-j", "31").out == "31;run\n"
    assert call("squeue", "-h", "-j", "31", "-o", "%j").out == "run\n"
    monkeypatch.setenv("SLURM_TIME_FORMAT", "%Y")
    assert re.fullmatch(r"\d{4}\n", call("squeue", "-h", "-j", "31", "-o", "%S").out)


def test_our_own_states_have_honest_words(empty_past: Past, call: Call) -> None:
    """What Slurm has no word for is never shown as a success."""
    past = empty_past
    shown = {
        State.SKIPPED: ("CA", "NeedFailed:prep(FAILED)", "DependencyNeverSatisfied"),
        State.CHECKPOINTED: ("TO", "Checkpoint", "Checkpoint"),
        State.UNVERIFIED: ("NF", "WitnessVanished", "WitnessVanished"),
    }
    for number, (state, (_, reason, _)) in enumerate(shown.items(), start=1):
        verdict = Verdict(state, None, reason, True, "coordinator")
        past.commit(
            past.submitted(number, past.spec()),
            JobMoved(past.now - 1, number, number, state, reason, verdict),
            RunMoved(past.now - 1, number, state),
        )
    got = call("squeue", "-h", "-t", "all", "-S", "i", "-o", "%t %r").lines
    assert got == [f"{short} {reason}" for short, _, reason in shown.values()]


def test_a_settling_job_is_completing(empty_past: Past, call: Call) -> None:
    """What is not confirmed yet is not done: CG, and listed."""
    past = empty_past
    settling = Observed(past.now - 1, 3, 3, 1, "witness", "{}", State.SETTLING, "None")
    past.commit(past.submitted(3, past.spec()), *past.running(3, 3), settling, RunMoved(past.now, 3, State.RUNNING))
    assert call("squeue", "-h", "-o", "%t %T").out == "CG COMPLETING\n"


def test_suspended_time_does_not_count(empty_past: Past, call: Call) -> None:
    """A job that was suspended for a while has run that much less, and ends that much later."""
    past = empty_past
    events = [
        Observed(past.now - 50, 3, 3, 1, "witness", "{}", State.SUSPENDED, "None"),
        Observed(past.now - 20, 3, 3, 1, "witness", "{}", State.RUNNING, "None"),
    ]
    past.commit(
        past.submitted(3, past.spec()), *past.running(3, 3, ago=100), *events, RunMoved(past.now, 3, State.RUNNING)
    )
    assert re.fullmatch(r"1:1\d 8:[45]\d\n", call("squeue", "-h", "-o", "%M %L").out)
    past.commit(*past.step(3, 3, 0, "sleep", ago=90))
    assert re.fullmatch(r"3.0 1:0\d\n(3.batch 1:1\d\n)?", call("squeue", "-h", "-s", "-o", "%i %M").out)


def test_an_empty_home_is_an_empty_queue(empty_past: Past, call: Call) -> None:
    """Without a store there is a header, and nothing is made."""
    assert call("squeue").lines == [QUEUE["squeue --me"][0]]
    assert not (empty_past.home / "aver.db").exists()


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    st.text("%.0123456789abiIjJktTMRZ all|:, ", max_size=12),
    st.sampled_from(["-o", "-O", "-S", "-j", "-t", "-i", "-w"]),
)
def test_no_argument_is_a_traceback(past: Past, call: Call, text: str, option: str) -> None:
    """Any text for any option ends with 0 or 1, and with words."""
    if option == "-i":
        text = "x" + text
    reply = call("squeue", option, text)
    assert reply.status in (0, 1)
    assert reply.out or reply.err


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(st.text(max_size=8), max_size=3))
def test_no_command_line_is_a_traceback(past: Past, call: Call, words: list[str]) -> None:
    """Any words at all."""
    words = [word for word in words if not word.startswith(("-i", "--i"))]
    assert call("squeue", *words).status in (0, 1)


def test_sizes_are_left_as_they_are_where_that_is_asked_for(empty_past: Past, call: Call) -> None:
    """--noconvert: 2048M, which is 2G otherwise."""
    spec = empty_past.spec(request=Request(1, 0, 2 << 30, None))
    empty_past.commit(empty_past.submitted(1, spec))
    assert call("squeue", "-h", "-o", "%m").out == "2G\n"
    assert call("squeue", "-h", "--noconvert", "-o", "%m").out == "2048M\n"


def test_the_helps_of_later_slurms(slurm: Slurm) -> None:
    """Each state, letter and name that they print is one that squeue takes."""
    states = slurm("squeue", "--helpstate").out.split()
    assert {"PENDING", "RUNNING", "OUT_OF_MEMORY"} <= set(states)
    assert slurm("squeue", "-h", "-t", ",".join(states)).status == 0
    letters = slurm("squeue", "--helpformat").out.split()
    assert "%i" in letters
    assert slurm("squeue", "-h", "-o", " ".join(letters)).err == ""
    names = slurm("squeue", "--helpFormat").out.split()
    assert "jobid" in names
    assert slurm("squeue", "-h", "-O", ",".join(names)).err == ""


def test_only_job_state(slurm: Slurm) -> None:
    """Also of jobs that have ended; with filters of other kinds it is refused, as in Slurm."""
    done = slurm.submit("--wrap", "true")
    slurm.until_settled(done)
    held = slurm.submit("--hold", "--wrap", "true")
    lines = [line.split() for line in slurm("squeue", "--only-job-state", "-h").out.splitlines()]
    assert sorted(lines) == [[str(done), "CD"], [str(held), "PD"]]
    assert slurm("squeue", "--only-job-state", "-h", "-j", str(held)).out.split() == [str(held), "PD"]
    refused = slurm("squeue", "--only-job-state", "-u", "root")
    assert refused.status == 1
    assert refused.err.startswith("squeue: fatal: Option --only-job-state only works alone, with -j")


def test_notme_is_everybody_else(slurm: Slurm) -> None:
    slurm.submit("--hold", "--wrap", "true")
    assert slurm("squeue", "-h", "--notme").out == ""
    assert slurm("squeue", "-h", "--me").out != ""


@pytest.mark.parametrize("command", ["squeue", "sinfo"])
def test_verbose_shows_every_option(slurm: Slurm, command: str) -> None:
    """-v puts the options and their values before the table."""
    out = slurm(command, "-v", "-h").out
    assert "iterate     = 0\n" in out
    assert "noheader    = true\n" in out
    assert "verbose     = 1\n" in out
