"""The allocation of one salloc: asked for, held, and given back with the command's own end.

The job's program writes its environment to us when it starts, which is the grant, and then waits for one line:
how the command ended. If that line never comes, since we were killed, it ends by itself a moment later.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from typing import TYPE_CHECKING, Any

from aver.client.batch_submission import refused
from aver.client.origin import origin_of, user_name
from aver.client.slurm_bin import in_front, install
from aver.client.startup_files import entered, interactive
from aver.errors import AverError, UsageError
from aver.home import Home
from aver.model.codec import encode
from aver.model.job import Argv, FlowSpec, JobSpec, Streams, Submission
from aver.model.record import replace
from aver.model.slurm_options import SlurmKind
from aver.protocol import fast_client
from aver.protocol.limits import limits_sentence
from aver.slurm_cli.facts import Book
from aver.slurm_cli.output import say
from aver.slurm_cli.refusal import Refusal
from aver.slurm_cli.salloc.child import Command
from aver.slurm_cli.settings import secret_names
from aver.spec.sbatch.environment import environment_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from aver.slurm_cli.salloc.options import Asked
    from aver.spec.sbatch.call import BatchCall

PENDING_NOTICE_S = 1.0
AGAIN_S = 0.2
_PASSED = ("SLURM_", "AVER_", "CUDA_VISIBLE_DEVICES=")
_OF_A_TASK = ("PROCID", "LOCALID", "NODEID", "GTIDS", "PRIO_PROCESS", "TOPOLOGY_ADDR", "CPUS_ON_NODE", "TASK_PID")
_HOLD = (
    "command -p env -0; printf '\\0'; exec >/dev/null\n"
    'while ! read -r how what; do command -p sleep 5; kill -HUP "$$"; done\n'
    '[ "$how" = exit ] && exit "$what"\n'
    'kill "-$what" "$$"\n'
)
_FOR_EVER = 'while :; do command -p sleep 3600 & wait "$!"; done'


class Allocation:
    def __init__(self, asked: Asked, call: BatchCall, typed: list[str]) -> None:
        self._asked = asked
        self._call = call
        self._home = Home.find()
        self._job = 0
        self._typed = typed
        self._received = b""
        self._line, self._grant = -1, -1
        self._is_gone = False
        self._wire: fast_client.Wire | None = None
        self._wakeups = os.pipe()

    def run(self) -> int:
        """Returns the exit status of salloc."""
        for descriptor in self._wakeups:
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(self._wakeups[1], warn_on_full_buffer=False)
        self._home.prepare()
        install(self._home)
        self._submit()
        if not self._asked.has_shell:
            return self._leave_it()
        try:
            environment = self._await_grant()
            return self._run_command(environment)
        finally:
            os.close(self._line)

    # ---- asking -------------------------------------------------------------------------------

    def _submission(self) -> Submission:
        asked, values = self._asked, self._call.values
        name = "interactive" if asked.is_default else os.path.basename(asked.command[0])
        hold = _HOLD if asked.has_shell else _FOR_EVER
        spec = values.job(JobSpec(name, Argv(("/bin/sh", "-c", hold))))
        spec = replace(
            spec,
            streams=Streams(stdout=None if asked.has_shell else os.devnull),
            folder=None,
            env=(),
            after=self._call.afters,
            has_streams=asked.has_shell,
            slurm=replace(values.slurm(), kind=SlurmKind.SALLOC, command=""),
        )
        return Submission(FlowSpec(spec.name, (spec,), is_single=True), origin_of(tuple(self._typed), secret_names()))

    def _submit(self) -> None:
        environment = environment_of(self._call.values, os.environ)
        request = {"op": "submit", "submission": encode(self._submission()), "env": environment}
        from_us, self._line = os.pipe()
        self._grant, to_us = os.pipe()
        try:
            self._wire = fast_client.connect(os.fspath(self._home.path))
            self._wire.send(request, (from_us, to_us, 2) if self._asked.has_shell else ())
            reply = self._reply()
        except fast_client.Lost as error:
            raise Refusal(f"salloc: error: {error}") from None
        finally:
            os.close(from_us)
            os.close(to_us)
        self._job = reply["run"]
        if reply.get("lower_limits"):
            say(f"salloc: warning: {limits_sentence(reply['lower_limits'])}")
        self._wire.send({"op": "watch", "ids": [self._job]})

    def _reply(self) -> dict[str, Any]:
        assert self._wire is not None
        reply = self._wire.receive()
        if reply.get("ok") is not True:
            raise refused(UsageError(str(reply.get("error"))))
        return reply

    def _await_grant(self) -> list[str]:
        """The environment of the job, once it has the machine."""
        self._await(lambda: b"\0\0" in self._received)
        return [os.fsdecode(pair) for pair in self._received.split(b"\0") if pair]

    def _await(self, is_granted: Callable[[], bool]) -> None:
        """Until it is granted; Refusal when it is not, in the time that there is."""
        began = time.monotonic()
        has_waited = False
        stopped: list[int] = []
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, lambda number, _: stopped.append(number))
        while not is_granted():
            passed = time.monotonic() - began
            if not has_waited and passed >= PENDING_NOTICE_S:
                has_waited = True
                self._asked.tell(f"Pending job allocation {self._job}")
                self._asked.tell(f"job {self._job} queued and waiting for resources")
            patience = self._asked.patience_s
            if stopped or (patience is not None and passed >= patience):
                self._cancel()
                if stopped:
                    raise Refusal(f"salloc: Job allocation {self._job} has been revoked.", 1)
                raise Refusal("salloc: error: Unable to allocate resources: Requested nodes are busy", 1)
            self._hear(self._grant, AGAIN_S)
            if self._is_gone:
                raise Refusal(f"salloc: error: Job allocation {self._job} has been revoked.", 1)
        if has_waited:
            self._asked.tell(f"job {self._job} has been allocated resources")
        self._asked.tell(f"Granted job allocation {self._job}")

    def _leave_it(self) -> int:
        """--no-shell: it stays until it is cancelled, or its time has passed."""
        self._await(self._is_running)
        return 0

    def _is_running(self) -> bool:
        return any(job.is_active for job in Book.open().numbered([self._job]))

    # ---- holding ------------------------------------------------------------------------------

    def _run_command(self, granted: list[str]) -> int:
        own = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_JOB", "SALLOC_"))}
        of_a_task = tuple(f"SLURM_{name}" for name in _OF_A_TASK)
        ours = [pair for pair in granted if pair.startswith(_PASSED) and not pair.startswith(of_a_task)]
        own |= dict(pair.partition("=")[::2] for pair in ours)
        folder = os.fspath(self._home.path / "bin")
        own = entered(own, os.fspath(self._home.path), folder, in_front(folder, own.get("PATH", os.defpath)))
        words = list(self._asked.command)
        if self._asked.is_default:
            words, own = interactive(words[0], own, folder)
        command = Command(words, own, self._asked.folder)
        if not command.start():
            self._relinquish("exit 1")
            return 1
        was_gone = False
        while command.status is None:
            self._hear(self._wakeups[0], AGAIN_S)
            if self._is_gone and not was_gone:
                was_gone = True
                self._asked.tell(f"Job allocation {self._job} has been revoked.")
                command.hear_of_the_end(self._asked.kill_signal)
            command.look()
        command.give_back_terminal()
        raw = command.status
        if not self._is_gone:
            self._relinquish(f"kill {os.WTERMSIG(raw)}" if os.WIFSIGNALED(raw) else f"exit {os.WEXITSTATUS(raw)}")
        return 128 + os.WTERMSIG(raw) if os.WIFSIGNALED(raw) else os.WEXITSTATUS(raw)

    def _relinquish(self, how: str) -> None:
        self._asked.tell(f"Relinquishing job allocation {self._job}")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)
        with contextlib.suppress(OSError):
            os.write(self._line, how.encode() + b"\n")
        while not self._is_gone:
            self._hear(self._wakeups[0], AGAIN_S)

    def _cancel(self) -> None:
        with contextlib.suppress(fast_client.Lost):
            assert self._wire is not None
            self._wire.send({"op": "cancel", "ids": [self._job], "by": user_name()})
            while not self._is_gone:
                self._take(self._wire.receive())

    # ---- hearing ------------------------------------------------------------------------------

    def _hear(self, descriptor: int, seconds: float) -> None:
        """Wait for the coordinator, for `descriptor`, or for a signal, and take what comes."""
        if self._wire is None and not self._connect_again():
            time.sleep(seconds)
            return
        assert self._wire is not None
        try:
            if self._wire.has_message():
                self._take(self._wire.receive())
                return
            ready, _, _ = select.select([self._wire.fileno(), descriptor], [], [], seconds)
            if descriptor in ready:
                with contextlib.suppress(BlockingIOError):
                    data = os.read(descriptor, 1 << 16)
                    self._received += data if descriptor == self._grant else b""
            if self._wire.fileno() in ready:
                self._take(self._wire.receive())
        except fast_client.Lost:
            self._wire = None  # the job runs on meanwhile

    def _connect_again(self) -> bool:
        try:
            self._wire = fast_client.connect(os.fspath(self._home.path))
            self._wire.send({"op": "own", "run": self._job})
            self._wire.send({"op": "watch", "ids": [self._job]})
        except (fast_client.Lost, AverError, OSError):
            self._wire = None
        return self._wire is not None

    def _take(self, message: dict[str, Any]) -> None:
        if self._job in message.get("settled", ()):
            self._is_gone = True
