"""scancel as a process: what it ends, whom it signals, and what it says."""

from __future__ import annotations

import os
import signal
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slurm_commands import Slurm

from aver.model.states import State
from aver.slurm_cli.job_names import split_jobs

KILL_ERROR = "scancel: error: Kill job error on job id"


def test_what_can_not_be_cancelled(slurm: Slurm) -> None:
    """Words and exit statuses as measured: a job that is gone, or never was, is no error unless -v asks."""
    done = slurm.submit("-o", "/dev/null", "--wrap", "true")
    slurm.until_settled(done)
    cases = [
        (["999999"], "", 0),
        (["-v", "999999"], f"scancel: Terminating job 999999\n{KILL_ERROR} 999999: Invalid job id specified\n", 0),
        (["-Q", "-v", "999999"], "", 0),
        (["foo"], "scancel: error: Invalid job id foo\n", 1),
        (["1.batch"], "scancel: error: Invalid job id 1.batch\n", 1),
        ([], "scancel: error: No job identification provided\n", 1),
        ([str(done)], "", 0),
        (["-v", str(done)], f"scancel: Terminating job {done}\n{KILL_ERROR} {done}: "
         "Job/step already completing or completed\n", 0),
        (["-s", "USR1", str(done)], "", 229),
        (["-s", "USR1", "999999"], "", 225),
        (["-s", "FOO", "1"], "Unknown job signal: FOO\n", 1),
        (["--bogus"], "scancel: unrecognized option '--bogus'\nTry \"scancel --help\" for more information\n", 1),
        (["-t", "foo"], "Invalid job state specified: foo\n"
         "Valid job states are PENDING, RUNNING, and SUSPENDED\n", 1),
        (["-u", "nobody-of-this-name"], "scancel: error: Invalid user name: nobody-of-this-name\n", 1),
        (["-n", "no-such-name"], "", 0),
    ]  # fmt: skip
    for args, err, status in cases:
        said = slurm("scancel", *args)
        assert (said.err, said.status, said.out) == (err, status, ""), args


def test_a_running_and_a_pending_job_are_cancelled(slurm: Slurm) -> None:
    """CANCELLED 0:15 for what ran; what had not started never starts; a trap's exit is kept."""
    runs = slurm.submit("-o", "/dev/null", "--wrap", "sleep 100")
    traps = slurm.submit("-o", "out", "--wrap", "trap 'exit 0' TERM; echo ready; while :; do sleep 0.02; done")
    waits = slurm.submit("-o", "/dev/null", "--hold", "--wrap", "true")
    slurm.until_state(runs, State.RUNNING)
    slurm.until_file("out", "ready")
    assert slurm("scancel", str(runs), f"{waits},{traps}").status == 0
    ends = [slurm.until_settled(job) for job in (runs, traps, waits)]
    assert [row.state for row in ends] == [State.CANCELLED] * 3
    assert [str(row.exit) for row in ends[:2]] == ["0:15", "0:0"]


def test_a_signal_reaches_whom_it_is_for(slurm: Slurm) -> None:
    """-b: the script alone, untrapped it dies of it; -f: all; a pending job can't be signalled."""
    script = "trap 'echo got >> out' USR1; echo ready > out; while [ ! -e go ]; do sleep 0.02; done"
    traps = slurm.submit("-o", "/dev/null", "--wrap", script)
    plain = slurm.submit("-o", "/dev/null", "--wrap", "sleep 100; true")
    held = slurm.submit("-o", "/dev/null", "--hold", "--wrap", "true")
    slurm.until_file("out", "ready")
    slurm.until_state(plain, State.RUNNING)
    said = slurm("scancel", "-v", "-b", "-s", "USR1", str(traps))
    assert (said.status, said.err) == (0, f"scancel: Signal 10 to batch job {traps}\n")
    slurm.until_file("out", "got")
    (slurm.folder / "go").touch()
    assert slurm.until_settled(traps).state is State.COMPLETED
    assert slurm("scancel", "--batch", "--signal=SIGUSR1", str(plain)).status == 0
    row = slurm.until_settled(plain)
    assert (row.state, str(row.exit)) == (State.FAILED, "0:10")
    said = slurm("scancel", "-s", "USR1", str(held))
    assert (said.err, said.status) == (f"{KILL_ERROR} {held}: Job can not be altered now, try again later\n", 228)


def test_a_signal_without_b_or_f_is_for_the_steps(slurm: Slurm) -> None:
    """A script without steps does not notice; -s KILL cancels."""
    job = slurm.submit("-o", "out", "--wrap", "trap 'exit 9' USR1; echo ready; while [ ! -e go ]; do sleep 0.02; done")
    slurm.until_file("out", "ready")
    assert slurm("scancel", "-s", "USR1", str(job)).status == 0
    assert slurm.job(job).state is State.RUNNING
    assert slurm("scancel", "-s", "KILL", str(job)).status == 0
    assert slurm.until_settled(job).state is State.CANCELLED


def test_a_signal_right_after_sbatch_reaches_the_step_that_is_about_to_begin(slurm: Slurm) -> None:
    """As in Slurm, scancel tries again after five seconds; the program gets the signal once."""
    (slurm.folder / "task").write_text(
        "trap 'echo got' USR1; echo ready; until [ -e go ]; do sleep 0.02; done; echo end\n"
    )
    job = slurm.submit("-o", "log", "--wrap", "sleep 1; srun -o out bash task")
    said = slurm("scancel", "-v", "-s", "USR1", str(job))
    waits = "scancel: Job is in transitional state, retrying\n"
    assert (said.status, said.err) == (0, f"scancel: Signal 10 to job {job}\n{waits}")
    slurm.until_file("out", "got")
    assert slurm.read("out").splitlines() == ["ready", "got"]
    again = slurm("scancel", "-v", "-s", "USR1", str(job))
    assert (again.status, again.err) == (0, f"scancel: Signal 10 to job {job}\n")
    slurm.until_file("out", "got\ngot\n")
    (slurm.folder / "go").touch()
    slurm.until_settled(job)
    assert slurm.read("out").splitlines() == ["ready", "got", "got", "end"]


def test_a_signal_does_not_reach_a_program_in_its_first_second(slurm: Slurm) -> None:
    """It would die of what it does not trap yet."""
    (slurm.folder / "task").write_text(
        "touch begun; sleep 0.5; trap 'echo got; exit' USR1; while :; do sleep 0.02; done"
    )
    job = slurm.submit("-o", "log", "--wrap", "srun -o out bash task")
    slurm.until_file("begun")
    assert slurm("scancel", "-s", "USR1", str(job)).status == 0
    assert slurm.until_settled(job).state is State.COMPLETED
    assert slurm.read("out") == "got\n"


@pytest.mark.parametrize("how", [("-f",), ("-b", "-f")])
def test_full_is_for_the_script_its_children_and_the_programs_of_steps(slurm: Slurm, how: tuple[str, ...]) -> None:
    """What the program of a step has started is not signalled, as with Slurm's proctrack/cgroup."""
    (slurm.folder / "two").write_text(
        "me=$1; trap 'echo got $me-parent >> out; exit' USR1\n"
        "bash -c \"trap 'echo got $me-child >> out; exit' USR1; echo ready >> out; while :; do sleep 0.02; done\" &\n"
        "echo ready >> out; while [ ! -e go ]; do sleep 0.02; done; kill %1\n"
    )
    trap = "trap 'echo got script >> out; touch go; wait; exit' USR1"
    job = slurm.submit("-o", "log", "--wrap", f"{trap}; bash two command & srun bash two step; wait")
    while slurm.folder.joinpath("out").exists() is False or slurm.read("out").count("ready") < 4:
        time.sleep(0.02)
    assert slurm("scancel", *how, "-s", "USR1", str(job)).status == 0
    for who in ("script", "command-parent", "command-child", "step-parent"):
        slurm.until_file("out", f"got {who}\n")
    slurm.until_settled(job)
    assert "step-child" not in slurm.read("out")


def test_the_program_of_a_step_gets_a_full_signal_once(slurm: Slurm) -> None:
    """Its srun gets it as well and passes it on; a signal that only srun gets is passed on as ever."""
    (slurm.folder / "count.py").write_text(
        "import os, signal, time\n"
        "for one in (signal.SIGUSR1, signal.SIGUSR2):\n"
        "    signal.signal(one, lambda number, _: print(number, flush=True))\n"
        "print('ready', flush=True)\n"
        "while not os.path.exists('go'):\n"
        "    time.sleep(0.01)\n"
    )
    text = "trap : USR1; srun -o out python3 count.py & P=$!; echo $P > srun.pid; while kill -0 $P; do wait $P; done"
    job = slurm.submit("-o", "log", "--wrap", text)
    slurm.until_file("out", "ready")
    assert slurm("scancel", "-f", "-s", "USR1", str(job)).status == 0
    slurm.until_file("out", "10\n")
    time.sleep(1)  # in which srun passes on what it got
    os.kill(int(slurm.read("srun.pid")), signal.SIGUSR1)
    slurm.until_file("out", "10\n10\n")
    os.kill(int(slurm.read("srun.pid")), signal.SIGUSR2)
    slurm.until_file("out", "12\n")
    (slurm.folder / "go").touch()
    slurm.until_settled(job)
    assert slurm.read("out").splitlines() == ["ready", "10", "10", "12"]


def test_only_what_fits_is_cancelled(slurm: Slurm) -> None:
    """-n, -t, -p and --me choose among the jobs that are left; ids narrow them down."""
    mine = slurm.submit("-Q", "-J", "mine", "-p", "big", "--hold", "--wrap", "true")
    other = slurm.submit("-J", "other", "--hold", "--wrap", "true")
    assert slurm("scancel", "--me", "-t", "RUNNING").status == 0
    assert slurm("scancel", "-n", "mine", str(other)).status == 0
    assert [slurm.job(job).state for job in (mine, other)] == [State.PENDING] * 2
    assert slurm("scancel", "-p", "big", "-v").err == f"scancel: Terminating job {mine}\n"
    assert [slurm.job(job).state for job in (mine, other)] == [State.CANCELLED, State.PENDING]
    assert slurm("scancel", "--me").status == 0
    assert slurm.job(other).state is State.CANCELLED


def test_a_step_is_cancelled_and_its_script_goes_on(slurm: Slurm) -> None:
    """`scancel 7.0`: the step is ended, srun says 128+signal, the script ends as it likes."""
    job = slurm.submit("-o", "out", "--wrap", "srun sh -c 'echo ready; exec sleep 100'; echo status $?")
    slurm.until_file("out", "ready")
    said = slurm("scancel", f"{job}.3")
    assert (said.err, said.status) == (
        f"scancel: error: Kill job error on job step id {job}: Invalid job id specified\n",
        225,
    )
    assert slurm("scancel", f"{job}.0").status == 0
    assert slurm.until_settled(job).state is State.COMPLETED
    assert "status 137\n" in slurm.read("out")


@given(st.text(alphabet="0123456789,[]-_", max_size=20))
def test_lists_of_jobs_are_cut_outside_of_brackets(text: str) -> None:
    """Nothing is lost: joined again it is the same."""
    assert ",".join(split_jobs(text)) == text


def test_a_cancelled_job_keeps_the_reason_for_which_it_waited(slurm: Slurm) -> None:
    """As in Slurm: CANCELLED, JobHeldUser or BeginTime."""
    held = slurm.submit("--hold", "-o", "/dev/null", "--wrap", "true")
    later = slurm.submit("--begin=now+1hour", "-o", "/dev/null", "--wrap", "true")
    assert slurm("scancel", str(held), str(later)).status == 0
    assert [(slurm.job(job).state, slurm.job(job).reason) for job in (held, later)] == [
        (State.CANCELLED, "JobHeldUser"),
        (State.CANCELLED, "BeginTime"),
    ]


def test_a_step_of_a_job_that_never_was(slurm: Slurm) -> None:
    """Slurm's line and exit status 1, though the job alone would be passed over in silence; -Q says nothing."""
    said = slurm("scancel", "99999999.0")
    line = "scancel: error: Kill job error on job step id 99999999.0: Invalid job id specified\n"
    assert (said.err, said.status) == (line, 1)
    assert slurm("scancel", "-Q", "99999999.0").err == ""


def test_a_cancel_after_many_signals_is_a_cancel(slurm: Slurm) -> None:
    """A job that is asked for its progress again and again is CANCELLED all the same, also if it then exits 0."""
    script = "trap 'exit 0' TERM; trap : USR1; echo ready; while :; do sleep 0.02; done"
    job = slurm.submit("-o", "out", "--wrap", script)
    slurm.until_file("out", "ready")
    for _ in range(70):
        assert slurm("scancel", "-b", "-s", "USR1", str(job)).status == 0
    slurm("scancel", str(job))
    row = slurm.until_settled(job)
    assert (row.state, str(row.exit)) == (State.CANCELLED, "0:0")


def test_interactive_asks_for_a_step_too(slurm: Slurm) -> None:
    """As Slurm: a step is not ended unless the answer is yes."""
    job = slurm.submit("-o", "out", "-J", "its", "--wrap", "srun sh -c 'echo ready; exec sleep 100'; echo status $?")
    slurm.until_file("out", "ready")
    question = f"Cancel step_id={job}.0 name=its partition=main [y/n]? "
    for answer in ("n\n", ""):
        said = slurm("scancel", "-i", f"{job}.0", stdin=answer)
        assert (said.out, said.status) == (question, 0)
    assert f"{job}.0\n" in slurm("squeue", "-s", "-h", "-o", "%i").out
    assert slurm("scancel", f"{job}.0", stdin="y\n", env={"SCANCEL_INTERACTIVE": "1"}).out == question
    assert slurm.until_settled(job).state is State.COMPLETED
    assert "status 137\n" in slurm.read("out")


def test_nobody_is_asked_about_a_job_that_is_over(slurm: Slurm) -> None:
    """`scancel -i` asks with the job's name, and only while there is something to cancel."""
    job = slurm.submit("-o", "/dev/null", "-J", "long", "--wrap", "sleep 100")
    slurm.until_state(job, State.RUNNING)
    asked = slurm("scancel", "-i", str(job), stdin="y\n")
    assert asked.out == f"Cancel job_id={job} name=long partition=main [y/n]? "
    slurm.until_settled(job)
    over = slurm("scancel", "-i", str(job))
    assert (over.out, over.err.partition(": Job/step")[0]) == ("", f"scancel: error: Kill job error on job id {job}")


def test_filters_that_fit_no_job_are_said_with_v(slurm: Slurm) -> None:
    """Exit 0 all the same; without -v nothing is said. Job 0 is no job."""
    said = slurm("scancel", "-v", "--name=nope", "--qos=none")
    words = "No active jobs match ALL job filters, including: job_name=nope qos=none"
    assert (said.status, said.err) == (0, f"scancel: error: {words} \n")
    assert slurm("scancel", "--name=nope").err == ""
    zero = slurm("scancel", "0")
    assert (zero.status, zero.err) == (1, "scancel: error: Invalid job id 0\n")


def test_scancel_by_wckey_spares_the_others(slurm: Slurm) -> None:
    """A filter that was ignored would cancel too much."""
    kept = slurm.submit("-H", "--wrap", "true", "-o", "/dev/null")
    gone = slurm.submit("-H", "--wckey=key", "--wrap", "true", "-o", "/dev/null")
    assert slurm("scancel", "--wckey=key").status == 0
    slurm.until_settled(gone)
    assert not slurm.job(kept).state.is_settled
    assert slurm("scancel", env={"SCANCEL_STATE": "PENDING"}).status == 0
    slurm.until_settled(kept)
