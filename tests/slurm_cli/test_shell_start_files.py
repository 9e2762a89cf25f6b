"""Shells whose start files set PATH anew find Aver's commands in a job and in `aver shell`, and run scripts as ever."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from slurm_commands import Slurm
from terminals import Session

from aver.model.states import State
from aver.spec.prologue import prologue, with_prologue, without_prologue

HARD = "/usr/local/bin:/usr/bin:/bin"  # where a real Slurm may be, and Aver's commands are not
SRUN = "srun sh -c 'echo step $SLURM_STEP_ID of job $SLURM_JOB_ID'"
STEP = "step 0 of job 1"


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """A home whose start files all set PATH, whatever it was; /etc/profile, which does so first, is the machine's."""
    home = tmp_path / "user"
    home.mkdir()
    for name in (".bash_profile", ".profile"):
        (home / name).write_text('. "$HOME/.bashrc"\n')
    for name in (".bashrc", ".zshenv", ".zprofile", ".zshrc"):
        (home / name).write_text(f"export PATH={HARD}\n")
    for name in (".tcshrc", ".login"):
        (home / name).write_text(f"setenv PATH {HARD}\n")
    return home


def output(slurm: Slurm, user: Path, text: str, *words: str, name: str = "job.sh", **env: str) -> str:
    """What a batch script prints, to its end."""
    slurm.script(text, name)
    said = slurm("sbatch", "--wait", "-o", "job.out", name, *words, env={"HOME": str(user), **env})
    assert said.status in range(128), said
    return slurm.read("job.out")


INTERPRETERS = [
    "/bin/bash -l", "/bin/bash --login", "/bin/bash -le", "/usr/bin/env -S bash -l", "/bin/sh -l", "/bin/dash -l",
    "/bin/zsh -l", "/bin/zsh", "/bin/tcsh", "/bin/csh",
]  # fmt: skip


@pytest.mark.parametrize("interpreter", INTERPRETERS)
def test_a_script_whose_shell_sets_path_finds_srun(slurm: Slurm, user: Path, interpreter: str) -> None:
    assert output(slurm, user, f"#!{interpreter}\n#SBATCH -n2\n{SRUN} | cat\n") == f"{STEP}\n" * 2


@pytest.mark.parametrize("interpreter", INTERPRETERS)
def test_a_script_of_one_line_runs(slurm: Slurm, user: Path, interpreter: str) -> None:
    assert output(slurm, user, f"#!{interpreter}") == ""


@pytest.mark.parametrize("shell", ["/bin/bash", "/bin/sh", "/bin/zsh -f", "/bin/zsh"])
def test_the_script_is_as_without_login_files(slurm: Slurm, user: Path, shell: str) -> None:
    """Its name, arguments, line numbers (dash has none), exit status and signals are those of any other shell."""
    text = '\necho "$LINENO $# $1|$2 ${0##*/}"; trap "echo got; exit 7" USR1\necho $LINENO; kill -USR1 $$\necho no\n'
    numbers = ("", "") if shell == "/bin/sh" else ("2", "3")
    for flag in ("", " -l") if " " not in shell else ("",):
        said = output(slurm, user, f"#!{shell}{flag}{text}", "a b", "*", name="x.sh")
        assert said == f"{numbers[0]} 2 a b|* script-0\n{numbers[1]}\ngot\n"
    assert set(slurm("sacct", "-nXPo", "exitcode").out.split()) == {"7:0"}


def test_a_syntax_error_is_on_its_line(slurm: Slurm, user: Path) -> None:
    assert "line 3: syntax error" in output(slurm, user, "#!/bin/bash -l\ntrue\nfi\n")


def test_what_a_login_script_starts_finds_srun_by_its_path(slurm: Slurm, user: Path) -> None:
    """Not only the shell itself."""
    run = f'{sys.executable} -c \'import subprocess; subprocess.run(["srun", "-n1", "echo", "from python"])\''
    assert output(slurm, user, f"#!/bin/sh -l\n{run}\ntimeout 60 srun -n1 echo by timeout\n") == (
        "from python\nby timeout\n"
    )


@pytest.mark.parametrize("inner", ["bash -l inner", f"bash -lc {shlex.quote(SRUN)}", "bash -l -c '. ./inner'"])
def test_a_login_bash_inside_a_script_finds_srun(slurm: Slurm, user: Path, inner: str) -> None:
    """Also where a shell between the two drops exported functions, as dash does."""
    (slurm.folder / "inner").write_text(f"timeout 60 {SRUN}\n")
    assert output(slurm, user, f"#!/bin/sh\n{inner}\n") == f"{STEP}\n"


def narrow(user: Path) -> None:
    """A .bashrc whose PATH has no srun at all."""
    tools = user / "tools"
    tools.mkdir()
    for name in ("sleep", "cat"):
        (tools / name).symlink_to(f"/bin/{name}")
    (user / ".bashrc").write_text(f"export PATH={tools}\n")


@pytest.mark.parametrize("interpreter", ["/bin/bash", "/bin/bash -l"])
def test_a_script_that_sets_path_itself_finds_srun(slurm: Slurm, user: Path, interpreter: str) -> None:
    """`source ~/.bashrc` in bash; srun is the process that the shell started, so that `kill $!` reaches it."""
    narrow(user)
    text = (
        f"source ~/.bashrc\n{SRUN.replace('sh', '/bin/sh', 1)}\n"
        "srun /bin/sh -c 'trap \"echo warned; exit 3\" TERM; echo >ready; while :; do sleep 0.05; done' & srun=$!\n"
        "until [ -e ready ]; do sleep 0.05; done\nkill -TERM $srun; wait $srun; echo status $?\n"
        "nosuchcommand a; echo status $?\n"
    )
    said = output(slurm, user, f"#!{interpreter}\n{text}")
    assert said.startswith(f"{STEP}\n")
    assert "warned\n" in said
    assert "status 3\n" in said
    assert "line 7: nosuchcommand: command not found\nstatus 127\n" in said


def test_bash_prints_nothing_of_ours_with_x(slurm: Slurm, user: Path) -> None:
    assert output(slurm, user, "#!/bin/bash -xeu\necho hello\n") == "+ echo hello\nhello\n"


def test_the_users_own_bash_env_is_read(slurm: Slurm, user: Path) -> None:
    (user / "own").write_text(f"own() {{ echo own function; }}\nPATH={HARD}\n")
    text = f"#!/bin/bash\nown\nbash -c own\n{SRUN}\n"
    assert output(slurm, user, text, BASH_ENV=str(user / "own")) == f"own function\nown function\n{STEP}\n"


def test_a_path_that_a_script_chose_is_left_alone(slurm: Slurm, user: Path) -> None:
    """A wrapper in front of ours stays in front in the shells that the script starts."""
    wrapper = user / "wrapper"
    wrapper.mkdir()
    (wrapper / "srun").write_text("#!/bin/sh\necho wrapped\n")
    (wrapper / "srun").chmod(0o755)
    assert output(slurm, user, f"#!/bin/bash\nexport PATH={wrapper}:$PATH\nbash -c srun\n") == "wrapped\n"


def test_a_login_script_submits_itself_as_it_was(slurm: Slurm, user: Path) -> None:
    """`sbatch "$0"` has the second line's options, and the text that was submitted."""
    text = '#!/bin/bash -l\n#SBATCH -J named --comment=second\n[ -e ran ] || { touch ran; sbatch -o 2.out "$0"; }\n'
    assert output(slurm, user, text) == "Submitted batch job 2\n"
    slurm.until_settled(2)
    shown = slurm("scontrol", "show", "job", "2").out
    assert "JobName=named" in shown
    assert "Comment=second" in shown
    for job in ("1", "2"):
        assert slurm("scontrol", "write", "batch_script", job, "-").out.rstrip("\n") == text.rstrip("\n")


def test_jobs_of_flows_with_a_login_shell(slurm: Slurm, user: Path) -> None:
    flow = f'jobs:\n  one: {{shell: "sh -l", run: "{SRUN} | cat"}}\n'
    (slurm.folder / "flow.yaml").write_text(flow)
    ran = slurm.shell(f"{sys.executable} -m aver run -q flow.yaml; cat aver-1/one.out", env={"HOME": str(user)})
    assert "step 0 of job" in ran.out, ran


@pytest.mark.parametrize(
    ("shell", "expected"),
    [
        (("/bin/bash", "-l"), True),
        (("/bin/bash", "-xl"), True),
        (("/bin/bash",), False),
        (("/bin/bash", "-e"), False),
        (("/bin/sh", "--login"), True),
        (("/usr/bin/env", "bash"), False),
        (("/usr/bin/env", "-S A=1 bash -l"), True),
        (("/bin/zsh", "-f"), False),
        (("/bin/tcsh", "-f"), False),
        (("/bin/tcsh", "-e"), True),
        (("/usr/bin/python3", "-l"), False),
        (("/usr/bin/env",), False),
    ],
)
def test_only_shells_that_read_start_files_are_told(shell: tuple[str, ...], expected: bool) -> None:
    assert bool(prologue(shell, "/home/a b/bin")) is (expected and "tcsh" not in shell[0])
    assert bool(prologue(shell, "/home/a/bin")) is expected


@pytest.mark.parametrize("text", ["#!/bin/sh -l", "#!/bin/zsh\n", "#!/bin/tcsh\necho; : aver; b\n", "#!/bin/sh\nx\n"])
def test_the_prologue_is_taken_out_again(text: str) -> None:
    told = with_prologue(text, "/h o'me/bin")
    assert without_prologue(told).rstrip("\n") == text.rstrip("\n")
    assert without_prologue(text) == text


@pytest.mark.parametrize("shell", ["/bin/bash", "/bin/zsh", "/bin/sh"])
def test_the_shell_of_aver_shell_has_them_after_its_own_files(slurm: Slurm, user: Path, shell: str) -> None:
    with (user / ".zshrc").open("a") as rc, (user / ".bashrc").open("a") as other:
        rc.write("echo mine-$((1 + 1))\n")
        other.write("echo mine-$((1 + 1))\n")
    environment = {**slurm.environment, "HOME": str(user), "SHELL": shell, "TERM": "dumb"}
    words = [sys.executable, "-m", "aver", "shell"]
    session = Session(words, slurm.folder, environment, 24, 200)
    if shell != "/bin/sh":
        session.until("mine-2")
    session.type("echo is=$(command -v sbatch) home=${ZDOTDIR-none}\r")
    session.until(f"is={slurm.home}/bin/sbatch home=none")
    session.type("exit\r")
    assert session.end() == 0


def test_a_login_script_in_aver_shell(slurm: Slurm, user: Path) -> None:
    said = slurm.shell(
        f"{sys.executable} -m aver shell -- bash -lc 'srun -n1 echo ran; command -v srun'", env={"HOME": str(user)}
    )
    assert said.out == f"ran\n{slurm.home}/bin/srun\n"


@pytest.fixture
def installed(user: Path) -> Path:
    """The home of a user of Debian, whose ~/.profile adds ~/.local/bin, with the commands in it."""
    shutil.copy("/etc/skel/.profile", user / ".profile")
    (user / ".bash_profile").unlink()
    (user / ".bashrc").unlink()
    folder = user / ".local" / "bin"
    folder.mkdir(parents=True)
    return folder


def aver_env(slurm: Slurm, *words: str) -> str:
    said = slurm.shell(shlex.join([sys.executable, "-m", "aver", "env", *words]))
    return said.out + said.err


def test_an_emptied_environment_finds_the_commands_that_were_installed(
    slurm: Slurm, user: Path, installed: Path
) -> None:
    """As in Slurm, such an srun knows of no job and is one of its own: of the same home, which is found."""
    assert "12 commands" in aver_env(slurm, "--install", str(installed))
    inner = f'env -i HOME="$HOME" bash -l -c {shlex.quote(SRUN + "; squeue -h -o %i")}'
    said = output(slurm, user, f"#!/bin/bash\n{inner}\n")
    assert said.splitlines() == ["step 0 of job 2", "1"]
    assert slurm.job(2).state is State.COMPLETED


@pytest.mark.parametrize("shell", ["sh -l", "dash -l", "bash -l"])
def test_inside_a_job_what_was_installed_is_the_jobs_own(slurm: Slurm, user: Path, installed: Path, shell: str) -> None:
    """With an environment, srun is a step, whichever shell calls it."""
    aver_env(slurm, "--install", str(installed))
    (slurm.folder / "inner").write_text(SRUN + "\n")
    assert output(slurm, user, f"#!/bin/sh\n{shell} inner\n") == f"{STEP}\n"


def test_outside_of_jobs_what_was_installed_does_nothing(slurm: Slurm, user: Path, installed: Path) -> None:
    aver_env(slurm, "--install", str(installed))
    other = user / "other"
    other.mkdir()
    (other / "srun").write_text("#!/bin/sh\necho other $@\n")
    (other / "srun").chmod(0o755)
    said = slurm.shell("srun a b", env={"PATH": f"{installed}:{other}:/bin"})
    assert (said.out, said.status) == ("other a b\n", 0)
    said = slurm.shell("srun a b", env={"PATH": f"{installed}:{user}"})
    assert said.status == 127
    assert said.err == "srun: not inside a job of aver or `aver shell`, and there is no other srun on PATH\n"


def test_nothing_of_others_is_overwritten_or_removed(slurm: Slurm, installed: Path) -> None:
    (installed / "squeue").write_text("#!/bin/sh\n")
    assert "is not made by aver" in aver_env(slurm, "--install", str(installed))
    assert os.listdir(installed) == ["squeue"]
    (installed / "squeue").unlink()
    aver_env(slurm, "--install", str(installed))
    (installed / "mine").touch()
    assert "12 commands removed" in aver_env(slurm, "--uninstall", str(installed))
    assert os.listdir(installed) == ["mine"]
