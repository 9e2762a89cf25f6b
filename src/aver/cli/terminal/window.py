"""Our terminal as a window on a job's: keys go to the job, what it draws comes back.

Our terminal is raw meanwhile, so that Ctrl-C and its like reach the job; it is as before when we leave.
"""

from __future__ import annotations

import fcntl
import os
import select
import socket
import termios
import time
import tty

from aver.cli.session import Session
from aver.cli.terminal.host import KEYS, SIZE, connect, frame, has_terminal
from aver.errors import UsageError
from aver.model.job import Argv
from aver.model.states import State
from aver.store.read.rows import JobRow

DETACH = b"\x1c"  # Ctrl-\
LEFT = b"\x1b[?1049l\x1b[?25h\x1b[0m\r\n"  # of a program that draws the whole screen and goes on without us
CHUNK_BYTES = 1 << 14
LOOK_S = 0.2  # how often the window's size, and a job that has not started, is looked at
PATIENCE_S = 1.0  # before it is said that the job has not started
STARTING_S = 30.0  # for a job that runs until its terminal is there


def attach(session: Session, job: JobRow) -> bool:
    """Show the job's terminal until the job has ended; False: detached, the job goes on."""
    command = session.spec(job).command
    if not isinstance(command, Argv) or not has_terminal(command.args):
        raise UsageError(
            f"job {job.id} has no terminal: start jobs with --pty; `aver log {job.id} -f` shows its output"
        )
    connection = _connected(session, job)
    if connection is None:
        return True
    session.output.note(f"attached to job {job.id}; Ctrl-\\ detaches, and the job goes on")
    with connection:
        has_ended = _copy(connection)
    if not has_ended:
        session.output.note(f"detached; job {job.id} goes on; aver attach {job.id}")
    return has_ended


def _connected(session: Session, job: JobRow) -> socket.socket | None:
    """Wait for the job to start; None if it has ended."""
    told, running_since, begin = False, None, time.monotonic()
    while True:
        row = session.found_reader(str(job.id)).job(job.id) or job
        if row.state.is_settled:
            return None
        if (connection := connect(session.home, job.id)) is not None:
            return connection
        if row.state is State.PENDING:
            running_since = None
            if not told and time.monotonic() - begin >= PATIENCE_S:
                told = True
                session.output.note(f"waiting for job {job.id} to start; aver why {job.id}")
        elif running_since is None:
            running_since = time.monotonic()
        elif time.monotonic() - running_since > STARTING_S:
            raise UsageError(f"the terminal of job {job.id} does not answer; `aver log {job.id} -f` shows its output")
        time.sleep(LOOK_S)


def _copy(connection: socket.socket) -> bool:
    """Copy in both directions; whether the job has ended."""
    before = termios.tcgetattr(0)
    size = b""
    try:
        tty.setraw(0, termios.TCSADRAIN)
        while True:
            now = fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(8))
            if now != size:
                size = now
                connection.sendall(frame(SIZE, size))
            ready = select.select([0, connection.fileno()], [], [], LOOK_S)[0]
            if connection.fileno() in ready:
                data = connection.recv(CHUNK_BYTES)
                if not data:
                    return True
                _write(data)
            if 0 in ready:
                typed = os.read(0, CHUNK_BYTES)
                keys, detach, _ = typed.partition(DETACH)
                if keys:
                    connection.sendall(frame(KEYS, keys))
                if detach or not typed:
                    _write(LEFT)
                    return False
    except (BrokenPipeError, ConnectionResetError):
        return True
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]
