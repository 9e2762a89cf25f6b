"""What `--json` and `--yaml` of Slurm's commands have in common: the shape of data_parser v0.0.40 (Slurm 23.11).

A number that may be missing is `{set, infinite, number}`; a state is a list of words; an exit is whole (137 stays 137),
and one that nobody knows, or that is not there yet, is not `set`. Built only when asked for: it imports `json`.
"""

from __future__ import annotations

import json
import os

from aver.fast_start import TYPE_CHECKING
from aver.model.signals import HIGHEST, signal_name
from aver.model.slurm_names import CLUSTER
from aver.slurm_cli.output import show
from aver.slurm_cli.refusal import Refusal

if TYPE_CHECKING:
    from typing import Any

    from aver.spec.getopt import Parsed

    Document = dict[str, Any]

PARSER = "v0.0.40"
RELEASE = "23.11.0"  # the first Slurm of that shape
FORMS = ("json", "yaml")
TRES_IDS = {"cpu": 1, "mem": 2, "energy": 3, "node": 4, "billing": 5, "gres/gpu": 1001}
_CORE = 0x80


def form_of(parsed: Parsed, program: str) -> str | None:
    """`json` or `yaml` where it is asked for; Refusal for a shape that is not served, after the list for `list`."""
    found = next((name for name, _ in reversed(parsed.given) if name in FORMS), None)
    if found is None:
        return None
    asked = (parsed.get(found) or PARSER).partition("+")[0].removeprefix("data_parser/")
    if asked == "list":
        raise Refusal(f"Possible data_parser plugins:\ndata_parser/{PARSER}", 0)
    if asked != PARSER:
        raise Refusal(f"{program}: error: --{found}={asked} is not served by aver: {PARSER} is")
    return found


def publish(form: str, content: Document, argv: list[str], plugin: str) -> None:
    """Print the document, with who made it."""
    document = {**content, "meta": _meta(argv, plugin), "errors": [], "warnings": []}
    if form == "json":
        show(json.dumps(document, indent=2) + "\n")
    else:
        show("---\n" + "\n".join(_yaml(document, 0)) + "\n")


def number(value: float | None, *, is_infinite: bool = False) -> Document:
    """A number that may be missing, or have no limit."""
    whole = 0 if value is None else int(value)
    return {"set": value is not None and not is_infinite, "infinite": is_infinite, "number": whole}


def exit_code(text: str, raw: int | None = None, *, has_ended: bool = True) -> Document:
    """`137:0` as ERROR 137, `0:9` as SIGNALED 9; `?` is INVALID, and what has not ended is PENDING."""
    code, _, signal = text.partition(":")
    if not has_ended or not (code.isdigit() and signal.isdigit()):
        return _exit("PENDING" if not has_ended else "INVALID", None, None)
    if int(signal):
        status = "CORE_DUMPED" if raw is not None and raw & _CORE else "SIGNALED"
        return _exit(status, None, int(signal))
    return _exit("ERROR" if int(code) else "SUCCESS", int(code), None)


def tres(pairs: list[tuple[str, str]], mem_mib: int) -> list[Document]:
    """What was given, by its number in Slurm's accounts; memory in MiB."""
    found = []
    for name, value in pairs:
        kind, _, sort = name.partition("/")
        count = mem_mib if name == "mem" else int(value)
        found.append({"type": kind, "name": sort, "id": TRES_IDS[name], "count": count})
    return sorted(found, key=lambda one: int(str(one["id"])))


def _exit(status: str, code: int | None, signal: int | None) -> Document:
    name = "" if signal is None else signal_name(signal)[3:] if signal <= HIGHEST else str(signal)
    return {"status": [status], "return_code": number(code), "signal": {"id": number(signal), "name": name}}


def _meta(argv: list[str], plugin: str) -> Document:
    from aver.protocol.place import user_name

    major, minor, micro = RELEASE.split(".")
    return {
        "plugin": {
            "type": "",
            "name": "",
            "data_parser": f"data_parser/{PARSER}",
            "accounting_storage": "accounting_storage/aver",
        },
        "client": {"source": "", "user": user_name(), "group": str(os.getgid())},
        "command": [plugin, *argv],
        "slurm": {
            "version": {"major": major, "micro": micro, "minor": minor},
            "release": RELEASE,
            "cluster": CLUSTER,
        },
    }


def _yaml(value: Any, depth: int) -> list[str]:
    """Block lines; texts as JSON writes them, which is YAML too."""
    indent = "  " * depth
    lines: list[str] = []
    pairs = value.items() if isinstance(value, dict) else ((None, one) for one in value)
    for name, one in pairs:
        head = f"{indent}- " if name is None else f"{indent}{json.dumps(name)}: "
        if isinstance(one, (dict, list)) and one:
            lines += [head.rstrip(), *_yaml(one, depth + 1)]
        else:
            lines.append(head + json.dumps(one))
    return lines
