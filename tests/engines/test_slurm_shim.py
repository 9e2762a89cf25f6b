"""Our srun: where it puts the witness, and when it stays out of the way. The real srun only tells its words."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from aver.engines.slurm.submit import shim
from aver.engines.slurm.submit.script import Witness
from aver.engines.slurm.submit.shim import install_shim
from aver.slurm_cli.srun.options import TABLE
from aver.spec.getopt import FLAG, VALUE
from node_witness import witness_at

IN_JOB = {"AVER_RECORD_KEY": "7-1.r0", "SLURM_JOB_ID": "5", "SLURM_JOB_NAME": "train", "SLURM_JOB_NUM_NODES": "1"}
TELLS = '#!/bin/sh\nfor word do printf "%s\\0" "$word"; done\n'


class Job:
    """The inside of a job: our srun first in PATH, the real one behind it."""

    def __init__(self, folder: Path, witness: Path) -> None:
        self.folder, self.witness = folder, str(witness)
        self.records = str(folder / "it's records")
        self.real = folder / "real"
        self.real.mkdir()
        self.put(self.real / "srun", TELLS)
        self.shim = install_shim(folder / "bin", witness_at(self.witness), self.records)

    @staticmethod
    def put(path: Path, text: str) -> None:
        path.write_text(text)
        path.chmod(0o755)

    def start(
        self, *words: str, facts: Mapping[str, str] = IN_JOB, path: str | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "AVER"))}
        search = path if path is not None else f"{self.shim.parent}:{self.real}:{kept['PATH']}"
        return subprocess.run(
            [str(self.shim), *words], capture_output=True, cwd=self.folder, check=False, timeout=30,
            env={**kept, **facts, "PATH": search},
        )  # fmt: skip

    def words(self, *words: str, facts: Mapping[str, str] = IN_JOB) -> list[str]:
        """What the real srun got."""
        done = self.start(*words, facts=facts)
        assert (done.returncode, done.stderr) == (0, b"")
        return [os.fsdecode(word) for word in done.stdout.split(b"\0")[:-1]]

    def task(self, *, named: bool = False) -> list[str]:
        """What stands before a command."""
        name = [] if named else ["--env", "SLURM_JOB_NAME=train"]
        return [self.witness, "task", "--records", self.records, "--key", "7-1.r0", *name, "--"]


@pytest.fixture
def job(tmp_path: Path, witness_binary: Path) -> Job:
    return Job(tmp_path, witness_binary)


@pytest.mark.parametrize(
    "options",
    [[], ["-n4"], ["-n", "4"], ["--ntasks=4", "-l"], ["--ntasks", "4"], ["-lN2", "-uK"], ["-K1", "-I"], ["--exclusive"],
     ["--kill-on-bad-exit=1", "--mem", "10M"], ["-ln", "4", "--export", "ALL,A=b c"], ["-c2", "--cpu-bind=none", "--"],
     ["-o", "-weird-"], ["--error", "--"], ["--exact", "--overlap", "-v", "-v"]],
)  # fmt: skip
def test_witness_stands_before_the_command(job: Job, options: list[str]) -> None:
    """Options, with values glued, after `=` or as the next word, stay as they were; so do the command's own words."""
    command = ["/x/prog.sh", "-n", "--help", "--", "it's", "", "a\nb", os.fsdecode(b"\xff\r")]
    assert job.words(*options, *command) == ["--job-name=prog.sh", *options, *job.task(), *command]


@pytest.mark.parametrize("options", [["-J", "mine"], ["-Jmine"], ["--job-name=mine"], ["--job-name", "m"], ["-lJm"]])
def test_name_that_was_given_stays(job: Job, options: list[str]) -> None:
    """A step that has a name keeps it, and its tasks see that name as under the real srun."""
    assert job.words(*options, "/x/prog") == [*options, *job.task(named=True), "/x/prog"]


@pytest.mark.parametrize(
    "words",
    [[], ["-n4"], ["-n"], ["--version"], ["-V"], ["--help"], ["-h"], ["--usage"], ["--multi-prog", "file"],
     ["--pty", "sh"], ["--new-option", "x", "prog"], ["--ntask=4", "prog"], ["-n4", "-@", "prog"], ["--"],
     ["--bcast=/tmp/x", "prog"], ["--container", "c", "prog"], ["-n1", "a", ":", "-n2", "b"], ["-Mother", "prog"],
     ["--het-group=1", "prog"], ["--jobid=9", "prog"], ["-lV", "prog"], ["--multi-prog", "-n2", "a b", ""]],
)  # fmt: skip
def test_rest_is_left_alone(job: Job, words: list[str]) -> None:
    """What is no plain command of each task goes to the real srun word by word."""
    assert job.words(*words) == words


@pytest.mark.parametrize(
    "facts",
    [{**IN_JOB, "AVER_RECORD_KEY": ""}, {"SLURM_JOB_ID": "5"}, {"AVER_RECORD_KEY": "k"},
     {**IN_JOB, "SLURM_CONTAINER": "c"}, {**IN_JOB, "SLURM_BCAST": "/tmp/x"}],
)  # fmt: skip
def test_outside_of_a_job_it_is_the_real_one(job: Job, facts: dict[str, str]) -> None:
    """Without a record to leave, or where tasks run in a container, nothing is inserted."""
    assert job.words("-n4", "prog", "x", facts=facts) == ["-n4", "prog", "x"]


def test_witness_that_is_gone(job: Job) -> None:
    """A home that was removed, or is not on this node, does not break a job's steps."""
    job.shim.write_bytes(shim.srun_shim(witness_at("/no/such/witness"), job.records))
    assert job.words("-n4", "prog", "x") == ["-n4", "prog", "x"]


def test_witness_that_was_swapped(job: Job) -> None:
    """A file with another hash than the one that was put there is not run; the step is the real srun's."""
    swapped = job.folder / "swapped"
    job.put(swapped, f"#!/bin/sh\ntouch {job.folder}/ran\n")
    job.shim.write_bytes(shim.srun_shim(Witness(str(swapped), witness_at(job.witness).sha256), job.records))
    done = job.start("-n4", "prog", "x")
    assert done.stdout == b"-n4\0prog\0x\0"
    assert b"is not the witness" in done.stderr
    assert not (job.folder / "ran").exists()


def test_command_is_looked_up_here(job: Job) -> None:
    """A command without a slash is found in PATH as srun finds it; one that is nowhere stays as it is."""
    (job.real / "prog").mkdir()
    assert job.words("prog")[-1] == "prog"
    (job.real / "prog").rmdir()
    job.put(job.real / "prog", "")
    assert job.words("prog") == ["--job-name=prog", *job.task(), str(job.real / "prog")]
    (job.folder / "prog").touch(0o755)
    assert job.words("./prog")[-1] == "./prog"


def test_several_nodes_may_lack_the_witness(job: Job) -> None:
    """On several nodes each task looks whether its node has the witness, and runs without it if not."""
    facts = {**IN_JOB, "SLURM_JOB_NUM_NODES": "2", "SLURM_STEP_ID": "0", "SLURM_PROCID": "1"}
    Path(job.records).mkdir()
    words = job.words("sh", "-c", 'printf %s "$1"; exit 7', "sh", "it's", facts=facts)
    assert words[:2] == ["--job-name=sh", "/bin/bash"]
    for witness in (job.witness, "/no/such"):
        command = [witness if word == job.witness else word for word in words[1:]]
        done = subprocess.run(command, capture_output=True, env={**os.environ, **facts}, check=False)
        assert (done.returncode, done.stdout) == (7, b"it's")
    assert [path.name for path in Path(job.records).iterdir()] == ["7-1.r0.s0.t1"]


def test_never_finds_itself(job: Job) -> None:
    """Links to it, other homes' and no other srun at all do not make it call itself."""
    other = job.folder / "other"
    install_shim(other, witness_at(job.witness), job.records)
    (job.folder / "link").symlink_to(job.shim.parent)
    system = os.environ["PATH"]
    first = [str(job.shim.parent), str(job.folder / "link"), str(other), str(other)]
    done = job.start("-n1", "--version", path=":".join([*first, str(job.real), system]))
    assert done.stdout == b"-n1\0--version\0"
    (job.folder / "none").mkdir()
    for name in ("bash", "sh", "env"):
        (job.folder / "none" / name).symlink_to(f"/bin/{name}")
    done = job.start("true", path=":".join([*first, str(job.folder / "none")]))
    assert done.returncode == 127
    assert done.stderr.startswith(b"srun: command not found")


def test_environment_is_whole(job: Job) -> None:
    """Variables of the user, exported functions among them, reach srun as they were."""
    job.put(job.real / "srun", "#!/bin/bash\nexec env\n")
    mine = dict.fromkeys(("name", "words", "options", "program", "found", "records", "rest"), "mine")
    told = job.start("x", facts={**IN_JOB, **mine, "BASH_FUNC_module%%": "() {  echo hi\n}"}).stdout.splitlines()
    assert {*(f"{name}=mine".encode() for name in mine), b"BASH_FUNC_module%%=() {  echo hi"} <= set(told)


def test_install_is_done_once(job: Job) -> None:
    """The file is replaced when it has to be, and nothing else is left in the folder."""
    before = job.shim.stat()
    install_shim(job.shim.parent, witness_at(job.witness), job.records)
    assert job.shim.stat().st_ino == before.st_ino
    install_shim(job.shim.parent, witness_at("/another"), job.records)
    assert b"/another" in job.shim.read_bytes()
    assert [path.name for path in job.shim.parent.iterdir()] == ["srun"]


def test_options_are_those_of_our_own_srun() -> None:
    """An option that Aver's own srun has takes a value here if it does there."""
    here = {word.partition(":")[0]: VALUE for word in shim.VALUES.split()}
    here |= dict.fromkeys((word.partition(":")[0] for word in f"{shim.FLAGS} {shim.MAYBE}".split()), FLAG)
    pairs = [word.split(":") for word in f"{shim.FLAGS} {shim.VALUES} {shim.MAYBE}".split() if ":" in word]
    for name, takes in TABLE.takes.items():
        assert name not in here or (here[name] == VALUE) == (takes == VALUE), name
    for name, letter in pairs:
        assert TABLE.letters.get(letter, name) == name


@pytest.mark.parametrize(
    ("options", "added"),
    [
        ([], ["-n3", "-c4"]),  # a task on each node, with the CPUs that the job has there
        (["-N1"], ["-n1", "-c4"]),
        (["--nodes", "1-2"], ["-n2", "-c4"]),
        (["-n6"], ["-c2"]),
        (["-ln", "12"], ["-c1"]),
        (["-On", "24"], []),
        (["-n24", "--overcommit"], []),
        (["--ntasks-per-node=1", "--nodes=3", "--ntasks=3"], ["-c4"]),  # as mpirun starts its daemons
        (["--ntasks-per-node=2"], ["-n6", "-c2"]),
        (["-c1"], ["-n3"]),
        (["--exact", "-N", "1"], ["-n1"]),  # several steps at once
        (["-n2", "--overlap"], []),
        (["-N", "some"], []),
    ],
)
def test_a_part_of_an_allocation_is_shared_by_the_tasks(job: Job, options: list[str], added: list[str]) -> None:
    """A job on 3 nodes with 4 CPUs each: its steps stay on them, and their tasks have all of the job's CPUs."""
    facts = {**IN_JOB, "SLURM_JOB_NUM_NODES": "3", "AVER_NODE_CPUS": "4", "AVER_OTHER_NODES": "n4,n5"}
    given = job.words("--job-name=x", *options, "/x/prog", facts=facts)
    assert given[: given.index("/bin/bash")] == ["--exclude=n4,n5", *added, "--job-name=x", *options]
    assert job.words("--multi-prog", "file", facts=facts) == ["--exclude=n4,n5", "--multi-prog", "file"]


PART = {**IN_JOB, "SLURM_JOB_NUM_NODES": "3", "AVER_NODE_CPUS": "4", "AVER_OTHER_NODES": "n4,n5"}


@pytest.mark.parametrize(
    ("options", "joined"),
    [
        (["-x", "n2"], ["-x", "n4,n5,n2"]),
        (["-xn2"], ["-xn4,n5,n2"]),
        (["-lxn[1-2]"], ["-lxn4,n5,n[1-2]"]),
        (["-lx", "n2"], ["-lx", "n4,n5,n2"]),
        (["--exclude", "n2"], ["--exclude", "n4,n5,n2"]),
        (["--exclude=n2"], ["--exclude=n4,n5,n2"]),
        (["--exclude=n2", "-x", "n1"], ["--exclude=n2", "-x", "n4,n5,n1"]),  # Slurm takes the last one
        (["-o", "-x", "-Jx"], ["-o", "-x", "-Jx"]),  # a file, a name
        (["--exclude=./nodes"], ["--exclude=n4,n5,n1,n[2-3]"]),
        (["-x", "./none"], ["-x", "./none"]),  # srun's to refuse
    ],
)
@pytest.mark.parametrize("rest", [["--multi-prog", "file"], ["--bcast=/x", "prog"], ["--jobid", "5", "/x/prog"]])
def test_a_users_own_exclude_is_joined(job: Job, options: list[str], joined: list[str], rest: list[str]) -> None:
    """Slurm takes the last --exclude alone: without ours a step would go to the nodes of other jobs."""
    (job.folder / "nodes").write_text("n1 # a comment\n\nn[2-3]")
    given = job.words("-n3", "-c1", *options, "/x/prog", "-x", "n9", facts=PART)
    task = given.index("/bin/bash")
    named = [] if "-Jx" in options else ["--job-name=prog"]
    assert given[:task] == [*named, "--exclude=n4,n5", "-n3", "-c1", *joined]
    assert given[-3:] == ["/x/prog", "-x", "n9"]
    assert job.words(*options, *rest, facts=PART) == ["--exclude=n4,n5", *joined, *rest]
    assert job.words(*options, "prog", facts={"AVER_OTHER_NODES": "n4,n5"}) == ["--exclude=n4,n5", *joined, "prog"]
    assert job.words(*options, "prog", facts={}) == [*options, "prog"]


@pytest.mark.parametrize("options", [["-n", "13"], ["-n5", "-N1"], ["-n4", "-c4"], ["--ntasks-per-node=5"]])
def test_more_cpus_than_the_job_has_are_refused(job: Job, options: list[str]) -> None:
    """The allocation may have them, but for other jobs. The words are Slurm's."""
    done = job.start(*options, "/x/prog", facts=PART)
    text = b"srun: error: Unable to create step for job 5: More processors requested than permitted\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", text)


@pytest.mark.parametrize(
    "release", ["slurm-wlm 22.05.8", "slurm 22.05.8", "slurm 23.02.7", "slurm 23.11.4", "slurm 25.11.7"]
)
def test_the_cpus_of_a_task_are_the_jobs_where_slurm_takes_them(job: Job, release: str) -> None:
    """Two releases do not go by SLURM_CPUS_PER_TASK: there a step's tasks share what the job has."""
    job.put(job.real / "srun", TELLS.replace("for", f'[ "$1" != --version ] || exec echo "{release}"\nfor', 1))
    facts = {**PART, "SLURM_CPUS_PER_TASK": "2", "AVER_TASK_CPUS": "2"}
    shares = release.split()[1].startswith(("22.05", "23.02"))
    given = job.words("-n3", "/x/prog", facts=facts)
    assert ("-c4" in given) == shares
    assert "-c4" in job.words("-n3", "/x/prog", facts={**facts, "SLURM_CPUS_PER_TASK": ""})
    assert "-c4" in job.words("-n3", "/x/prog", facts={**PART, "SLURM_CPUS_PER_TASK": "4"})  # nobody spoke of tasks
    assert job.words("-n3", "-c1", "/x/prog", facts=facts)[:4] == ["--job-name=prog", "--exclude=n4,n5", "-n3", "-c1"]
    many = job.start("-n7", "/x/prog", facts=facts)  # of 2 CPUs each on 12
    assert (many.returncode == 0) == shares


def test_values_are_not_taken_for_counts(job: Job) -> None:
    """`-wn2` names a node, and `-oout.n7` a file."""
    given = job.words("-Jx", "-wn2", "-oout.n7", "/x/prog", facts=PART)
    assert given[: given.index("/bin/bash")] == ["--exclude=n4,n5", "-n3", "-c4", "-Jx", "-wn2", "-oout.n7"]


@pytest.mark.parametrize(
    ("options", "added"), [([], ["-c2"]), (["-n3"], ["-c4"]), (["--ntasks-per-node=1"], ["-n3", "-c4"]), (["-c1"], [])]
)
def test_tasks_of_a_batch_script_share_its_nodes(job: Job, options: list[str], added: list[str]) -> None:
    """`srun` starts as many tasks as the script's -n says, which it finds in its environment."""
    given = job.words("-Jx", *options, "/x/prog", facts={**PART, "SLURM_NTASKS": "6"})
    assert given[: given.index("/bin/bash")] == ["--exclude=n4,n5", *added, "-Jx", *options]
    facts = {**PART, "SLURM_NTASKS": "6", "SLURM_NTASKS_PER_NODE": "2"}
    given = job.words("-Jx", "-N1", "/x/prog", facts=facts)
    assert given[: given.index("/bin/bash")] == ["--exclude=n4,n5", "-n2", "-c2", "-Jx", "-N1"]
