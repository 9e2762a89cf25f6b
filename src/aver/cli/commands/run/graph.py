"""`aver graph`: a flow as a text tree, as DOT or as SVG."""

from __future__ import annotations

from pathlib import Path

import click

from aver.cli.output.text import Output
from aver.cli.submission import set_option
from aver.errors import CantWriteError, UsageError
from aver.report.graph.formats import draw_dot, draw_svg, draw_text
from aver.spec.flow.params import ParamValues, parse_settings
from aver.spec.load import load

DRAWINGS = {"text": draw_text, "dot": draw_dot, "svg": draw_svg}
BY_SUFFIX = {".dot": "dot", ".gv": "dot", ".svg": "svg"}
PICTURES = (".png", ".pdf", ".jpg", ".jpeg", ".gif", ".webp", ".ps", ".eps")  # text in one of these would mislead


@click.command("graph")
@click.argument("file", type=click.Path())
@click.option(
    "--format",
    "-f",
    "form",
    type=click.Choice(list(DRAWINGS)),
    help="Output format (default: by FILE's suffix, else text).",
)
@click.option(
    "--output", "-o", "target", metavar="FILE", help="Write to FILE; its suffix (.svg, .dot) gives the format."
)
@set_option
def command(file: str, form: str | None, target: str | None, settings: tuple[str, ...]) -> None:
    """Draw a flow as a text tree, DOT or SVG.

    A matrix is one node; big flows are grouped.

    \b
    Examples:
      aver graph flow.yaml
      aver graph flow.yaml -o flow.svg
      aver graph flow.yaml -f dot | dot -Tpdf -o flow.pdf
    """
    flow = load(file, params=ParamValues(parse_settings(settings)))
    if form is None and target and (suffix := Path(target).suffix.lower()) in PICTURES:
        kind = suffix.removeprefix(".")
        raise UsageError(f"no {kind} is drawn: write .svg, or  aver graph {file} -f dot | dot -T{kind} -o {target}")
    if form is None:
        form = BY_SUFFIX.get(Path(target).suffix.lower(), "text") if target else "text"
    drawing = DRAWINGS[form](flow)
    if target is None or target == "-":
        Output.standard().line(drawing.rstrip("\n"))
        return
    try:
        Path(target).write_text(drawing, encoding="utf-8")
    except OSError as error:
        raise CantWriteError(f"can't write {target}: {error.strerror}") from None
