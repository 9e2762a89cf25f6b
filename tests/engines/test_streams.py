"""Descriptors that are passed on with an order: sent once, in order, and never kept."""

from __future__ import annotations

import os
import select
import socket
import time
from pathlib import Path

import pytest

from aver.engines.api import Order, Rejected, Submitted, Totals
from aver.engines.local.engine import LocalEngine
from aver.engines.local.slot import Slot
from aver.model.evidence import WitnessRecord
from aver.model.job import Request

DEADLINE_S = 20.0


def order(key: str, streams: tuple[int, ...]) -> Order:
    return Order(
        key=key, args=("/bin/sh", "-c", "cat; echo error >&2"), folder="/", env_file=None, env=(), umask=0o22,
        limits=(), request=Request(), stdin=None, stdout=None, stderr=None, append=False, warning=None,
        kill_wait_s=1.0, streams=streams,
    )  # fmt: skip


@pytest.fixture
def pipes() -> tuple[int, ...]:
    """Read and write ends: of the job's stdin, stdout and stderr."""
    return (*os.pipe(), *os.pipe(), *os.pipe())


def test_a_job_reads_and_writes_the_callers_descriptors(
    tmp_path: Path, witness_binary: Path, pipes: tuple[int, ...]
) -> None:
    """The order's streams are the job's; the caller's own stay open, and nobody else holds the job's ends."""
    in_read, in_write, out_read, out_write, err_read, err_write = pipes
    engine = LocalEngine(tmp_path, witness_binary, Totals(1, 0, 1 << 30), None)
    try:
        assert engine.submit([order("s.1", (in_read, out_write, err_write))]) == [Submitted("s.1")]
        os.write(in_write, b"hello\n")
        for fd in (in_read, out_write, err_write, in_write):
            os.close(fd)  # raises if the engine had closed it
        assert os.read(out_read, 100) == b"hello\n"
        assert os.read(err_read, 100) == b"error\n"
        assert (os.read(out_read, 100), os.read(err_read, 100)) == (b"", b"")
        records: list[WitnessRecord] = []
        deadline = time.monotonic() + DEADLINE_S
        while not records and time.monotonic() < deadline:
            select.select([engine], [], [], 0.1)
            records = [heard.evidence for heard in engine.heard() if isinstance(heard.evidence, WitnessRecord)]
        assert [record.key for record in records] == ["s.1"]
        engine.settle(["s.1"])
    finally:
        engine.close()
        for fd in (out_read, err_read):
            os.close(fd)


def test_a_closed_descriptor_is_refused(tmp_path: Path, witness_binary: Path) -> None:
    """A descriptor that is not open: the order is rejected, and the slot takes the next one."""
    engine = LocalEngine(tmp_path, witness_binary, Totals(1, 0, 1 << 30), None)
    try:
        (reply,) = engine.submit([order("s.1", (1 << 30,) * 3)])
        assert isinstance(reply, Rejected)
        assert engine.submit([order("s.2", ())]) == [Submitted("s.2")]
    finally:
        engine.close()


def test_descriptors_wait_with_their_frame(tmp_path: Path, pipes: tuple[int, ...]) -> None:
    """The peer does not read: frames and descriptors come later, in order, also if the caller closed its own."""
    open_first = len(os.listdir("/proc/self/fd"))
    slot = Slot(tmp_path, 1)
    ours, peer = socket.socketpair()
    ours.setblocking(False)
    slot.connection = ours
    poller = select.epoll()
    poller.register(ours, select.EPOLLIN)
    before = b"x" * (1 << 20)
    slot.send(before, poller)
    slot.gather(b"frame", pipes[:3])
    slot.flush(poller)
    for fd in pipes[:3]:
        os.close(fd)
    received, descriptors = b"", []
    while len(received) < len(before) + 5:
        slot.flush(poller)
        data, fds, _, _ = socket.recv_fds(peer, 1 << 16, 3)
        received += data
        descriptors += fds
    assert received == before + b"frame"
    assert len(descriptors) == 3
    slot.send(b"x" * (1 << 20), poller)
    slot.gather(b"frame", pipes[3:])
    slot.disconnect()
    for fd in (*descriptors, *pipes[3:]):
        os.close(fd)
    peer.close()
    poller.close()
    assert len(os.listdir("/proc/self/fd")) == open_first - len(pipes)
