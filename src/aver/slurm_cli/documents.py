"""What `--json` and `--yaml` of Slurm's commands have in common: the shapes of data_parser v0.0.40 to v0.0.45.

All are served; the release (`slurm.version`) has its own as the default. A shape is told by its last number.

A number that may be missing is `{set, infinite, number}`; a state is a list of words; an exit is whole (137 stays 137),
and one that nobody knows, or that is not there yet, is not `set`. Built only when asked for: it imports `json`.
"""

from __future__ import annotations

import json
import os

from aver.fast_start import TYPE_CHECKING
from aver.model.signals import HIGHEST, signal_name
from aver.model.slurm_names import CLUSTER, RELEASES
from aver.slurm_cli.output import show
from aver.slurm_cli.refusal import Refusal
from aver.slurm_cli.settings import release

if TYPE_CHECKING:
    from typing import Any

    from aver.spec.getopt import Parsed

    Document = dict[str, Any]

FORMS = ("json", "yaml")
SHAPES = {"23.11": 40, "24.05": 41, "24.11": 42, "25.05": 43, "25.11": 44}
"""The releases that came with a new shape, which is their default."""
SERVED = {f"v0.0.{shape}": shape for shape in (*SHAPES.values(), 45)}  # 45 is that of 26.05
OLDEST = "23.11.0"  # what documents say of releases whose own shape is older, and not supported
TRES_IDS = {"cpu": 1, "mem": 2, "energy": 3, "node": 4, "billing": 5, "gres/gpu": 1001}
_CORE = 0x80


class Form:
    """How a document is written: `json` or `yaml`, and its shape."""

    def __init__(self, name: str, shape: int) -> None:
        self.name = name
        self.shape = shape


def form_of(parsed: Parsed, program: str) -> Form | None:
    """What is asked for, or None; Refusal for a shape that is not supported, after the list for `list`."""
    found = next((name for name, _ in reversed(parsed.given) if name in FORMS), None)
    if found is None:
        return None
    text = parsed.get(found)
    if not text:
        return Form(found, SHAPES.get(release(), min(SHAPES.values())))
    asked, _, flags = text.removeprefix("data_parser/").partition("+")
    if asked == "list":
        show("".join(f"data_parser/{name}\n" for name in SERVED))
        raise Refusal("Possible data_parser plugins:", 0)
    if asked not in SERVED or flags not in ("", "fast"):
        raise Refusal(f"{program}: error: --{found}={text} is not supported by aver: {', '.join(SERVED)} are")
    return Form(found, SERVED[asked])


def publish(form: Form, content: Document, argv: list[str], plugin: str) -> None:
    """Print the document, with who made it."""
    document = {**content, "meta": _meta(form, argv, plugin), "errors": [], "warnings": []}
    if form.name == "json":
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


def _meta(form: Form, argv: list[str], plugin: str) -> Document:
    from aver.protocol.place import user_name

    version = RELEASES[release()] if release() in SHAPES else OLDEST
    major, minor, micro = version.split(".")
    return {
        "plugin": {
            "type": "",
            "name": "",
            "data_parser": f"data_parser/v0.0.{form.shape}",
            "accounting_storage": "accounting_storage/aver",
        },
        "client": {"source": "", "user": user_name(), "group": _group_name()},
        "command": [plugin, *argv],
        "slurm": {
            "version": {"major": major, "micro": micro, "minor": minor},
            "release": version,
            "cluster": CLUSTER,
        },
    }


def _group_name() -> str:
    import grp

    try:
        return grp.getgrgid(os.getgid()).gr_name
    except KeyError:
        return str(os.getgid())


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
