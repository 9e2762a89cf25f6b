"""sshare: one machine has no shares, and says so as Slurm does."""

from __future__ import annotations

import pytest
from queue_past import Call, Past


@pytest.mark.parametrize(
    ("words", "header"),
    [
        ([], "Account User RawShares NormShares RawUsage EffectvUsage FairShare"),
        (
            ["-l"],
            "Account User RawShares NormShares RawUsage NormUsage EffectvUsage FairShare LevelFS "
            "GrpTRESMins TRESRunMins",
        ),
        (["-o", "Account%30,User"], "Account User"),
    ],
)
def test_the_header_is_slurms(empty_past: Past, call: Call, words: list[str], header: str) -> None:
    """The columns that were asked for, and no row."""
    reply = call("sshare", *words)
    assert reply.lines[0].split() == header.split()
    assert set("".join(reply.lines[1:])) <= {"-", " "}
    assert call("sshare", "-n", *words).out == ""


def test_a_field_that_there_is_not_is_refused(empty_past: Past, call: Call) -> None:
    """In Slurm's words, with exit 1."""
    reply = call("sshare", "-o", "Nonsense")
    assert (reply.status, reply.err) == (1, 'sshare: error: Invalid field requested: "Nonsense"\n')


@pytest.mark.parametrize(
    ("words", "users", "accounts"),
    [([], ["alice"], ["all"]), (["-a"], ["all"], ["all"]), (["-u", "bob,eve", "-A", "lab"], ["bob", "eve"], ["lab"])],
)
def test_verbose_says_what_was_asked_for(
    empty_past: Past,
    call: Call,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    users: list[str],
    accounts: list[str],
) -> None:
    """On stderr, as Slurm does."""
    monkeypatch.setenv("LOGNAME", "alice")
    reply = call("sshare", "-v", *words)
    wanted = ["Users requested:", *users, "Accounts requested:", *accounts]
    assert reply.err.replace("\t: ", "").splitlines() == wanted
    assert reply.status == 0


@pytest.mark.parametrize("option", ["--help", "--usage"])
def test_help_is_laid_out_as_slurms(empty_past: Past, call: Call, option: str) -> None:
    reply = call("sshare", option)
    assert "Usage:  sshare [OPTION]\n  Valid OPTIONs are:\n" in reply.out
    assert "-v or --verbose        display more information" in reply.out
    assert reply.status == 0
