"""srun, end to end: steps and tasks of real jobs, with Slurm's exit statuses and messages."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from slurm_commands import Slurm

from aver.client.slurm_bin import install
from aver.home import Home
from aver.model.states import State
from aver.store.read.reader import Reader
from aver.store.read.rows import JobRow, StepRow
from live_home import LiveHome, processes_with, wait_for

BEGAN = "until [ -e began ]; do sleep 0.05; done"


class Place:
    """A folder with Slurm's commands on PATH, as `aver shell` has it."""

    def __init__(self, home: Path, folder: Path) -> None:
        self.home = Home(home)
        self.live = LiveHome(home, folder)
        self.folder = folder
        path = f"{install(self.home)}:{os.environ['PATH']}"
        self.environment = {**os.environ, "AVER_HOME": str(home), "PATH": path}

    def call(self, *words: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, cwd=self.folder, env=self.environment, input=text, capture_output=True, text=True, timeout=120,
            check=False,
        )  # fmt: skip

    def batch(self, text: str, tasks: int = 4) -> tuple[JobRow, list[StepRow], str]:
        """Run a batch script to its verdict; return the job, its steps and its output."""
        script = self.folder / "script.sh"
        script.write_text(f"#!/bin/bash\n#SBATCH -n {tasks}\n#SBATCH -o out\n{text}\n")
        done = self.call(sys.executable, "-m", "aver", "run", "--quiet", str(script))
        assert done.returncode in range(10), done.stderr
        (self.folder / "out").touch()
        with self.reader() as reader:
            job = reader.newest_jobs(1)[0]
            return job, reader.steps(job.id), (self.folder / "out").read_text()

    def reader(self) -> Reader:
        reader = Reader.open(self.home.database)
        assert reader is not None
        return reader


@pytest.fixture
def place(aver_home: Path, tmp_path: Path) -> Place:
    return Place(aver_home, tmp_path)


def exits(steps: list[StepRow]) -> list[str]:
    return [f"{step.state} {step.exit}" for step in steps]


def test_derived_exit_code_is_the_highest_of_the_steps(place: Place) -> None:
    """Spur: steps 7, 3, 2 give ExitCode 2:0 and DerivedExitCode 7:0."""
    job, steps, _ = place.batch("srun -n1 sh -c 'exit 7'; srun -n1 sh -c 'exit 3'; srun -n1 sh -c 'exit 2'")
    assert (str(job.exit), job.derived >> 8) == ("2:0", 7)
    assert exits(steps) == ["FAILED 7:0", "FAILED 3:0", "FAILED 2:0"]


def test_derived_exit_code_is_seen_while_the_job_runs(place: Place) -> None:
    """Live and durable: scontrol shows the running maximum before the job ends."""
    script = place.folder / "script.sh"
    script.write_text("#!/bin/sh\nsrun sh -c 'exit 5'\ntouch ready\nuntil [ -e go ]; do sleep 0.05; done\n")
    place.call("sbatch", str(script))
    wait_for(lambda: (place.folder / "ready").exists(), "what the test waits for")
    shown = place.call("scontrol", "-d", "show", "job", "1").stdout
    assert "JobState=RUNNING" in shown
    assert "DerivedExitCode=5:0" in shown
    (place.folder / "go").touch()


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("srun -n4 sh -c 'exit $SLURM_PROCID'", 3),
        ("srun -n4 sh -c '[ $SLURM_PROCID != 0 ] || exit 3'", 3),
        ("srun -n1 sh -c 'kill -TERM $$'", 143),
        ("srun -n1 sh -c 'kill -SEGV $$'", 139),
        ("srun /no/such/command", 2),
        ("srun /etc/passwd", 13),
        ("srun -n1 true", 0),
        ("srun -n1 sh -c 'exit 255'", 255),
    ],
)
def test_exit_status_is_the_highest_shell_code(place: Place, command: str, status: int) -> None:
    """OUTCOMES 4: code or 128+signal of the worst task; errno for what could not be started."""
    _, _, output = place.batch(f"{command}; echo status=$?")
    assert re.findall(r"status=(\d+)", output) == [str(status)]


def test_the_failing_task_that_slurm_loses_is_kept(place: Place) -> None:
    """Task 0 of four exits 3 and the others 0: the step is FAILED 3:0, and so is Derived."""
    job, steps, _ = place.batch("srun -n4 sh -c '[ $SLURM_PROCID != 0 ] || exit 3'; true")
    assert exits(steps) == ["FAILED 3:0"]
    assert (job.state, job.derived >> 8) == (State.COMPLETED, 3)


def test_kill_on_bad_exit_names_the_task_that_failed(place: Place) -> None:
    """The others are ended because of it and do not count; srun exits with 143 as Slurm's does."""
    text = "srun -n3 -K sh -c 'if [ $SLURM_PROCID = 1 ]; then exit 3; fi; sleep 100'; echo status=$?"
    _, (step,), output = place.batch(text)
    assert (str(step.exit), step.first_failed) == ("3:0", 1)
    assert "status=143" in output
    with place.reader() as reader:
        assert [task.because for task in reader.tasks(step.job, step.attempt, step.step)] == [True, False, True]


def test_wait_ends_the_others(place: Place) -> None:
    """-W 1: one second after the first task's end the others are killed, which is how the step ended."""
    job, (step,), output = place.batch("srun -n2 -W 1 sh -c '[ $SLURM_PROCID = 0 ] || sleep 100'; echo status=$?")
    assert "status=137" in output
    assert (step.state, str(step.exit), job.derived) == (State.CANCELLED, "0:9", 9)
    assert "srun: First task exited 1s ago" in output
    assert f"srun: StepId={step.job}.0 task 1: running" in output
    assert "srun: Job step aborted: Waiting up to " in output
    assert "Force Terminated" not in output


def test_first_failure_shows_the_summary_of_all_tasks(place: Place) -> None:
    """At the first failing task, and again at the end."""
    task = "if [ $SLURM_PROCID = 1 ]; then exit 1; fi; until [ -e go ]; do sleep 0.05; done"
    _, _, output = place.batch(
        f"srun -n3 sh -c '{task}' & until grep -q Summary out; do sleep 0.05; done; touch go; wait"
    )
    summaries = re.findall(r"Task Exit Code Summary: step \d+\.0, 3 tasks: (.*)", output)
    assert summaries == ["1 failed, 2 running", "2 completed, 1 failed"]


def test_labels_and_input_for_all(place: Place) -> None:
    """-l puts the task's number before each line; every task reads the whole input."""
    _, _, output = place.batch("printf 'a\\nb\\n' | srun -n2 -l cat")
    assert sorted(output.splitlines()) == ["0: a", "0: b", "1: a", "1: b"]


def test_output_patterns(place: Place) -> None:
    """%t and %s in -o give each task its file."""
    place.batch("srun -n2 -o 'task-%s-%t' sh -c 'echo $SLURM_PROCID'")
    assert [(place.folder / f"task-0-{task}").read_text() for task in (0, 1)] == ["0\n", "1\n"]


def test_variables_of_a_task(place: Place) -> None:
    """PROCID, LOCALID, NTASKS and STEP_ID as Slurm sets them."""
    _, _, output = place.batch(
        "srun true; srun -n2 sh -c 'echo $SLURM_PROCID $SLURM_LOCALID $SLURM_NTASKS $SLURM_STEP_ID $SLURM_NODEID'"
    )
    assert sorted(output.splitlines()) == ["0 0 2 1 0", "1 1 2 1 0"]


def test_a_step_that_runs_when_the_script_ends_is_ended(place: Place) -> None:
    """OUTCOMES 7: the job is COMPLETED 0:0 with Derived 0:15; the step is CANCELLED."""
    job, steps, _ = place.batch(f"srun -n1 sh -c 'touch began; exec sleep 100' & {BEGAN}; exit 0")
    assert (job.state, str(job.exit), job.derived) == (State.COMPLETED, "0:0", 15)
    assert exits(steps) == ["CANCELLED 0:15"]


def test_steps_run_one_after_another_unless_exact(place: Place) -> None:
    """A step has all of the job's cpus; --exact takes just its own: then two run at once, and see each other."""
    one = "srun -n1 {} sh -c 'echo begin; {}; echo end' & "
    _, _, output = place.batch(one.format("", "sleep 0.4") * 2 + "wait", tasks=2)
    words = [line for line in output.splitlines() if line in ("begin", "end")]
    assert words == ["begin", "end", "begin", "end"]
    meet = "touch at.$SLURM_STEP_ID; until [ -e at.0 ] && [ -e at.1 ]; do sleep 0.05; done"
    _, _, output = place.batch(one.format("--exact", meet) * 2 + "wait", tasks=2)
    words = [line for line in output.splitlines() if line in ("begin", "end")]
    assert words == ["begin", "begin", "end", "end"]


def test_too_many_tasks_are_refused_as_slurm_does(place: Place) -> None:
    """More than the job asked for."""
    _, _, output = place.batch("srun -n3 true; echo status=$?", tasks=2)
    assert "More processors requested than permitted" in output
    assert "status=1" in output


def test_time_limit_of_a_step(place: Place) -> None:
    """The step is TIMEOUT 0:15, srun exits 143, the script goes on."""
    job, steps, output = place.batch("srun -n1 --time=0:01 sleep 100; echo status=$?; exit 0")
    assert exits(steps) == ["TIMEOUT 0:15"]
    assert (job.state, "status=143" in output) == (State.COMPLETED, True)
    assert "DUE TO TIME LIMIT ***" in output
    assert f"srun: Force Terminated StepId={job.id}.0" in output


def test_alone_it_is_a_job_that_ends_as_its_step(place: Place) -> None:
    """Output is streamed, the exit status is the task's, and the job ends by the same signal."""
    done = place.call("srun", "-n2", "sh", "-c", "echo hello; exit 4")
    assert (done.returncode, done.stdout) == (4, "hello\nhello\n")
    done = place.call("srun", "sh", "-c", "kill -SEGV $$")
    assert done.returncode == 139
    with place.reader() as reader:
        job = reader.newest_jobs(1)[0]
    assert (job.state, str(job.exit)) == (State.FAILED, "0:11")
    done = place.call("srun", "sh", "-c", "kill -KILL $$")
    assert done.returncode == 137
    with place.reader() as reader:
        job = reader.newest_jobs(1)[0]
    assert (job.state, str(job.exit)) == (State.FAILED, "0:9")
    assert f"srun: Force Terminated StepId={job.id}.0" in done.stderr
    assert place.call("srun", "cat", text="from stdin").stdout == "from stdin"


def test_alone_its_end_is_the_jobs_end(place: Place) -> None:
    """When srun is killed, its job is cancelled and nothing is left."""
    waiting = subprocess.Popen(["srun", "sleep", "1000"], cwd=place.folder, env=place.environment)

    def state() -> State | None:
        reader = Reader.open(place.home.database)
        if reader is None:
            return None
        with reader:
            jobs = reader.newest_jobs(1)
            return jobs[0].state if jobs and reader.steps(jobs[0].id) else None

    wait_for(lambda: state() is State.RUNNING, "what the test waits for")
    waiting.kill()
    waiting.wait()
    wait_for(lambda: state() is State.CANCELLED, "what the test waits for")


def test_the_coordinator_may_be_killed_while_a_step_runs(place: Place) -> None:
    """The step goes on; srun comes back and tells of it; nothing runs twice."""
    script = place.folder / "script.sh"
    script.write_text(
        "#!/bin/bash\n#SBATCH -n 2\n#SBATCH -o out\n"
        "srun -n2 sh -c 'echo began >> ran; until [ -e go ]; do sleep 0.05; done; exit $SLURM_PROCID'\n"
        "echo status=$?\nsrun -n1 sh -c 'exit 9'\n"
    )
    place.call("sbatch", str(script))
    wait_for(
        lambda: (place.folder / "ran").exists() and len((place.folder / "ran").read_text().split()) == 2,
        "what the test waits for",
    )
    assert place.live.kill_coordinator()
    (place.folder / "go").touch()

    def settled() -> bool:
        with place.reader() as reader:
            job = reader.job(1)
            return job is not None and job.state.is_settled

    wait_for(settled, "the job is settled")
    with place.reader() as reader:
        assert exits(reader.steps(1)) == ["FAILED 1:0", "FAILED 9:0"]
        job = reader.job(1)
    assert job is not None
    assert (str(job.exit), job.derived >> 8) == ("9:0", 9)
    assert (place.folder / "ran").read_text().split() == ["began", "began"]
    assert "status=1" in (place.folder / "out").read_text()


def test_a_thousand_tasks(place: Place) -> None:
    """On two cores, each with its own witness and record."""
    done = place.call("srun", "-n", "1000", "sh", "-c", "exit $((SLURM_PROCID == 999 ? 5 : 0))")
    assert done.returncode == 5
    with place.reader() as reader:
        job = reader.newest_jobs(1)[0]
        (step,) = reader.steps(job.id)
        assert len(reader.tasks(job.id, 1, step.step)) == 1000
    assert step.first_failed == 999


def test_a_task_that_ignores_term_and_forks_away_is_gone(place: Place) -> None:
    """The step ends, nothing is left behind."""
    mark = f"1000.{random.randrange(10**9)}"
    text = f"trap '' TERM; (setsid sleep {mark} & ) ; touch began; while :; do sleep {mark}; done"
    script = f'srun -n1 --kill-on-bad-exit sh -c "{text}" & {BEGAN}; exit 0'
    job, steps, _ = place.batch(script)
    assert job.state is State.COMPLETED
    assert steps[0].state is State.CANCELLED
    assert processes_with(mark) == []


@pytest.mark.parametrize(
    ("arguments", "message", "status"),
    [
        (["--no-such-option", "true"], "unrecognized option '--no-such-option'", 255),
        (["-n", "x", "true"], 'Invalid numeric value "x" for --ntasks.', 1),
        (["-n", "0", "true"], 'Invalid numeric value "0" for --ntasks.', 1),
        ([], "No command given to execute", 1),
        (["-t", "nonsense", "true"], "Invalid --time specification", 255),
        (["--mem", "lots", "true"], "Invalid --mem specification", 255),
        (["--begin", "soon", "true"], "Invalid --begin specification", 255),
        (["--dependency", "nonsense", "true"], "Job dependency problem", 1),
        (["--container=x", "true"], "--container is not supported", 1),
    ],
)
def test_bad_usage_is_a_sentence(place: Place, arguments: list[str], message: str, status: int) -> None:
    """Slurm's exit status, one or two lines, no traceback."""
    done = place.call("srun", *arguments)
    assert done.returncode == status
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_cant_be_opened_makes_no_step(place: Place) -> None:
    """As Slurm's srun says it, with status 1; a file that is there is not emptied by the look at it."""
    kept = place.folder / "kept"
    kept.write_text("kept\n")
    text = "srun -o /proc/none/out true; echo out=$?; srun -i /no/such/file cat; echo in=$?"
    _, steps, output = place.batch(f"{text}; srun -n1 --open-mode=append -o {kept} echo more")
    assert exits(steps) == ["COMPLETED 0:0"]
    assert "srun: error: Could not open stdout file: No such file or directory\nout=1" in output
    assert "srun: error: Could not open stdin file: No such file or directory\nin=1" in output
    assert kept.read_text() == "kept\nmore\n"


def test_a_command_that_cant_start_is_said_as_slurm_says_it(place: Place) -> None:
    """Not found, and a script whose interpreter is not there."""
    script = place.folder / "x"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    _, _, output = place.batch(f"srun /no/such/command; srun {script}; srun -D /no/such/folder true")
    assert "slurmstepd: error: execve(): /no/such/command: No such file or directory" in output
    assert "slurmstepd: error: execve(): bad interpreter(/no/such/interpreter): No such file or directory" in output
    assert "slurmstepd: error: couldn't chdir to `/no/such/folder': No such file or directory" in output


def test_a_step_that_a_person_cancels_is_killed(place: Place) -> None:
    """scancel JOB.0: 0:9, srun exits 137, sacct names who did it, the script goes on."""
    text = "srun sh -c 'trap \"\" TERM; touch began; sleep 100 & wait' & until [ -e began ]; do sleep 0.1; done; "
    job, steps, output = place.batch(text + "scancel $SLURM_JOB_ID.0; wait $!; echo status=$?; exit 0")
    assert exits(steps) == ["CANCELLED 0:9"]
    assert (job.state, "status=137" in output) == (State.COMPLETED, True)
    assert f"*** STEP {job.id}.0 ON " in output
    done = place.call("sacct", "-nPj", f"{job.id}.0", "-o", "State")
    assert done.stdout == f"CANCELLED by {os.getuid()}\n"


def test_alone_in_another_folder(place: Place) -> None:
    """A relative -D is taken once, though the srun of the job has it too."""
    (place.folder / "sub").mkdir()
    assert place.call("srun", "-D", "sub", "pwd").stdout == f"{place.folder / 'sub'}\n"


def waiting_srun(place: Place, begin: str) -> tuple[subprocess.Popen[str], int]:
    """An srun outside of a job whose job waits for its time, and the number of that job."""
    waiting = subprocess.Popen(
        ["srun", f"--begin={begin}", "true"],
        cwd=place.folder,
        env=place.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

    def number() -> int | None:
        reader = Reader.open(place.home.database)
        if reader is None:
            return None
        with reader:
            jobs = reader.newest_jobs(1)
        return jobs[0].id if jobs else None

    wait_for(lambda: number() is not None, "a job")
    job = number()
    assert job is not None
    return waiting, job


def test_alone_and_cancelled_before_its_start(place: Place) -> None:
    """It says so and exits 1, and nobody keeps its streams open: whoever reads them sees their end."""
    waiting, job = waiting_srun(place, "now+1hour")
    assert place.call("scancel", str(job)).returncode == 0
    out, err = waiting.communicate(timeout=60)
    assert (waiting.returncode, out) == (1, "")
    assert "srun: Job has been cancelled\n" in err


def test_alone_and_its_streams_are_lost_with_the_coordinator(place: Place) -> None:
    """The job that never began is CANCELLED, and its verdict does not say that somebody asked for it."""
    waiting, job = waiting_srun(place, "now+1hour")
    assert place.live.kill_coordinator()
    assert place.call("scontrol", "update", f"JobId={job}", "StartTime=now").returncode == 0
    waiting.communicate(timeout=60)
    assert waiting.returncode == 1

    def verdict() -> JobRow | None:
        with place.reader() as reader:
            row = reader.job(job)
        return row if row is not None and row.state.is_settled else None

    wait_for(lambda: verdict() is not None, "a verdict")
    row = verdict()
    assert row is not None
    assert (row.state, row.exit, row.attempt) == (State.CANCELLED, None, 0)
    assert "a restart of the coordinator" in row.detail


def test_alone_it_waits_for_its_need(place: Place) -> None:
    """--dependency of a job that is over and well."""
    assert place.call("srun", "true").returncode == 0
    with place.reader() as reader:
        need = reader.newest_jobs(1)[0].id
    assert place.call("srun", f"--dependency=afterok:{need}", "echo", "after").stdout == "after\n"


def test_the_jobs_warning_for_steps_reaches_them(place: Place) -> None:
    """#SBATCH --signal without B: the step gets it, the script does not."""
    warned = "trap 'echo warned; exit 6' USR1; echo ready; while :; do sleep 0.05; done"
    script = place.folder / "warned.sh"
    lines = ("#!/bin/sh", "#SBATCH -o out -t 0:03 --signal=USR1@1", f'srun bash -c "{warned}"', "echo status=$?", "")
    script.write_text("\n".join(lines))
    done = place.call("sbatch", "--wait", str(script))
    assert done.returncode == 0, done.stderr
    assert "warned\n" in (place.folder / "out").read_text()
    assert "status=6\n" in (place.folder / "out").read_text()


def test_a_step_that_a_person_cancels_is_killed_after_a_crash_too(place: Place) -> None:
    """The coordinator dies when the request is durable and nothing was done yet; the next one kills the step."""
    script = place.folder / "script.sh"
    script.write_text("#!/bin/sh\nsrun sleep 1000 &\necho $! >srun.pid\nwait $!\necho status=$?\n")
    job = int(place.call("sbatch", "--parsable", "-o", "out", str(script)).stdout)

    def states() -> list[State]:
        with place.reader() as reader:
            tasks = place.call("scontrol", "show", "step", f"{job}.0").stdout
            return [step.state for step in reader.steps(job)] if "RUNNING" in tasks else []

    wait_for(lambda: states() == [State.RUNNING], "the step runs")
    srun = int((place.folder / "srun.pid").read_text())
    os.kill(srun, signal.SIGSTOP)  # it would start the next coordinator
    assert place.live.kill_coordinator()
    place.environment["AVER_CRASH_AT"] = "committed"
    place.call("scancel", f"{job}.0")
    del place.environment["AVER_CRASH_AT"]
    wait_for(lambda: place.live.coordinator() is None, "the next coordinator is gone")
    with place.reader() as reader:
        assert [(asked.what, asked.detail) for asked in reader.asked(job)] == [("cancel step", "0")]
        assert [step.state for step in reader.steps(job)] == [State.RUNNING]
    place.call("squeue")
    os.kill(srun, signal.SIGCONT)
    wait_for(lambda: "status=137" in (place.folder / "out").read_text(), "srun ends")
    with place.reader() as reader:
        assert exits(reader.steps(job)) == ["CANCELLED 0:9"]


@pytest.mark.parametrize(("words", "told"), [(("-c1",), "1"), (("-c2",), "2"), ((), "")])
def test_the_cpus_of_each_task_are_told_where_they_were_asked_for(
    slurm: Slurm, words: tuple[str, ...], told: str
) -> None:
    """Also a number of 1, as with Slurm's srun."""
    assert slurm("srun", *words, "sh", "-c", "echo $SLURM_CPUS_PER_TASK").out == f"{told}\n"


@pytest.mark.parametrize(
    ("job", "step", "tasks"),
    [("-c4", "-c2", 2), ("-c4", "-c3", 1), ("-c4", "", 1), ("-c4", "-c1 -n2", 2), ("-n2", "-c1", 2)],
)
def test_tasks_of_a_step_that_says_only_how_many_cpus_each_has(slurm: Slurm, job: str, step: str, tasks: int) -> None:
    """As many as have room in the job's CPUs, as with Slurm's srun; -n, or that of the job, says it first."""
    settings = slurm.folder / "settings.toml"
    settings.write_text("cpus = 4\n")
    said = slurm(
        "sbatch",
        "-W",
        "-Q",
        "-oout",
        job,
        "--wrap",
        f"srun {step} printenv SLURM_NTASKS",
        env={"AVER_CONFIG": str(settings)},
    )
    assert said.status == 0, said.err
    assert slurm.read("out").split() == [str(tasks)] * tasks


def test_an_exclusive_srun_alone_has_tasks_for_all_cpus(slurm: Slurm) -> None:
    """With -c, and without -n."""
    settings = slurm.folder / "settings.toml"
    settings.write_text("cpus = 4\n")
    env = {"AVER_CONFIG": str(settings)}
    assert slurm("srun", "--exclusive", "-c2", "printenv", "SLURM_NTASKS", env=env).out == "2\n2\n"
    assert slurm("srun", "-c2", "printenv", "SLURM_NTASKS", env=env).out == "1\n"


def test_tasks_that_are_ended_together_are_said_in_one_line(slurm: Slurm) -> None:
    """Though their ends are heard one after the other."""
    said = slurm("srun", "-n10", "-O", "-W1", "sh", "-c", '[ "$SLURM_PROCID" = 1 ] || exec sleep 60')
    assert said.status == 137
    assert [line for line in said.err.splitlines() if line.endswith(": Killed")] == [
        f"srun: error: {os.uname().nodename.partition('.')[0]}: tasks 0,2-9: Killed"
    ]


def test_a_step_that_must_start_at_once_gives_up(slurm: Slurm) -> None:
    """In a job too: -I waits for the CPUs of other steps as long as it says, and leaves nothing behind."""
    text = (
        "#!/bin/bash\nsrun -o /dev/null sh -c 'touch began; while [ ! -e go ]; do sleep 0.1; done' &\n"
        "while [ ! -e began ]; do sleep 0.1; done\nsrun --immediate=1 touch never; echo $?\n"
        "touch go; wait\nsrun -I10 echo there\n"
    )
    job = slurm.submit("-o", "out", slurm.script(text))
    assert slurm.until_settled(job).state is State.COMPLETED
    busy = f"srun: error: Unable to create step for job {job}: Requested nodes are busy"
    assert slurm.read("out").splitlines() == [busy, "1", "there"]
    assert not (slurm.folder / "never").exists()
    assert "DerivedExitCode=0:0" in slurm("scontrol", "-d", "show", "job", str(job)).out
