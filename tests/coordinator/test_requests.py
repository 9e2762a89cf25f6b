"""Requests and their handlers: one registry, strict reading, and senders and pages that agree with it."""

from __future__ import annotations

import ast
import json
import re
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from msgspec.structs import fields

from aver.coordinator.requests.dispatch import BUG, Dispatch, handlers
from aver.coordinator.server import Peer
from aver.errors import UsageError
from aver.model.job import Allocation, Argv, FlowSpec, JobSpec, Origin, Scope, StepSpec, Submission
from aver.protocol import messages
from aver.protocol.decode import LONGEST_ERROR, _decode_any, _decode_plain, decode_reply, decode_request
from aver.protocol.messages import OPERATIONS, REQUESTS, message_document, request_document

ROOT = Path(__file__).resolve().parents[2]
FLOW = FlowSpec("f", (JobSpec("a", Argv(("true", "\udcff"))),))
ORIGIN = Origin("me", 1, "here", "/", 0o22)
EXAMPLES: tuple[messages.Request, ...] = (
    messages.Ping(),
    messages.Submit(Submission(FLOW, ORIGIN), ("A=b",)),
    messages.Sbatch((("time", "5"),), "#!/bin/sh\n\0", "x", "/x", ("a",), ORIGIN, ("A=\udcff",)),
    messages.Cancel((1, 2), "me", 15, Scope.SCRIPT, True),
    messages.Hold((1,), "me"),
    messages.Release((1,), "me"),
    messages.Suspend((1,), "me"),
    messages.Resume((1,), "me"),
    messages.PoolSize("licence", 2, "me"),
    messages.Requeue((1,), "me", True),
    messages.Update((1,), messages.Changes(time_s=5, begin_at=1.5, name="n"), (messages.Clearable.BEGIN,), "me"),
    messages.Allocate(1, Allocation(("-N1",)), "me"),
    messages.Accept((1,), "me"),
    messages.Retry((1, 2), "me"),
    messages.Reinit(1, ((2, "why"),), FLOW, (("digest", "value"),), ("A=b",), "me"),
    messages.Prune(1.5, 2, 3, True, "me"),
    messages.Watch((1,), True),
    messages.Own(1),
    messages.Step("key", "token", StepSpec("n", ("true",), "/"), ("A=b",)),
    messages.SignalStep("key", 0, 15, "me"),
    messages.Stop(),
)


def _line(document: Any) -> bytes:
    return json.dumps(document).encode()


def test_every_operation_has_one_handler() -> None:
    """The registry, the union of requests and the handlers name the same types."""
    assert set(handlers()) == set(REQUESTS.values()) == set(get_args(messages.Request))


@pytest.mark.parametrize("request_", EXAMPLES, ids=lambda one: type(one).__name__)
def test_a_request_is_read_as_it_was_sent(request_: messages.Request) -> None:
    """What a client sends is what a handler gets."""
    assert decode_request(_line(request_document(request_))) == request_


@pytest.mark.parametrize("request_", EXAMPLES, ids=lambda one: type(one).__name__)
def test_both_ways_of_reading_a_request_agree(request_: messages.Request) -> None:
    """The quick way takes what clients write, letters of any language too, and reads what the other way reads."""
    document = request_document(request_)
    line = _line({**document, "by": '张 "\\u00e9'} if "by" in document else document)
    line = line.replace(b"\\udcff", b"\\u00ff").replace(b"\\u0000", b"")
    assert _decode_plain(line) == _decode_any(line) is not None


def test_the_quick_way_of_reading_leaves_the_rest_to_the_other() -> None:
    """Lone surrogates, large numbers, another order of the keys: read, though not by the quick way."""
    for line in (
        b'{"op":"hold","ids":[1],"by":"\\udcff"}',
        b'{"op":"hold","ids":[1000000000000000000]}',
        b'{"ids":[1],"op":"hold"}',
    ):
        assert _decode_plain(line) is None
        assert isinstance(decode_request(line), messages.Hold)
    with pytest.raises(UsageError, match="can't be read"):
        decode_request(b'{"op":"stop",}')


def test_there_is_an_example_of_every_request() -> None:
    """No operation is left out above."""
    assert {type(one) for one in EXAMPLES} == set(REQUESTS.values())


def test_a_bug_in_a_handler_is_answered(capsys: pytest.CaptureFixture[str]) -> None:
    """The outermost edge of a request: status 70, a traceback in the log, and nothing is raised."""
    sent: list[messages.Message] = []
    out = SimpleNamespace(events=[])
    without_parts: Any = SimpleNamespace(
        machine=SimpleNamespace(out=out), take_back=lambda decided: None
    )  # as for a bug
    dispatch = Dispatch(without_parts, lambda _, one: sent.append(one), lambda _, one: sent.append(one))
    with socket.socket() as connection:
        for request_ in (messages.Ping(), messages.Hold((1,))):
            dispatch.serve(Peer(connection), _line(request_document(request_)))
    assert sent == [messages.Refusal(BUG, 70)] * 2
    assert capsys.readouterr().err.count("AttributeError") == 2


WRONG: list[tuple[bytes, str]] = [
    (b"", "Expecting value"),
    (b"\xff", "codec can't decode"),
    (b"[]", "it is not an object"),
    (b"{}", "does not know the request None"),
    (b'{"op": ["hold"]}', "does not know the request"),
    (b'{"op": "hold"}', "missing required field `ids`"),
    (b'{"op": "hold", "ids": [1], "more": 1}', "unknown field `more`"),
    (b'{"op": "hold", "ids": "1"}', "Expected `array`, got `str` - at `$.ids`"),
    (b'{"op": "hold", "ids": [true]}', "Expected `int`, got `bool` - at `$.ids[0]`"),
    (b'{"op": "hold", "ids": [1.5]}', "Expected `int`, got `float` - at `$.ids[0]`"),
    (b'{"op": "hold", "ids": [9223372036854775808]}', "out of range"),
    (b'{"op": "hold", "ids": [1e999]}', "not a finite number"),
    (b'{"op": "hold", "ids": [NaN]}', "not a finite number"),
    (b'{"op": "hold", "ids": [1], "by": ""}', "by: the name is empty"),
    (b'{"op": "hold", "ids": [1], "by": "\\u0000"}', "NUL"),
    (b'{"op": "hold", "ids": [1], "by": "\\ud800"}', "stands for no text"),
    (b'{"op": "hold", "ids": [' + b"1," * 100_000 + b"1]}", "100001 jobs"),
    (b'{"op": "hold", "ids": ' + b"[" * 980 + b"]" * 980 + b"}", ""),
    (b'{"op": "hold", "ids": ' + b"[" * 100_000, "nested too deeply"),
    (b'{"op": "cancel", "ids": [1], "signal": 65}', "65 is not a signal number"),
    (b'{"op": "cancel", "ids": [1], "scope": "x"}', "Invalid enum value 'x' - at `$.scope`"),
    (b'{"op": "update", "ids": [1]}', "changes nothing"),
    (b'{"op": "update", "ids": [1], "changes": {"time_s": 0}}', "time_s: 0 is out of range"),
    (b'{"op": "update", "ids": [1], "clear": ["cpus"]}', "Invalid enum value 'cpus' - at `$.clear[0]`"),
    (b'{"op": "prune", "keep_last": -1}', "keep_last: -1 is out of range"),
    (b'{"op": "' + b"x" * 100_000 + b'"}', "does not know the request 'xxx"),
    (b'{"op": "ping", "' + b"x" * 100_000 + b'": 1}', "unknown field `xxx"),
]


@pytest.mark.parametrize(("line", "why"), WRONG, ids=[why or "deep" for _, why in WRONG])
def test_what_is_wrong_with_a_request_is_one_short_line(line: bytes, why: str) -> None:
    """A UsageError that says what and where, whatever was sent."""
    with pytest.raises(UsageError) as found:
        decode_request(line)
    text = str(found.value)
    assert why in text
    assert "\n" not in text
    assert len(text) < LONGEST_ERROR + 100


def test_a_reply_of_a_newer_coordinator_is_understood() -> None:
    """Fields of a reply that are not known are passed over."""
    assert decode_reply(messages.Allocated, {"ok": True, "run": 3, "more": 1}) == messages.Allocated(3)


@pytest.mark.parametrize("kind", [*get_args(messages.Answer), *get_args(messages.Push)], ids=lambda one: one.__name__)
def test_replies_and_pushes_are_sent_with_all_their_fields(kind: Any) -> None:
    """Clients may rely on each of them: none has a default, which would be left out."""
    assert [one.name for one in fields(kind) if not one.required] == []


def test_a_push_is_no_reply() -> None:
    """Only replies have `ok`."""
    assert message_document(messages.Changed((1,), ())) == {"changed": (1,), "settled": ()}
    assert message_document(messages.Done()) == {"ok": True}
    assert message_document(messages.Refusal("no", 2)) == {"ok": False, "error": "no", "status": 2}


def _sent() -> list[tuple[str, str, set[str], bool]]:
    """The requests that Slurm's commands send as documents: place, operation, fields, and whether these are all."""
    found = []
    for path in sorted((ROOT / "src" / "aver" / "slurm_cli").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            place = f"{path.name}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Dict):
                names = {key.value: value for key, value in zip(node.keys, node.values, strict=True)
                         if isinstance(key, ast.Constant)}  # fmt: skip
                op = names.pop("op", None)
                if isinstance(op, ast.Constant):
                    found.append((place, str(op.value), {str(name) for name in names}, None not in node.keys))
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "self._ask":
                op = node.args[0]
                if isinstance(op, ast.Constant):
                    arguments = {one.arg for one in node.keywords if one.arg is not None}
                    found.append((place, str(op.value), arguments, False))
    return found


def test_documents_of_slurm_commands_are_requests() -> None:
    """These are built without the types, for a quick start: their fields are those of the types all the same."""
    sent = _sent()
    assert {"submit", "sbatch", "cancel", "update", "watch", "own", "step", "signal_step"} <= {
        op for _, op, _, _ in sent
    }
    for place, op, names, is_whole in sent:
        known = {one.name for one in fields(REQUESTS[op])}
        required = {one.name for one in fields(REQUESTS[op]) if one.required}
        assert names <= known, (place, op)
        assert not is_whole or required <= names, (place, op)


def test_the_page_lists_the_operations() -> None:
    """docs/design/coordinator.md names each operation with its arguments and the fields of its reply."""
    page = (ROOT / "docs" / "design" / "coordinator.md").read_text()
    text = page.partition("## Talking to it\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([a-z_]+)` \| (.*?) \| (.*?) \|", text, re.MULTILINE)
    listed = {op: (re.findall(r"`(\w+)`", arguments), re.findall(r"`(\w+)`", reply)) for op, arguments, reply in rows
              if op in OPERATIONS}  # fmt: skip
    expected = {
        op: ([one.name for one in fields(request)], [one.name for one in fields(reply)])
        for op, (request, reply) in OPERATIONS.items()
    }
    assert listed == expected
