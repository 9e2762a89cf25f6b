"""Orders, lines and the journal; coordinators that come, go, lie or do not read."""

from __future__ import annotations

import errno
import os
import resource
import signal
import struct
import subprocess
import time
from pathlib import Path

import pytest
from witness_driver import Slot, StartSlot, acts, frame, is_running, sh, sig, until


def test_version(witness_binary: Path) -> None:
    """The protocol's version can be asked for."""
    done = subprocess.run([witness_binary, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == "aver-witness 1\n"


def test_usage(witness_binary: Path) -> None:
    """Anything else than the two forms is a usage error."""
    for words in ([], ["what"], ["slot", "x"]):
        assert subprocess.run([witness_binary, *words], stderr=subprocess.PIPE, check=False).returncode == 2


def test_hello_start_end(start_slot: StartSlot) -> None:
    """An idle witness says hello; a run is a start line and an end line."""
    slot = start_slot()
    hello = slot.connect()
    assert hello == {
        "ev": "hello", "protocol": 11, "witness": slot.process.pid, "key": None, "pid": None, "start": None,
        "due": None, "wait": 30.0, "journal": 0,
    }  # fmt: skip
    start = slot.start("1.1", "atrue")
    assert (start["key"], start["witness"], start["mem"]) == ("1.1", slot.process.pid, "none")
    end = slot.expect("end")
    assert (end["key"], end["pid"], end["raw"]) == ("1.1", start["pid"], 0)


def test_idle_witness_leaves_with_its_coordinator(slot: Slot) -> None:
    """When the connection ends and nothing runs, the witness exits."""
    slot.disconnect()
    assert slot.process.wait(20) == 0


def test_job_outlives_the_coordinator(slot: Slot) -> None:
    """The coordinator goes while the job runs: the end is in the journal, and then the witness leaves."""
    slot.start("alone", *sh("sleep 0.3; exit 4"))
    slot.disconnect()
    assert slot.process.wait(20) == 0
    begin, start, end = slot.lines()
    assert (begin["ev"], start["ev"], end["ev"], end["key"], end["raw"]) == ("begin", "start", "end", "alone", 4 << 8)


def test_limits_hold_without_a_coordinator(slot: Slot) -> None:
    """Nobody is connected: the time limit still holds."""
    slot.start("alone", "t200", "asleep", "a60")
    slot.disconnect()
    assert slot.process.wait(20) == 0
    assert acts(slot.lines()[-1]) == [("time", signal.SIGTERM)]


def test_a_new_coordinator_sees_what_runs(slot: Slot) -> None:
    """Who connects later is told key and pid, and gets the end line."""
    start = slot.start("on", "asleep", "a60")
    hello = slot.connect()
    assert (hello["key"], hello["pid"], hello["start"]) == ("on", start["pid"], start["at"])
    assert hello["journal"] == slot.journal.stat().st_size
    slot.send("C", "kon")
    assert slot.expect("end")["key"] == "on"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (struct.pack("<I", 0), "malformed frame"),
        (struct.pack("<I", 1) + b"R", "malformed frame"),
        (struct.pack("<I", 5) + b"R\0kab", "malformed frame"),
        (struct.pack("<I", 6) + b"R\0\0k1\0", "malformed frame"),
        (frame("X", "k1"), "unknown verb"),
        (frame("RR", "k1"), "malformed frame"),
        (frame("R"), "an order without a key"),
        (frame("R", "k1"), "an order without a program"),
        (frame("R", "k", "atrue"), "unknown or malformed field in a run order"),
        (frame("R", "k../x", "atrue"), "unknown or malformed field in a run order"),
        (frame("R", "ka/b", "atrue"), "unknown or malformed field in a run order"),
        (frame("R", 'ka"b', "atrue"), "unknown or malformed field in a run order"),
        (frame("R", "kä", "atrue"), "unknown or malformed field in a run order"),
        (frame("R", "k" + "x" * 129, "atrue"), "unknown or malformed field in a run order"),
        (frame("R", "k1", "atrue", "Zx"), "unknown or malformed field in a run order"),
        (frame("R", "k1", "atrue", "tsoon"), "unknown or malformed field in a run order"),
        (frame("R", "k1", "atrue", "t-1"), "unknown or malformed field in a run order"),
        (frame("R", "k1", "atrue", "w99 1 a"), "unknown or malformed field in a run order"),
        (frame("R", "k1", "atrue", "w10 1 z"), "unknown or malformed field in a run order"),
        (frame("R", "k1", "atrue", "u9"), "unknown or malformed field in a run order"),
        (frame("R", "k1", "atrue", "l7 x"), "unknown or malformed field in a run order"),
        (frame("R", "k1", "atrue", "g3 /x"), "unknown or malformed field in a run order"),
        (frame("S", "k1", "s15"), "this key does not run here"),
        (frame("C"), "this key does not run here"),
    ],
)
def test_wrong_frames_are_answered_and_ignored(slot: Slot, data: bytes, text: str) -> None:
    """Each is one error line; the next order is understood."""
    slot.send_raw(data)
    assert slot.expect("error")["text"] == text
    assert slot.sh("after", "exit 3")["raw"] == 3 << 8
    assert [line["key"] for line in slot.lines()] == ["after", "after", "after"]


def test_a_frame_that_is_too_long_ends_the_connection(slot: Slot) -> None:
    """It is said why; the job goes on, and who connects again is served."""
    slot.start("long", "asleep", "a60")
    slot.send_raw(struct.pack("<I", (8 << 20) + 1))
    assert slot.expect("error")["text"] == "frame too long"
    assert slot.connection is not None
    assert slot.connection.recv(1) == b""
    assert slot.connect()["key"] == "long"
    slot.send("C", "klong")
    slot.expect("end")


def test_orders_for_a_running_job(slot: Slot) -> None:
    """Another key, a wrong signal, a second run: an error line each, and the job goes on."""
    slot.start("run", "asleep", "a60")
    for order, text in (
        (("C", "kother"), "this key does not run here"),
        (("S", "krun", "s0"), "bad signal or scope"),
        (("S", "krun", "s65"), "bad signal or scope"),
        (("S", "krun", "s10", "cx"), "bad signal or scope"),
        (("T", "krun", "tx"), "bad time limit"),
        (("T", "krun"), "bad time limit"),
        (("P", "krun", "x"), "unknown field"),
        (("C", "krun", "t9"), "unknown field"),
        (("R", "kmore", "atrue"), "a job runs"),
    ):
        slot.send(*order)
        assert slot.expect("error")["text"] == text
    slot.send("S", "krun", "s9", "ca")
    assert sig(slot.expect("end")) == (0, 9)


def test_frames_in_pieces_and_together(slot: Slot) -> None:
    """A frame may come byte by byte, and many at once."""
    for byte in frame("R", "kbytes", *sh("exit 1")):
        slot.send_raw(bytes([byte]))
    slot.expect("start")
    slot.expect("end")
    slot.send_raw(frame("R", "ktwo", "asleep", "a60") + frame("P", "ktwo") + frame("U", "ktwo") + frame("C", "ktwo"))
    slot.expect("start")
    assert acts(slot.expect("end")) == [("cancel", signal.SIGTERM)]


def test_journal_is_truncated_when_all_of_it_is_durable(slot: Slot) -> None:
    """`j` truncates if it is the journal's size, and only then."""
    first = slot.sh("one", "exit 0")
    second = slot.sh("two", "exit 0", f"j{first['size'] - 1}")
    assert len(slot.lines()) == 6
    third = slot.sh("three", "exit 0", f"j{second['size']}")
    assert [line["key"] for line in slot.lines()] == ["three", "three", "three"]
    assert third["size"] == slot.journal.stat().st_size


def test_killed_witness_leaves_begin(slot: Slot) -> None:
    """SIGKILL to the witness: the journal says that the attempt began, as what, and nothing about its end."""
    pid = slot.start("lost", "asleep", "a60")["pid"]
    slot.process.send_signal(signal.SIGKILL)
    slot.process.wait()
    try:
        assert [line["ev"] for line in slot.lines()] == ["begin", "start"]
        assert slot.lines()[1]["pid"] == pid
        assert is_running(pid)
    finally:
        os.kill(pid, signal.SIGKILL)


def limit_file_size(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def test_no_room_for_the_begin_line_refuses_the_order(start_slot: StartSlot) -> None:
    """Without a begin line nothing is started, and no half line is left."""
    slot = start_slot(lambda: limit_file_size(40))
    end = slot.fail("full", "atrue")
    assert (end["raw"], end["launch"]["op"], end["launch"]["errno"]) == (None, "journal", errno.ENOSPC)
    assert slot.journal.read_bytes() == b""


def test_no_room_for_the_end_line(start_slot: StartSlot) -> None:
    """The end goes to the coordinator, the journal has no half line, and the next order is refused in words."""
    slot = start_slot(lambda: limit_file_size(200))
    end = slot.sh("full", "exit 3")
    assert end["raw"] == 3 << 8
    assert end["size"] == slot.journal.stat().st_size
    assert [line["ev"] for line in slot.lines()] == ["begin"]
    assert slot.fail("next", "atrue")["launch"]["op"] == "journal"


def test_end_waits_for_room_or_a_coordinator(start_slot: StartSlot) -> None:
    """No room and nobody connected: the record is kept until somebody comes."""
    slot = start_slot(lambda: limit_file_size(200))
    pid = slot.start("full", *sh("exit 3"))["pid"]
    slot.disconnect()
    until(lambda: not Path(f"/proc/{pid}").exists())
    hello = slot.connect()
    assert hello["key"] == "full"
    assert slot.expect("end")["raw"] == 3 << 8


def test_end_is_written_when_there_is_room_again(start_slot: StartSlot) -> None:
    """No room and nobody connected: when there is room again the record goes into the journal."""
    slot = start_slot(lambda: limit_file_size(200))
    pid = slot.start("full", *sh("exit 3"))["pid"]
    slot.disconnect()
    until(lambda: not Path(f"/proc/{pid}").exists())
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    resource.prlimit(slot.process.pid, resource.RLIMIT_FSIZE, unlimited)
    assert slot.process.wait(20) == 0
    assert [line["ev"] for line in slot.lines()] == ["begin", "end"]


def test_coordinator_that_does_not_read(slot: Slot) -> None:
    """Lines that nobody reads never delay a limit; the journal has the end."""
    slot.start("deaf", "t60000", "asleep", "a60")
    assert slot.connection is not None
    slot.connection.settimeout(0.2)
    refused = frame("C", "kother") * 500
    end = time.monotonic() + 10
    try:
        while time.monotonic() < end:
            slot.send_raw(refused)
    except OSError:
        pass  # the witness hung up, or reads no more
    slot.disconnect()
    slot.connect()
    slot.send("T", "kdeaf", "t1")
    until(lambda: slot.lines()[-1]["ev"] == "end")
    assert acts(slot.lines()[-1]) == [("time", signal.SIGTERM)]


def test_private_memory_is_small(slot: Slot, witness_binary: Path) -> None:
    """A slot's witness keeps less than 200 KB for itself, also after large orders."""
    if b"__asan_init" in witness_binary.read_bytes():
        pytest.skip("a sanitizer needs memory of its own")
    for number in range(20):
        slot.run(f"job{number}", *sh("exit 0"), *(["a" + "x" * 1000] * 500))
    text = Path(f"/proc/{slot.process.pid}/smaps_rollup").read_text()
    assert int(text.split("Anonymous:")[1].split()[0]) < 200


def test_a_witness_at_rest_keeps_few_pages(slot: Slot, witness_binary: Path, tmp_path: Path) -> None:
    """While its job sleeps, a witness gives back what it does not need: thousands of them fit into a small machine."""
    if b"__asan_init" in witness_binary.read_bytes():
        pytest.skip("a sanitizer needs memory of its own")
    environment = tmp_path / "env"
    environment.write_bytes(b"".join(b"NAME%d=%s\0" % (number, b"x" * 100) for number in range(200)))
    slot.send("R", "ksleeper", f"e{environment}", "asleep", "a60")

    def anonymous_kb() -> int:
        text = Path(f"/proc/{slot.process.pid}/smaps_rollup").read_text()
        return int(text.split("Anonymous:")[1].split()[0])

    until(lambda: [line for line in slot.lines() if line["ev"] == "start"])
    until(lambda: anonymous_kb() <= 100)
    slot.send("C", "ksleeper", "s9")
    until(lambda: slot.lines()[-1]["ev"] == "end")
