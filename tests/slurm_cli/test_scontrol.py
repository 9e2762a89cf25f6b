"""scontrol's acting words as a process: hold, release, suspend, resume, requeue and update, in Slurm's words."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slurm_commands import Slurm

from aver.model.states import State
from aver.slurm_cli.refusal import Refusal
from aver.slurm_cli.scontrol.update import parse_update
from live_home import wait_for

INVALID = "Invalid job id specified for job 999999\n"
SUSPEND = "slurm_suspend error: Invalid job id specified\n"


def test_what_scontrol_refuses(slurm: Slurm) -> None:
    """Slurm's messages, exit status 1."""
    held = slurm.submit("--hold", "-o", "/dev/null", "--wrap", "true")
    cases = [
        (["hold", "999999"], INVALID + SUSPEND),
        (["hold", "foo"], f"Invalid job id specified for job foo\n{SUSPEND}"),
        (["release", "999999"], INVALID + SUSPEND),
        (["hold"], "too few arguments for keyword:hold\n"),
        (["suspend"], "too few arguments for keyword:suspend\n"),
        (["suspend", str(held)], f"Job is pending execution for job {held}\n"),
        (["resume", "999999"], INVALID),
        (["requeue", "999999"], INVALID),
        (["requeue", str(held)], f"Job is pending execution for job {held}\n"),
        (["update", "JobId=999999", "TimeLimit=5"], INVALID),
        (["update", f"JobId={held}", "TimeLimit=foo"], "scontrol: error: Invalid TimeLimit value\n"),
        (["update", f"JobId={held}", "Foo=1"], "Update of this parameter is not supported: Foo=1\nRequest aborted\n"),
        (["update", f"JobId={held}", "foo"], "Invalid input: foo\nRequest aborted\n"),
        (["update", f"JobId={held}"], "No changes specified\n"),
        (["bogus"], "invalid keyword: bogus\n"),
    ]
    for args, err in cases:
        said = slurm("scontrol", *args)
        assert (said.err, said.status, said.out) == (err, 1, ""), args
    said = slurm("scontrol", "update", "TimeLimit=10")
    assert said.err.startswith("No valid entity in update command\n")


def test_a_held_job_waits_for_its_release(slurm: Slurm) -> None:
    """hold and uhold: JobHeldUser; release lets it run; twice is harmless."""
    job = slurm.submit("--begin=now+1hour", "-o", "/dev/null", "--wrap", "true")
    assert slurm("scontrol", "hold", str(job)).status == 0
    assert slurm("scontrol", "uhold", f"jobid={job}").status == 0
    assert slurm.until_reason(job, "JobHeldUser").state is State.PENDING
    assert slurm("scontrol", "release", str(job)).status == 0
    assert slurm("scontrol", "release", str(job)).status == 0
    assert slurm.until_reason(job, "BeginTime").state is State.PENDING  # and its time has not come


def test_a_requeued_job_runs_again_and_its_first_attempt_is_kept(slurm: Slurm) -> None:
    """SLURM_RESTART_COUNT, the output begun anew, attempt 1 CANCELLED; requeuehold waits for its release."""
    text = 'echo "count $SLURM_RESTART_COUNT"; while [ ! -e go ]; do sleep 0.02; done'
    job = slurm.submit("-o", "out", "--wrap", text)
    slurm.until_file("out", "count")
    assert slurm("scontrol", "requeue", str(job)).status == 0
    slurm.until_file("out", "count 1")
    assert slurm.read("out") == "count 1\n"
    assert slurm("scontrol", "requeuehold", str(job)).status == 0
    assert slurm.until_reason(job, "job_requeued_in_held_state").state is State.PENDING
    (slurm.folder / "go").touch()
    assert slurm("scontrol", "release", str(job)).status == 0
    assert slurm.until_settled(job).state is State.COMPLETED
    assert slurm.read("out") == "count 2\n"
    attempts = slurm.attempts(job)
    assert [(one.state, str(one.exit)) for one in attempts] == [
        (State.CANCELLED, "0:15"),
        (State.CANCELLED, "0:15"),
        (State.COMPLETED, "0:0"),
    ]


def test_a_settled_job_is_requeued_and_one_that_said_no_is_not(slurm: Slurm) -> None:
    """A job that has ended begins again; --no-requeue: presently disabled."""
    job = slurm.submit("-o", "/dev/null", "--wrap", 'test -n "$SLURM_RESTART_COUNT"')
    assert slurm.until_settled(job).state is State.FAILED
    assert slurm("scontrol", "requeue", str(job)).status == 0
    assert slurm.until_state(job, State.COMPLETED).attempt == 2
    refuses = slurm.submit("--no-requeue", "-o", "/dev/null", "--wrap", "sleep 100")
    slurm.until_state(refuses, State.RUNNING)
    said = slurm("scontrol", "requeue", str(refuses))
    assert (said.err, said.status) == (f"Requested operation is presently disabled for job {refuses}\n", 1)


def test_a_suspended_job_that_is_requeued_is_not_suspended_any_more(slurm: Slurm) -> None:
    """It goes on so that it can end, for as long as its kill wait: what is shown is what is."""
    waits = "until [ -e go ]; do sleep 0.05; done"
    job = slurm.submit("-o", "out", "--wrap", f"trap '{waits}; exit 3' TERM; echo up; {waits}; sleep 100")
    slurm.until_file("out", "up")
    assert slurm("scontrol", "suspend", str(job)).status == 0
    assert slurm("scontrol", "requeue", str(job)).status == 0
    assert slurm.until_state(job, State.COMPLETING).attempt == 1
    assert slurm("scontrol", "suspend", str(job)).status == 1
    (slurm.folder / "go").touch()
    assert slurm.until_state(job, State.RUNNING).attempt == 2
    assert [(one.state, str(one.exit)) for one in slurm.attempts(job)][:1] == [(State.CANCELLED, "3:0")]


def test_a_requeue_survives_a_crash_of_the_coordinator(slurm: Slurm) -> None:
    """Asked for and durable, then killed: the job runs again all the same, once."""
    waits = '[ -n "$SLURM_RESTART_COUNT" ] || while [ ! -e go ]; do sleep 0.02; done'
    job = slurm.submit("-o", "out", "--wrap", f'trap "" TERM; echo "count $SLURM_RESTART_COUNT"; {waits}')
    slurm.until_file("out", "count")
    assert slurm("scontrol", "requeue", str(job)).status == 0
    slurm.kill_coordinator()
    (slurm.folder / "go").touch()
    slurm("scontrol", "hold", "999999")  # starts another one
    assert slurm.until_settled(job).state is State.COMPLETED
    assert slurm.read("out") == "count 1\n"
    assert len(slurm.attempts(job)) == 2


def test_a_suspended_job_stands_still(slurm: Slurm) -> None:
    """SUSPENDED, and its processes are stopped; then RUNNING again; twice is refused as Slurm refuses it."""
    job = slurm.submit("-o", "out", "--wrap", "echo $$; exec sleep 300")  # a shell may wait for a child of vfork: D
    slurm.until_file("out", "\n")
    process = int(slurm.read("out"))
    assert slurm("scontrol", "suspend", str(job)).status == 0
    slurm.until_state(job, State.SUSPENDED)
    wait_for(lambda: process_state(process) == "T", "its shell is stopped")
    said = slurm("scontrol", "suspend", str(job))
    assert (said.err, said.status) == (f"Requested operation is presently disabled for job {job}\n", 1)
    assert slurm("scontrol", "resume", str(job)).status == 0
    slurm.until_state(job, State.RUNNING)
    wait_for(lambda: process_state(process) in "RSD", "its shell goes on")


def process_state(pid: int) -> str:
    """The letter that the kernel has for it."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_new_time_limit_counts_for_what_runs_and_for_what_waits(slurm: Slurm) -> None:
    """A running job and a held one get a limit of a second, and end by it."""
    runs = slurm.submit("-o", "/dev/null", "--wrap", "sleep 100")
    waits = slurm.submit("-o", "/dev/null", "--hold", "--wrap", "sleep 100")
    slurm.until_state(runs, State.RUNNING)
    assert slurm("scontrol", "update", f"JobId={runs},{waits}", "TimeLimit=0:01").status == 0
    assert slurm.until_settled(runs).state is State.TIMEOUT
    slurm.kill_coordinator()
    assert slurm("scontrol", "release", str(waits)).status == 0
    assert slurm.until_settled(waits).state is State.TIMEOUT


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_higher_priority_goes_first_and_none_holds(slurm: Slurm, is_killed: bool) -> None:
    """Priority=0 is a hold; of two jobs that wait for the same room the higher one runs first, after a crash too."""
    job = slurm.submit("--begin=now+1hour", "-o", "/dev/null", "--wrap", "true")
    assert slurm("scontrol", "update", f"job={job}", "prio=0").status == 0
    assert slurm.until_reason(job, "JobHeldUser").state is State.PENDING
    everything = ("-o", "/dev/null", "-c", str(os.cpu_count()))
    blocks = slurm.submit(*everything, "--wrap", "while [ ! -e go ]; do sleep 0.02; done")
    slurm.until_state(blocks, State.RUNNING)
    low = slurm.submit(*everything, "--wrap", "echo low >> order")
    high = slurm.submit(*everything, "--wrap", "echo high >> order")
    assert slurm("scontrol", "update", f"jobid={high}", "Priority=7", "Name=other").status == 0
    assert slurm("squeue", "-h", "-j", str(high), "-o", "%j").out == "other\n"
    if is_killed:
        slurm.kill_coordinator()
        assert slurm("squeue", "-h").status == 0  # starts another one
    (slurm.folder / "go").touch()
    assert [slurm.until_settled(one).state for one in (low, high)] == [State.COMPLETED] * 2
    assert slurm.read("order") == "high\nlow\n"


def test_commands_come_from_stdin_too(slurm: Slurm) -> None:
    """Without words scontrol reads a command a line, until `quit`."""
    job = slurm.submit("--begin=now+1hour", "-o", "/dev/null", "--wrap", "true")
    assert slurm("scontrol", stdin=f"hold {job}\nquit\nrelease {job}\n").status == 0
    assert slurm.until_reason(job, "JobHeldUser").state is State.PENDING


@pytest.mark.parametrize(
    ("words", "changes"),
    [
        (["JobId=7", "TimeLimit=1-0"], {"time_s": 86400}),
        (["jobid=7", "timel=UNLIMITED"], {"time_s": None}),
        (["JobId=7", "JobName=x", "Comment=y z"], {"name": "x", "comment": "y z"}),
        (["Priority=9", "JobId=7"], {"priority": 9}),
    ],
)
def test_what_an_update_changes(words: list[str], changes: dict[str, object]) -> None:
    """Words in any order and any case, cut as Slurm lets them be cut."""
    update = parse_update(words)
    assert (update.jobs, update.changes) == (["7"], changes)


@given(
    st.lists(
        st.one_of(st.text(max_size=12), st.sampled_from(["JobId=1", "TimeLimit=", "Priority=", "x=1"])), max_size=5
    )
)
def test_any_words_are_an_update_or_refused(words: list[str]) -> None:
    """Never a traceback."""
    try:
        update = parse_update(words)
    except Refusal:
        return
    assert update.jobs


def test_requeued_attempts_are_rows_of_their_own(slurm: Slurm) -> None:
    """sacct -D: REQUEUED 0:0 for one that was ended for it; one that had ended before keeps its end, as in 25.11."""
    text = "case $SLURM_RESTART_COUNT in 2) exit 0;; 1) exit 5;; *) sleep 100;; esac"
    job = slurm.submit("-o", "out", "--wrap", text)
    slurm.until_state(job, State.RUNNING)
    assert slurm("scontrol", "requeue", str(job)).status == 0
    assert slurm.until_settled(job).state is State.FAILED
    assert slurm("scontrol", "requeue", str(job)).status == 0
    slurm.until_state(job, State.COMPLETED)
    said = slurm("sacct", "-nPXD", "-j", str(job), "-o", "State,ExitCode")
    assert said.out == "REQUEUED|0:0\nFAILED|5:0\nCOMPLETED|0:0\n"


def test_a_job_that_is_cancelled_while_it_waits_to_begin_again(slurm: Slurm) -> None:
    """Its attempt was requeued; the job is cancelled, and has a row for that."""
    job = slurm.submit("-o", "out", "--wrap", "sleep 100")
    slurm.until_state(job, State.RUNNING)
    assert slurm("scontrol", "requeuehold", str(job)).status == 0
    slurm.until_reason(job, "job_requeued_in_held_state")
    assert slurm("scancel", str(job)).status == 0
    slurm.until_state(job, State.CANCELLED)
    said = slurm("sacct", "-nPXD", "-j", str(job), "-o", "State,ExitCode").out.splitlines()
    assert [line.split()[0].split("|")[0] for line in said] == ["REQUEUED", "CANCELLED"]


def test_a_job_that_waits_ends_at_its_deadline_also_when_it_is_held(slurm: Slurm) -> None:
    """As in Slurm since 23.11: it can never run. So does one that waits for another job."""
    job = slurm.submit("--hold", "--deadline=now+1", "-o", "out", "--wrap", "true")
    need = slurm.submit("--hold", "-o", "need", "--wrap", "true")
    other = slurm.submit(f"--dependency=after:{need}", "--deadline=now+2", "-o", "other", "--wrap", "true")
    assert slurm.until_settled(job).state is State.DEADLINE
    assert slurm.until_settled(other).state is State.DEADLINE
    assert slurm("scontrol", "release", str(job)).status == 1
    assert not (slurm.folder / "out").exists()


@pytest.mark.parametrize("command", ["scontrol requeue", "scancel"])
def test_a_job_that_ends_itself_hears_that_it_was_done(slurm: Slurm, command: str) -> None:
    """The command is one of the processes that are ended; it says 0 to the program that called it."""
    text = f'trap : TERM; [ "$SLURM_RESTART_COUNT" ] || {{ {command} $SLURM_JOB_ID; echo $? > said; sleep 60; }}'
    job = slurm.submit("--wrap", text)
    slurm.until_file("said", "\n")
    assert slurm.read("said") == "0\n"
    ended = State.CANCELLED if command == "scancel" else State.COMPLETED
    assert slurm.until(job, lambda row: row.state.is_settled).state is ended


def test_a_begin_time_can_be_moved(slurm: Slurm) -> None:
    """Later and then to now: the job waits for its new time, shows it, and runs when it is now."""
    job = slurm.submit("-o", "/dev/null", "--begin", "now+1hour", "--wrap", "true")
    slurm.until_reason(job, "BeginTime")
    assert slurm("scontrol", "update", f"JobId={job}", "StartTime=2035-01-02T03:04:05").status == 0
    assert "StartTime=2035-01-02T03:04:05" in slurm("scontrol", "show", "job", str(job)).out
    slurm.kill_coordinator()
    assert "2035-01-02T03:04:05" in slurm("squeue", "-h", "-j", str(job), "-o", "%S").out
    assert slurm.job(job).state is State.PENDING
    assert slurm("scontrol", "update", f"JobId={job}", "StartTime=now").status == 0
    assert slurm.until_settled(job).state is State.COMPLETED


def test_a_dependency_can_be_changed_and_taken_away(slurm: Slurm) -> None:
    """Another one counts instead, also after a crash; an empty one lets the job go; one that never was is refused."""
    first = slurm.submit("-o", "/dev/null", "-H", "--wrap", "true")
    second = slurm.submit("-o", "/dev/null", "-H", "--wrap", "true")
    job = slurm.submit("-o", "/dev/null", "-d", f"afterok:{first}", "--wrap", "true")
    slurm.until_reason(job, "Dependency")
    assert slurm("scontrol", "update", f"JobId={job}", f"Dependency=afterany:{second}").status == 0
    shown = slurm("scontrol", "show", "job", str(job)).out
    assert f"Dependency=afterany:{second}(unfulfilled)" in shown
    slurm.kill_coordinator()
    assert slurm("scontrol", "release", str(first)).status == 0
    slurm.until_settled(first)
    assert slurm.job(job).state is State.PENDING
    wrong = slurm("scontrol", "update", f"JobId={job}", "Dependency=afterok:9999")
    assert (wrong.status, wrong.err) == (1, "scontrol: error: Job dependency problem\n")
    assert slurm("scontrol", "update", f"JobId={job}", "Dependency=").status == 0
    assert slurm.until_settled(job).state is State.COMPLETED


def test_an_arrays_limit_can_be_changed(slurm: Slurm) -> None:
    """Lifted, all of it runs at once; shown as it is now."""
    run = slurm.submit("-o", "/dev/null", "-a", "1-2%1", "--wrap", "until test -e go; do sleep 0.05; done")
    jobs = [job.id for job in slurm.jobs(run)]
    slurm.until_state(jobs[0], State.RUNNING)
    assert "ArrayTaskThrottle=1" in slurm("scontrol", "show", "job", str(run)).out
    assert slurm("scontrol", "update", f"JobId={run}", "ArrayTaskThrottle=0").status == 0
    slurm.until_state(jobs[1], State.RUNNING)
    assert "ArrayTaskThrottle" not in slurm("scontrol", "show", "job", str(run)).out
    (slurm.folder / "go").touch()


def test_the_size_of_a_job_that_waits_can_be_changed(slurm: Slurm) -> None:
    """Memory and cpus, shown and enforced; not of one that runs, and not beyond the machine."""
    job = slurm.submit("-o", "out", "-H", "--mem=64", "--wrap", "echo $SLURM_MEM_PER_NODE")
    assert slurm("scontrol", "update", f"JobId={job}", "MinMemoryNode=128").status == 0
    assert "MinMemoryNode=128M" in slurm("scontrol", "show", "job", str(job)).out
    too_many = slurm("scontrol", "update", f"JobId={job}", "NumCPUs=9999")
    assert (too_many.status, "Requested node configuration is not available" in too_many.err) == (1, True)
    assert slurm("scontrol", "release", str(job)).status == 0
    slurm.until_settled(job)
    assert slurm.read("out") == "128\n"
    assert slurm("sacct", "-nPX", "-j", str(job), "-o", "reqmem").out == "128M\n"
    running = slurm.submit("-o", "/dev/null", "--wrap", "sleep 60")
    slurm.until_state(running, State.RUNNING)
    late = slurm("scontrol", "update", f"JobId={running}", "StartTime=now+1hour")
    assert (late.status, late.err) == (1, f"Job is no longer pending execution for job {running}\n")
    slurm("scancel", str(running))


def test_update_takes_words_without_a_sign(slurm: Slurm) -> None:
    """As Slurm: `update job 7 timelimit 7`; a last word alone is refused, and so is a step."""
    job = slurm.submit("-H", "--wrap", "true")
    for words, limit in ((f"job {job} timelimit 7", "00:07:00"), (f"jobid {job} TimeLimit=9", "00:09:00")):
        assert slurm("scontrol", "update", *words.split()).status == 0
        assert f"TimeLimit={limit}" in slurm("scontrol", "show", "job", str(job)).out
    said = slurm("scontrol", "update", f"jobid={job}", "timelimit")
    assert (said.status, said.err) == (1, "Invalid input: timelimit\nRequest aborted\n")
    assert slurm("scontrol", "update", f"StepId={job}.0", "TimeLimit=1").status == 1


def test_requeue_of_what_has_not_ended(slurm: Slurm) -> None:
    """A job that waits or has ended is left alone and is no mistake; one that there is not is."""
    ended, waits = slurm.submit("--wrap", "true"), slurm.submit("-H", "--wrap", "true")
    assert slurm.until_settled(ended).state is State.COMPLETED
    said = slurm("scontrol", "requeue", "incomplete", f"{ended},{waits}")
    assert (said.status, said.err) == (0, "")
    assert slurm.job(ended).state is State.COMPLETED
    said = slurm("scontrol", "requeue", "incomplete", "99999")
    assert (said.status, said.err) == (1, "Invalid job id specified for job 99999\n")


def test_top_puts_a_job_first(slurm: Slurm) -> None:
    """Before those that have a priority already; the first that is named is the first."""
    low, high, last = (slurm.submit("--begin=now+1hour", f"--priority={n}", "--wrap", "true") for n in (5, 90, 7))
    assert slurm("scontrol", "top", f"{last},{low}").status == 0
    shown = slurm("squeue", "-h", "-o", "%i %Q").out.split("\n")
    priority = {int(number): int(value) for number, value in (line.split() for line in shown if line)}
    assert priority[last] > priority[low] > priority[high]
    assert slurm("scontrol", "top", "99999").err == "Invalid job id specified for job 99999\n"


def test_two_exclamation_marks_repeat_the_last_command(slurm: Slurm) -> None:
    assert slurm("scontrol", stdin="version\n!!\n").out == slurm("scontrol", "version").out * 2


def test_verbose_scontrol_says_when_records_changed(slurm: Slurm) -> None:
    """Of nodes and partitions, as clients of Slurm's API know it."""
    assert slurm("scontrol", "-v", "show", "partition").out.startswith("last_update_time=")
    assert "last_update_time" not in slurm("scontrol", "show", "partition").out


def test_job_0_is_every_job(slurm: Slurm) -> None:
    """As in Slurm: with an index, the tasks of all arrays that have it."""
    first = slurm.submit("-o", "/dev/null", "-a", "1-2", "--wrap", "true")
    second = slurm.submit("-o", "/dev/null", "--wrap", "true")
    third = slurm.submit("-o", "/dev/null", "-a", "2", "--wrap", "true")
    for run in (first, second, third):
        for row in slurm.jobs(run):
            slurm.until_settled(row.id)
    assert slurm("scontrol", "show", "job", "0").out.count("JobName=wrap") == 4
    of_index = slurm("scontrol", "show", "job", "0_2").out
    assert of_index.count("ArrayTaskId=2") == of_index.count("JobName=wrap") == 2
    none = slurm("scontrol", "show", "job", "0_7")
    assert (none.out, none.status) == ("Job 0_7 not found\n", 1)


def test_a_job_may_be_held_as_a_special_exit(slurm: Slurm) -> None:
    """squeue and scontrol say so until it is released, accounting does not, as with a real Slurm.

    It is a state of the job that outlives the coordinator, not the words of a request.
    """
    ended = slurm.submit("-o", "/dev/null", "--wrap", "true")
    slurm.until_settled(ended)
    runs = slurm.submit("-o", "out", "--wrap", "echo ready; sleep 100")
    slurm.until_file("out", "ready")
    for job in (ended, runs):
        assert slurm("scontrol", "requeuehold", "State=SpecialExit", str(job)).status == 0
        slurm.until_reason(job, "job_requeued_in_special_exit_state")
        slurm.kill_coordinator()
        shown = slurm("scontrol", "show", "job", str(job)).out
        assert "JobState=SPECIAL_EXIT Reason=job_requeued_in_held_state" in shown
        assert slurm("squeue", "-h", "-j", str(job), "-o", "%t %T").out == "SE SPECIAL_EXIT\n"
        assert slurm("squeue", "-h", "-t", "SE", "-o", "%i").out == f"{job}\n"
        assert slurm("squeue", "-h", "-t", "PD", "-o", "%i").out == ""
        assert slurm("sacct", "-n", "-P", "-X", "-j", str(job), "-o", "State").out == "PENDING\n"
        slurm("scontrol", "release", str(job))
        assert "SPECIAL_EXIT" not in slurm("scontrol", "show", "job", str(job)).out
        slurm("scancel", str(job))
    unknown = slurm("scontrol", "requeuehold", "State=Foo", str(ended))
    assert unknown.err.startswith("Invalid job id specified for job State=Foo\n")


def test_show_slurmd_names_the_steps_that_run(slurm: Slurm) -> None:
    """The daemon of the node is the coordinator; no slurmctld has ever sent it a message."""
    slurm.submit("-o", "out", "--wrap", "srun scontrol show slurmd; sleep 100")
    slurm.until_file("out", "Version")
    shown = dict(line.split(" = ", 1) for line in slurm.read("out").splitlines())
    assert [name.strip() for name in shown][:2] == ["Active Steps", "Actual CPUs"]
    assert shown["Active Steps".ljust(24)] == "1.0, 1.batch"
    assert shown["Last slurmctld msg time".ljust(24)] == "NONE"
    slurm("scancel", "1")
    slurm.until_settled(1)
    assert "Active Steps             = NONE\n" in slurm("scontrol", "show", "slurmd").out


def test_requeue_incomplete_of_an_array_takes_the_tasks_that_run(slurm: Slurm) -> None:
    """A task that has ended is left alone, and does not keep the others from it."""
    script = slurm.script("#!/bin/bash\n[ $SLURM_ARRAY_TASK_ID = 2 ] && exit 0\nsleep 100\n")
    run = slurm.submit("-a", "1-3", "-o", "/dev/null", script)
    first, second, third = sorted(row.id for row in slurm.jobs(run))
    slurm.until_settled(second)
    for job in (first, third):
        slurm.until_state(job, State.RUNNING)
    assert slurm("scontrol", "requeue", "incomplete", str(run)).status == 0
    for job in (first, third):
        slurm.until(job, lambda row: len(slurm.attempts(row.id)) == 2)
    assert len(slurm.attempts(second)) == 1
