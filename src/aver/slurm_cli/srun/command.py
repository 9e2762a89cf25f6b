"""srun on one machine: a step of the job that it is called in, or, called alone, a job of its own.

Exits as Slurm's does: with the highest shell code of its tasks. Called in loops, so it imports little: what
only a failure, a label or a unit needs is imported then. The plainest case is `srun.c`'s, which becomes this program
when there is something to say or to pass on.
"""

from __future__ import annotations

import os

from aver.errors import AverError, UnreachableError
from aver.fast_start import TYPE_CHECKING, c_signal
from aver.protocol import fast_client
from aver.slurm_cli.output import OutputFailed, failed_line, open_streams, say, show
from aver.slurm_cli.srun.options import (
    CHECKED,
    NOT_SERVED,
    BadSpecification,
    Options,
    add_limits,
    check_mpi,
    environment_of,
    more_nodes,
    number,
    options_run_scripts,
    own_limits,
    own_umask,
    parse,
    patience_s,
    task_count,
)
from aver.slurm_cli.srun.program import args_of
from aver.spec.getopt import BadOption

if TYPE_CHECKING:
    from typing import Any

    from aver.slurm_cli.srun.pty import Terminal
    from aver.slurm_cli.srun.streams import TaskStreams
    from aver.slurm_cli.srun.words import Notices

STATUS_BAD_USAGE = 1
STATUS_BAD_OPTION = 255
FORWARDED = (c_signal.SIGTERM, c_signal.SIGHUP, c_signal.SIGUSR1, c_signal.SIGUSR2, c_signal.SIGQUIT, c_signal.SIGALRM)
AGAIN_S = 1  # a second Ctrl-C within this time ends the step
TOGETHER_S = 2  # at most, between the ends of tasks that were ended together
RECONNECT_TRIES = 50
AS_STEP = "--as-step="  # TOKEN:DESCRIPTOR of a step that srun.c has asked for


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--as-task"]:
        from aver.slurm_cli.srun.task_program import main as become

        return become(arguments[1:])
    open_streams()
    taken = ""
    if arguments and arguments[0].startswith(AS_STEP):
        taken, arguments = arguments[0].removeprefix(AS_STEP), arguments[1:]
    try:
        options = parse(arguments, os.environ)
        if "version" in options.flags:
            from aver.slurm_cli.settings import version_line

            show(f"{version_line()}\n")
            return 0
        if "help" in options.flags or "usage" in options.flags:
            from aver.slurm_cli.srun.about import show_help

            return show_help(options)
        if "mpi" in options.values and not check_mpi(options):
            return 0
        for name in NOT_SERVED:
            if name in options.flags or name in options.values:
                raise BadOption(f"error: --{name} is not supported on one machine")
        if not options.command:
            raise BadOption("fatal: No command given to execute.")
        if options.verbosity and "as-job" not in options.flags:
            from aver.slurm_cli.srun.about import say_options

            say_options(options)
        if "test-only" in options.flags:
            from aver.slurm_cli.srun.other_job import test_only

            return test_only(options)
        if ":" in options.command[:-1]:
            raise BadOption("error: several commands with ` : ` between them are not supported on one machine")
        if "multi-prog" in options.flags:
            from aver.slurm_cli.srun.task_program import read_programs

            read_programs(options)
        if options.get("jobid") not in (None, os.environ.get("SLURM_JOB_ID")):
            from aver.slurm_cli.srun.other_job import enter

            enter(options.get("jobid") or "")
        if not os.environ.get("AVER_KEY"):
            from aver.slurm_cli.srun.own_job import run_alone

            return run_alone(arguments, options)
        if any(name in options.values for name in CHECKED):
            from aver.slurm_cli.srun.step_checks import check_step

            check_step(options)
        return Step(options, taken).run()
    except BadOption as error:
        text = str(error)
        say(f"srun: {text}")
        if not text.startswith(("error", "fatal")):
            say('Try "srun --help" for more information')
            return STATUS_BAD_OPTION
        return STATUS_BAD_OPTION if isinstance(error, BadSpecification) else STATUS_BAD_USAGE
    except fast_client.Lost as error:
        say(f"srun: error: the coordinator can't be reached: {error}")
        return STATUS_BAD_USAGE
    except AverError as error:
        say(f"srun: error: {error}")
        return STATUS_BAD_USAGE
    except OutputFailed as error:
        say(failed_line("srun", error))
        return STATUS_BAD_USAGE


class Step:
    """One step, from the request to its end."""

    def __init__(self, options: Options, taken: str) -> None:
        self._options = options
        token, _, self._inherited = taken.partition(":")
        self._home = os.environ["AVER_HOME"]
        self._key = os.environ["AVER_KEY"]
        self._token = token or os.urandom(16).hex()
        self._tasks = self._task_count()
        self._ends: dict[int, dict[str, Any]] = {}
        self._number = -1
        self._job = 0
        self._node = "localhost"
        self._interrupted_at: float | None = None
        self._has_summed_up = False
        self._said: list[tuple[int, str]] = []
        self._streams: TaskStreams | Terminal | None = None
        self._labels: TaskStreams | None = None
        self._descriptors: tuple[int, ...] = (0, 1, 2)
        self._speaks_first = bool(options.verbosity)  # of the step, before its tasks can write
        self._shares_files = False  # files that all tasks write to, and that are not opened yet
        self._wire: fast_client.Wire | None = None
        self._signals: list[tuple[int | None, str | None]] = []  # that are not sent yet
        self._kill_wait_s = 0.0
        self._notices: Notices | None = None

    def _task_count(self) -> int:
        on_node = os.environ.get("SLURM_CPUS_ON_NODE", "")
        tasks = task_count(self._options, int(on_node) if on_node.isdecimal() else 0)
        if more_nodes(self._options):
            least = (self._options.get("nodes") or "").partition("-")[0]
            raise BadOption(f"error: Only allocated 1 nodes asked for {least}")
        return tasks

    def run(self) -> int:
        request = self._request()
        if options_run_scripts(self._options):
            from aver.slurm_cli.srun.scripts import run_prolog

            run_prolog(self._options)
        try:
            ended = self._begin(request)
            for number_ in FORWARDED:
                c_signal.signal(number_, self._forward)
            c_signal.signal(c_signal.SIGINT, self._interrupt)
            if self._inherited:  # srun.c has held them back for us
                c_signal.pthread_sigmask(c_signal.SIG_UNBLOCK, (*FORWARDED, c_signal.SIGINT))
            while ended is None:
                try:
                    ended = self._listen()
                except fast_client.Lost:
                    ended = self._begin(request)
        finally:
            if self._streams is not None:
                self._streams.finish()
        self._flush_said()
        if self._tasks > 1 and self._has_summed_up:
            self._sum_up()
        if options_run_scripts(self._options):
            from aver.slurm_cli.srun.scripts import run_epilog

            run_epilog(self._options)
        return self._status(ended)

    # ---- asking -------------------------------------------------------------------------------

    def _request(self) -> dict[str, Any]:
        options = self._options
        is_there = "as-job" in options.flags  # our job was begun in that folder
        folder = os.path.join(os.getcwd(), "" if is_there else options.get("chdir") or "")
        spec: dict[str, Any] = {
            "name": options.get("job-name") or os.path.basename(options.command[0]),
            "args": args_of(options, self._home),
            "folder": folder.rstrip("/") or "/",
            "tasks": self._tasks,
            "umask": own_umask(),
        }
        cpus = number(options.get("cpus-per-task"), "cpus-per-task")
        if cpus is not None:
            spec["cpus_per_task"] = cpus
        if options.get("mem") or options.get("mem-per-cpu") or options.get("time") or options.get("signal"):
            add_limits(spec, options)
        if "exact" in options.flags or "exclusive" in options.flags:
            spec["is_exact"] = True
        if "overlap" in options.flags or "overcommit" in options.flags or "oversubscribe" in options.flags:
            spec["is_overlapping"] = True
        if "kill-on-bad-exit" in options.flags and options.get("kill-on-bad-exit") != "0":
            spec["kill_on_bad_exit"] = True
        wait_s = number(options.get("wait"), "wait", least=0)
        if wait_s:
            spec["wait_s"] = wait_s
        if options.get("open-mode") in ("a", "append"):
            spec["append"] = True
        if options.get("propagate") != "NONE":
            spec["limits"] = own_limits(options.get("propagate"))
        if "pty" in options.flags and self._has_terminal():
            from aver.slurm_cli.srun.pty import Terminal

            self._streams = Terminal()
            self._descriptors = (self._streams.slave,) * 3
        else:
            self._place_streams(spec)
        return {"op": "step", "key": self._key, "token": self._token, "spec": spec, "env": environment_of(options)}

    def _has_terminal(self) -> bool:
        if os.isatty(0):
            return True
        say("srun: error: ioctl(TIOCGWINSZ): Inappropriate ioctl for device")
        say("srun: error: Not using a pseudo-terminal, disregarding --pty option")
        return False

    def _place_streams(self, spec: dict[str, Any]) -> None:
        options = self._options
        only: dict[str, int] = {}
        for name, field in (("input", "stdin"), ("output", "stdout"), ("error", "stderr")):
            value = options.get(name)
            if value is None or value == "all":
                continue
            if value.isdigit():
                from aver.slurm_cli.srun.streams import is_task

                if is_task(value, self._tasks):
                    only[field] = int(value)
                    continue
            spec[field] = "/dev/null" if value == "none" else value
        if "stdout" in only and options.get("error") is None:
            only["stderr"] = only["stdout"]
        if "stdin" in spec or "stdout" in spec or "stderr" in spec:
            from aver.slurm_cli.srun.streams import check_files

            check_files(spec)
            self._shares_files = self._tasks > 1 and ("stdout" in spec or "stderr" in spec)
        is_shared_input = self._tasks > 1 and "stdin" not in spec
        if "label" in options.flags or only or (is_shared_input and not _is_null(0)):
            from aver.slurm_cli.srun.streams import TaskStreams

            streams = TaskStreams(self._tasks, "label" in options.flags, is_shared_input and not _is_null(0), only)
            streams.name_files(spec)
            self._streams = self._labels = streams
            if "label" in options.flags or only:
                self._shares_files = False  # the streams write to them

    def _begin(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """Ask for the step, again after the coordinator was away; the ended step if it is over already."""
        from_before = self._wire is not None
        for attempt in range(RECONNECT_TRIES):
            try:
                self._wire = self._connect()
                reply = self._ask(request)
                if (self._shares_files or self._speaks_first) and reply.get("ended") is None:
                    self._number, self._job, self._node = reply["step"], reply["job"], reply["node"]
                    if self._shares_files:
                        self._open_files(request["spec"], reply)
                    if self._speaks_first:
                        say(*self._words().of_start(self._tasks, int(os.environ.get("SLURM_CPUS_ON_NODE") or 1)))
                        self._speaks_first = False
                    reply = self._ask(request)
                break
            except (fast_client.Lost, UnreachableError):  # it is gone, or the next one died while it began
                if attempt + 1 == RECONNECT_TRIES:
                    raise
                _sleep(0.1)
        self._number, self._job, self._node = reply["step"], reply["job"], reply["node"]
        if reply["waiting"] and "immediate" in self._options.flags:
            reply = self._await_room(request, reply)
        if self._labels is not None:  # also of a step that is over: what it wrote is still to be read
            try:
                self._labels.open_files(request["spec"], self._job, self._number, self._node)
            except BadOption:
                self._ask_signal(None)
                raise
        if reply.get("ended") is None:
            self._send_signals()
        self._kill_wait_s = reply.get("kill_wait_s", 0.0)
        if reply["waiting"] and not from_before and "quiet" not in self._options.flags:
            say(f"srun: Job {self._job} step creation temporarily disabled, retrying (Requested nodes are busy)")
        for one in reply["tasks"]:
            self._hear_task(one)
        ended: dict[str, Any] | None = reply.get("ended")
        return ended

    def _connect(self) -> fast_client.Wire:
        """Connect, at first by what srun.c had opened, if that is left."""
        if self._wire is None and self._inherited.isdecimal():
            return fast_client.adopt(int(self._inherited))
        return fast_client.connect(self._home)

    def _await_room(self, request: dict[str, Any], reply: dict[str, Any]) -> dict[str, Any]:
        """The reply when the step has room; BadOption, and no step, where that takes longer than --immediate says."""
        left_s = patience_s(self._options)
        while reply["waiting"] and left_s > 0:
            _sleep(0.1)
            left_s -= 0.1
            reply = self._ask(request)
        if reply["waiting"]:
            self._ask_signal(None)
            raise BadOption(f"error: Unable to create step for job {self._job}: Requested nodes are busy")
        return reply

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send the request, without our descriptors while files are to be opened first; the coordinator's reply."""
        assert self._wire is not None
        self._wire.send(request, () if self._shares_files or self._speaks_first else self._descriptors)
        reply = self._wire.receive()
        while "ok" not in reply:  # what happens meanwhile is in the reply as well
            reply = self._wire.receive()
        if reply["ok"] is not True:
            raise BadOption(f"error: {reply.get('error', 'refused')}")
        return reply

    def _open_files(self, spec: dict[str, Any], reply: dict[str, Any]) -> None:
        """Open what all tasks write to; the step, which waits for it, is taken back where that is not possible."""
        from aver.slurm_cli.srun.streams import open_shared

        try:
            self._descriptors = open_shared(spec, dict(reply["files"]))
        except BadOption:
            self._ask_signal(None)
            raise
        self._shares_files = False

    # ---- listening ----------------------------------------------------------------------------

    def _listen(self) -> dict[str, Any] | None:
        assert self._wire is not None
        if self._streams is not None and not self._wire.has_message():
            self._streams.copy_until(self._wire.fileno())
        message = self._wire.receive()
        if "task" in message:
            self._hear_task(message)
        elif "ended" in message:
            ended: dict[str, Any] = message["ended"]
            return ended
        if not self._wire.has_message() and not self._ends_together():
            self._flush_said()
        return None

    def _ends_together(self) -> bool:
        """Whether more is heard in a moment of tasks that are being ended together: one line says it of all."""
        assert self._wire is not None
        if not self._said or not all(self._ends[task]["because"] for task, _ in self._said):
            return False
        import select

        return bool(select.select([self._wire.fileno()], [], [], TOGETHER_S)[0])

    def _hear_task(self, message: dict[str, Any]) -> None:
        task = message["task"]
        if task in self._ends:
            return
        if message["state"] != "COMPLETED" or message["because"]:
            self._notice(message)
        self._ends[task] = message
        if self._options.verbosity:
            say(*self._words().of_task_end(task, message["raw"]))
        if message["raw"] == 0 and message["state"] != "OUT_OF_MEMORY":
            return
        from aver.slurm_cli.srun.words import task_words

        before, words = task_words(message)
        say(*before)
        self._said.append((task, words))
        if self._tasks > 1 and not self._has_summed_up and not message["because"]:
            self._flush_said()
            self._has_summed_up = True
            if len(self._ends) < self._tasks:
                self._sum_up()

    def _notice(self, message: dict[str, Any]) -> None:
        """Say how the step is being ended, in Slurm's words, once."""
        notices = self._words()
        if not message["because"]:
            lines = notices.of_task(message)
        else:
            own = {task: one for task, one in self._ends.items() if not one["because"]}
            failed = any(one["state"] != "COMPLETED" for one in own.values())
            if failed and "kill-on-bad-exit" in self._options.flags:
                lines = notices.of_bad_exit()
            else:
                lines = notices.of_wait(self._options.get("wait") or "0", self._tasks, own)
        say(*lines)

    def _words(self) -> Notices:
        if self._notices is None:
            from aver.slurm_cli.srun.words import Notices

            self._notices = Notices(f"{self._job}.{self._number}", self._node, self._kill_wait_s)
        return self._notices

    def _flush_said(self) -> None:
        """Say the same of several tasks at once: `tasks 0,2-3: Terminated`."""
        said, self._said = self._said, []
        groups: dict[str, list[int]] = {}
        for task, words in said:
            groups.setdefault(words, []).append(task)
        for words, tasks in groups.items():
            from aver.slurm_cli.srun.words import ranges

            say(f"srun: error: {self._node}: {'tasks' if len(tasks) > 1 else 'task'} {ranges(sorted(tasks))}: {words}")

    def _sum_up(self) -> None:
        from aver.slurm_cli.srun.words import summary

        say(summary(f"{self._job}.{self._number}", self._tasks, self._ends))

    def _status(self, ended: dict[str, Any]) -> int:
        code = ended["code"]
        if code != 0:
            say(*self._words().of_end(ended["state"], self._ends))
        if code is None:
            say(f"srun: error: nobody saw how step {self._job}.{self._number} ended")
            return STATUS_BAD_USAGE
        if "as-job" in self._options.flags and ended["state"] != "OUT_OF_MEMORY":
            from aver.slurm_cli.srun.as_job import end_as_the_step

            return end_as_the_step(int(code), list(self._ends.values()))
        return int(code)

    # ---- signals ------------------------------------------------------------------------------

    def _forward(self, number_: int, _: object) -> None:
        self._ask_signal(number_)

    def _interrupt(self, number_: int, _: object) -> None:
        """Ctrl-C once shows the tasks, or is theirs with -X; twice within a second, or with the option, kills them."""
        import time

        flags, now = self._options.flags, time.monotonic()
        is_again = self._interrupted_at is not None and now - self._interrupted_at < AGAIN_S
        ends = is_again or "quit-on-interrupt" in flags
        self._interrupted_at = now
        if not ends and "disable-status" not in flags:
            say("srun: interrupt (one more within 1 sec to abort)", *self._words().status(self._tasks, self._ends))
            return
        say(f"srun: sending Ctrl-C to StepId={self._job}.{self._number}")
        self._ask_signal(c_signal.SIGINT)
        if ends:
            from aver.protocol.place import user_name

            say("srun: forcing job termination")
            self._ask_signal(None, user_name())

    def _ask_signal(self, number_: int | None, by: str | None = None) -> None:
        """Have the signal sent, now or when there is a coordinator again. Called from signal handlers: never raises."""
        self._signals.append((number_, by))
        self._send_signals()

    def _send_signals(self) -> None:
        while self._signals and self._wire is not None:
            number_, by = self._signals.pop(0)
            request = {"op": "signal_step", "key": self._key, "step": self._number, "signal": number_, "by": by}
            try:
                self._wire.send(request)
            except fast_client.Lost:  # whoever reads the connection sees that too
                self._signals.insert(0, (number_, by))
                return


def _is_null(descriptor: int) -> bool:
    try:
        return os.fstat(descriptor).st_rdev == os.makedev(1, 3)
    except OSError:
        return True


def _sleep(seconds: float) -> None:
    import time

    time.sleep(seconds)
