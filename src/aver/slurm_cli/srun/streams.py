"""The streams of srun's tasks: the files of -i, -o and -e, labels before lines, and one input for all.

Whether files can be opened is found before a step is asked for. A name with a pattern is left to the witness, which
knows the task; fifos and devices are not opened here, so that nothing is waited for.

With labels, or one input for many, each task reads and writes fifos in a folder of srun's; srun copies. Nothing is
lost: what a task wrote before it ended is copied before srun ends.
"""

from __future__ import annotations

import os
import resource
import select

from aver.fast_start import TYPE_CHECKING
from aver.slurm_cli.output import say
from aver.spec.getopt import BadOption

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

CHUNK_BYTES = 1 << 16
LONGEST_LINE_BYTES = 1 << 20


def check_files(spec: Mapping[str, Any]) -> None:
    """BadOption with Slurm's sentence for the first that can't be opened."""
    for field in ("stdin", "stdout", "stderr"):
        name = spec.get(field)
        if name is None or "%" in name:
            continue
        try:
            _try(os.path.join(spec["folder"], name), field == "stdin", spec["umask"])
        except OSError as error:
            raise BadOption(f"error: Could not open {field} file: {error.strerror}") from None


def _try(path: str, is_input: bool, umask: int) -> None:
    import stat

    flags = os.O_RDONLY if is_input else os.O_WRONLY
    try:
        kind = os.stat(path).st_mode
    except FileNotFoundError:
        if is_input:
            raise
        flags |= os.O_CREAT
        make_folder(path)
    else:
        if stat.S_ISDIR(kind) and is_input:
            return
        if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
            return
    os.close(os.open(path, flags | os.O_CLOEXEC, 0o666 & ~umask))


def make_folder(path: str) -> None:
    """The folders above a file that is to be written, as srun makes them; what fails is told by the file's opening."""
    try:
        os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
    except OSError:
        pass


def open_shared(spec: Mapping[str, Any], files: Mapping[str, str]) -> tuple[int, ...]:
    """Open the files that all tasks of the step write to; the descriptors for its standard streams.

    Each file is opened and truncated once, so that no task writes over what another one has written.
    """
    opened: dict[str, int] = {}
    mode = os.O_APPEND if spec.get("append") else os.O_APPEND | os.O_TRUNC
    for field, path in files.items():
        if path in opened:
            continue
        opened[path] = _open_output(path, field, mode)
    out = opened.get(files.get("stdout", ""), 1)
    is_apart = "stderr" in spec or "stdout" not in files
    return 0, out, opened.get(files.get("stderr", ""), 2) if is_apart else out


def _open_output(path: str, field: str, mode: int) -> int:
    make_folder(path)
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | mode, 0o666)
    except OSError as error:
        raise BadOption(f"error: Could not open {field} file: {error.strerror}") from None


def is_task(value: str, tasks: int) -> bool:
    """Whether the name of a file is the number of a task: the stream is then that task's alone."""
    return value.isascii() and value.isdigit() and len(value) < 9 and int(value) < tasks


class TaskStreams:
    """`only`: the streams that belong to one task; those of the others are empty."""

    def __init__(self, tasks: int, is_labelled: bool, has_input: bool, only: Mapping[str, int]) -> None:
        import tempfile  # costs more than the rest

        self._folder = tempfile.mkdtemp(prefix="srun.")
        self._poller = select.epoll()
        self._sources: dict[int, tuple[int, str]] = {}  # descriptor -> task, stream
        self._patterns: dict[str, str] = {}  # of the files that the lines of a stream go to
        self._targets: dict[tuple[int, str], int] = {}  # task, stream -> where its lines go; else to ours
        self._closed: set[int] = set()  # targets that take no more
        self._partial: dict[int, bytes] = {}
        self._width = len(str(tasks - 1))
        self._is_labelled = is_labelled
        self._inputs: dict[int, bytes] = {}
        self._has_input = has_input
        self._tasks = tasks
        self._only = only

    def name_files(self, spec: dict[str, Any]) -> None:
        """Make the fifos and put their pattern into the step. Lines with labels are written to its files by us.

        BadOption if we may not open as many. The tasks have our limits of before: `own_limits` has read them.
        """
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        try:
            self._open_fifos(spec)
        except OSError as error:
            self._remove_folder()
            raise BadOption(f"error: Could not open the streams of {self._tasks} tasks: {error.strerror}") from None

    def _open_fifos(self, spec: dict[str, Any]) -> None:
        if self._is_labelled and "stdout" in spec:
            spec.setdefault("stderr", spec["stdout"])
        for field, name in (("stdout", "out"), ("stderr", "err")):
            if spec.get(field) == os.devnull or not (self._is_labelled or field in self._only):
                continue
            if field in spec:
                self._patterns[field] = spec[field]
            spec[field] = os.path.join(self._folder, "%t." + name)
            for task, path in self._fifos(field, name):
                descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
                self._sources[descriptor] = (task, field)
        if self._has_input:
            spec["stdin"] = os.path.join(self._folder, "%t.in")
            for _, path in self._fifos("stdin", "in"):
                self._inputs[os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)] = b""
            try:
                self._poller.register(0, select.EPOLLIN)
            except PermissionError:  # a plain file is always readable
                self._read_input()

    def _fifos(self, field: str, name: str) -> Iterator[tuple[int, str]]:
        """A fifo for each task that has the stream; the others have an empty one."""
        for task in range(self._tasks):
            path = os.path.join(self._folder, f"{task}.{name}")
            if self._only.get(field, task) == task:
                os.mkfifo(path, 0o600)
                yield task, path
            else:
                os.symlink(os.devnull, path)

    def open_files(self, spec: Mapping[str, Any], job: int, step: int, node: str) -> None:
        """Open the files that lines with labels go to, now that the step has its number; BadOption if one can't be."""
        if not self._patterns or self._targets:
            return
        from aver.spec.patterns import Facts, expand_pattern

        env = os.environ
        array, member = env.get("SLURM_ARRAY_JOB_ID", ""), env.get("SLURM_ARRAY_TASK_ID", "")
        names = (int(array) if array.isdigit() else job, env.get("SLURM_JOB_NAME", ""), env.get("SLURM_JOB_USER", ""))
        opened: dict[str, int] = {}
        mode = os.O_APPEND if spec.get("append") else os.O_APPEND | os.O_TRUNC
        for field, pattern in self._patterns.items():
            for task in range(self._tasks):
                facts = Facts(job, *names, node, int(member) if member.isdigit() else None, step, task)
                path = os.path.join(spec["folder"], expand_pattern(pattern, facts))
                if path not in opened:
                    opened[path] = _open_output(path, field, mode)
                self._targets[task, field] = opened[path]

    def copy_until(self, descriptor: int) -> None:
        """Copy what comes until `descriptor` is readable."""
        self._poller.register(descriptor, select.EPOLLIN)
        try:
            while True:
                # A fifo that no task has opened yet counts as hung up: look at those at times instead.
                ready = [fd for fd, _ in self._poller.poll(0.02)]
                if 0 in ready:
                    self._read_input()
                self._write_inputs()
                self._read_sources()
                if descriptor in ready:
                    return
        finally:
            self._poller.unregister(descriptor)

    def _read_sources(self) -> None:
        for source in list(self._sources):
            self._read(source)

    def _read(self, source: int) -> bool:
        """Copy what the source has; whether there was anything."""
        task, field = self._sources[source]
        try:
            data = os.read(source, CHUNK_BYTES)
        except BlockingIOError:
            return False
        if not data:
            return False
        if not self._is_labelled:
            self._put(task, field, data)
            return True
        lines = (self._partial.pop(source, b"") + data).split(b"\n")
        if len(lines[-1]) > LONGEST_LINE_BYTES:
            lines.append(b"")
        for line in lines[:-1]:
            self._put(task, field, self._label(task) + line + b"\n")
        if lines[-1]:
            self._partial[source] = lines[-1]
        return True

    def _put(self, task: int, field: str, data: bytes) -> None:
        """Write it to where the stream goes. What can't be written is dropped: the task goes on, and so do we."""
        target = self._targets.get((task, field), 1 if field == "stdout" else 2)
        if target in self._closed:
            return
        try:
            _write(target, data)
        except OSError as error:
            self._closed.add(target)
            if not isinstance(error, BrokenPipeError):  # whoever read it has read enough
                say(f"srun: error: {field} of the tasks can't be written: {error.strerror}")

    def _label(self, task: int) -> bytes:
        return f"{task:{self._width}d}: ".encode()

    def _read_input(self) -> None:
        while True:
            try:
                data = os.read(0, CHUNK_BYTES)
            except BlockingIOError:
                return
            if not data:
                break
            for descriptor in self._inputs:
                self._inputs[descriptor] += data
            if self._poller_has_input():
                return
        self._has_input = False
        if self._poller_has_input():
            self._poller.unregister(0)

    def _poller_has_input(self) -> bool:
        try:
            self._poller.modify(0, select.EPOLLIN)
        except (FileNotFoundError, PermissionError):
            return False
        return True

    def _write_inputs(self) -> None:
        for descriptor in list(self._inputs):
            data = self._inputs[descriptor]
            if data:
                try:
                    self._inputs[descriptor] = data[os.write(descriptor, data[:4096]) :]
                except BlockingIOError:
                    continue
            elif not self._has_input and _is_drained(descriptor):
                del self._inputs[descriptor]
                os.close(descriptor)

    def finish(self) -> None:
        """All tasks have ended: copy what is left, and go."""
        for source in list(self._sources):
            while self._read(source):
                pass
            rest = self._partial.pop(source, b"")
            if rest:
                task, field = self._sources[source]
                self._put(task, field, self._label(task) + rest + b"\n")
        self._remove_folder()

    def _remove_folder(self) -> None:
        import shutil

        shutil.rmtree(self._folder, ignore_errors=True)


def _is_drained(descriptor: int) -> bool:
    """Whether the task has read all that the fifo holds; closed before that, it would be lost."""
    import fcntl
    import termios

    return fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)) == bytes(4)


def _write(target: int, data: bytes) -> None:
    """Write all of it; raise OSError where that can't be done."""
    while data:
        try:
            data = data[os.write(target, data) :]
        except BlockingIOError:
            select.select([], [target], [])
