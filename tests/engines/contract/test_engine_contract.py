"""The contract of an engine: the same orders have the same verdicts, on this machine and on a real Slurm."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest
from contract_desk import Desk

from aver.engines.api import Control, NotListed, Order, Seen
from aver.engines.local.capabilities import find_cgroup
from aver.model.evidence import Rules, Verdict
from aver.model.job import Request, Scope, WarningSignal
from aver.model.states import State
from live_home import wait_for

MIB = 1 << 20
EAT = "import time; x = bytearray(300 << 20); time.sleep(20)"
FEW = {"request": Request(mem_bytes=64 * MIB), "options": ("--mem=64M",)}
SOON = {"request": Request(time_s=1)}
WARNED = {"request": Request(time_s=600), "warning": WarningSignal(10, 599, Scope.ALL)}
ODD = "a|b 'c' \"d\" $e `f` ü\\ \t%j *\nlast"


@dataclass(frozen=True)
class Case:
    name: str
    text: str | tuple[str, ...]
    expected: tuple[str, str, str]
    fields: dict[str, object] = field(default_factory=dict)
    rules: Rules = Rules()
    detail: str = ""


def failed(code: int) -> tuple[str, str, str]:
    return "FAILED", f"{code}:0", "NonZeroExitCode"


def raised(number: int, name: str) -> tuple[str, str, str]:
    return "FAILED", f"0:{number}", f"RaisedSignal:{number}({name})"


COULD_NOT_START = ("FAILED", "?", "JobLaunchFailure")
CASES = [
    Case("exit 0", "exit 0", ("COMPLETED", "0:0", "None")),
    *(Case(f"exit {code}", f"exit {code}", failed(code)) for code in (1, 2, 53, 125, 126, 127, 128, 137, 200, 255)),
    Case("HUP", "kill -HUP $$", raised(1, "Hangup")),
    Case("INT", "kill -INT $$", raised(2, "Interrupt")),
    Case("KILL", "kill -KILL $$", raised(9, "Killed")),
    Case("USR1", "kill -USR1 $$", raised(10, "User_defined_signal_1")),
    Case("SEGV", "ulimit -c 0; kill -SEGV $$", raised(11, "Segmentation_fault")),
    Case("TERM", "kill -TERM $$", raised(15, "Terminated")),
    Case("real-time signal", "kill -40 $$", raised(40, "Real-time_signal_6")),
    Case("a child's SEGV", "ulimit -c 0; sh -c 'kill -SEGV $$'; exit $?", failed(139)),
    Case("no such program", ("/no/such/program",), COULD_NOT_START, detail="exec /no/such/program: No such file"),
    Case("not executable", ("/etc/passwd",), COULD_NOT_START, detail="exec /etc/passwd: Permission denied"),
    Case("no such folder", "exit 0", COULD_NOT_START, {"folder": "/no/such/folder"}, detail="/no/such/folder"),
    Case("output can't be opened", "exit 0", COULD_NOT_START, {"stdout": "/proc/none/out"}),
    Case("input can't be opened", "exit 0", COULD_NOT_START, {"stdin": "/no/such/file"}),
    Case("time limit", "sleep 60", ("TIMEOUT", "0:15", "TimeLimit"), SOON),
    Case("time limit, trapped, exit 0", "trap 'exit 0' TERM; sleep 60 & wait", ("TIMEOUT", "0:0", "TimeLimit"), SOON),
    Case("time limit, trapped, exit 3", "trap 'exit 3' TERM; sleep 60 & wait", ("TIMEOUT", "3:0", "TimeLimit"), SOON),
    Case("time limit, ignored", "trap '' TERM; sleep 60", ("TIMEOUT", "0:9", "TimeLimit"), SOON),
    Case("warned, trapped", "trap 'exit 0' USR1; sleep 60 & wait", ("COMPLETED", "0:0", "None"), WARNED),
    Case("warned, as agreed", "trap 'exit 85' USR1; sleep 60 & wait", ("CHECKPOINTED", "85:0", "Checkpoint"), WARNED,
         Rules(checkpoint_codes=(85,))),
    Case("warned, not trapped", "sleep 60", raised(10, "User_defined_signal_1"), WARNED),
    Case("memory", ("python3", "-c", EAT), ("OUT_OF_MEMORY", "0:9", "OutOfMemory"), FEW),
    Case("memory, then exit 0", f"python3 -c '{EAT}'; exit 0", ("OUT_OF_MEMORY", "0:0", "OutOfMemory"), FEW),
    Case("memory, forgiven", f"python3 -c '{EAT}'; exit 0", ("COMPLETED", "0:0", "None"), FEW, Rules(oom_warns=True)),
    Case("odd words", ("/bin/sh", "-c", 'test "$1" = "$ODD"', "sh", ODD), ("COMPLETED", "0:0", "None"),
         {"env": ("PATH=/usr/bin:/bin", f"ODD={ODD}")}),
]  # fmt: skip


@pytest.fixture(scope="module")
def ends(desk: Desk) -> dict[str, Verdict]:
    """All cases at once, each with its verdict."""
    orders = {case.name: desk.order(case.text, **case.fields) for case in CASES}
    desk.run(*orders.values())
    found = {case.name: desk.verdict(orders[case.name], case.rules) for case in CASES}
    desk.settle(orders.values())
    return {name: verdict for name, verdict in found.items() if verdict is not None}


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_verdict(desk: Desk, ends: dict[str, Verdict], case: Case) -> None:
    """State, exit and reason are those of the table, verified, whichever engine ran it."""
    if case.name.startswith("memory") and find_cgroup()[0] is None:
        pytest.skip("no memory cgroup can be made here")
    verdict = ends[case.name]
    shown = "?" if verdict.exit is None else str(verdict.exit)
    assert (str(verdict.state), shown, verdict.reason) == case.expected, verdict
    assert verdict.verified
    assert case.detail in verdict.detail
    is_warned = case.rules.oom_warns
    assert len(verdict.warnings) == (1 if is_warned else 0), verdict.warnings


def test_keys_that_nobody_knows(desk: Desk) -> None:
    """An attempt that was never handed over is not listed: it never ran here."""
    assert desk.engine.observe(["00000000.1.1.00000000"]) == [NotListed("00000000.1.1.00000000")]


def test_handed_over_is_seen_and_settled_is_forgotten(desk: Desk) -> None:
    """From submission on it is seen, also when it has ended; after `settle` nothing is left of it, nor on disk."""
    order = desk.order("exit 3")
    desk.submit(order)
    assert desk.engine.observe([order.key]) == [Seen(order.key)]
    (verdict,) = desk.wait(order)
    assert verdict.state is State.FAILED
    assert desk.engine.observe([order.key]) == [Seen(order.key)]
    desk.settle([order])
    assert desk.engine.observe([order.key]) == [NotListed(order.key)]
    desk.until(lambda: not [name for name in desk.left_files() if order.key in name], "its files are gone")
    heard_before = list(desk.evidence[order.key])
    desk.restart()
    desk.run(desk.order("exit 0"))
    assert order.key not in desk.evidence, "what was settled is not told again"
    assert heard_before


def test_cancel_while_it_runs(desk: Desk) -> None:
    """TERM, the wait, KILL: CANCELLED, however it then ended; KILL at once if asked for; a signal is no cancel."""
    traps = {"plain": "", "trapped": "trap 'exit 0' TERM", "ignored": "trap '' TERM", "at once": "trap '' TERM",
             "signalled": ""}  # fmt: skip
    orders = {
        name: desk.order(("/bin/sh", "-c", f'{trap}\ntouch "began $0"; sleep 60 & wait', name))
        for name, trap in traps.items()
    }
    desk.submit(*orders.values())
    for name in traps:
        desk.wait_for_file(f"began {name}")
    desk.cancel(orders["plain"], orders["trapped"], orders["ignored"])
    desk.cancel(orders["at once"], signal=9)
    desk.engine.control([Control(orders["signalled"].key, "signal", signal=10)])
    found = dict(zip(orders, desk.wait(*orders.values()), strict=True))
    assert {name: (str(one.state), str(one.exit)) for name, one in found.items()} == {
        "plain": ("CANCELLED", "0:15"),
        "trapped": ("CANCELLED", "0:0"),
        "ignored": ("CANCELLED", "0:9"),
        "at once": ("CANCELLED", "0:9"),
        "signalled": ("FAILED", "0:10"),
    }
    assert found["signalled"].reason == "RaisedSignal:10(User_defined_signal_1)"
    desk.settle(orders.values())


def test_cancel_at_once(desk: Desk) -> None:
    """Cancelled in the same breath: CANCELLED, whether it had begun or not, and it does not run on."""
    orders = [desk.order("sleep 60; touch never") for _ in range(4)]
    desk.submit(*orders)
    desk.cancel(*orders)
    assert {verdict.state for verdict in desk.wait(*orders)} == {State.CANCELLED}
    assert not (desk.folder / "never").exists()
    desk.settle(orders)


def test_cancel_of_what_has_ended(desk: Desk) -> None:
    """A cancel that comes after the end changes nothing and disturbs nobody."""
    order = desk.order("exit 0")
    (before,) = desk.run(order)
    desk.cancel(order)
    other = desk.order("exit 0")
    desk.run(other)
    assert desk.verdict(order) == before
    desk.settle([order, other])


def test_comes_back(desk: Desk) -> None:
    """A new engine object finds what runs, what ended meanwhile and what ended before; each ran once."""
    line = 'echo "$0" >> "$RAN"; '
    texts = {"before": "exit 4", "meanwhile": "until [ -e go1 ]; do sleep 0.05; done; touch gone; exit 5",
             "after": "until [ -e go2 ]; do sleep 0.05; done; exit 200"}  # fmt: skip
    orders = {name: desk.order(("/bin/sh", "-c", line + text, name)) for name, text in texts.items()}
    desk.submit(*orders.values())
    desk.wait(orders["before"])
    desk.until(lambda: desk.ran.exists() and len(desk.ran.read_text().split()) == 3, "all three have begun")

    def meanwhile() -> None:
        (desk.folder / "go1").touch()
        wait_for((desk.folder / "gone").exists, "the second ends while nobody listens")

    desk.restart(meanwhile)
    assert desk.engine.observe([order.key for order in orders.values()]) == [Seen(one.key) for one in orders.values()]
    (desk.folder / "go2").touch()
    found = dict(zip(orders, desk.wait(*orders.values()), strict=True))
    assert {name: str(one.exit) for name, one in found.items()} == {
        "before": "4:0",
        "meanwhile": "5:0",
        "after": "200:0",
    }
    assert all(one.verified for one in found.values())
    assert sorted(desk.ran.read_text().split()) == ["after", "before", "meanwhile"]
    desk.settle(orders.values())
    desk.ran.unlink()


def test_never_twice(desk: Desk) -> None:
    """The object goes right after `submit`: what it took is found by the next one or was never taken, and runs once."""
    orders = [desk.order('echo "$NUMBER" >> "$RAN"', env=(f"RAN={desk.ran}", "PATH=/usr/bin:/bin", f"NUMBER={n}"))
              for n in range(6)]  # fmt: skip
    desk.submit(*orders)
    desk.restart()
    replies = desk.engine.observe([order.key for order in orders])
    again = [order for order, reply in zip(orders, replies, strict=True) if isinstance(reply, NotListed)]
    desk.submit(*again)
    assert {verdict.state for verdict in desk.wait(*orders)} == {State.COMPLETED}
    assert sorted(desk.ran.read_text().split()) == [str(number) for number in range(6)]
    desk.settle(orders)
    desk.ran.unlink()


def test_many_are_handed_over_together(desk: Desk) -> None:
    """Orders of one group may be one array: each member has its own verdict, its own words and its own files."""
    orders: list[Order] = []
    for number in range(20):
        text = f"echo {number}; exit {number % 4 * 50}"
        out = str(desk.folder / f"member-{number}")
        env = ("PATH=/usr/bin:/bin", f"MINE={json.dumps([number])}")
        orders.append(desk.order(text, group="7 m", stdout=out, append=False, env=env))
    desk.submit(*orders)
    assert [str(verdict.exit) for verdict in desk.wait(*orders)] == [f"{n % 4 * 50}:0" for n in range(20)]
    assert [(desk.folder / f"member-{number}").read_text() for number in range(20)] == [f"{n}\n" for n in range(20)]
    desk.settle(orders)
    desk.until(lambda: not [one for one in desk.left_files() if orders[0].key in one], "its files are gone")
