"""sbatch as a process: what it submits, what it refuses, in Slurm's words and with Slurm's exit statuses."""

from __future__ import annotations

import os
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slurm_commands import Slurm

from aver.model.states import State
from aver.spec.sbatch.call import BatchCall, BatchRefused
from aver.spec.sbatch.lines import OpenQuote, split_line
from aver.spec.sbatch.options import USES
from aver.spec.sbatch.table import sbatch_table

FAILED = "sbatch: error: Batch job submission failed: "
TRY = 'Try "sbatch --help" for more information\n'

WRONG_OPTIONS = [
    (["--bogus"], f"sbatch: unrecognized option '--bogus'\n{TRY}", 255),
    (["--nosuch=3"], f"sbatch: unrecognized option '--nosuch=3'\n{TRY}", 255),
    (["-Z"], f"sbatch: invalid option -- 'Z'\n{TRY}", 255),
    (["--hold=1"], f"sbatch: option '--hold' doesn't allow an argument\n{TRY}", 255),
    (["-n", "foo"], 'sbatch: error: Invalid numeric value "foo" for --ntasks.\n', 1),
    (["-n", "0"], 'sbatch: error: Invalid numeric value "0" for --ntasks.\n', 1),
    (["-c", "foo"], 'sbatch: error: Invalid numeric value "foo" for --cpus-per-task.\n', 1),
    (["-N", "foo"], 'sbatch: error: "foo" is not a valid node count\n', 255),
    (["--mem=foo"], "sbatch: error: Invalid --mem specification\n", 255),
    (["--mem-per-cpu=10Q"], "sbatch: error: Invalid --mem-per-cpu specification\n", 255),
    (["-t", "foo"], "sbatch: error: Invalid --time specification\n", 255),
    (["-t", "1:2:3:4"], "sbatch: error: Invalid --time specification\n", 255),
    (["-t", "90s"], "sbatch: error: Invalid --time specification\n", 255),
    (["--signal=FOO"], "sbatch: error: Invalid --signal specification\n", 255),
    (["--signal=B:USR1@70000"], "sbatch: error: Invalid --signal specification\n", 255),
    (["--begin=foo"], "Invalid time specification (pos=0): foo\nsbatch: error: Invalid --begin specification\n", 255),
    (["--deadline=2020-01-01"], f"{FAILED}Requested time limit is invalid (missing or exceeds some limit)\n", 1),
    (
        ["--deadline=now+1minute", "--begin=now+2minutes"],
        "sbatch: error: Incompatible begin and deadline time specification\n",
        1,
    ),
    (
        ["--time-min=5", "--time=2"],
        f"{FAILED}Invalid time-min specification (exceeds job's time or other limits)\n",
        1,
    ),
    (["--distribution=nonsense"], "sbatch: error: Invalid --distribution specification\n", 255),
    (["--distribution=plane"], "sbatch: error: Invalid plane size or size not specified\n", 255),
    (
        ["--mincpus=9999"],
        f"sbatch: error: CPU count per node can not be satisfied\n{FAILED}"
        "Requested node configuration is not available\n",
        1,
    ),
    (
        ["--tmp=999999999"],
        f"sbatch: error: Temporary disk specification can not be satisfied\n{FAILED}"
        "Requested node configuration is not available\n",
        1,
    ),
    (["--open-mode=x"], "sbatch: error: Invalid --open-mode specification\n", 255),
    (["--kill-on-invalid-dep=maybe"], "sbatch: error: Invalid --kill-on-invalid-dep specification\n", 255),
    (["--exclusive=foo"], "sbatch: error: Invalid --exclusive specification\n", 255),
    (["--gres=foo"], "sbatch: error: Invalid generic resource (gres) specification\n", 1),
    (["--gpus=x"], "sbatch: error: Invalid generic resource (gres) specification\n", 1),
    (["--array=foo"], f"{FAILED}Invalid job array specification\n", 1),
    (["--array=1-1000000"], f"{FAILED}Invalid job array specification\n", 1),
    (["-w", "n[1-"], f"{FAILED}Invalid node name specified\n", 1),
    (["-x", "n]"], f"{FAILED}Invalid node name specified\n", 1),
    (["-d", "foo"], f"{FAILED}Job dependency problem\n", 1),
    (["-d", "afterok:999"], f"{FAILED}Job dependency problem\n", 1),
]

WRONG_SCRIPTS = [
    ("", "sbatch: error: Batch script is empty!\n", 1),
    (" \n\n", "sbatch: error: Batch script contains only whitespace!\n", 1),
    (
        "echo hi\n",
        "sbatch: error: This does not look like a batch script.  The first\n"
        "sbatch: error: line must start with #! followed by the path to an interpreter.\n"
        "sbatch: error: For instance: #!/bin/sh\n",
        1,
    ),
    (
        "#!/bin/sh\r\ntrue\r\n",
        "sbatch: error: Batch script contains DOS line breaks (\\r\\n)\n"
        "sbatch: error: instead of expected UNIX line breaks (\\n).\n",
        1,
    ),
    ("#!/bin/sh\n#SBATCH --bogus\ntrue\n", f"sbatch: unrecognized option '--bogus'\n{TRY}", 255),
    ("#!/bin/sh\n#SBATCH -n foo\ntrue\n", 'sbatch: error: Invalid numeric value "foo" for --ntasks.\n', 1),
    ("#!/bin/sh\n#SBATCH foo\ntrue\n", "sbatch: error: Invalid directive found in batch script: foo\n", 255),
    ('#!/bin/sh\n#SBATCH -t "1\ntrue\n', 'sbatch: fatal: stdin: line 2: Unmatched `"` in [-t "1]\n', 1),
]


def test_what_is_wrong_is_refused_in_slurms_words(slurm: Slurm) -> None:
    """Each wrong option and each wrong script has Slurm's message and exit status, and submits nothing."""
    for options, message, status in WRONG_OPTIONS:
        said = slurm("sbatch", *options, stdin="#!/bin/sh\ntrue\n")
        assert (said.err, said.status, said.out) == (message, status, ""), options
    for script, message, status in WRONG_SCRIPTS:
        said = slurm("sbatch", stdin=script)
        assert (said.err, said.status, said.out) == (message, status, ""), script
    said = slurm("sbatch", "/no/such")
    assert (said.err, said.status) == ("sbatch: error: Unable to open file /no/such\n", 1)
    said = slurm("sbatch", "--wrap=true", "x.sh")
    assert (said.err, said.status) == ("sbatch: error: Script arguments not permitted with --wrap option\n", 1)
    said = slurm("sbatch", "--mem=9999T", "--wrap=true")
    assert said.err.endswith(f"{FAILED}Requested node configuration is not available\n")
    assert said.err.startswith("sbatch: error: Memory specification can not be satisfied")
    assert said.status == 1


def test_a_script_runs_with_its_arguments_and_its_output_is_where_slurm_puts_it(slurm: Slurm) -> None:
    """`Submitted batch job N`; stdout and stderr are in slurm-N.out of the folder that it was submitted from."""
    slurm.script("#!/bin/bash\necho $0 \"$@\" | sed 's,.*/,,'\necho err >&2\n")
    said = slurm("sbatch", "job.sh", "a b", "--time=1")
    assert (said.out, said.err, said.status) == ("Submitted batch job 1\n", "", 0)
    assert slurm.until_settled(1).state is State.COMPLETED
    assert slurm.read("slurm-1.out") == "script-0 a b --time=1\nerr\n"
    assert slurm.job(1).name == "job.sh"


def test_flags_win_over_variables_and_variables_over_lines(slurm: Slurm) -> None:
    """The job's name comes from the flag, else from SBATCH_JOB_NAME, else from the #SBATCH line."""
    slurm.script("#!/bin/sh\n#SBATCH -J line -o %x-%j.txt\n\ntrue\n#SBATCH -J late\n")
    env = {"SBATCH_JOB_NAME": "variable"}
    assert slurm("sbatch", "job.sh").status == 0
    assert slurm("sbatch", "job.sh", env=env).status == 0
    assert slurm("sbatch", "-J", "flag", "job.sh", env=env).status == 0
    assert [slurm.until_settled(number).name for number in (1, 2, 3)] == ["line", "variable", "flag"]
    assert sorted(path.name for path in slurm.folder.glob("*.txt")) == ["flag-3.txt", "line-1.txt", "variable-2.txt"]


def test_wait_exits_as_the_job_did(slurm: Slurm) -> None:
    """The exit code; 1 for a signal, and for a time limit however it then ended; of an array the highest."""
    cases = [
        (["--wrap", "exit 200"], 200),
        (["--wrap", "exit 0"], 0),
        (["--wrap", "kill -TERM $$"], 1),
        (["--array=1-2", "--wrap", "exit $((SLURM_ARRAY_TASK_ID+3))"], 5),
        (["-t", "0:01", "--wrap", "trap 'exit 0' TERM; while :; do sleep 0.02; done"], 1),
    ]
    for args, status in cases:
        assert slurm("sbatch", "-Q", "--wait", "-o", "/dev/null", *args).status == status, args


def test_what_sbatch_prints(slurm: Slurm) -> None:
    """--parsable: the number alone, with the cluster where one is named; -Q: nothing; --test-only: no job."""
    assert slurm("sbatch", "--parsable", "--hold", "--wrap=true").out == "1\n"
    assert slurm("sbatch", "-Q", "--parsable", "-M", "lab", "--hold", "--wrap=true").out == "2;lab\n"
    said = slurm("sbatch", "-Q", "--hold", "--wrap=true")
    assert (said.out, said.err, said.status) == ("", "", 0)
    said = slurm("sbatch", "--test-only", "-n2", "--wrap=true")
    assert (said.out, said.status) == ("", 0)
    assert said.err.startswith("sbatch: Job 4 to start at ")
    assert "using 2 processors on nodes" in said.err or "using 1 processors on nodes" in said.err
    assert slurm("sbatch", "--hold", "--wrap=true").out == "Submitted batch job 4\n"
    assert slurm("sbatch", "--version").out.startswith("slurm")
    assert slurm("sbatch", "--help").out.startswith("Usage: sbatch ")


def test_options_without_meaning_are_accepted_and_said_once(slurm: Slurm) -> None:
    """One line for each home; with -v always, with -Q never."""
    first = slurm("sbatch", "-p", "big", "--hold", "--wrap=true")
    assert first.err == "sbatch: aver: accepted, and without meaning on one machine: --partition\n"
    assert slurm("sbatch", "-p", "big", "--hold", "--wrap=true").err == ""
    assert "--partition" in slurm("sbatch", "-v", "-p", "big", "--hold", "--wrap=true").err
    assert slurm("sbatch", "-Q", "--qos", "x", "--hold", "--wrap=true").err == ""
    assert "--qos" in slurm("sbatch", "--qos", "x", "--hold", "--wrap=true").err


def test_where_it_reads_writes_and_runs(slurm: Slurm) -> None:
    """-D, -i, -o, -e and --open-mode do as Slurm's do; an output that can't be opened fails the job."""
    (slurm.folder / "sub").mkdir()
    (slurm.folder / "sub" / "in").write_text("input\n")
    (slurm.folder / "sub" / "out").write_text("before\n")
    job = slurm.submit(
        "-D", "sub", "-i", "in", "-o", "out", "-e", "err", "--open-mode=append", "--wrap", "cat; pwd >&2"
    )
    assert slurm.until_settled(job).state is State.COMPLETED
    assert slurm.read("sub/out") == "before\ninput\n"
    assert slurm.read("sub/err") == f"{slurm.folder / 'sub'}\n"
    lost = slurm.submit("-o", "/proc/none/out", "--wrap", "true")
    row = slurm.until_settled(lost)
    assert (row.state, row.reason) == (State.FAILED, "JobLaunchFailure")


def test_export_decides_what_the_job_inherits(slurm: Slurm) -> None:
    """ALL: everything; NONE: a login's; names: those alone; values are set and never stored."""
    script = 'echo "$KEPT|$SET|$HOME"'
    env = {"KEPT": "kept", "HOME": "/home/x"}

    def run(*options: str) -> str:
        said = slurm("sbatch", "--wait", "-Q", "-o", "out", *options, "--wrap", script, env=env)
        assert said.status == 0, said
        return slurm.read("out").strip()

    assert run() == "kept||/home/x"
    assert run("--export=NONE") == "||/home/x"
    assert run("--export=KEPT") == "kept||/home/x"
    assert run("--export=ALL,SET=secret") == "kept|secret|/home/x"
    assert run("--export=SET=1,KEPT") == "kept|1|/home/x"
    stored = b"".join(path.read_bytes() for path in slurm.home.glob("aver.db*"))
    assert b"secret" not in stored


def test_a_time_limit_ends_the_job(slurm: Slurm) -> None:
    """Seconds are kept, unlike Slurm's: 0:01 is a second. TERM first, and its exit is the script's own."""
    job = slurm.submit("--time=0:01", "--wrap", "sleep 60")
    row = slurm.until_settled(job)
    assert (row.state, row.reason, str(row.exit)) == (State.TIMEOUT, "TimeLimit", "0:15")


def test_the_commands_are_on_the_path_of_every_job_and_of_nobody_else(slurm: Slurm) -> None:
    """A job can submit; the folder is the owner's alone."""
    job = slurm.submit("-o", "out", "--wrap", "which sbatch srun scancel; sbatch --wait -Q -o inner --wrap 'echo in'")
    assert slurm.until_settled(job).state is State.COMPLETED
    assert slurm.read("out").split() == [str(slurm.home / "bin" / name) for name in ("sbatch", "srun", "scancel")]
    assert slurm.read("inner") == "in\n"
    assert stat.S_IMODE(os.stat(slurm.home / "bin").st_mode) == 0o700


def test_the_flags_and_the_lines_have_one_table() -> None:
    """Every option that means something is known to the command line."""
    assert set(USES) <= set(sbatch_table().takes)


@given(
    name=st.sampled_from(sorted(sbatch_table().takes)),
    text=st.one_of(st.text(max_size=30), st.from_regex(r"[0-9:@,%_+?-]{0,12}")),
)
def test_no_text_of_an_option_is_more_than_refused(name: str, text: str) -> None:
    """Whatever follows an option, it is taken or refused in lines of sbatch; never a traceback."""
    refused = None
    try:
        BatchCall(0.0).take(name, text)
    except BatchRefused as error:
        refused = error
    assert refused is None or ("sbatch: error: " in str(refused) and refused.exit_status in (1, 255))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5", 300), ("5:30", 330), ("1:2:3", 3723), ("1-2", 93600), ("1-2:3", 93780), ("1-2:3:4", 93784),
     ("UNLIMITED", None), ("infinite", None), ("0", None)],
)  # fmt: skip
def test_times_are_slurms(text: str, seconds: int | None) -> None:
    """M, M:S, H:M:S, D-H, D-H:M, D-H:M:S and UNLIMITED."""
    call = BatchCall(0.0)
    call.take("time", text)
    assert call.values.time == seconds


@given(st.text(max_size=40).filter(lambda text: "\n" not in text))
def test_a_line_is_split_or_refused(text: str) -> None:
    """Any #SBATCH line gives words of its own letters, or is refused for a quotation mark that it has."""
    words, mark = [], ""
    try:
        words = split_line(text)
    except OpenQuote as error:
        mark = error.args[0]
    assert mark in text
    assert set("".join(words)) <= set(text)


def test_a_negative_time_is_no_limit(slurm: Slurm) -> None:
    """Slurm accepts --time=-5, too; nodes in brackets are accepted where they can be read."""
    job = slurm.submit("--hold", "--time=-5", "-w", "n[1-3,7]x", "--wrap", "true")
    assert "TimeLimit=UNLIMITED" in slurm("scontrol", "show", "job", str(job)).out


@pytest.mark.parametrize(
    ("option", "by_scontrol", "by_squeue"),
    [
        ("--tmp=10", "MinCPUsNode=1 MinTmpDiskNode=10M OverSubscribe=OK Contiguous=0", "OK 10M 1 0"),
        ("--tmp=2G", "MinCPUsNode=1 MinTmpDiskNode=2G OverSubscribe=OK Contiguous=0", "OK 2G 1 0"),
        ("--contiguous", "MinCPUsNode=1 MinTmpDiskNode=0 OverSubscribe=OK Contiguous=1", "OK 0 1 1"),
        ("--exclusive", "MinCPUsNode=1 MinTmpDiskNode=0 OverSubscribe=NO Contiguous=0", "NO 0 1 0"),
        ("--exclusive=user", "MinCPUsNode=1 MinTmpDiskNode=0 OverSubscribe=USER Contiguous=0", "USER 0 1 0"),
        ("-s", "MinCPUsNode=1 MinTmpDiskNode=0 OverSubscribe=YES Contiguous=0", "YES 0 1 0"),
        ("--mincpus=2", "MinCPUsNode=2 MinTmpDiskNode=0 OverSubscribe=OK Contiguous=0", "OK 0 2 0"),
    ],
)
def test_what_was_asked_of_a_node_is_shown(slurm: Slurm, option: str, by_scontrol: str, by_squeue: str) -> None:
    """As a real Slurm shows it."""
    job = slurm.submit("-H", option, "--wrap", "true")
    shown = slurm("scontrol", "show", "job", str(job)).out.replace("\n", " ").split()
    wanted = ("MinCPUsNode=", "MinTmpDiskNode=", "OverSubscribe=", "Contiguous=")
    assert " ".join(word for word in shown if word.startswith(wanted)) == by_scontrol
    assert slurm("squeue", "-h", "-j", str(job), "-o", "%h %d %c %O").out == f"{by_squeue}\n"


def test_exclusive_takes_the_whole_machine(slurm: Slurm) -> None:
    """No other job runs beside it, it has all cpus, and memory that was asked for by cpu is of all of them."""
    cpus = os.cpu_count() or 1
    shows = "echo $SLURM_CPUS_ON_NODE $SLURM_TASKS_PER_NODE; srun sh -c 'echo task $SLURM_PROCID'"
    alone = slurm.submit(
        "--exclusive", "--mem-per-cpu=10M", "-o", "out", "--wrap", f"{shows}; until [ -e go ]; do sleep 0.05; done"
    )
    slurm.until_file("out", "task 0")
    beside = slurm.submit("-o", "/dev/null", "--wrap", "true")
    slurm.until(beside, lambda row: row.reason in ("Resources", "Priority"))
    shown = slurm("scontrol", "show", "job", str(alone)).out
    assert f"NumCPUs={cpus} NumTasks=1" in shown
    assert "OverSubscribe=NO" in shown
    assert f"TRES=cpu={cpus},mem={cpus * 10}M," in shown
    (slurm.folder / "go").touch()
    assert slurm.until_settled(beside).state is State.COMPLETED
    assert slurm.read("out") == f"{cpus} {cpus}\ntask 0\n"


def test_exclusive_with_other_jobs_of_the_user_takes_what_it_asks_for(slurm: Slurm) -> None:
    job = slurm.submit("--exclusive=user", "-o", "out", "--wrap", "echo $SLURM_CPUS_ON_NODE")
    slurm.until_settled(job)
    assert slurm.read("out") == "1\n"


def test_a_job_whose_least_time_no_longer_fits_before_its_deadline(slurm: Slurm) -> None:
    """DEADLINE as soon as that is so, as in Slurm, not only at the deadline."""
    blocked = slurm.submit("-H", "--deadline=now+63", "--time-min=1", "-t5", "--wrap", "true")
    assert "TimeLimit=00:05:00 TimeMin=00:01:00" in slurm("scontrol", "show", "job", str(blocked)).out
    assert slurm.until_settled(blocked).state is State.DEADLINE


@pytest.mark.parametrize("how", ["block:cyclic", "*:fcyclic", "plane=4", "Pack", "block,NoPack", "arbitrary"])
def test_distributions_that_slurm_takes(how: str) -> None:
    """They mean nothing on one machine, and are no mistake."""
    call = BatchCall(0.0)
    call.take("distribution", how)
    assert call.without_meaning() == ["--distribution"]


def test_options_of_later_slurms(slurm: Slurm) -> None:
    """CPUs asked for as a resource of each task are the job's; the others are taken without a word of error."""
    job = slurm.submit("--oom-kill-step=1", "--tres-per-task=cpu:2", "--stepmgr", "--segment=1", "-H", "--wrap", "true")
    assert "NumCPUs=2" in slurm("scontrol", "show", "job", str(job)).out


@pytest.mark.parametrize(
    ("option", "lines"),
    [
        ("--partition=nosuch", ["invalid partition specified: nosuch", "{}: Invalid partition name specified"]),
        ("--partition=main,nosuch", ["invalid partition specified: nosuch", "{}: Invalid partition name specified"]),
        ("--nodelist=nosuch", ["{}: Invalid node name specified"]),
        ("--exclude=nosuch[1-2]", ["{}: Invalid node name specified"]),
        ("--constraint=nosuch", ["{}: Invalid feature specification"]),
        ("--licenses=nosuch:2", ["{}: Invalid license specification"]),
    ],
)
def test_names_that_are_not_here(slurm: Slurm, monkeypatch: pytest.MonkeyPatch, option: str, lines: list[str]) -> None:
    """Taken as they are; refused as Slurm refuses them where the settings say so."""
    assert slurm("sbatch", "-H", "-Q", option, "--wrap", "true").status == 0
    settings = slurm.folder / "settings.toml"
    settings.write_text('[slurm]\nnames = "known"\n')
    monkeypatch.setenv("AVER_CONFIG", str(settings))
    slurm.script(f"#!/bin/sh\n#SBATCH {option}\n", "asks.sh")
    for call, failed in (
        (["sbatch", option, "--wrap", "true"], "Batch job submission failed"),
        (["sbatch", "asks.sh"], "Batch job submission failed"),
        (["srun", option, "true"], "Unable to allocate resources"),
        (["salloc", option, "true"], "Job submit/allocate failed"),
    ):
        said = slurm(call[0], *call[1:])
        expected = "".join(f"{call[0]}: error: {line.format(failed)}\n" for line in lines)
        assert (said.status, said.out, said.err) == (1, "", expected)
    assert slurm("srun", "-pmain", "-w", os.uname().nodename.partition(".")[0], "-N-3", "true").status == 0


def test_the_text_of_bbf_is_put_behind_the_first_line(slurm: Slurm) -> None:
    """As sbatch does where there are no burst buffers; its #SBATCH lines say nothing to sbatch."""
    slurm.script("#!/bin/bash\n#SBATCH -J mine\necho script $SLURM_JOB_NAME\n")
    slurm.script("#SBATCH -J other\necho added", "added")
    job = slurm.submit("--bbf=added", "-o", "out", "job.sh")
    slurm.until_settled(job)
    assert slurm.read("out") == "added\nscript mine\n"
    shown = slurm("scontrol", "write", "batch_script", str(job), "-").out
    assert shown == "#!/bin/bash\n#SBATCH -J other\necho added\n#SBATCH -J mine\necho script $SLURM_JOB_NAME\n"
    wrapped = slurm.submit("--bbf=added", "-o", "out", "--wrap", "echo wrapped")
    slurm.until_settled(wrapped)
    assert slurm.read("out") == "added\nwrapped\n"
    refused = slurm("sbatch", "--bbf=/none", "job.sh")
    assert (refused.status, refused.err) == (1, "sbatch: error: Invalid --bbf specification\n")
