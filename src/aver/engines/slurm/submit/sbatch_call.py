"""Handing orders to sbatch: the words of the call, the environment, the script; and what sbatch made of it.

A batch's file is durable before sbatch is called. The script is a file that sbatch reads; the job's environment is
sbatch's own, so that no value of it is in the script. Whatever is not clearly an answer is `Lost`: the batch may
have been taken, and Slurm is asked for its name before anything is handed over again.
"""

from __future__ import annotations

import errno
import math
import os
import shutil
import stat
import time
from collections.abc import Callable, Sequence

from aver.engines.api import Order
from aver.engines.slurm.batches import Batch, Shelf
from aver.engines.slurm.commands.call import Call, Commands
from aver.engines.slurm.submit.sbatch_answer import Answer, Refusal, Unreachable, read_submission
from aver.engines.slurm.submit.script import Member, Program, Text, Witness, batch_script
from aver.judge.local import NOT_OURS
from aver.model.job import Scope
from aver.model.record import Record

MOST_SCRIPT_BYTES = 1 << 20  # Slurm takes four times as much
NOT_THE_JOBS = ("SLURM_", "SBATCH_", "SALLOC_", "SQUEUE_", "SACCT_", "SINFO_", "SRUN_")
KEPT = ("SLURM_CONF", "SLURM_JWT")
SCOPES = {Scope.ALL: "a", Scope.PROGRAM: "p", Scope.SCRIPT: "b"}


class Hander(Record):
    """`commands` are asked for anew each time: the last submitter says where they are."""

    commands: Callable[[], Commands]
    witness: Witness
    records: str
    shim: str
    own_folder: str  # of Aver's own Slurm commands, which a job on a cluster must not find
    timeout_s: float

    def chunks(self, orders: Sequence[Order], most: int) -> list[list[Order]]:
        return chunks(orders, most)

    def hand_over(self, batch: Batch, orders: Sequence[Order], shelf: Shelf) -> Answer:
        """Make the batch durable and call sbatch."""
        if not batch.is_array and (trouble := _taken(orders[0])):
            return Refusal(trouble)
        try:
            common, own = split_env([order.env for order in orders])
            members = [member_of(order, env, batch.is_array) for order, env in zip(orders, own, strict=True)]
            script = batch_script(members, witness=self.witness, records=self.records, shim=self.shim)
            env = {**read_env(orders[0].env_file), **dict(common)}
        except (ValueError, OSError) as error:
            return Refusal(f"it can't be handed to sbatch: {error}")
        commands = self.commands()
        env["PATH"] = ":".join(one for one in env.get("PATH", os.defpath).split(":") if one != self.own_folder)
        if commands.conf is not None:
            env["SLURM_CONF"] = commands.conf
        try:
            path = shelf.put_script(batch, script)
            shelf.put(batch)
        except OSError as error:
            return Unreachable("CantWrite", f"can't write what is handed to sbatch: {error.strerror}")
        try:
            sbatch, *more = commands.words("sbatch")
            sbatch = shutil.which(sbatch, path=commands.environment()["PATH"]) or sbatch  # the job's PATH is its own
            words = (sbatch, *more, *sbatch_words(batch, orders[0]), os.fspath(path))
        except ValueError as error:
            return Refusal(f"sbatch: its words in the settings can't be read: {error}")
        call = Call(words, env, self.timeout_s, umask=orders[0].umask)
        return read_submission(commands.transport.run(call))

    def is_at_it(self, batch: Batch) -> bool:
        """Whether an sbatch of a coordinator that was killed may still be handing this batch over."""
        wanted = f"--job-name={batch.name}".encode()
        for name in os.listdir("/proc"):
            if not name.isdecimal():
                continue
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    if wanted in file.read().split(b"\0"):
                        return True
            except OSError:
                continue
        return False


def _taken(order: Order) -> str:
    """Why Slurm may not open the output under the name that Aver chose; empty: it may.

    Slurm follows whatever is there. With a witness in an array, it opens the file itself and looks at that very moment.
    """
    parts = [os.path.dirname(order.stdout or ""), order.stdout or ""][2 - order.own_parts :]
    for path in parts:
        try:
            info = os.lstat(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            return f"stdout {path}: {error.strerror}"
        is_folder = path != order.stdout
        is_kind = stat.S_ISDIR(info.st_mode) if is_folder else stat.S_ISREG(info.st_mode) and info.st_nlink == 1
        if not is_kind or info.st_uid != os.geteuid() or (is_folder and info.st_mode & 0o022):
            return f"stdout {path}: {os.strerror(errno.EEXIST)}{NOT_OURS}"
    return ""


def chunks(orders: Sequence[Order], most: int) -> list[list[Order]]:
    """Parts that fit in one array and one script."""
    parts: list[list[Order]] = [[]]
    size = 0
    for order in orders:
        own = sum(len(word) + 3 for word in (*order.args, *order.env, *order.files)) + 1000
        if parts[-1] and (len(parts[-1]) >= most or size + own > MOST_SCRIPT_BYTES):
            parts.append([])
            size = 0
        parts[-1].append(order)
        size += own
    return parts


def member_of(order: Order, env: tuple[tuple[str, str], ...], is_array: bool) -> Member:
    """What the script says of one order; of an array also its files, which else are sbatch's options."""
    work: Program | Text = Program(order.args)
    if order.script is not None:
        work = Text(order.script.text, order.script.interpreter, order.script.args)
    time_s = order.request.time_s
    warn = None
    if order.warning is not None and order.warning.scope in SCOPES and time_s is not None:
        warn = f"{order.warning.signal} {order.warning.lead_s * 1000} {SCOPES[order.warning.scope]}"
    return Member(
        key=order.key,
        work=work,
        name=order.name,
        folder=order.folder,  # Slurm itself would run it in /tmp where there is no such folder
        stdin=order.stdin if is_array else None,
        stdout=order.stdout if is_array else None,
        stderr=order.stderr if is_array else None,
        append=order.append and is_array,
        own_parts=order.own_parts if is_array else 0,
        env=env,
        time_ms=None if time_s is None else time_s * 1000,
        warn=warn,
        kill_wait_ms=math.ceil(order.kill_wait_s * 1000),
        files=order.files,
        clean=order.clean,
        is_elsewhere=order.is_elsewhere,
    )


def sbatch_words(batch: Batch, order: Order) -> list[str]:
    """The options of sbatch; those that the user gave come before Aver's own, which win."""
    words = list(order.options)
    words += ["--parsable", "--export=ALL", f"--job-name={batch.name}"]
    words.append("--requeue" if order.requeues else "--no-requeue")
    if order.request.time_s is not None:
        words.append(f"--time={math.ceil(order.request.time_s / 60)}")
    if order.deadline_at is not None:  # relative: the clock that sbatch goes by may be in another zone
        words.append(f"--deadline=now+{max(1, math.ceil(order.deadline_at - time.time()))}")
    if order.warning is not None and order.warning.scope is Scope.STEPS:
        words.append(f"--signal={order.warning.signal}@{order.warning.lead_s}")
    if batch.is_array:
        return [*words, f"--array=0-{len(batch.keys) - 1}", "--output=/dev/null", f"--chdir={order.folder}"]
    words.append(f"--chdir={order.folder}")
    for option, path in (("input", order.stdin), ("output", order.stdout), ("error", order.stderr)):
        if path is not None:
            words.append(f"--{option}={path.replace('%', '%%')}")
    words.append(f"--open-mode={'append' if order.append else 'truncate'}")
    return words


def split_env(envs: Sequence[tuple[str, ...]]) -> tuple[list[tuple[str, str]], list[tuple[tuple[str, str], ...]]]:
    """The pairs that all orders share, and those of each alone."""
    pairs = [[(name, value) for name, _, value in (pair.partition("=") for pair in env)] for env in envs]
    shared = set(pairs[0]).intersection(*map(set, pairs[1:]))
    return (
        [pair for pair in pairs[0] if pair in shared],
        [tuple(pair for pair in some if pair not in shared) for some in pairs],
    )


def read_env(path: str | None) -> dict[str, str]:
    """The submitter's environment, without what belongs to another job of Slurm."""
    if path is None:
        return {}
    with open(path, "rb") as file:
        texts = [os.fsdecode(one) for one in file.read().split(b"\0") if one]
    pairs = dict(text.partition("=")[::2] for text in texts)
    return {name: value for name, value in pairs.items() if name in KEPT or not name.startswith(NOT_THE_JOBS)}
