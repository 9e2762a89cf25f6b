"""sacct, against what a real Slurm printed for the same jobs."""

from __future__ import annotations

import os
import re
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from queue_past import Call, Past
from recordings import recorded
from slurm_commands import Slurm

from aver.model.events import JobMoved, Observed, PersonAsked, RunMoved, StepEnded
from aver.model.evidence import Verdict
from aver.model.job import Matrix
from aver.model.slurm_options import SlurmKind, SlurmOptions
from aver.model.states import State

ACCOUNTS = recorded("sacct")


def ours(lines: list[str]) -> list[str]:
    """The lab's lines as ours must be: no extern step, no account, steps have the cpus of their tasks."""
    return [line for line in lines if "extern" not in line]


def columns(lines: list[str], *names: str) -> list[tuple[str, ...]]:
    """The values under these names of parsable lines."""
    header = lines[0].split("|")
    return [tuple(line.split("|")[header.index(name)] for name in names) for line in lines[1:]]


def test_default_listing_is_slurms(past: Past, call: Call) -> None:
    """Header, rule, widths, rows and their order, states cut with a plus."""
    got, want = call("sacct", "-S", "now-1hour").lines, ours(ACCOUNTS["sacct"])
    assert got[:2] == want[:2]
    without = [line for line in got if "36_[" not in line]  # Slurm leaves tasks out that wait for the array's limit
    mine = {(line[:12], line[13:34], line[56:66]) for line in without[2:]}
    theirs = {(line[:12], line[13:34], line[56:66]) for line in want[2:]}
    assert mine == theirs


def test_the_jobs_row_has_the_exit_that_scontrol_shows(past: Past, call: Call) -> None:
    """Where Slurm's accounts say 0:0 for a cancelled job, we say how its script ended."""
    rows = columns(call("sacct", "-P", "-j", "37").lines, "JobID", "State", "ExitCode")
    assert rows == [("37", f"CANCELLED by {os.getuid()}", "0:15"), ("37.batch", "CANCELLED", "0:15")]


def test_suspended_time_does_not_count(empty_past: Past, call: Call) -> None:
    """Also once the job has ended: it ran for 70 of 100 s, and every command says so."""
    past = empty_past
    *begun, ended, moved = past.single(3, "slow", 0, ago=120.0, elapsed=100.0, suspended=30.0)
    past.commit(
        *begun,
        PersonAsked(past.now - 100, 3, 3, "ann", "suspend"),
        Observed(past.now - 100, 3, 3, 1, "witness", "{}", State.SUSPENDED, "None"),
        PersonAsked(past.now - 70, 3, 3, "ann", "resume"),
        Observed(past.now - 70, 3, 3, 1, "witness", "{}", State.RUNNING, "None"),
        ended,
        moved,
    )
    assert call("sacct", "-n", "-X", "-P", "-o", "Elapsed,Suspended").out == "00:01:10|00:00:30\n"
    assert "RunTime=00:01:10 " in call("scontrol", "show", "job", "3").out


def test_suspended_time_does_not_count_for_a_step(empty_past: Past, call: Call) -> None:
    """A step has run as long as its job ran meanwhile: one that was there for all of it, and one that came after."""
    past = empty_past
    *begun, ended, moved = past.single(3, "slow", 0, ago=120.0, elapsed=100.0, suspended=30.0)
    long = past.step(3, 3, 0, "long", 0, ago=120.0, elapsed=100.0)
    short = past.step(3, 3, 1, "short", 0, ago=60.0, elapsed=20.0)
    past.commit(
        *begun,
        *long[:1],
        PersonAsked(past.now - 100, 3, 3, "ann", "suspend"),
        Observed(past.now - 100, 3, 3, 1, "witness", "{}", State.SUSPENDED, "None"),
        PersonAsked(past.now - 70, 3, 3, "ann", "resume"),
        Observed(past.now - 70, 3, 3, 1, "witness", "{}", State.RUNNING, "None"),
        *short,
        *long[1:],
        ended,
        moved,
    )
    shown = call("sacct", "-n", "-P", "-o", "JobID,Elapsed").out
    assert shown == "3|00:01:10\n3.batch|00:01:10\n3.0|00:01:10\n3.1|00:00:20\n"


def test_parsable_forms(past: Past, call: Call) -> None:
    """-P has no mark at the end, -p has one, --delimiter changes it, -n leaves the header out."""
    assert call("sacct", "-P").lines[0] == ACCOUNTS["sacct -P"][0]
    assert call("sacct", "-p").lines[0] == ACCOUNTS["sacct -p"][0]
    assert call("sacct", "-p", "--delimiter=;", "-n", "-X", "-j", "32", "-o", "jobid,state").out == "32;FAILED;\n"
    assert call("sacct", "-b").lines[:2] == ACCOUNTS["sacct -b"][:2]
    assert call("sacct", "-l").lines[:2] == ACCOUNTS["sacct -l"][:2]


def test_every_field_of_slurm_is_known(past: Past, call: Call) -> None:
    """All names of Slurm's list are in ours, with its header and width."""
    theirs = " ".join(ACCOUNTS["sacct --helpformat"]).split()
    assert set(theirs) <= set(call("sacct", "--helpformat").out.split())
    for name in theirs:
        assert call("sacct", "-X", "-j", "32", "-P", "-o", name).lines[0] == name


def test_all_fields_of_a_job_have_slurms_form(past: Past, call: Call) -> None:
    """What a real sacct prints for the same running job and its steps, where it is no matter of who and where."""
    lines = [line for line in ACCOUNTS["sacct -j 31 -o all -P"] if ".extern" not in line]
    same = (
        "JobID", "JobIDRaw", "JobName", "Partition", "State", "ExitCode", "AllocNodes", "NNodes", "NodeList", "NTasks",
        "ReqMem", "ReqTRES", "Timelimit", "TimelimitRaw", "Priority", "QOS", "Suspended", "Reason",
    )  # fmt: skip
    assert columns(call("sacct", "-j", "31", "-o", "all", "-P").lines, *same) == columns(lines, *same)
    formed = ("Elapsed", "Submit", "Start", "End", "Eligible", "CPUTime")
    got, want = columns(call("sacct", "-j", "31", "-o", "all", "-P").lines, *formed), columns(lines, *formed)
    blur = re.compile(r"\d")
    assert [[blur.sub("9", one) for one in row] for row in got] == [[blur.sub("9", one) for one in row] for row in want]


def test_widths_and_cuts(past: Past, call: Call) -> None:
    """%N is a width, %-N to the left; what does not fit ends with a plus."""
    asked = "jobid%5,jobname%-20,State%3,exitcode"
    assert call("sacct", "-j", "32", "-o", asked).lines == [
        *ACCOUNTS[f"sacct -j 32 -o {asked}"][:2],
        "   32 bad                  FA+      4:0 ",
        "32.b+ batch                FA+      4:0 ",
        " 32.0 bash                 FA+      3:0 ",
    ]


def test_sizes(past: Past, call: Call) -> None:
    """MaxRSS in the largest unit that is exact, in the unit asked for, or in bytes."""
    rows = {
        flags: columns(call("sacct", "-j", "32", "-P", "-o", "jobid,maxrss,reqmem", *flags).lines, "MaxRSS", "ReqMem")
        for flags in ((), ("--units=M",), ("--noconvert",))
    }
    assert rows[()] == [("", "200M"), ("1100K", ""), ("2996K", "")]
    assert rows[("--units=M",)] == [("", "200M"), ("1.07M", ""), ("2.93M", "")]
    assert rows[("--noconvert",)] == [("", "200M"), ("1126400", ""), ("3067904", "")]


def test_times(past: Past, call: Call) -> None:
    """Processor time has thousandths below an hour; the job's row is the sum of its parts."""
    lines = call("sacct", "-j", "32", "-P", "-o", "totalcpu,usercpu,systemcpu,elapsedraw,cputimeraw").lines
    assert columns(lines, "TotalCPU", "UserCPU", "SystemCPU") == [
        ("00:00.022", "00:00.017", "00:00.005"), ("00:00.019", "00:00.015", "00:00.004"),
        ("00:00.003", "00:00.002", "00:00.001"),
    ]  # fmt: skip
    assert columns(lines, "ElapsedRaw", "CPUTimeRAW") == [("3", "6"), ("3", "6"), ("1", "1")]


@pytest.mark.parametrize(
    ("raw", "fields", "job", "batch"),
    [
        (0, {}, ("COMPLETED", "0:0"), ("COMPLETED", "0:0")),
        (137 << 8, {}, ("FAILED", "137:0"), ("FAILED", "137:0")),
        (15, {}, ("FAILED", "0:15"), ("CANCELLED", "0:15")),
        (9, {"oom": 1}, ("OUT_OF_MEMORY", "0:125"), ("OUT_OF_MEMORY", "0:125")),
        (15, {"acts": [{"act": "time", "at": 2.0, "sig": 15}]}, ("TIMEOUT", "0:15"), ("CANCELLED", "0:15")),
        (0, {"acts": [{"act": "time", "at": 2.0, "sig": 15}]}, ("TIMEOUT", "0:0"), ("COMPLETED", "0:0")),
        (None, {"launch": {"op": "exec", "errno": 2, "path": "/x"}}, ("FAILED", "2:0"), ("FAILED", "2:0")),
        (None, {"launch": {"op": "stdout", "errno": 13, "path": "/x"}}, ("FAILED", "0:53"), ("CANCELLED", "0:53")),
    ],
)
def test_exits_are_whole(
    empty_past: Past,
    call: Call,
    raw: int | None,
    fields: dict[str, Any],
    job: tuple[str, str],
    batch: tuple[str, str],
) -> None:
    """Each way to end, as Slurm words it, with no exit code cut (137 stays 137)."""
    empty_past.commit(*empty_past.single(7, "one", raw, **fields))
    rows = columns(call("sacct", "-P", "-j", "7", "-o", "state,exitcode").lines, "State", "ExitCode")
    assert rows == [job, batch]


def test_a_job_that_nobody_saw_end_has_no_batch_exit(empty_past: Past, call: Call) -> None:
    """UNVERIFIED is NODE_FAIL, with an exit that is not known, and never 0:0."""
    past = empty_past
    lost = Verdict(State.UNVERIFIED, None, "WitnessVanished", False, "coordinator")
    past.commit(
        past.submitted(3, past.spec()), *past.running(3, 3), JobMoved(past.now, 3, 3, State.UNVERIFIED, "x", lost),
        RunMoved(past.now, 3, State.UNVERIFIED),
    )  # fmt: skip
    rows = columns(call("sacct", "-P", "-j", "3", "-o", "state,exitcode").lines, "State", "ExitCode")
    assert rows == [("NODE_FAIL", "?"), ("CANCELLED", "")]


def test_cancelled_before_it_started(empty_past: Past, call: Call) -> None:
    """One row, 0:0, with the uid of who did it."""
    past = empty_past
    verdict = Verdict(State.CANCELLED, None, "None", True, "coordinator")
    past.commit(
        past.submitted(3, past.spec()),
        PersonAsked(past.now - 2, 3, 3, "0", "cancel"),
        JobMoved(past.now - 2, 3, 3, State.CANCELLED, "None", verdict),
        RunMoved(past.now - 2, 3, State.CANCELLED),
    )
    lines = call("sacct", "-P", "-j", "3", "-o", "jobid,state,exitcode,elapsed,nodelist").lines
    assert lines[1:] == ["3|CANCELLED by 0|0:0|00:00:00|None assigned"]


def test_the_window(empty_past: Past, call: Call) -> None:
    """Without -S, from midnight; -j shows all; -S and -E choose; a start after the end is refused."""
    past = empty_past
    past.commit(*past.single(1, "old", 0, ago=3 * 86400.0), *past.single(2, "new", 0, ago=5.0))
    if time.localtime(past.now).tm_hour or time.localtime(past.now).tm_min > 1:
        assert call("sacct", "-n", "-X", "-o", "jobid").out.split() == ["2"]
    assert call("sacct", "-n", "-X", "-o", "jobid", "-j", "1").out.split() == ["1"]
    assert call("sacct", "-n", "-X", "-o", "jobid", "-S", "now-7days").out.split() == ["1", "2"]
    assert call("sacct", "-n", "-X", "-o", "jobid", "-S", "now-7days", "-E", "now-1days").out.split() == ["1"]
    refused = call("sacct", "-S", "now", "-E", "now-1day")
    assert refused.status == 1
    assert re.fullmatch(r"sacct: error: Start time \(\S+\) requested is after end time \(\S+\)\.\n", refused.err)


def test_states(past: Past, call: Call) -> None:
    """-s chooses by what a job was in the window; without -S that is now."""
    assert call("sacct", "-n", "-X", "-o", "jobid", "-S", "now-1day", "-s", "CA,F").out.split() == ["32", "37"]
    assert call("sacct", "-n", "-X", "-o", "jobid", "-s", "F").out == ""
    running = call("sacct", "-n", "-X", "-o", "jobid", "-S", "now-1day", "-s", "running").out.split()
    assert running == ["31", "32", "36_1", "36_3", "37"]
    assert call("sacct", "-n", "-X", "-o", "jobid", "-s", "R").out.split() == ["31", "36_1", "36_3"]


def test_numbers_steps_and_arrays(past: Past, call: Call) -> None:
    """-j takes jobs, steps, tasks of arrays, and whole arrays."""
    assert call("sacct", "-n", "-o", "jobid", "-j", "31.0").out.split() == ["31.0"]
    assert call("sacct", "-n", "-o", "jobid", "-j", "31.batch,36_1").out.split() == ["31.batch", "36_1", "36_1.batch"]
    whole = call("sacct", "-n", "-X", "-P", "-o", "jobid,jobidraw", "-j", "36").lines
    assert whole == ["36_1|38", "36_3|39", "36_[5,7,9%2]|36"]
    assert call("sacct", "-n", "-j", "99999").out == ""
    assert call("sacct", "-n", "-j", "99999").status == 0


@pytest.mark.parametrize(
    ("ends", "raw"),
    [
        ((0, None, 0), ["41", "40", "43"]),  # one that is not settled
        ((0, 0, 0), ["40", "42", "43"]),
        ((0, 7 << 8, 0), ["41", "40", "43"]),  # the one that ended worst
    ],
)
def test_a_task_has_the_number_of_its_array(
    empty_past: Past, call: Call, ends: tuple[int | None, ...], raw: list[str]
) -> None:
    """Clients that look for the array's number find one: COMPLETED only if all tasks are."""
    past = empty_past
    array = past.spec(matrix=Matrix((("array", ("1", "2", "3")),)))
    lives = [
        past.ended(40, 41 + place, end, ago=10) if end is not None else past.running(40, 41 + place)
        for place, end in enumerate(ends)
    ]
    past.commit(past.submitted(40, array, first=41), *(event for life in lives for event in life))
    fields = ("-n", "-X", "-P", "-o", "jobidraw")
    assert call("sacct", *fields, "-j", "40").lines == raw
    assert call("sacct", *fields, "-S", "now-1day", "--name", "run").lines == raw
    assert call("sacct", *fields, "-j", "40_2").lines == ["42"]
    assert call("sacct", *fields, "-j", "42").lines == ["42"]


def test_each_attempt_with_duplicates(empty_past: Past, call: Call) -> None:
    """-D has one set of rows for each attempt, the first ones first; without it the last one alone."""
    past = empty_past
    past.commit(
        past.submitted(3, past.spec()),
        *past.ended(3, 3, 1 << 8, ago=30, job_state=State.PENDING, job_reason="Retry"),
        *past.ended(3, 3, 0, ago=10, attempt=2),
        RunMoved(past.now - 7, 3, State.COMPLETED),
    )
    assert call("sacct", "-n", "-P", "-o", "jobid,state", "-j", "3").lines == ["3|COMPLETED", "3.batch|COMPLETED"]
    assert call("sacct", "-n", "-P", "-o", "jobid,state,restarts", "-D", "-j", "3").lines == [
        "3|FAILED|0", "3.batch|FAILED|", "3|COMPLETED|1", "3.batch|COMPLETED|",
    ]  # fmt: skip


def test_a_job_of_srun_has_no_batch_row(empty_past: Past, call: Call) -> None:
    """`srun` alone is a job with steps and without a script."""
    past = empty_past
    life = past.single(4, "hostname", 0)
    alone = past.submitted(4, past.spec("hostname", slurm=SlurmOptions(SlurmKind.SRUN)), ago=12)
    past.commit(alone, *life[1:], *past.step(4, 4, 0, "hostname", 0))
    assert call("sacct", "-n", "-o", "jobid", "-j", "4").out.split() == ["4", "4.0"]


def test_the_script_is_kept(past: Past, call: Call) -> None:
    """-B prints the batch script as it was submitted."""
    reply = call("sacct", "-B", "-j", "32")
    assert reply.out == f"Batch Script for 32\n{'-' * 80}\n#!/bin/bash\nsrun -n2 sleep 40\n\n"


def test_the_environment_gives_the_format(past: Past, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """SACCT_FORMAT is the format unless -o is given."""
    monkeypatch.setenv("SACCT_FORMAT", "jobid,user%20")
    assert call("sacct", "-j", "32", "-X").lines[0].split() == ["JobID", "User"]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--foo",), "sacct: unrecognized option '--foo'\n"),
        (("-Z",), "sacct: invalid option -- 'Z'\n"),
        (("-o", "foo"), 'sacct: error: Invalid field requested: "foo"\n'),
        (("-j", "abc"), "sacct: fatal: Bad job/step specified: abc\n"),
        (("-j", "32_"), "sacct: fatal: Bad job array element specified: 32\n"),
        (("-j", "32.x"), "sacct: fatal: Bad step specified: 32\n"),
        (("-S", "foo"), "Invalid time specification (pos=0): foo\n"),
        (("-s", "BOGUS"), "sacct: fatal: unrecognized job state value 'BOGUS'\n"),
        (("-u", "no-such-user-here"), "sacct: error: Invalid user id: no-such-user-here\n"),
        (("extra",), "sacct: error: Unknown arguments:\nsacct: error:  extra\n"),
    ],
)
def test_refusals_are_slurms(past: Past, call: Call, argv: tuple[str, ...], said: str) -> None:
    """Slurm's words and exit status 1."""
    reply = call("sacct", *argv)
    assert (reply.status, reply.out, reply.err) == (1, "", said)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    st.text("%-0123456789,._abdeijnostJSE:/+ now", max_size=14),
    st.sampled_from(["-o", "-j", "-S", "-E", "-s", "-u", "--units", "--delimiter", "-i", "-I", "-N", "-g"]),
)
def test_no_argument_is_a_traceback(past: Past, call: Call, text: str, option: str) -> None:
    """Any text for any option ends with 0 or 1."""
    assert call("sacct", option, text).status in (0, 1)


def test_a_step_that_nobody_saw_end_leaves_the_derived_exit_unknown(empty_past: Past, call: Call) -> None:
    """sacct, scontrol and squeue say `?`; 0:0 would be a success that nobody attests."""
    verdict = Verdict(State.UNVERIFIED, None, "WitnessVanished", False, "coordinator")
    *life, ended, moved = empty_past.single(5, "lost", 0)
    lost = StepEnded(empty_past.now - 4, 5, 5, 1, 0, verdict, None)
    empty_past.commit(*life, *empty_past.step(5, 5, 0, "prog"), lost, ended, moved)
    rows = columns(call("sacct", "-P", "-j", "5", "-o", "JobID,ExitCode,DerivedExitCode").lines, "JobID", "ExitCode")
    assert rows == [("5", "0:0"), ("5.batch", "0:0"), ("5.0", "?")]
    assert call("sacct", "-nP", "-X", "-j", "5", "-o", "DerivedExitCode").lines == ["?"]
    assert "DerivedExitCode=?\n" in call("scontrol", "-d", "show", "job", "5").out
    assert call("squeue", "-h", "-t", "all", "-j", "5", "-O", "DerivedEC:3").out == "?  \n"


def test_fields_of_later_slurms_by_their_whole_names(slurm: Slurm) -> None:
    """What was asked for, which Slurm now tells from what was given; every job has an SLUID, none has segments."""
    slurm.submit("--hold", "--qos=high", "--reservation=maintenance", "--wrap", "true")
    shown = slurm("sacct", "-XnP", "-j", "1", "-o", "qosreq,reqreservation,sluid,segmentsize").out
    assert shown == "high|maintenance|s0080000000101|\n"
    assert slurm("sacct", "-XnPo", "qos%5").status == 0


def test_files_are_patterns_unless_they_are_expanded(past: Past, call: Call) -> None:
    """As in Slurm 25.11; errors that go to the output have no file of their own."""
    asked = ("sacct", "-nPX", "-j", "33", "-o", "StdOut,StdErr,StdIn")
    assert call(*asked).out == "out-%j.txt|err-%j.txt|/dev/null\n"
    assert call(*asked, "--expand-patterns").out == f"{past.work}/out-33.txt|{past.work}/err-33.txt|/dev/null\n"
    assert call("sacct", "-nPX", "-j", "31", "-o", "StdErr").out == "\n"


@pytest.mark.parametrize("argv", [["-k", "5"], ["-k", "1", "-K", "20"], ["-W", "key"], ["--array"]], ids=" ".join)
def test_filters_of_sacct_filter(past: Past, call: Call, argv: list[str]) -> None:
    """None is ignored: ten minutes is the limit of all jobs here, and none has a wckey."""
    rows = call("sacct", "-nPX", "-S", "now-1hour", "-o", "jobid", *argv).lines
    everything = call("sacct", "-nPX", "-S", "now-1hour", "-o", "jobid").lines
    assert everything
    if argv[0] == "--array":
        assert len(rows) > len(everything)
        assert not any("[" in row for row in rows)
    else:
        assert rows == (everything if "-K" in argv else [])
