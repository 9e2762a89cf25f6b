"""Taking an allocation: the words of sbatch, what became of it, and why an order still waits.

Allocations of one wish come one after the other: each is submitted with the next and waits for the end of the one
before it, however that ends, so that they age in the queue and need no coordinator. Each has a name of its own, with
the home's key in it, by which it is found if sbatch's answer is lost; one common name for `singleton` would not tell
which of them was taken.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from typing import Protocol, assert_never

from aver.durable_files import write_file
from aver.engines.api import AllocationAsk, Order
from aver.engines.slurm.allocation.executor import executor_script
from aver.engines.slurm.allocation.folder import Asked, RunFolder, Size
from aver.engines.slurm.commands.call import Call, Commands
from aver.engines.slurm.submit.sbatch_answer import Answer, Busy, Handed, Lost, Refusal, Unreachable, read_submission
from aver.engines.slurm.submit.sbatch_call import member_of, read_env
from aver.engines.slurm.submit.script import Witness, batch_script
from aver.model import reasons
from aver.model.record import Record, replace
from aver.render.verdict import duration_words

AFTER_ANOTHER = "Dependency"  # Slurm's reason of all but the first of a wish: says nothing of why they wait


class Outcome(Record):
    """What sbatch's answer comes to. Neither an id nor a refusal nor not taken: nobody knows."""

    id: int | None = None
    refused: str = ""
    is_not_taken: bool = False
    reason: str = ""


class AnyTaker(Protocol):
    """Takes allocations, on this machine's cluster or on that of a host, and makes what runs in them."""

    @property
    def home(self) -> str:
        """Its key."""

    def take(self, ask: AllocationAsk, name: str, after: int | None, folder: RunFolder) -> Answer:
        """Call sbatch."""

    def script(self, order: Order) -> bytes:
        """What the step of an order runs. ValueError if it can't be said, HostAway where nobody answers."""


class Taker(Record):
    """`commands` are asked for anew each time: the last submitter says where they are."""

    commands: Callable[[], Commands]
    home: str  # its key
    witness: Witness
    shim: str  # the folder with our srun
    records: str
    own_folder: str  # of Aver's own Slurm commands, which a job on a cluster must not find
    timeout_s: float

    def take(self, ask: AllocationAsk, name: str, after: int | None, folder: RunFolder) -> Answer:
        """Call sbatch."""
        commands = self.commands()
        try:
            script = folder.path / "asks" / f"{ask.name}.sh"
            write_file(script, executor_script(os.fspath(folder.path), ask.headroom_s))
            env = read_env(ask.env_file)
            sbatch, *more = commands.words("sbatch")
            sbatch = shutil.which(sbatch, path=commands.environment()["PATH"]) or sbatch  # the job's PATH is its own
        except ValueError as error:
            return Refusal(f"its allocation can't be asked for: {error}")
        except OSError as error:
            return Unreachable("CantWrite", f"can't write what is handed to sbatch: {error.strerror}")
        env["PATH"] = ":".join(one for one in env.get("PATH", os.defpath).split(":") if one != self.own_folder)
        if commands.conf is not None:
            env["SLURM_CONF"] = commands.conf
        words = [sbatch, *more, *sbatch_options(ask, name, after, os.fspath(folder.path / "log"), ask.folder)]
        call = Call((*words, os.fspath(script)), env, self.timeout_s, umask=ask.umask)
        return read_submission(commands.transport.run(call))

    def script(self, order: Order) -> bytes:
        return step_script(order, self.witness, self.records, self.shim)


def step_script(order: Order, witness: Witness, records: str, shim: str) -> bytes:
    """What the step of an order runs; its limits and nodes come with its start. ValueError if it can't be said."""
    pairs = tuple((name, value) for name, _, value in (pair.partition("=") for pair in order.env))
    member = member_of(order, pairs, is_array=True)
    member = replace(
        member, time_ms=None, warn=None, has_step_limits=True, has_step_nodes=order.has_steps,
        has_own_tasks=order.has_tasks,
    )  # fmt: skip
    return batch_script([member], witness=witness, records=records, shim=shim)


def sbatch_options(ask: AllocationAsk, name: str, after: int | None, log: str, folder: str) -> list[str]:
    """The words of sbatch after its own, of which the user's come first and lose."""
    words = [
        *ask.words, "--parsable", "--export=ALL", "--no-requeue", f"--job-name={name}",
        f"--output={log.replace('%', '%%')}/%j", "--open-mode=append", "--input=/dev/null", f"--chdir={folder}",
    ]  # fmt: skip
    return words if after is None else [*words, f"--dependency=afterany:{after}"]


def outcome_of(answer: Answer) -> Outcome:
    match answer:
        case Handed(id=number):
            return Outcome(id=number)
        case Refusal(text=text):
            return Outcome(refused=text, is_not_taken=True)
        case Busy(reason=reason) | Unreachable(reason=reason):
            return Outcome(is_not_taken=True, reason=reason)
        case Lost():
            return Outcome()
        case _:
            assert_never(answer)


def reason_for(folder: RunFolder, asks: Sequence[Asked]) -> Callable[[Size | None], tuple[str, str]]:
    """Why orders of this run that nobody has taken wait: a word and a sentence, by their size."""
    live = [one for asked in asks for one in asked.allocations if not one.is_over]
    coming = [asked for asked in asks if not asked.is_complete]
    began = [nodes for one in live if one.id is not None and (nodes := folder.nodes(one.id))]
    refused = asks[-1].refused if asks else ""
    also = f"; the last one was refused: {refused}" if refused else ""
    if not live and not coming:
        said = f'no allocation is left; aver allocate {folder.run} "…" takes another{also}'
        return lambda size: (reasons.NO_ALLOCATION, said)
    if not began:
        waits = next((one.reason for one in live if one.reason not in ("", "None", AFTER_ANOTHER)), "")
        waits = waits or next((asked.held_back for asked in coming if asked.held_back), "")
        text = f"its allocation waits in the queue{f': {waits}' if waits else ''}{also}"
        return lambda size: (reasons.ALLOCATION_PENDING, text)

    def reason(size: Size | None) -> tuple[str, str]:
        if size is None or any(sum(node.holds(size) for node in nodes) >= size.nodes for nodes in began):
            time = (
                "too little time" if size is None or not size.seconds else f"less than {duration_words(size.seconds)}"
            )
            return reasons.RESOURCES, f"its allocation has no room for it now, or {time} left{also}"
        asks_for = f"{size.cpus} cpus, {size.mib} MiB, {size.gpus} gpus"
        most = max((node for nodes in began for node in nodes), key=lambda node: (node.cpus, node.mib or 0, node.gpus))
        has = f"{most.cpus} cpus, {most.mib if most.mib is not None else '?'} MiB, {most.gpus} gpus"
        has += f"; --exclude leaves out {', '.join(sorted(size.exclude))}" if size.exclude else ""
        text = f"it asks for {asks_for}; the largest node of its allocation has {has}{also}"
        if size.nodes > 1:
            enough = max(sum(node.holds(size) for node in nodes) for nodes in began)
            asks_for = f"{size.nodes} nodes with {asks_for} each"
            text = f"it asks for {asks_for}; its allocation has {enough} such nodes, and the largest has {has}{also}"
        return reasons.ALLOCATION_TOO_SMALL, text

    return reason
