"""What watchers are told after a commit."""

from __future__ import annotations

import select
import socket
from pathlib import Path

from aver.coordinator.server import Server
from aver.coordinator.state.live import Identity
from aver.coordinator.state.machine import Machine
from aver.coordinator.watchers import Watchers
from aver.engines.api import Heard
from aver.engines.registry import capabilities_of
from aver.model.evidence import WitnessRecord, WitnessStart
from aver.model.exit import ExitStatus
from aver.model.job import Argv, FlowSpec, JobSpec, Origin, Submission
from aver.plan.packing import Room


def open_nothing() -> None:
    raise AssertionError("the store was opened")


def test_a_run_whose_end_is_in_the_commit_is_not_looked_up(tmp_path: Path) -> None:
    """To open the store takes longer than all else between a commit and the push."""
    machine = Machine(Identity("0123abcd", "b" * 32, "here"), Room.of(2, 0, 1 << 40), 1, capabilities_of)
    flow = FlowSpec("flow", (JobSpec("one", Argv(("true",))),), is_single=True)
    run = machine.submit(Submission(flow, Origin("tester", 1, "here", "/", 0o22)), 1.0)
    machine.schedule(1.0)
    events, machine.out.events = machine.out.events, []
    machine.committed(events, 1.0)
    key = machine.by_job[run.number].key
    machine.heard(Heard(key, "witness", "start", WitnessStart(key, 5, 4, 1.0)), 1.0)
    machine.heard(Heard(key, "witness", "end", WitnessRecord(key, 5, ExitStatus(), 1.0, 1.0)), 2.0)
    server = Server(tmp_path, select.epoll())
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(str(tmp_path / "sock"))
        server.accept()
        peer = next(iter(server.peers.values()))
        peer.watches, peer.is_foreground = {run.number}, True
        Watchers(server, machine, open_nothing).tell(machine.out.events)
        assert client.recv(4096) == b'{"changed":[%d],"settled":[%d]}\n' % (run.number, run.number)
    server.close()
