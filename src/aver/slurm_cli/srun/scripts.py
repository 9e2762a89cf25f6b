"""What srun runs beside its program: --prolog and --epilog, --task-prolog and --task-epilog, and --bcast's copy.

srun itself runs --prolog and --epilog, with the program's arguments, where it was called. The scripts of tasks are run
by the task's own process (`srun --as-task around …`), which then becomes the program; with a --task-epilog it stays as
the program's parent, hands signals on, and ends as the program ended. Lines are Slurm's.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable
from typing import Any

from aver.slurm_cli.output import say
from aver.slurm_cli.srun.options import Options
from aver.spec.getopt import BadOption

EPILOG_S = 5  # what slurmstepd gives a task epilog
_KEPT_VARIABLES = ("SLURM_NNODES", "SLURM_NTASKS", "SLURM_NPROCS")
_HANDED_ON = (
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM,
)  # fmt: skip


def run_prolog(options: Options) -> None:
    """BadOption if it fails: there is no step then."""
    status = _run_script(options, "prolog")
    if status:
        raise BadOption(f"error: srun prolog failed rc = {status}. Aborting step.")


def run_epilog(options: Options) -> None:
    status = _run_script(options, "epilog")
    if status:
        say(f"srun: error: srun epilog failed status={status}")


def _run_script(options: Options, name: str) -> int:
    path = options.get(name) or "none"
    if path.lower() == "none":
        return 0
    env = {**os.environ, "SLURM_SCRIPT_CONTEXT": f"{name}_srun"}
    try:
        done = subprocess.run([path, *options.command], env=env, stdin=subprocess.DEVNULL, check=False)
    except OSError as error:
        say(f"srun: Access denied for {path}: {error.strerror}")
        return 0
    if done.returncode < 0:
        say("srun: error: script did not exit normally")
        return 1
    return done.returncode


def copy_program(options: Options) -> list[str]:
    """Copy the program to where --bcast says, and the command that runs it there; BadOption if it can't be copied."""
    source = shutil.which(options.command[0])
    target = os.path.abspath(options.get("bcast") or "")
    if source is None:
        raise BadOption(f"error: Can't open `{options.command[0]}`: No such file or directory")
    if os.path.isdir(target):
        target = os.path.join(target, os.path.basename(source))
    try:
        shutil.copy2(source, target)
    except (OSError, shutil.Error) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise BadOption(f"error: can't copy {source} to {target}: {why}") from None
    return [target, *options.command[1:]]


def surroundings(options: Options) -> str:
    """What a task's process is to do before and after its program, for `enter`."""
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    found: dict[str, Any] = {"env": kept if "preserve-env" in options.flags else {}}
    for name in ("task-prolog", "task-epilog"):
        path = options.get(name)
        if path and path.lower() != "none":
            found[name] = os.path.abspath(path)
    return json.dumps(found)


def enter(text: str, words: list[str], execute: Callable[[list[str]], int]) -> list[str] | int:
    """Do what is to be done before the program; the program, or the exit status where it is not to run, or has run."""
    around = json.loads(text)
    os.environ.update(around["env"])
    if "task-prolog" in around:
        status = _run_task_prolog(around["task-prolog"])
        if status:
            say(f"slurmstepd: error: --task-prolog failed status={status}")
            return status
    if "task-epilog" not in around:
        return words
    return _run_with_epilog(around["task-epilog"], words, execute)


def _run_task_prolog(path: str) -> int:
    """Its lines `export NAME=VALUE`, `unset NAME` and `print TEXT` are for the task."""
    os.environ["SLURM_SCRIPT_CONTEXT"] = "prolog_task"
    try:
        done = subprocess.run(
            [path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
    except OSError as error:
        say(f"slurmstepd: error: run_command: user task_prolog can not be executed ({path}) {error.strerror}")
        return 1
    if done.returncode < 0:
        say("slurmstepd: error: user task_prolog did not exit normally.")
        return 1
    for line in os.fsdecode(done.stdout).split("\n"):
        word, _, rest = line.partition(" ")
        rest = rest.lstrip()
        name, equals, value = rest.partition("=")
        if word == "print":
            os.write(1, os.fsencode(rest) + b"\n")
        elif word == "export" and equals and name.strip():
            os.environ[name.rstrip()] = value
        elif word == "unset" and rest.strip():
            os.environ.pop(rest.strip(), None)
    return done.returncode


def _run_task_epilog(path: str, env: dict[str, str]) -> None:
    """Kill it, and all that it has started, when its time is over, as slurmstepd does."""
    with subprocess.Popen(
        [path], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True
    ) as running:
        try:
            status = running.wait(EPILOG_S)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            status = running.wait()
    if status:
        raw = -status if status < 0 else status << 8
        say(f"slurmstepd: error: TaskEpilog failed status={raw}")


def _run_with_epilog(path: str, words: list[str], execute: Callable[[list[str]], int]) -> int:
    child = os.fork()
    if child == 0:
        os.environ["SLURM_TASK_PID"] = str(os.getpid())
        os._exit(execute(words))
    for number in _HANDED_ON:
        signal.signal(number, lambda caught, _: os.kill(child, caught))
    _, status = os.waitpid(child, 0)
    for number in _HANDED_ON:
        signal.signal(number, signal.SIG_IGN)
    env = {**os.environ, "SLURM_SCRIPT_CONTEXT": "epilog_task"}
    try:
        _run_task_epilog(path, env)
    except OSError as error:
        say(f"slurmstepd: error: user task_epilog can not be executed ({path}) {error.strerror}")
    if not os.WIFSIGNALED(status):
        return os.waitstatus_to_exitcode(status)
    killer = os.WTERMSIG(status)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if killer not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(killer, signal.SIG_DFL)
    os.kill(os.getpid(), killer)
    return 128 + killer
