"""What a job on another host wrote, while it is there and not here: copied, or followed, through ssh.

A copy in a temporary file is all that the rest of `aver log` needs. A connection that is lost is taken up again where
the copy ends; the last byte is asked for once more when the job is settled.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
import threading
import time
from types import TracebackType

from aver.cli.session import Session
from aver.client.output_paths import synced_folders
from aver.config import load_config
from aver.engines.registry import capabilities_of
from aver.engines.slurm.commands.call import Reply
from aver.engines.slurm.remote.cluster import path_there, ssh_to
from aver.engines.slurm.remote.ssh import Ssh
from aver.errors import AverError, UnreachableError
from aver.store.read.rows import JobRow

TIMEOUT_S = 600.0
PAUSE_S = 1.0
MISSING = 66


class RemoteLog:
    """A file on a host, and its copy: `path`, from `offset` of the file on."""

    def __init__(self, ssh: Ssh, there: str) -> None:
        self._ssh = ssh
        self._there = shlex.quote(there)
        self.name = f"{ssh.host}:{there}"
        handle, self.path = tempfile.mkstemp(prefix="aver-log-")
        self._file = os.fdopen(handle, "ab", buffering=0)
        self._offset = 0
        self._following: subprocess.Popen[bytes] | None = None
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> RemoteLog:
        return self

    def __exit__(self, *exception: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._stop()
        self._file.close()
        os.unlink(self.path)

    def begin_at_last(self, lines: int) -> None:
        """Leave out all but the last lines that are there now."""
        text = f"f={self._there}; s=$(stat -c %s -- $f) && t=$(tail -n {lines} -- $f | wc -c) && echo $((s - t))"
        reply = self._ssh.run_text(text.replace("$f", '"$f"'), TIMEOUT_S)
        if isinstance(reply, Reply) and reply.out.strip().isdecimal():
            self._offset = max(0, int(reply.out.strip()))

    def copy(self) -> None:
        """Copy what is there now; an error says why it can't be."""
        status, said = self._run(f"[ -e {self._there} ] || exit {MISSING}; exec tail -c +{self._next} -- {self._there}")
        if status == MISSING:
            raise AverError(f"{self.name} is not there yet")
        if status != 0:
            raise UnreachableError(f"can't read {self.name}: {said or f'ssh: exit status {status}'}")

    def follow(self) -> None:
        """Copy what comes, in a thread of its own, until `finish`."""
        self._thread = threading.Thread(target=self._work, name="follow", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Copy the rest; the copy is then whole, unless the host can't be reached."""
        self._stop()
        try:
            self.copy()
        except AverError:
            pass

    @property
    def _next(self) -> int:
        return self._offset + os.fstat(self._file.fileno()).st_size + 1

    def _work(self) -> None:
        while not self._is_over.is_set():
            self._run(f"exec tail -c +{self._next} -F -- {self._there} 2>/dev/null")
            self._is_over.wait(PAUSE_S)

    def _run(self, text: str) -> tuple[int, str]:
        words = [*self._ssh.command(), "--", self._ssh.host, f"exec sh -c {shlex.quote(text)}"]
        try:
            self._following = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=self._file, stderr=subprocess.PIPE, env=self._ssh.environment()
            )
        except OSError as error:
            return 255, error.strerror or "ssh can't be started"
        process = self._following
        if self._is_over.is_set() and self._thread is threading.current_thread():
            process.terminate()
        assert process.stderr is not None
        said = b""
        while process.poll() is None:
            time.sleep(0.02)
        os.set_blocking(process.stderr.fileno(), False)
        said = process.stderr.read() or b""
        process.stderr.close()
        return process.returncode, said.decode("utf-8", "replace").strip().rpartition("\n")[2]

    def _stop(self) -> None:
        self._is_over.set()
        if self._thread is not None:
            if self._following is not None:
                self._following.terminate()
            self._thread.join(timeout=10)


def find_remote(session: Session, job: JobRow, path: str) -> RemoteLog | None:
    """The file on the job's host; None: it is to be read here."""
    submission = session.submission(job.run)
    spec = session.spec(job)
    host = submission.host if spec.host is None else spec.host
    if not host or not capabilities_of(spec.engine or submission.engine).takes_sbatch_options:
        return None
    folders = synced_folders(submission.flow.sync, submission.origin.folder)
    there = path_there(session.home, host, path, folders)
    is_copy = there is not None and there != path
    if there is None or (os.path.exists(path) and (job.state.is_settled or not is_copy)):
        return None
    return RemoteLog(ssh_to(session.home, load_config(), host), there)
