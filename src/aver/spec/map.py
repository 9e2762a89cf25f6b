"""`aver map`: a command for each input, as a flow of one job with a member for each.

The text is read as that of a flow, with the same checks. GNU parallel's placeholders are names of columns here: `{}` is
the input, `{.}` without its extension, `{/}` its last part, `{//}` its folder, `{/.}` the last part without extension,
`{#}` its number from 1.
"""

from __future__ import annotations

import csv
import io
import json
import os.path
import re
from collections.abc import Callable, Mapping, Sequence

from aver.errors import UsageError
from aver.model.job import FlowSpec
from aver.plan.address import JOB_NAME
from aver.spec.flow.file import parse_flow
from aver.spec.flow.matrix import OPTIONS
from aver.spec.mistakes import Mistake, SpecError

_FORMS: dict[str, tuple[str, Callable[[str], str]]] = {
    "": ("input", lambda text: text),
    ".": ("stem", lambda text: os.path.splitext(text)[0]),
    "/": ("base", os.path.basename),
    "//": ("folder", lambda text: os.path.dirname(text) or "."),
    "/.": ("base_stem", lambda text: os.path.splitext(os.path.basename(text))[0]),
}
NUMBER = "number"
_FORM = re.compile(r"(?<!\$)\{(|\.|/|//|/\.|#)\}")
_TABLE = "inputs"


class _Inputs:
    """The inputs as a table that a matrix reads."""

    folder = "the command line"

    def __init__(self, text: str) -> None:
        self._text = text

    def matching(self, pattern: str) -> list[str]:
        return []

    def text(self, path: str) -> str:
        if path != _TABLE:
            raise ValueError("there are no files here")
        return self._text


def flow_of_map(
    text: str, inputs: Sequence[str] | None, params: Sequence[str], keys: Mapping[str, object], *, now: float
) -> FlowSpec:
    """The flow; raise UsageError or SpecError. `inputs` None: the parameters alone make the members.

    `params` are NAME=VALUES, with commas and ranges; `keys` are further keys of the job, None for those that are not
    given, with `name` and `max_parallel`.
    """
    if inputs is not None and not inputs:
        raise UsageError("there are no inputs: give them after the command, or on stdin, one on each line")
    if inputs is not None and not wants_inputs(text):
        text = f"{text} {{}}"
    matrix: dict[str, object] = {}
    for param in params:
        name, equals, values = param.partition("=")
        if not equals:
            raise UsageError(f"--param {param}: write it as NAME=VALUE,VALUE or NAME=1..3")
        if name in OPTIONS or name in matrix or (inputs is not None and name in _columns(text)):
            raise UsageError(f"--param {name}: the name is taken; choose another")
        matrix[name] = values.split(",")
    table = ""
    if inputs is not None:
        matrix["csv"] = _TABLE
        table = _table(text, inputs)
    job = {key: value for key, value in keys.items() if value is not None and key not in ("name", "max_parallel")}
    columns = table.partition("\n")[0].split(",")
    job |= {"run": _FORM.sub(lambda found: f"{{{_name(found[1])}}}", text), "matrix": matrix}
    if NUMBER in columns:
        job["comment"] = f"input {{{NUMBER}}}"
    name = str(keys.get("name") or _job_name(text))
    document: dict[str, object] = {"name": name, "jobs": [{"name": name, **job}]}
    if keys.get("max_parallel") is not None:
        document["max_parallel"] = keys["max_parallel"]
    try:
        return parse_flow(json.dumps(document), "aver map", now=now, is_json=True, files=_Inputs(table))
    except SpecError as error:  # there is no file: lines and columns would say nothing
        raise SpecError(Mistake(one.file, 0, 0, one.text, one.hint) for one in error.mistakes) from None


def wants_inputs(text: str) -> bool:
    """Whether the command has a placeholder for its input."""
    return _FORM.search(text) is not None


def _name(form: str) -> str:
    return NUMBER if form == "#" else _FORMS[form][0]


def _columns(text: str) -> list[str]:
    return list(dict.fromkeys(_name(form) for form in _FORM.findall(text)))


def _table(text: str, inputs: Sequence[str]) -> str:
    """What each input gives for the placeholders of the text; a number too, where that would not tell members apart."""
    if any("\0" in one or "\n" in one or "\r" in one for one in inputs):
        raise UsageError("an input has a line break in it: an input is one line")
    makers = dict(_FORMS.values())
    names = [name for name in _columns(text) if name != NUMBER]
    rows = [[makers[name](one) for name in names] for one in inputs]
    if NUMBER in _columns(text) or len({tuple(row) for row in rows}) < len(rows):
        names.append(NUMBER)
        rows = [[*row, str(number)] for number, row in enumerate(rows, 1)]
    out = io.StringIO()
    csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_MINIMAL).writerow(names)
    csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    return out.getvalue()


def _job_name(text: str) -> str:
    """The program's name, made fit for a job."""
    words = text.split()
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", os.path.basename(words[0]) if words else "").strip("-.")[:255]
    return name if JOB_NAME.fullmatch(name) else "map"
