"""sacctmgr, for reading: this machine as a cluster on which there are no accounts to be kept.

Every account and every QOS is accepted and enforced by nobody, so that the caller is a user with one association, whose
account is empty, and `normal` is the one QOS. What writes says in one line that it is not supported.
"""

from __future__ import annotations

from aver.fast_start import TYPE_CHECKING
from aver.model.slurm_names import CLUSTER, QOS
from aver.protocol.place import user_name
from aver.slurm_cli.facts import node_name
from aver.slurm_cli.output import show
from aver.slurm_cli.refusal import Refusal, guarded
from aver.slurm_cli.sacctmgr.fields import BY_DEFAULT, field
from aver.slurm_cli.settings import version_line
from aver.slurm_cli.start import opened
from aver.slurm_cli.table.columns import Layout, parse_columns
from aver.spec.getopt import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aver.spec.getopt import Parsed

OPTIONS = Table(
    flags="associations:s help:h immediate:i noheader:n oneliner:o parsable:p parsable2:P quiet:Q readonly:r usage "
    "verbose:v version:V",
)
WITHOUT_MEANING = ("immediate", "oneliner", "quiet", "readonly", "verbose")
HELP = """\
sacctmgr [<OPTION>] [<COMMAND>]
    Valid <OPTION> values are:
     -h, --help                show this page
     -i, --immediate           commit changes immediately; there are none here
     -n, --noheader            no header line
     -p, --parsable            with `|` between fields and at the end
     -P, --parsable2           with `|` between fields
     -s, --associations        users and accounts with their associations
     -V, --version             display tool version number
     -o, -Q, -r, -v            no effect here
    Valid <COMMAND> values are:
     list|show <ENTITY> [<SPECS>]  such as: list associations, show qos
     version
    Not supported on one machine: add account, add cluster, add user, archive, clear stats, delete qos, dump,
     load, modify cluster, modify user, reconfigure, shutdown
    <ENTITY> may be account, association, cluster, event, federation, problem, qos, reservation, resource,
     runawayjobs, transaction, tres, user, wckey
    <SPECS> are different for each command entity pair:
     [<NAME>...] [where <CONDITION>=<VALUE>...] [format=<FIELD>[%WIDTH],...] [withassoc]
  Example: sacctmgr -nP show assoc user=$USER format=cluster,account,qos
"""
ENTITIES = {
    "account": 4, "association": 2, "cluster": 2, "configuration": 2, "event": 1, "federation": 1, "problem": 1,
    "qos": 1, "reservation": 4, "resource": 4, "runawayjobs": 2, "stats": 1, "transaction": 1, "tres": 2, "user": 1,
    "wckey": 1,
}  # fmt: skip
WRITES = (
    "add", "archive", "clear", "create", "delete", "dump", "load", "modify", "reconfigure", "remove", "shutdown", "set",
)  # fmt: skip
_MODES = ("associations", "oneliner", "parsable", "parsable2", "quiet", "readonly", "verbose")
NOT_SERVED = ("stats", "configuration")
_NO_ENTITY = """\
No valid entity in list command
Input line must include "Account", "Association", "Cluster", "Configuration",
"Event", "Federation", "Problem", "QOS", "Resource", "Reservation", "RunAwayJobs", "Stats", "Transaction", "TRES", \
"User", or "WCKey\""""
_FLAGS = (
    "tree", "withassoc", "withassocs", "withcoordinators", "withdeleted", "withfed", "withlimits", "withparents",
    "withraw", "withrawqoslevel", "withsubaccounts", "woparentinfo", "woparentlimits", "wolimits", "withclusters",
    "onlydefaults", "all_clusters", "all_time", "nolimits", "fix",
)  # fmt: skip
CONDITIONS = {
    "accounts": "account", "acct": "account", "clusters": "cluster", "names": "name", "users": "user", "qos": "qos",
    "qoslevel": "qos", "partitions": "partition", "ids": "id", "type": "type", "adminlevel": "admin",
    "organization": "organization", "description": "description", "defaultaccount": "default account",
    "parent": "parent",
}  # fmt: skip


def main(argv: Sequence[str]) -> int:
    return guarded("sacctmgr", _sacctmgr, argv)


def _sacctmgr(argv: Sequence[str]) -> int:
    parsed = opened("sacctmgr", OPTIONS, argv, help=HELP, usage=HELP)
    if parsed is None:
        return 0
    words = list(parsed.operands)
    while words and words[0].lower() in _MODES:
        parsed.given.append((words.pop(0).lower(), None))
    if not words:
        raise Refusal("sacctmgr: error: a conversation is not supported by aver: give a command, such as show user")
    verb = words[0].lower()
    if verb == "version":
        show(f"{version_line()}\n")
    elif verb == "help":
        show(HELP)
    elif len(verb) >= 2 and ("list".startswith(verb) or "show".startswith(verb)):
        _list(parsed, words[1:])
    elif verb in ("exit", "quit"):
        return 0
    elif any(len(verb) >= 2 and one.startswith(verb) for one in WRITES):
        raise Refusal(
            f"sacctmgr: error: {verb} is not supported by aver: on one machine there are no accounts to change"
        )
    else:
        raise Refusal(f"invalid keyword: {words[0]}")
    return 0


def _list(parsed: Parsed, words: list[str]) -> None:
    name = _entity(words[0]) if words else None
    if name is None:
        raise Refusal(_NO_ENTITY)
    if name in NOT_SERVED:
        raise Refusal(f"sacctmgr: error: show {name} is not supported by aver")
    asked = _Asked(name, words[1:])
    has_assocs = parsed.has("associations") or "withassoc" in asked.flags or "withassocs" in asked.flags
    usual = BY_DEFAULT[
        f"{name} with associations" if f"{name} with associations" in BY_DEFAULT and has_assocs else name
    ]
    try:
        columns = parse_columns(asked.format or usual, lambda one: [found] if (found := field(one)) else [])
    except ValueError as error:
        raise Refusal(f" Unknown field '{error}'") from None
    layout = Layout(parsed)
    show(layout.header(columns) + layout.lines(columns, [row for row in _rows(name) if asked.wants(row)]))


def _entity(word: str) -> str | None:
    """The entity that a whole or cut name means; `assoc`, `acct` and plurals too."""
    typed = word.lower()
    if typed in ("acct", "accounts"):
        return "account"
    single = typed.removesuffix("s") if typed not in ("qos", "tres", "stats", "runawayjobs") else typed
    for name, least in ENTITIES.items():
        if len(single) >= least and name.startswith((single, typed)):
            return name
    return None


class _Asked:
    """The words behind the entity: names, conditions, flags and `format=`."""

    def __init__(self, entity: str, words: list[str]) -> None:
        self.format = ""
        self.flags: set[str] = set()
        self.wanted: dict[str, set[str]] = {}
        for word in words:
            name, equals, value = word.partition("=")
            name = name.lower()
            if not equals:
                self._take_word(entity, word)
            elif name == "format":
                self.format = f"{self.format},{value}" if self.format else value
            else:
                self._take_condition(entity, word, name, value)

    def _take_word(self, entity: str, word: str) -> None:
        typed = word.lower()
        if typed == "where":
            return
        if typed in _FLAGS:
            self.flags.add(typed)
            return
        if entity in ("association", "problem", "transaction", "event", "runawayjobs"):
            raise Refusal(f" Unknown condition: {word}\n Use keyword 'set' to modify value")
        self._add("user" if entity == "user" else "name", word)

    def _take_condition(self, entity: str, word: str, name: str, value: str) -> None:
        key = next((key for full, key in CONDITIONS.items() if len(name) >= 2 and full.startswith(name)), None)
        if key is None and name in ("start", "end", "event", "state", "nodes", "flags", "action", "actor", "info"):
            return  # of lists that are empty here
        if key is None:
            raise Refusal(f" Unknown condition: {word}\n Use keyword 'set' to modify value")
        if key == "name":
            key = "user" if entity == "user" else "cluster" if entity == "cluster" else "name"
        self._add(key, value)

    def _add(self, key: str, value: str) -> None:
        texts = {one.strip().strip("'\"").lower() for one in value.split(",") if one.strip()}
        self.wanted.setdefault(key, set()).update(texts)

    def wants(self, row: dict[str, str]) -> bool:
        """Whether a row fits. Any account is accepted: the one association takes the name that is asked for."""
        for key, texts in self.wanted.items():
            if key == "account" and "user" in row and len(texts) == 1:
                row["account"] = next(iter(texts))
            elif row.get(key, "").lower() not in texts:
                return False
        return True


def _rows(entity: str) -> list[dict[str, str]]:
    user = user_name()
    limits = {"share": "1", "qos": QOS, "default qos": "", "id": "1"}
    match entity:
        case "user":
            return [{"user": user, "name": user, "admin": "None", "cluster": CLUSTER, "account": "", **limits}]
        case "association":
            return [{"user": user, "cluster": CLUSTER, "account": "", "partition": "", **limits}]
        case "cluster":
            node = {"control host": node_name(), "node count": "1", "nodes": node_name(), "tres": _tres()}
            return [{"name": CLUSTER, "cluster": CLUSTER, "control port": "0", "rpc": "0", **node, **limits}]
        case "qos":
            return [{"name": QOS, "id": "1", "priority": "0", "grace time": "00:00:00", "preempt mode": "cluster",
                     "usage factor": "1.000000"}]  # fmt: skip
        case "tres":
            kinds = (("cpu", "", "1"), ("mem", "", "2"), ("energy", "", "3"), ("node", "", "4"), ("billing", "", "5"),
                     ("fs", "disk", "6"), ("vmem", "", "7"), ("pages", "", "8"), ("gres", "gpu", "1001"))  # fmt: skip
            return [{"type": kind, "name": name, "id": number} for kind, name, number in kinds]
        case _:
            return []


def _tres() -> str:
    from aver.slurm_cli.machine import Node

    node = Node([])
    gpus = f",gres/gpu={node.gpus}" if node.gpus else ""
    return f"cpu={node.cpus},mem={node.mem_mib},billing={node.cpus}{gpus}"
