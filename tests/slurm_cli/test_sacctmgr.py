"""sacctmgr of one machine."""

from __future__ import annotations

import getpass

import pytest
from queue_past import Call, Past

USER = getpass.getuser()
NOT_SERVED = "is not supported by aver: on one machine there are no accounts to change\n"


def test_a_user_is_shown_as_slurm_shows_one(empty_past: Past, call: Call) -> None:
    """Header, widths, and the caller."""
    reply = call("sacctmgr", "show", "user")
    assert reply.lines[:2] == ["      User   Def Acct     Admin ", "---------- ---------- --------- "]
    assert reply.lines[2] == f"{USER[:10]:>10} {'':>10} {'None':>9} "
    assert call("sacctmgr", "-nP", "list", "user", USER, "format=user,adminlevel").out == f"{USER}|None\n"
    assert call("sacctmgr", "-n", "show", "user", "nobody-else").out == ""


def test_associations_and_what_clients_ask_of_them(empty_past: Past, call: Call) -> None:
    """One, without an account; any account that is asked for is accepted; the line that Snakemake calls is blank."""
    asked = "cluster,account,user,qos"
    assert call("sacctmgr", "-nP", "show", "assoc", f"user={USER}", f"format={asked}").out == f"aver||{USER}|normal\n"
    where = ("where", f"user={USER}", "account=physics", "cluster=aver")
    assert call("sacctmgr", "-nP", "list", "associations", *where, f"format={asked}").out == (
        f"aver|physics|{USER}|normal\n"
    )
    assert call("sacctmgr", "-n", "-s", "list", "user", USER, "format=account%256").out.strip() == ""
    assert call("sshare", "-U", "--format", "Account%256", "--noheader").out == ""
    header = call("sacctmgr", "-p", "show", "assoc").lines[0]
    assert header.startswith("Cluster|Account|User|Partition|Share|Priority|GrpJobs|GrpTRES|GrpSubmit|GrpWall|")


def test_qos_cluster_and_tres(empty_past: Past, call: Call) -> None:
    """The one of each, under Slurm's headers; cut names and widths."""
    assert call("sacctmgr", "-P", "show", "qos", "format=Name,Prio,MaxWall").out == "Name|Priority|MaxWall\nnormal|0|\n"
    assert call("sacctmgr", "-nP", "show", "cluster", "format=cluster,nodecount").out == "aver|1\n"
    assert "gres|gpu|1001" in call("sacctmgr", "-nP", "show", "tres").lines
    assert call("sacctmgr", "-n", "show", "qos", "format=name%3").out == "no+ \n"
    assert call("sacctmgr", "-nP", "show", "account").out == ""


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["add", "user", "x"], f"sacctmgr: error: add {NOT_SERVED}"),
        (["-i", "modify", "user", "x"], f"sacctmgr: error: modify {NOT_SERVED}"),
        (["show", "user", "format=foo"], " Unknown field 'foo'\n"),
        (["show", "assoc", "foo=1"], " Unknown condition: foo=1\n Use keyword 'set' to modify value\n"),
        (["frobnicate"], "invalid keyword: frobnicate\n"),
        (["show", "stats"], "sacctmgr: error: show stats is not supported by aver\n"),
    ],
)  # fmt: skip
def test_refusals_of_sacctmgr(empty_past: Past, call: Call, argv: list[str], said: str) -> None:
    """One reason each, exit 1."""
    reply = call("sacctmgr", *argv)
    assert (reply.status, reply.out, reply.err) == (1, "", said)
