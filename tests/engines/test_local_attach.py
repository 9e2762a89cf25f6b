"""What an engine that comes back makes of a witness that is in the middle of something."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import threading
import zlib
from pathlib import Path

import pytest

from aver.engines.api import Control, NotListed, Order, Rejected, Seen, Submitted, Totals
from aver.engines.local import engine as local
from aver.engines.local import slot as slot_module
from aver.engines.local import watchdog
from aver.engines.local.census import living_witnesses
from aver.engines.local.slot import Slot
from aver.model.evidence import Resumed, Suspended, WitnessRecord, WitnessStart, WitnessVanished
from aver.model.exit import ExitStatus
from aver.model.job import Request
from aver.model.record import replace
from aver.witness import binary
from live_home import is_alive, wait_for

END = {
    "ev": "end", "witness": 9, "pid": 8, "boot": "b", "raw": 0, "start": 1.0, "elapsed": 1.0, "suspended": 0.0,
    "user": 0.0, "sys": 0.0, "maxrss": 1, "peak": None, "mem": "none", "limit": None, "oom": 0, "hostoom": 0,
    "acts": [], "got": [], "left": 0, "launch": None,
}  # fmt: skip

ORDER = Order(
    key="three", args=("/bin/true",), folder="/", env_file=None, env=(), umask=0o22, limits=(),
    request=Request(), stdin=None, stdout=None, stderr=None, append=False, warning=None, kill_wait_s=1.0,
)  # fmt: skip


def _line(words: dict[str, object]) -> bytes:
    body = json.dumps(words).encode()
    return b"%08x %08x %s\n" % (len(body), zlib.crc32(body), body)


def test_witness_that_runs_the_next_job(tmp_path: Path) -> None:
    """Its journal has an end and then a beginning: it is busy, and gets no order."""
    journal = b"".join(
        [
            _line({"ev": "begin", "key": "one", "at": 1.0, "boot": "b"}),
            _line({**END, "key": "one", "size": 100}),
            _line({"ev": "begin", "key": "two", "at": 2.0, "boot": "b"}),
        ]
    )
    (tmp_path / "1.log").write_bytes(journal)
    hello = {
        "ev": "hello",
        "witness": 9,
        "key": "two",
        "pid": 7,
        "start": 2.0,
        "due": None,
        "protocol": 11,
        "journal": len(journal),
    }
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "1.sock"))
        listener.listen()

        def witness() -> None:
            connection, _ = listener.accept()
            connection.sendall(_line(hello))
            connection.recv(1)

        thread = threading.Thread(target=witness, daemon=True)
        thread.start()
        engine = local.LocalEngine(tmp_path, Path("/no/such/witness"), Totals(cpus=1, gpus=0, mem_bytes=1 << 30), None)
        try:
            engine.attach()
            assert engine.observe(["two"]) == [Seen("two")]
            assert isinstance(engine.submit([ORDER])[0], Rejected)
        finally:
            engine.close()
            thread.join(20)


def test_an_end_that_the_journal_has_lost(tmp_path: Path) -> None:
    """The next attempt has begun, so the one before it has ended, and nobody will ever say how: that is told."""
    lost = b"\0" * 300 + b"\n"
    begins = [_line({"ev": "begin", "key": key, "at": 1.0, "boot": "b"}) for key in ("one", "two")]
    (tmp_path / "1.log").write_bytes(begins[0] + lost + begins[1] + _line({**END, "key": "two", "size": 700}))
    engine = local.LocalEngine(tmp_path, Path("/no/such/witness"), Totals(cpus=1, gpus=0, mem_bytes=1 << 30), None)
    try:
        engine.attach()
        heard = {one.key: type(one.evidence) for one in engine.heard()}
        assert heard == {"one": WitnessVanished, "two": WitnessRecord}
        engine.settle(["two"])
        assert (tmp_path / "1.log").exists()
        engine.settle(["one"])
        assert not (tmp_path / "1.log").exists()
    finally:
        engine.close()


@pytest.mark.parametrize("padding", [0, 2000])
def test_witness_that_cut_its_journal_while_we_attached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, padding: int
) -> None:
    """It took a last order of the coordinator before us after we had read its journal: the attempt is seen to run."""
    folder = tmp_path
    journal = folder / "1.log"
    past = _line({"ev": "begin", "key": "one", "at": 1.0, "boot": "b"})
    journal.write_bytes(past + _line({**END, "key": "one", "size": len(past)}))
    was_read = threading.Event()
    read_journal = Slot.read_journal

    def read_and_tell(slot: Slot) -> list[bytes]:
        lines = read_journal(slot)
        was_read.set()
        return lines

    monkeypatch.setattr(Slot, "read_journal", read_and_tell)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "1.sock"))
    listener.listen()

    def witness() -> None:
        connection, _ = listener.accept()
        was_read.wait(20)
        begin = _line({"ev": "begin", "key": "two", "at": 2.0, "boot": "b" * padding})
        journal.write_bytes(begin)
        hello = {
            "ev": "hello",
            "witness": 9,
            "key": "two",
            "pid": 7,
            "start": 2.0,
            "due": None,
            "protocol": 11,
            "journal": len(begin),
        }
        connection.sendall(_line(hello))
        connection.recv(1)

    thread = threading.Thread(target=witness, daemon=True)
    thread.start()
    engine = local.LocalEngine(folder, Path("/no/such/witness"), Totals(cpus=1, gpus=0, mem_bytes=1 << 30), None)
    try:
        engine.attach()
        assert engine.observe(["one", "two", "three"]) == [Seen("one"), Seen("two"), NotListed("three")]
        assert [heard.key for heard in engine.heard()] == ["one", "two"]
        assert isinstance(engine.submit([ORDER])[0], Rejected), "it has no room: only a new witness could take an order"
    finally:
        engine.close()
        listener.close()
        thread.join(20)


@pytest.mark.parametrize(("says", "reply"), [({"due": None, "protocol": 11}, Submitted), ({"due": None}, Rejected)])
def test_an_idle_witness_of_an_earlier_version_gets_no_order(
    tmp_path: Path, says: dict[str, object], reply: type[object]
) -> None:
    """It would refuse fields that it does not know; as its connection ends, it leaves."""
    (tmp_path / "1.log").write_bytes(b"")
    hung_up = threading.Event()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "1.sock"))
        listener.listen()

        def witness() -> None:
            connection, _ = listener.accept()
            connection.sendall(_line({"ev": "hello", "witness": 9, "key": None, "pid": None, "start": None, **says,
                                      "journal": 0}))  # fmt: skip
            while connection.recv(4096):
                pass
            hung_up.set()

        thread = threading.Thread(target=witness, daemon=True)
        thread.start()
        engine = local.LocalEngine(tmp_path, Path("/no/such/witness"), Totals(cpus=1, gpus=0, mem_bytes=1 << 30), None)
        try:
            engine.attach()
            assert isinstance(engine.submit([ORDER])[0], reply)
            assert reply is Submitted or hung_up.wait(20)
        finally:
            engine.close()
            thread.join(20)


@pytest.mark.parametrize(("protocol", "is_heard"), [(10, True), (11, False)])
def test_a_witness_of_an_earlier_version_does_not_say_that_its_job_is_suspended(
    tmp_path: Path, protocol: int, is_heard: bool
) -> None:
    """It obeys, so the job is not waited for in vain after an upgrade; what is heard says whose word it is."""
    begin = _line({"ev": "begin", "key": "one", "at": 1.0, "boot": "b"})
    (tmp_path / "1.log").write_bytes(begin)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "1.sock"))
        listener.listen()

        def witness() -> None:
            connection, _ = listener.accept()
            connection.sendall(_line({"ev": "hello", "witness": 9, "key": "one", "pid": 7, "start": 1.0, "due": None,
                                      "protocol": protocol, "journal": len(begin)}))  # fmt: skip
            while connection.recv(4096):
                pass

        thread = threading.Thread(target=witness, daemon=True)
        thread.start()
        engine = local.LocalEngine(tmp_path, Path("/no/such/witness"), Totals(cpus=1, gpus=0, mem_bytes=1 << 30), None)
        try:
            engine.attach()
            engine.heard()
            engine.control([Control("one", verb) for verb in ("suspend", "limit", "resume")])
            said = [(one.source, type(one.evidence)) for one in engine.heard()]
            assert said == ([("engine", Suspended), ("engine", Resumed)] if is_heard else [])
        finally:
            engine.close()
            thread.join(20)


def test_witness_that_lives_and_cant_be_reached(tmp_path: Path) -> None:
    """Its socket's file is gone, and it has no other: it is watched as a process, and its journal says how it went."""
    journal = tmp_path / "1.log"
    begin = _line({"ev": "begin", "key": "one", "at": 1.0, "boot": "b"})
    journal.write_bytes(begin)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "gone"))
        listener.listen()
        actions = [
            (os.POSIX_SPAWN_OPEN, 4, str(journal), os.O_WRONLY | os.O_APPEND, 0),
            (os.POSIX_SPAWN_DUP2, listener.fileno(), 3),
        ]
        pid = os.posix_spawn("/bin/sleep", ["/bin/sleep", "1000"], {}, file_actions=actions)
    engine = local.LocalEngine(tmp_path, Path("/no/such/witness"), Totals(cpus=1, gpus=0, mem_bytes=1 << 30), None)
    try:
        engine.attach()
        assert engine.observe(["one"]) == [Seen("one")]
        assert engine.heard() == []
        with journal.open("ab") as file:
            file.write(_line({**END, "key": "one", "size": len(begin)}))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        assert [one.evidence.exit for one in engine.heard() if isinstance(one.evidence, WitnessRecord)] == [
            ExitStatus(0)
        ]
    finally:
        engine.close()


def test_an_end_that_is_not_durable_outlives_the_next_orders(tmp_path: Path) -> None:
    """What is settled in another order than it ended: the journal keeps the end that nobody has stored yet."""
    totals = Totals(cpus=1, gpus=0, mem_bytes=1 << 30)
    keys = [f"0123abcd.{number}.1.0123abcd" for number in (1, 2, 3)]
    engine = local.LocalEngine(tmp_path, binary(), totals, None)
    try:
        engine.attach()
        for key, settled in zip(keys, ([], [keys[1]], []), strict=True):
            assert isinstance(engine.submit([replace(ORDER, key=key)])[0], Submitted)
            ended: set[str] = set()
            while key not in ended:
                select.select([engine.fileno()], [], [], 20)
                ended |= {one.key for one in engine.heard() if isinstance(one.evidence, WitnessRecord)}
            engine.settle(settled)
    finally:
        engine.close()
    again = local.LocalEngine(tmp_path, binary(), totals, None)
    try:
        again.attach()
        assert {keys[0], keys[2]} <= {one.key for one in again.heard() if isinstance(one.evidence, WitnessRecord)}
        again.settle(keys)
    finally:
        again.close()


def test_a_kill_wait_is_known_after_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that is cancelled has the kill wait of its order, whichever coordinator looks after its witness."""
    monkeypatch.setattr(watchdog, "GRACE_S", 0.0)
    monkeypatch.setattr(slot_module, "DEFAULT_KILL_WAIT_S", 0.0)
    totals = Totals(cpus=1, gpus=0, mem_bytes=1 << 30)
    program = ("/bin/sh", "-c", f"trap '' TERM; touch {tmp_path}/ready; while :; do sleep 0.1; done")
    order = replace(ORDER, key="0123abcd.1.1.0123abcd", args=program, env=("PATH=/bin:/usr/bin",), kill_wait_s=600.0)
    engine = local.LocalEngine(tmp_path, binary(), totals, None)
    engine.attach()
    assert isinstance(engine.submit([order])[0], Submitted)
    wait_for((tmp_path / "ready").exists, "the job runs")
    engine.close()
    again = local.LocalEngine(tmp_path, binary(), totals, None)
    try:
        again.attach()
        (pid,) = {one.evidence.pid for one in again.heard() if isinstance(one.evidence, WitnessStart)}
        again.control([Control(order.key, "cancel")])
        again.tidy()
        again.tidy()
        assert is_alive(pid)
        again.control([Control(order.key, "cancel", signal=9)])
        ended: list[WitnessRecord] = []
        while not ended:
            select.select([again.fileno()], [], [], 20)
            ended = [one.evidence for one in again.heard() if isinstance(one.evidence, WitnessRecord)]
        again.settle([order.key])
    finally:
        again.close()


def _says(key: str, rest: str) -> bytes:
    """An end in the witness's own form, of which `rest` is not."""
    return (b'{"ev":"end","key":"%s",' % key.encode()) + rest.encode()


def _journal_line(body: bytes) -> bytes:
    return b"%08x %08x %s\n" % (len(body), zlib.crc32(body), body)


BEGIN_ONE, BEGIN_TWO = (_line({"ev": "begin", "key": key, "at": 1.0, "boot": "b"}) for key in ("one", "two"))
END_ONE = _line({**END, "key": "one", "size": 100})
UNREADABLE = b"\0" * 300 + b"\n"


@pytest.mark.parametrize(
    ("journal", "key", "heard"),
    [
        pytest.param(BEGIN_ONE + UNREADABLE, None, {"one": WitnessVanished}, id="damaged"),
        pytest.param(BEGIN_ONE + UNREADABLE[:-1], None, {"one": WitnessVanished}, id="without an end of the line"),
        pytest.param(BEGIN_ONE, None, {"one": WitnessVanished}, id="cut off"),
        pytest.param(
            BEGIN_ONE + _journal_line(_says("one", '"user":-1}')), None, {"one": WitnessVanished}, id="no record"
        ),
        pytest.param(
            BEGIN_ONE + _journal_line(_says("one", "nonsense")), None, {"one": WitnessVanished}, id="no JSON"
        ),
        pytest.param(
            BEGIN_ONE + UNREADABLE + UNREADABLE, "two", {"one": WitnessVanished, "two": WitnessStart},
            id="and the next beginning",
        ),
        pytest.param(
            BEGIN_ONE + END_ONE + UNREADABLE, "two", {"one": WitnessRecord, "two": WitnessStart}, id="a beginning alone"
        ),
        pytest.param(BEGIN_ONE + END_ONE + BEGIN_TWO + UNREADABLE, None, {"one": WitnessRecord, "two": WitnessVanished},
                     id="the second end"),
    ],
)  # fmt: skip
def test_a_witness_that_lives_and_whose_journal_can_not_be_read(
    tmp_path: Path, journal: bytes, key: str | None, heard: dict[str, type[object]]
) -> None:
    """Its hello says what it runs: what its journal says besides has ended, and nobody will ever say how."""
    (tmp_path / "1.log").write_bytes(journal)
    hello = {
        "ev": "hello", "witness": 9, "key": key, "pid": key and 7, "start": key and 2.0, "due": None, "protocol": 11,
        "journal": len(journal),
    }  # fmt: skip
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "1.sock"))
        listener.listen()

        def witness() -> None:
            connection, _ = listener.accept()
            connection.sendall(_line(hello))
            while connection.recv(4096):
                pass

        thread = threading.Thread(target=witness, daemon=True)
        thread.start()
        engine = local.LocalEngine(tmp_path, Path("/no/such/witness"), Totals(cpus=1, gpus=0, mem_bytes=1 << 30), None)
        try:
            engine.attach()
            said = engine.heard()
            assert {one.key: type(one.evidence) for one in said} == heard
            assert len(said) == len(heard)
            lost = [one.evidence for one in said if isinstance(one.evidence, WitnessVanished)]
            assert all(one.is_unreadable for one in lost)
            engine.settle([one for one in heard if one != key])
            assert isinstance(engine.submit([ORDER])[0], Submitted if key is None else Rejected)
        finally:
            engine.close()
            thread.join(20)


def test_an_end_that_is_told_and_can_not_be_read(tmp_path: Path) -> None:
    """A record that this version refuses, from a witness that lives on: its attempt has ended all the same."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "1.sock"))
        listener.listen()
        (tmp_path / "1.log").write_bytes(BEGIN_ONE)

        def witness() -> None:
            connection, _ = listener.accept()
            hello = {"ev": "hello", "witness": 9, "key": "one", "pid": 7, "start": 1.0, "due": None, "protocol": 11}
            connection.sendall(_line({**hello, "journal": len(BEGIN_ONE)}))
            connection.sendall(_journal_line(_says("one", '"raw":-1,"size":900}')))
            while connection.recv(4096):
                pass

        thread = threading.Thread(target=witness, daemon=True)
        thread.start()
        engine = local.LocalEngine(tmp_path, Path("/no/such/witness"), Totals(cpus=1, gpus=0, mem_bytes=1 << 30), None)
        try:
            engine.attach()
            said = [type(one.evidence) for one in engine.heard()]
            while WitnessVanished not in said:
                assert select.select([engine.fileno()], [], [], 20)[0], said
                said += [type(one.evidence) for one in engine.heard()]
            engine.settle(["one"])
            assert isinstance(engine.submit([ORDER])[0], Submitted), "the witness is idle"
        finally:
            engine.close()
            thread.join(20)


def test_a_real_witness_whose_last_line_is_damaged(tmp_path: Path) -> None:
    """The coordinator dies, the job ends, its line is damaged, and the witness lives: the job does not run for ever."""
    totals = Totals(cpus=1, gpus=0, mem_bytes=1 << 30)
    order = replace(ORDER, key="0123abcd.1.1.0123abcd", args=("/bin/sleep", "0.2"))
    engine = local.LocalEngine(tmp_path, binary(), totals, None)
    engine.attach()
    assert isinstance(engine.submit([order])[0], Submitted)
    journal = tmp_path / "1.log"
    wait_for(lambda: b'"ev":"end"' in journal.read_bytes(), "the end is in the journal")
    (witness,) = living_witnesses(tmp_path).values()
    os.kill(witness, signal.SIGSTOP)
    engine.close()
    data = journal.read_bytes()
    place = data.index(b'"raw":0')
    journal.write_bytes(data[:place] + b'"raw":7' + data[place + 7 :])
    again = local.LocalEngine(tmp_path, binary(), totals, None)
    timer = threading.Timer(0.3, os.kill, (witness, signal.SIGCONT))
    timer.start()
    try:
        again.attach()
        heard = [one.evidence for one in again.heard()]
        assert [type(one) for one in heard] == [WitnessStart, WitnessVanished]
        again.settle([order.key])
    finally:
        timer.join()
        again.close()


@pytest.mark.parametrize("name", [7, None, "w1-j0/../other", ".."])
def test_no_cgroup_has_such_a_name(tmp_path: Path, name: object) -> None:
    """What is removed when a witness has gone lies in the home's own cgroup."""
    with pytest.raises(ValueError, match="no name of a cgroup"):
        Slot(tmp_path, 1).note_cgroup(name)
