"""sinfo: this machine as a cluster of one node. Writes nothing but its output."""

from __future__ import annotations

import os
import time

from aver.fast_start import TYPE_CHECKING
from aver.model.hostlists import expand
from aver.slurm_cli.facts import Book
from aver.slurm_cli.machine import Line, Node
from aver.slurm_cli.output import say, show
from aver.slurm_cli.refusal import Refusal, guarded
from aver.slurm_cli.settings import version_line
from aver.slurm_cli.start import opened, options_in_words
from aver.slurm_cli.table.formats import Format, parse_letters, parse_names
from aver.spec.getopt import Parsed, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Field = tuple[str, Callable[["Line"], object]]

OPTIONS = Table(
    flags="all:a dead:d exact:e federation future:F help hide list-reasons:R local long:l Node:N noconvert "
    "noheader:h responding:r summarize:s reservation:T usage verbose:v version:V",
    values="clusters:M format:o Format:O iterate:i nodes:n partition:p sort:S states:t",
    maybe="json yaml",
    aliases="cluster=clusters partitions=partition state=states",
)
WITHOUT_MEANING = (
    "all", "clusters", "exact", "federation", "future", "hide", "local", "noconvert", "responding", "sort",
)  # fmt: skip
DEFAULT = "%#9P %.5a %.10l %.6D %.6t %N"
LONG = "%#9P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N"
SUMMARY = "%#9P %.5a %.10l %.16F %N"
NODES = "%#10N %.5D %#.9P %6t"
NODES_LONG = "%#10N %.5D %#.9P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E"
REASONS = "%20E %9u %19H %N"
VALID_STATES = (
    "unknown,down,idle,allocated,?,mixed,future,drain,drained,draining,no_respond,reserved,perfctrs,cloud,completing,"
    "powering_down,powered_down,power_down,powering_up,fail,maint,reboot,reboot^,unknown"
)
_STATES = {
    "alloc": "allocated", "mix": "mixed", "comp": "completing", "drng": "draining", "resv": "reserved",
    "unk": "unknown", "failg": "failing", "failing": "failing", "maint": "maint", "err": "error", "error": "error",
    "planned": "planned", "npc": "perfctrs", "power_up": "powering_up",
    "no_resp": "no_respond", "blocked": "blocked", "inval": "inval",
} | {word: word for word in VALID_STATES.split(",")}  # fmt: skip


def _of_node(read: Callable[[Node], object], otherwise: object) -> Callable[[Line], object]:
    return lambda line: read(line.node) if line.has_node else otherwise


def _constant(value: str) -> Callable[[Line], object]:
    return lambda line: value


def _cpu_counts(line: Line) -> str:
    node = line.node
    return f"{min(node.used_cpus, node.cpus)}/{node.free_cpus}/0/{node.cpus}" if line.has_node else "0/0/0/0"


LETTERS: dict[str, Field] = {
    "a": ("AVAIL", _constant("up")),
    "A": ("NODES(A/I)", lambda line: f"{line.count('allocated')}/{line.count('idle')}"),
    "b": ("ACTIVE_FEATURES", _constant("(null)")),
    "B": ("MAX_CPUS_PER_NODE", _constant("UNLIMITED")),
    "c": ("CPUS", _of_node(lambda node: node.cpus, 0)),
    "C": ("CPUS(A/I/O/T)", _cpu_counts),
    "d": ("TMP_DISK", _constant("0")),
    "D": ("NODES", lambda line: line.count("all")),
    "e": ("FREE_MEM", _of_node(lambda node: node.free_mem_mib, 0)),
    "E": ("REASON", _constant("none")),
    "f": ("AVAIL_FEATURES", _constant("(null)")),
    "F": (
        "NODES(A/I/O/T)",
        lambda line: f"{line.count('allocated')}/{line.count('idle')}/0/{line.count('all')}",
    ),
    "g": ("GROUPS", _constant("all")),
    "G": ("GRES", _of_node(lambda node: node.gres, "(null)")),
    "h": ("OVERSUBSCRIBE", _constant("NO")),
    "H": ("TIMESTAMP", _constant("Unknown")),
    "I": ("PRIO_JOB_FACTOR", _constant("1")),
    "l": ("TIMELIMIT", _constant("infinite")),
    "L": ("DEFAULTTIME", _constant("n/a")),
    "m": ("MEMORY", _of_node(lambda node: node.mem_mib, 0)),
    "M": ("PREEMPT_MODE", _constant("OFF")),
    "n": ("HOSTNAMES", _of_node(lambda node: node.host, "")),
    "N": ("NODELIST", _of_node(lambda node: node.name, "")),
    "o": ("NODE_ADDR", _of_node(lambda node: node.name, "")),
    "O": ("CPU_LOAD", _of_node(lambda node: node.load, "N/A")),
    "p": ("PRIO_TIER", _constant("1")),
    "P": ("PARTITION", lambda line: f"{line.node.partition}*"),
    "r": ("ROOT", _constant("no")),
    "R": ("PARTITION", lambda line: line.node.partition),
    "s": ("JOB_SIZE", _constant("1")),
    "S": ("ALLOCNODES", _constant("all")),
    "t": ("STATE", _of_node(lambda node: node.short_state, "n/a")),
    "T": ("STATE", _of_node(lambda node: node.state, "n/a")),
    "u": ("USER", _constant("Unknown")),
    "U": ("USER", _constant("Unknown")),
    "v": ("VERSION", lambda _: version_line().split()[-1]),
    "V": ("CLUSTER", _constant("N/A")),
    "w": ("WEIGHT", _constant("1")),
    "X": ("SOCKETS", _of_node(lambda node: 1, 0)),
    "Y": ("CORES", _of_node(lambda node: node.cpus, 0)),
    "Z": ("THREADS", _constant("1")),
    "z": ("S:C:T", _of_node(lambda node: f"1:{node.cpus}:1", "0:0:0")),
}
_BY_NAME = {
    "allocnodes": "S", "available": "a", "cluster": "V", "cores": "Y", "cpus": "c", "cpusload": "O", "cpusstate": "C",
    "defaulttime": "L", "disk": "d", "features": "f", "features_act": "b", "freemem": "e", "gres": "G", "groups": "g",
    "maxcpuspernode": "B", "memory": "m", "nodeaddr": "o", "nodeai": "A", "nodeaiot": "F", "nodehost": "n",
    "nodelist": "N", "nodes": "D", "oversubscribe": "h", "partition": "P", "partitionname": "R", "preemptmode": "M",
    "priorityjobfactor": "I", "prioritytier": "p", "priority": "p", "reason": "E", "root": "r", "size": "s",
    "socketcorethread": "z", "sockets": "X", "statecompact": "t", "statelong": "T", "threads": "Z", "time": "l",
    "timestamp": "H", "user": "u", "userlong": "U", "version": "v", "weight": "w",
}  # fmt: skip
NAMES: dict[str, Field] = {name: LETTERS[letter] for name, letter in _BY_NAME.items()} | {
    "allocmem": ("ALLOCMEM", _of_node(lambda node: node.used_mem_mib, 0)),
    "comment": ("COMMENT", _constant("(null)")),
    "extra": ("EXTRA", _constant("(null)")),
    "gresused": ("GRES_USED", _of_node(lambda node: f"gpu:{node.used_gpus}" if node.gpus else "(null)", "(null)")),
    "port": ("PORT", _constant("0")),
    "statecomplete": ("STATE", _of_node(lambda node: node.state, "n/a")),
}


def main(argv: Sequence[str]) -> int:
    return guarded("sinfo", _sinfo, argv)


def _help() -> str:
    from aver.slurm_cli.help import page

    return page(OPTIONS, "sinfo [OPTIONS]", WITHOUT_MEANING, reads=True)


def _usage() -> str:
    from aver.slurm_cli.help import usage

    return usage(OPTIONS, "sinfo", reads=True)


def _sinfo(argv: Sequence[str]) -> int:
    parsed = opened("sinfo", OPTIONS, argv, help=_help, usage=_usage)
    if parsed is None:
        return 0
    states = _states(parsed.get("states"))
    if parsed.has("json") or parsed.has("yaml"):
        from aver.slurm_cli.documents import form_of, publish
        from aver.slurm_cli.sinfo.document import sinfo_document

        form = form_of(parsed, "sinfo")
        assert form is not None
        publish(form, sinfo_document(_lines(parsed, states), form.shape), list(argv), "sinfo")
        return 0
    every = _seconds(parsed.get("iterate"))
    if parsed.has("verbose"):
        show(options_in_words(OPTIONS, parsed))
    if parsed.has("reservation"):
        show("No reservations in the system\n")
        return 0
    while True:
        if every is not None or parsed.has("long"):
            show(time.strftime("%a %b %d %H:%M:%S %Y\n"))
        _print(parsed, states)
        if every is None:
            return 0
        show("\n")
        time.sleep(every)


def _print(parsed: Parsed, states: set[str] | None) -> None:
    form = _format(parsed)
    for text in form.unknown:
        kind = "sinfo: error: Invalid job" if parsed.has("Format") else "Invalid node"
        say(f"{kind} format specification: {text}")
    if not parsed.has("noheader"):
        show(form.header())
    show(form.lines(_lines(parsed, states)))


def _lines(parsed: Parsed, states: set[str] | None) -> list[Line]:
    node = Node.of(Book.open())
    partitions = parsed.get("partition") or os.environ.get("SINFO_PARTITION")
    if partitions is not None and node.partition not in [one.strip().rstrip("*") for one in partitions.split(",")]:
        return []
    has_node = states is None or node.state in states
    if parsed.has("dead") or parsed.has("list-reasons"):
        has_node = False
    if parsed.get("nodes") is not None:
        has_node = has_node and bool({node.name, node.host, "localhost"} & set(_hosts(parsed.get("nodes") or "")))
    if not has_node and (parsed.has("Node") or parsed.has("list-reasons")):
        return []
    return [Line(node, has_node=has_node)]


def _hosts(text: str) -> list[str]:
    try:
        return expand(text)
    except ValueError:
        raise Refusal(f"sinfo: error: Invalid node name specified: {text}") from None


def _format(parsed: Parsed) -> Format:
    asked = next(((name, value) for name, value in reversed(parsed.given) if name in ("format", "Format")), None)
    has_view = any(parsed.has(name) for name in ("long", "summarize", "Node", "list-reasons"))
    if asked is None and not has_view and os.environ.get("SINFO_FORMAT"):
        asked = ("format", os.environ["SINFO_FORMAT"])
    if asked is not None and asked[0] == "Format":
        return parse_names(asked[1] or "", NAMES)
    if asked is not None:
        usual = asked[1] or ""
    elif parsed.has("summarize"):
        usual = SUMMARY
    elif parsed.has("list-reasons"):
        usual = REASONS
    elif parsed.has("Node"):
        usual = NODES_LONG if parsed.has("long") else NODES
    else:
        usual = LONG if parsed.has("long") else DEFAULT
    return parse_letters(usual, LETTERS, "".join(LETTERS))


def _states(text: str | None) -> set[str] | None:
    if text is None:
        return None
    found = set()
    for word in text.lower().split(","):
        plain = word.strip().rstrip("*$~#!%@^-+")
        if plain == "all":
            return None
        if plain not in _STATES:
            say(f'sinfo: error: Bad state string: "{_typed(text, word)}"')
            raise Refusal(f"sinfo: error: valid states: {VALID_STATES}")
        found.add(_STATES[plain])
    return found


def _typed(text: str, word: str) -> str:
    """The word as it was typed."""
    return next((one.strip() for one in text.split(",") if one.lower() == word), word)


def _seconds(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 9 and int(text) > 0):
        raise Refusal(f"sinfo: error: --iterate={text}\n")
    return int(text)
