"""Every message of the command line in one list: help, errors, notes and lines, as they stand in the code.

`python tests/cli/message_list.py` writes it to `messages.txt` beside this file, to be read in ten minutes.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

ROOM = Path(__file__).parents[2] / "src" / "aver" / "cli"
LIST = Path(__file__).with_name("messages.txt")
SAYS = frozenset({"note", "line", "_note", "_tell", "_complain", "fail"})  # calls whose first argument is shown


def messages() -> str:
    """The list as it should be: for each module its messages in their order, with … for what is filled in."""
    parts = []
    for path in sorted(ROOM.rglob("*.py")):
        found = list(dict.fromkeys(text for text in _texts(ast.parse(path.read_text())) if " " in text))
        if found:
            parts.append(f"{path.relative_to(ROOM)}\n" + "".join(f"  {text}\n" for text in found))
    return "\n".join(parts)


def _texts(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "command":
            yield from _lines(inspect.cleandoc(ast.get_docstring(node) or ""))
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if node.args and (name in SAYS or name.endswith("Error")):
                yield from _lines(_said(node.args[0]))
            for keyword in node.keywords:
                if keyword.arg == "help":
                    yield from _lines(_said(keyword.value))


def _said(node: ast.expr) -> str:
    """The text of an expression, with … for what is only known when it is said."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_said(value) for value in values)
        case ast.BinOp(left=left, right=right):
            return _said(left) + _said(right)
        case ast.IfExp(body=body, orelse=other):
            return f"{_said(body)}\n{_said(other)}"
        case _:
            return "…"


def _lines(text: str) -> Iterator[str]:
    yield from (line.strip() for line in text.splitlines() if line.strip() not in ("", "…", "\b"))


if __name__ == "__main__":
    LIST.write_text(messages())
