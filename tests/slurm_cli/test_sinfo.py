"""sinfo, against what a real Slurm printed, of a cluster of one node."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from queue_past import Call, Past
from recordings import recorded

SEEN = recorded("sinfo")


@pytest.mark.parametrize("flags", ["", " -N", " -l", " -Nl", " -s", " -R"])
def test_headers_are_slurms(past: Past, call: Call, flags: str) -> None:
    """Each view has Slurm's columns in Slurm's widths."""
    want = SEEN[f"sinfo{flags}"]
    got = call("sinfo", *flags.split()).lines
    at = 1 if "l" in flags else 0
    assert got[at] == want[at]
    for mine, theirs in zip(got[at + 1 :], want[at + 1 : at + 2], strict=False):
        assert len(mine.rstrip()) >= len(theirs.rstrip()) - 8


def test_the_node_is_as_busy_as_its_jobs(empty_past: Past, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """idle, mixed and allocated by the cpus of what runs."""
    past = empty_past
    config = past.work / "config.toml"
    config.write_text("cpus = 4\n")
    monkeypatch.setenv("AVER_CONFIG", str(config))
    assert call("sinfo", "-h", "-o", "%t %C %P %D").out == "idle 0/4/0/4 main* 1\n"
    past.commit(past.submitted(1, past.spec()), *past.running(1, 1))
    assert call("sinfo", "-h", "-o", "%t %C").out == "mix 2/2/0/4\n"
    past.commit(past.submitted(2, past.spec()), *past.running(2, 2))
    assert call("sinfo", "-h", "-o", "%T %C %F").out == "allocated 4/0/0/4 1/0/0/1\n"


def test_filters(empty_past: Past, call: Call) -> None:
    """Another partition is not there; without the node the partition has none."""
    assert call("sinfo", "-h", "-p", "nowhere").out == ""
    assert call("sinfo", "-h", "-n", "nowhere", "-o", "%P %D %t").out == "main* 0 n/a\n"
    assert call("sinfo", "-h", "-t", "down", "-o", "%D").out == "0\n"
    assert call("sinfo", "-h", "-t", "idle", "-o", "%N").out.strip() == os.uname().nodename.partition(".")[0]


def test_refusals_are_slurms(empty_past: Past, call: Call) -> None:
    """Slurm's words and exit status."""
    reply = call("sinfo", "-t", "sleepy")
    assert reply.status == 1
    assert reply.err.startswith('sinfo: error: Bad state string: "sleepy"\nsinfo: error: valid states: unknown,down')
    unknown = call("sinfo", "--foo")
    assert unknown.err == "sinfo: unrecognized option '--foo'\nTry \"sinfo --help\" for more information\n"
    assert call("sinfo", "-o", "%Q").err == "Invalid node format specification: Q\n"


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.text("%.#0123456789abtPN all|:,[]-", max_size=12), st.sampled_from(["-o", "-O", "-t", "-p", "-n"]))
def test_no_argument_is_a_traceback(past: Past, call: Call, text: str, option: str) -> None:
    """Any text for any option ends with 0 or 1."""
    assert call("sinfo", option, text).status in (0, 1)
