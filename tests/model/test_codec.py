"""What model.codec promises: nothing lost on the way there and back, and strictness with a place."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aver.model.codec import decode, dumps, encode, loads, parse_object
from aver.model.events import Event
from aver.model.evidence import Act, ActKind, LaunchFailure, Verdict, WitnessRecord
from aver.model.exit import ExitStatus
from aver.model.job import (
    Argv,
    Command,
    FlowSpec,
    JobSpec,
    Matrix,
    Need,
    Needs,
    Origin,
    Outcome,
    Request,
    RetryRule,
    Scope,
    Script,
    Shell,
    Submission,
    WarningSignal,
)
from aver.model.states import State

COMMAND: Any = Command
any_text = st.text(st.characters(), max_size=8)  # lone surrogates included
commands = st.one_of(
    st.builds(Argv, st.lists(any_text, min_size=1, max_size=3).map(tuple)),
    st.builds(Script, any_text, st.lists(any_text, max_size=2).map(tuple)),
    st.builds(Shell, any_text),
)
finite = st.floats(allow_nan=False, allow_infinity=False)
job_specs = st.builds(
    JobSpec,
    name=any_text,
    command=commands,
    request=st.builds(
        Request, st.integers(0, 9), st.integers(0, 2), st.none() | st.integers(0, 1 << 50), st.none() | st.integers()
    ),
    needs=st.builds(
        Needs,
        st.lists(
            st.builds(
                Need, any_text, st.sampled_from(Outcome), st.lists(st.sampled_from(State), max_size=2).map(tuple)
            ),
            max_size=2,
        ).map(tuple),
    ),
    env=st.lists(st.tuples(any_text, any_text), max_size=2).map(tuple),
    warning=st.none() | st.builds(WarningSignal, st.integers(1, 64), st.integers(0, 99), st.sampled_from(Scope)),
    retry=st.none() | st.builds(RetryRule, st.integers(0, 9), backoff_s=finite),
    begin_at=st.none() | finite,
    background=st.booleans(),
)


@settings(max_examples=60)
@given(st.lists(job_specs, max_size=3))
def test_a_flow_survives_the_way_through_json(jobs: list[JobSpec]) -> None:
    """Encoding, dumping as ASCII, loading and decoding give an equal flow, whatever its texts hold."""
    flow = FlowSpec("f", tuple(jobs))
    text = dumps(flow)
    assert text.isascii()
    assert json.loads(text) == json.loads(json.dumps(encode(flow)))
    assert loads(FlowSpec, text) == flow
    assert decode(FlowSpec, json.loads(text)) == flow


def test_defaults_are_left_out() -> None:
    """A document holds only what differs from the defaults."""
    assert encode(JobSpec("a", Argv(("true",)))) == {"name": "a", "command": {"is": "Argv", "args": ("true",)}}


def test_a_required_optional_is_written_as_null() -> None:
    """None in a field without a default is null, not absent: unknown is said."""
    verdict = Verdict(State.UNVERIFIED, None, "Unverified", False, "witness")
    assert encode(verdict)["exit"] is None
    assert decode(Verdict, encode(verdict)) == verdict


def test_bytes_that_are_not_utf8_survive() -> None:
    """An argv decoded with surrogateescape comes back as the same bytes."""
    argv = Argv((b"\xff\xfe\n\x00'".decode("utf-8", "surrogateescape"), "é"))
    text = dumps(argv)
    assert text == r"""{"is":"Argv","args":["\udcff\udcfe\n\u0000'","\u00e9"]}"""
    assert loads(Argv, text) == argv


def test_members_of_a_union_are_told_apart_by_their_tag() -> None:
    """Each of Argv, Script and Shell comes back as its own class."""
    for command in (Argv(("a",)), Script("#!/bin/sh\n"), Shell("x")):
        document = encode(command)
        assert document["is"] == type(command).__name__
        assert decode(COMMAND, document) == command


def test_nested_evidence_survives() -> None:
    """A record with acts, a launch failure and an exit status comes back equal."""
    record = WitnessRecord(
        "k", 7, ExitStatus(signal=11, core=True), 1.5, 2.5, acts=(Act(ActKind.WARN, 0.5, 15),), got=(15, 2),
        launch=LaunchFailure("exec", 2, "/x"),
    )  # fmt: skip
    assert loads(WitnessRecord, dumps(record)) == record


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({"name": "f", "jobs": [], "nam": 1}, "Object contains unknown field `nam`"),
        ({"jobs": []}, "Object missing required field `name`"),
        ({"name": 3, "jobs": []}, "Expected `str`, got `int` - at `$.name`"),
        ({"name": "f", "jobs": {}}, "Expected `array`, got `object` - at `$.jobs`"),
        ({"name": "f", "jobs": [], "is_single": 1}, "Expected `bool`, got `int` - at `$.is_single`"),
        ({"name": "f", "jobs": [], "max_parallel": True}, "Expected `int | null`, got `bool` - at `$.max_parallel`"),
        ({"name": "f", "jobs": [], "max_parallel": 1.0}, "Expected `int | null`, got `float` - at `$.max_parallel`"),
        ([], "Expected `object`, got `array`"),
        (
            {"name": "f", "jobs": [{"name": "a", "command": {"is": "Argv", "args": ["x", None]}}]},
            "Expected `str`, got `null` - at `$.jobs[0].command.args[1]`",
        ),
        (
            {"name": "f", "jobs": [{"name": "a", "command": {"is": "Perl"}}]},
            "Invalid value 'Perl' - at `$.jobs[0].command.is`",
        ),
        (
            {"name": "f", "jobs": [{"name": "a", "command": {"is": "Shell", "text": ""}, "env": [["A"]]}]},
            "Expected `array` of length 2",
        ),
        (
            {"name": "f", "jobs": [{"name": "a", "command": {"is": "Shell", "text": ""}, "condition": "never"}]},
            "Invalid enum value 'never' - at `$.jobs[0].condition`",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(document: Any, sentence: str) -> None:
    """Unknown keys, missing keys and wrong types are each a ValueError that says where and what."""
    for read in (lambda: decode(FlowSpec, document), lambda: loads(FlowSpec, json.dumps(document))):
        with pytest.raises(ValueError) as caught:
            read()
        assert str(caught.value).startswith(sentence)


def test_a_value_that_its_class_refuses_is_refused_with_its_place() -> None:
    """An exit status that can't be is an error of the document."""
    document = {"state": "FAILED", "exit": {"code": 300}, "reason": "", "verified": True, "source": "witness"}
    with pytest.raises(ValueError, match=r"exit code 300 is not in 0-255 - at `\$.exit`"):
        decode(Verdict, document)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_json_lacks_are_refused(number: float) -> None:
    """NaN and infinity are refused when JSON is written and when it is read."""
    with pytest.raises(ValueError):
        dumps(JobSpec("a", Shell("x"), begin_at=number))
    with pytest.raises(ValueError, match=r"NaN|Infinity"):
        loads(JobSpec, f'{{"name":"a","command":{{"is":"Shell","text":""}},"begin_at":{json.dumps(number)}}}')


def test_every_event_and_submission_has_a_plan() -> None:
    """Each class of event and a whole submission can be encoded and decoded: no field's type is unsupported."""
    submission = Submission(
        FlowSpec("f", (JobSpec("a", Shell("x"), matrix=Matrix((("s", ("1", "2")),))),)),
        Origin("u", 1000, "h", "/", 0o22, limits=((7, 1024, -1),)),
    )
    assert decode(Submission, encode(submission)) == submission
    for declared in get_args(Event):
        with pytest.raises(ValueError, match="missing required field"):
            decode(declared, {})
        assert "is" not in declared.__struct_fields__


FIRST_USES = """
import sys, threading
from aver.model.codec import decode, encode
from aver.model.job import FlowSpec, JobSpec, Origin, Shell, Submission

job = JobSpec("a", Shell("true", ("sh",)))
document = encode(Submission(FlowSpec("f", (job,)), Origin("me", 1, "here", "/", 0)))

def use(part):
    together.wait()
    decode(*part)

sys.setswitchinterval(1e-6)
parts = [(Submission, document), (FlowSpec, document["flow"]), (JobSpec, document["flow"]["jobs"][0])] * 2
together = threading.Barrier(len(parts))
threads = [threading.Thread(target=use, args=(part,)) for part in parts]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_a_type_may_be_read_for_the_first_time_by_several_threads() -> None:
    """msgspec describes a type at its first use: two threads at it at once ended the process by SIGSEGV."""
    statuses = {subprocess.run([sys.executable, "-c", FIRST_USES], check=False).returncode for _ in range(20)}
    assert statuses == {0}


@pytest.mark.parametrize(
    "line",
    [
        b"[1]", b"true", b'{"a":1e400}', b'{"a":9223372036854775808}', b'{"a":NaN}', b'{"a":"\\ud800"}',
        b'{"a":"\xff"}', b'{"a":' + b"[" * 100_000,
    ],
)  # fmt: skip
def test_objects_that_nobody_of_us_wrote(line: bytes) -> None:
    with pytest.raises(ValueError):
        parse_object(line)


def test_an_object_is_read_as_it_is() -> None:
    words = {"a": None, "b": [1, [2.5]], "c": -(1 << 63), "d": True, "e": "ü\udcff"}
    assert parse_object(json.dumps(words).encode()) == words
    assert parse_object(b'{"a":null,"b":[1,[2.5]]}') == {"a": None, "b": [1, [2.5]]}


def test_null_in_a_text_is_no_number_that_is_missing() -> None:
    assert dumps({"said": '{"a":null}', "b": 1}) == '{"said":"{\\"a\\":null}","b":1}'
    with pytest.raises(ValueError):
        dumps({"said": '{"a":null}', "b": math.nan})
