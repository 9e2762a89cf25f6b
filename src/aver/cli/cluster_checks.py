"""What `aver doctor --engine slurm` finds: the site's commands, version, accounting, limits and the shared folder."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from aver.cli.output.documents import Check
from aver.config import Config
from aver.engines.slurm.cluster import commands_of, folder
from aver.engines.slurm.commands import squeue
from aver.engines.slurm.commands.call import Commands, Reply, Trouble
from aver.engines.slurm.commands.lines import error_text
from aver.engines.slurm.commands.rows import Accounts, Disabled, NoAnswer
from aver.engines.slurm.commands.sacct import by_names, read_accounts
from aver.engines.slurm.commands.scontrol import Facts, ask_facts, read_version, version_of
from aver.engines.slurm.remote.cluster import commands_on, host_of, ssh_to
from aver.engines.slurm.remote.ssh import Ssh
from aver.home import Home
from aver.store.open import is_on_network

OK, LIMITED, MISSING = "ok", "limited", "missing"
TIMEOUT_S = 20.0
CLOCKS_S = 5.0  # apart
COMMANDS = ("sbatch", "squeue", "sacct", "scontrol", "scancel", "srun")


def cluster_checks(home: Home, config: Config, host: str | None = None) -> Iterator[Check]:
    """One check after the other; each call has a time limit."""
    name = config.slurm.host if host is None else host
    commands = commands_of(home, config, os.environ)
    if name:
        ssh = ssh_to(home, config, name, os.environ.get("SSH_AUTH_SOCK"))
        check = _host(home, config, ssh)
        yield check
        if check.status == MISSING:
            return
        commands = commands_on(config, ssh)
    troubles = {name: trouble for name in COMMANDS if (trouble := _trouble(commands, name))}
    if troubles:
        hint = "load the site's module, or name them under slurm.commands in the settings"
        yield Check("slurm commands", MISSING, "; ".join(dict.fromkeys(troubles.values())), hint)
        return
    facts = ask_facts(commands, TIMEOUT_S)
    if isinstance(facts, NoAnswer):
        yield Check("slurm", MISSING, f"the controller does not answer: {facts.text}", "ask the site's administrator")
        return
    version = ".".join(f"{part:02d}" if place == 1 else str(part) for place, part in enumerate(facts.version or ()))
    yield Check("slurm", OK, f"version {version or '?'}, cluster {facts.cluster or '?'}", None)
    if (differing := _versions(commands, facts)) is not None:
        yield differing
    yield _queue(commands)
    yield _accounting(commands, facts)
    yield from _limits(facts)
    if not name:
        yield _shared(folder(home, config))


def _host(home: Home, config: Config, ssh: Ssh) -> Check:
    """Our folder there, the witness, and the clock."""
    layout = host_of(home, config, ssh, TIMEOUT_S).layout()
    if isinstance(layout, Trouble):
        return Check("host", MISSING, layout.text, f"aver connect {ssh.host}")
    text = f"{ssh.host}, our folder is {layout.folder}"
    if layout.remark:
        return Check("host", LIMITED, f"{text}; {layout.remark}", None)
    if abs(layout.skew_s) > CLOCKS_S:
        hint = "of files that both sides change, the newer counts: set the clocks right"
        return Check("host", LIMITED, f"{text}; its clock is {layout.skew_s:+.0f} s off ours", hint)
    return Check("host", OK, text, None)


def _trouble(commands: Commands, name: str) -> str:
    """Why it can't be called; empty: it can."""
    reply = commands.call([name, "--version"], timeout_s=TIMEOUT_S)
    if isinstance(reply, Reply):
        return "" if reply.status == 0 else (error_text(reply.err) or f"{name} exits {reply.status}")
    return reply.text


def _versions(commands: Commands, facts: Facts) -> Check | None:
    """Commands of another release than the controller's; None if there is nothing to say."""
    own = read_version(commands.call(version_of("scancel"), timeout_s=TIMEOUT_S))
    if own is None or facts.version is None or own[:2] == facts.version[:2]:
        return None
    releases = [f"{major}.{minor:02d}" for major, minor, *_ in (own, facts.version)]
    text = f"the commands are {releases[0]}, the controller is {releases[1]}"
    hint = "commands more than two releases older than the controller are not understood: scancel is not heard"
    return Check("slurm versions", LIMITED, text, hint)


def _queue(commands: Commands) -> Check:
    answer = squeue.read_queue(commands.call(squeue.by_names(["aver-doctor"]), timeout_s=TIMEOUT_S), 0)
    if isinstance(answer, NoAnswer):
        return Check("queue", MISSING, f"squeue can't be asked: {answer.text}", None)
    return Check("queue", OK, "squeue answers", None)


def _accounting(commands: Commands, facts: Facts) -> Check:
    answer = read_accounts(commands.call(by_names(["aver-doctor"], 0.0), timeout_s=TIMEOUT_S))
    match answer:
        case Accounts():
            text = f"sacct answers ({facts.accounting or 'storage not said'})"
            if facts.has_whole_codes:
                return Check("accounting", OK, f"{text}; exit codes are whole", None)
            hint = "before 25.11 it takes 128 off exit codes of 128 and more; the witness and the controller have them"
            return Check("accounting", OK, text, hint)
        case Disabled(text=text):
            hint = "verdicts come from the witness and the controller; those that neither saw are UNVERIFIED"
            return Check("accounting", LIMITED, f"disabled: {text}", hint)
        case NoAnswer(text=text):
            return Check("accounting", LIMITED, f"can't run sacct: {text}", "jobs that need its word stay SETTLING")


def _limits(facts: Facts) -> Iterator[Check]:
    yield Check("arrays", OK, f"up to {facts.max_array_size} members", None)
    if facts.min_job_age_s is not None:
        yield Check("memory of ended jobs", OK, f"{facts.min_job_age_s} s (MinJobAge)", None)
    if facts.kill_wait_s is not None:
        yield Check("kill wait", OK, f"{facts.kill_wait_s} s from TERM to KILL", None)
    if facts.enforced:
        yield Check("enforced", OK, facts.enforced, None)


def _shared(place: Path) -> Check:
    """Nodes must see the folder; from here only its file system can be told."""
    existing = place
    while not existing.exists():
        existing = existing.parent
    if not os.access(existing, os.W_OK | os.X_OK):
        return Check("shared folder", MISSING, f"{place} can't be written", "set slurm.folder in the settings")
    if not _can_run_in(existing):
        text = f"{place} is on a file system without execution: witnesses can't be started from it"
        return Check("shared folder", LIMITED, text, "set slurm.folder in the settings")
    if is_on_network(existing):
        return Check("shared folder", OK, f"{place}, on a network file system", None)
    hint = "if the nodes do not see it, jobs still run, and verdicts come from accounting; set slurm.folder"
    return Check("shared folder", LIMITED, f"{place}, on a local disk of this machine", hint)


def _can_run_in(folder: Path) -> bool:
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix=".aver-doctor-") as place:
            script = Path(place) / "try"
            script.write_text("#!/bin/sh\nexit 0\n")
            script.chmod(0o700)
            return subprocess.run([str(script)], check=False, timeout=10).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
