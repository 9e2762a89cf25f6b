"""The setting `slurm.version`: the release of Slurm that the commands are of, and what follows from it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from queue_past import Call, Past, ReleaseIs
from recordings import FOLDER, keys, recorded

from aver.model.slurm_names import NEWEST, RELEASES, number_of_sluid, sluid
from aver.slurm_cli.documents import SERVED

PARSERS = list(SERVED)


def document(call: Call, *argv: str) -> dict[str, Any]:
    reply = call(*argv)
    assert reply.status == 0, reply
    found: dict[str, Any] = json.loads(reply.out)
    return found


def test_the_newest_release_is_the_default(past: Past, call: Call) -> None:
    """Without the setting, and with settings that do not have it."""
    assert max(RELEASES) == NEWEST
    for program in ("squeue", "sacct", "sinfo", "scontrol"):
        assert call(program, "--version").out == "slurm 25.11.6\n"


@pytest.mark.parametrize("release", RELEASES)
def test_every_command_has_the_version_of_the_settings(release: str, release_is: ReleaseIs, call: Call) -> None:
    """`--version`, the configuration, the node and documents agree."""
    release_is(release)
    version = RELEASES[release]
    for program in ("squeue", "sacct", "sinfo", "scontrol", "sstat", "sacctmgr", "sshare"):
        assert call(program, "--version").out == f"slurm {version}\n"
    assert re.search(rf"^SLURM_VERSION +=  *{re.escape(version)}$", call("scontrol", "show", "config").out, re.M)
    assert f" Version={version}\n" in call("scontrol", "show", "node").out
    assert call("sinfo", "-h", "-o", "%v").out.strip() == version
    meta = document(call, "squeue", "--json")["meta"]
    assert meta["slurm"]["release"] == (version if release >= "23.11" else "23.11.0")


def test_a_release_that_is_not_known_is_refused(release_is: ReleaseIs, call: Call) -> None:
    """The settings say which there are."""
    release_is("19.05")
    reply = call("squeue", "--version")
    assert reply.status == 1
    assert "slurm: '19.05' is none of 22.05, 23.02, 23.11, 24.05, 24.11, 25.05, 25.11" in reply.err


@pytest.mark.parametrize(
    ("release", "parser"),
    [("22.05", 40), ("23.02", 40), ("23.11", 40), ("24.05", 41), ("24.11", 42), ("25.05", 43), ("25.11", 44)],
)
def test_documents_have_the_shape_of_the_release(release: str, parser: int, release_is: ReleaseIs, call: Call) -> None:
    """The default is the release's own; all are served when they are named."""
    release_is(release)
    for argv in (("squeue",), ("sacct", "-S", "now-1hour"), ("sinfo",), ("scontrol", "show", "job", "31")):
        assert document(call, *argv, "--json")["meta"]["plugin"]["data_parser"] == f"data_parser/v0.0.{parser}"
        for name in PARSERS:
            found = document(call, *argv, f"--json={name}")
            assert found["meta"]["plugin"]["data_parser"] == f"data_parser/{name}"


def test_list_names_the_shapes(past: Past, call: Call) -> None:
    """Names on stdout, the heading on stderr, as 25.11's."""
    reply = call("squeue", "--json=list")
    assert (reply.status, reply.err) == (0, "Possible data_parser plugins:\n")
    assert reply.lines == [f"data_parser/{name}" for name in PARSERS]


@pytest.mark.parametrize("release", RELEASES)
def test_scontrol_has_the_keys_of_the_release(release: str, release_is: ReleaseIs, call: Call) -> None:
    """TRES became ReqTRES and AllocTRES in 23.02, Power went with 24.05, 25.05 and 25.11 brought others."""
    release_is(release)
    text = call("scontrol", "-d", "show", "job", "31").out
    keys = set(re.findall(r"(?:^|\s)([A-Z][A-Za-z]*)=", text))
    assert ("TRES" in keys) == (release < "23.02")
    assert {"ReqTRES", "AllocTRES"}.issubset(keys) == (release >= "23.02")
    assert ("Power" in keys) == (release < "24.05")
    assert ("LicensesAlloc" in keys) == (release >= "25.05")
    assert {"SLUID", "SubmitLine"}.issubset(keys) == (release >= "25.11")
    assert (re.search(r"^ +StdErr=$", text, re.M) is not None) == (release >= "25.11")
    assert "SLUID" not in call("scontrol", "show", "job", "31").out


def test_jobs_are_found_by_their_sluid(past: Past, call: Call) -> None:
    """sacct and `scontrol -d` show it, and every command that takes a job's number takes it."""
    found = call("sacct", "-nPX", "-j", "31", "-o", "SLUID").out.strip()
    assert f"SLUID={found}\n" in call("scontrol", "-d", "show", "job", "31").out
    assert call("scontrol", "show", "job", found).out.startswith("JobId=31 ")
    assert call("sacct", "-nPX", "-j", found.lower(), "-o", "JobID").out == "31\n"
    assert call("squeue", "-h", "-j", found, "-o", "%i").out == "31\n"


def test_sluids() -> None:
    """14 letters of Slurm's alphabet that sort as the numbers do; another cluster's and other words are no number."""
    made = [sluid(number, attempt) for number in (1, 7, 4_000_000) for attempt in (1, 2)]
    assert made == sorted(set(made))
    assert all(re.fullmatch("s[0-9A-HJKMNP-TV-Z]{13}", one) for one in made)
    assert [number_of_sluid(one) for one in made] == [1, 1, 7, 7, 4_000_000, 4_000_000]
    assert number_of_sluid("sEHNM7HTAAEY00") is None  # of a real cluster
    assert number_of_sluid("7") is None
    assert number_of_sluid("sUUUUUUUUUUUUU") is None


def test_squeue_writes_signals_with_spaces(empty_past: Past, call: Call) -> None:
    """scontrol and sacct have underscores, as in Slurm since 23.02."""
    empty_past.commit(*empty_past.single(7, "crash", 11))
    reply = call("squeue", "-h", "-t", "all", "-o", "%r|%R")
    assert reply.out == "RaisedSignal:11(Segmentation fault)|(RaisedSignal:11(Segmentation fault))\n"
    assert " Reason=RaisedSignal:11(Segmentation_fault) " in call("scontrol", "show", "job", "7").out
    assert call("sacct", "-nPX", "-j", "7", "-o", "Reason").out == "RaisedSignal:11(Segmentation_fault)\n"


@pytest.mark.parametrize(("release", "shown"), [("22.05", "1024|768"), ("23.02", "4:0|3:0"), ("25.11", "4:0|3:0")])
def test_exits_in_squeue(release: str, shown: str, release_is: ReleaseIs, call: Call) -> None:
    """Raw wait statuses in 22.05, `code:signal` since 23.02."""
    release_is(release)
    assert call("squeue", "-h", "-t", "all", "-j", "32", "-O", "exit_code:|,derivedec:").out.strip() == shown


@pytest.mark.parametrize("entity", ["node", "partition"])
@pytest.mark.parametrize("parser", PARSERS)
def test_nodes_and_partitions_have_documents(entity: str, parser: str, past: Past, call: Call) -> None:
    """`scontrol show node|partition --json`, by name too; one that there is not is an empty list."""
    found = document(call, "scontrol", "show", entity, f"--json={parser}")[f"{entity}s"]
    assert len(found) == 1
    name = found[0]["name"]
    assert document(call, "scontrol", "show", entity, name, "--json")[f"{entity}s"][0]["name"] == name
    assert document(call, "scontrol", "show", entity, "nosuch", "--json")[f"{entity}s"] == []


SHOWN = recorded("scontrol-25.11")


@pytest.mark.parametrize(("flags", "number"), [("", "293"), ("-d ", "293"), ("-o ", "295"), ("", "294")])
def test_layout_of_a_job_is_that_of_25_11(past: Past, call: Call, flags: str, number: str) -> None:
    """Same lines, and the same keys in the same order on each, as a real 25.11.6 printed them for such jobs."""
    want = SHOWN[f"scontrol {flags}show job {number}"]
    ours = {"293": "31", "295": "34", "294": "32"}[number]
    lines = call("scontrol", *flags.split(), "show", "job", ours).out.split("\n")[:-1]
    got = [line for line in lines if not line.startswith("   Comment=")]
    if flags == "-o ":
        got = [re.sub(r"Comment=\S* ", "", line) for line in got]
    like = [[key.replace("MinMemoryNode", "MinMemoryCPU") for key in keys(line)] for line in got]
    assert like == [[key.replace("MinMemoryNode", "MinMemoryCPU") for key in keys(line)] for line in want]
    assert [line.endswith(" ") for line in got] == [line.endswith(" ") for line in want]


def test_node_and_partition_have_the_keys_of_25_11(past: Past, call: Call) -> None:
    """As a real 25.11.6 printed them; Port is of no use here."""
    want = [key for key in keys("\n".join(SHOWN["scontrol show node n1"])) if key != "Port"]
    assert keys(call("scontrol", "show", "node").out) == want
    want = keys("\n".join(SHOWN["scontrol show partition main"]))
    assert keys(call("scontrol", "show", "partition").out) == want


def names_of(value: Any, path: str = "") -> dict[str, str]:
    """What a document has, as the recording lists it."""
    match value:
        case {"set": _, "infinite": _, "number": _}:
            return {path: "number"}
        case dict() if value:
            parts = [names_of(one, f"{path}.{name}" if path else name) for name, one in value.items()]
            return {name: kind for part in parts for name, kind in part.items()}
        case [dict() as first, *_]:
            return names_of(first, f"{path}[]")
    kinds = {dict: "object", list: "list", str: "text", int: "integer", float: "real", bool: "flag", type(None): "null"}
    return {path: kinds[type(value)]}


def recorded_names(command: str, parser: str) -> dict[str, str]:
    """The names of 25.11.6 in this parser, each with its kind."""
    text = (FOLDER / "documents-25.11.txt").read_text()
    (block,) = re.findall(rf"^\$ {command} --json\n(.*?)(?:\n\n|\Z)", text, re.DOTALL | re.MULTILINE)
    rows = [line.split() for line in block.strip().split("\n")]
    return {name: kind for name, kind, *parsers in rows if not parsers or parser in parsers}


NOT_KNOWN = r"energy|.*\.sockets\b|steps\[\]\.tres\.consumed"
"""What is not measured, or not so on one machine: empty here."""


@pytest.mark.parametrize("parser", PARSERS[1:5])
@pytest.mark.parametrize("command", ["squeue", "sacct", "sinfo", "scontrol show node", "scontrol show partition"])
def test_documents_have_what_25_11_has(command: str, parser: str, past: Past, call: Call) -> None:
    """Every name with its kind, in every parser that both serve, and no other."""
    choice = ["-j", "31,32"] if command in ("squeue", "sacct") else []
    found = document(call, *command.split(), *choice, f"--json={parser}")
    (elements,) = [found[name] for name in ("jobs", "sinfo", "nodes", "partitions") if name in found]
    got = {name: kind for one in reversed(elements) for name, kind in names_of(one).items()}
    want = recorded_names(command, parser)
    of_us, of_slurm = ({k: v for k, v in one.items() if not re.match(NOT_KNOWN, k)} for one in (got, want))
    assert of_us == of_slurm
