"""Man pages made of the same help that `--help` shows: aver(1), and one for each command."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator, Mapping

import click

from aver.cli.catalog import GROUPS
from aver.durable_files import naming_failures, write_file
from aver.version import __version__

SECTION = "1"
_EXAMPLES = re.compile(r"Examples?:$")


def write_man_pages(folder: str, group: click.Group, helps: Mapping[str, str]) -> list[str]:
    """Write the pages to FOLDER/man1, and return their paths; `man -M FOLDER aver` shows the first."""
    paths = []
    for name, text in man_pages(group, helps).items():
        path = os.path.join(folder, f"man{SECTION}", f"{name}.{SECTION}")
        with naming_failures(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            write_file(path, text.encode(), 0o644)
        paths.append(path)
    return paths


def man_pages(group: click.Group, helps: Mapping[str, str]) -> dict[str, str]:
    """The text of each page by its name."""
    top = click.Context(group, info_name="aver", **group.context_settings)
    pages = {"aver": "\n".join(_main_page(group, top)) + "\n"}
    for name in helps:
        command = group.get_command(top, name)
        assert command is not None
        pages[f"aver-{name}"] = "\n".join(_command_page(name, command, helps[name], top)) + "\n"
    return pages


def _main_page(group: click.Group, ctx: click.Context) -> Iterator[str]:
    summary = (group.help or "").splitlines()[0]
    yield from _head("aver", summary, ["aver [OPTIONS] COMMAND [ARGS]..."])
    yield from _description(group.help or "")[0]
    for heading, helps in GROUPS.values():
        yield f'.SH "{heading.upper()}"'
        for name, said in helps.items():
            yield from (".TP", rf".BR aver\-{name} ({SECTION})", _text(said))
    yield from _options(group, ctx)
    yield from (".SH ADDRESSES", _text(group.epilog or ""))
    yield from (".SH SEE ALSO", _text("`aver docs` lists the pages of the documentation and shows them."))


def _command_page(name: str, command: click.Command, summary: str, top: click.Context) -> Iterator[str]:
    ctx = click.Context(command, parent=top, info_name=name)
    usages = [" ".join(("aver", name, *command.collect_usage_pieces(ctx)))]
    yield from _head(f"aver-{name}", summary, usages)
    description, examples = _description(command.help or "")
    yield from (*description, *_options(command, ctx), *examples)
    yield from (".SH SEE ALSO", rf".BR aver ({SECTION})")


def _head(name: str, summary: str, usages: list[str]) -> Iterator[str]:
    yield f'.TH "{_text(name.upper())}" "{SECTION}" "" "Aver {__version__}" "Aver"'
    yield from (".SH NAME", rf"{_text(name)} \- {_text(summary.rstrip('.'))}", ".SH SYNOPSIS")
    for usage in usages:
        yield from (".nf", _text(usage), ".fi")


def _description(text: str) -> tuple[list[str], list[str]]:
    """Paragraphs, and what a `\\b` keeps as it is; the examples apart, which are a section of their own."""
    description, examples = [".SH DESCRIPTION"], []
    for block in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        lines = [_text(line) for line in block.splitlines()]
        pause = [".PP"] if len(description) > 1 else []
        if lines[0] != "\b":
            description += [*pause, _text(" ".join(block.split()))]
        elif _EXAMPLES.match(lines[1]):
            examples = [".SH EXAMPLES", ".nf", *lines[2:], ".fi"]
        else:
            description += [*pause, ".nf", *lines[1:], ".fi"]
    return description, examples


def _options(command: click.Command, ctx: click.Context) -> Iterator[str]:
    records = [
        record
        for param in command.get_params(ctx)
        if isinstance(param, click.Option) and (record := param.get_help_record(ctx)) is not None
    ]
    if records:
        yield ".SH OPTIONS"
    for names, said in records:
        yield from (".TP", rf"\fB{_text(names)}\fR", _text(said))


def _text(text: str) -> str:
    """The text as roff shows it letter by letter: no line of it is taken for a request."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-").replace("`", r"\(ga").replace("'", r"\(aq")
    escaped = escaped.replace("^", r"\(ha").replace("~", r"\(ti").replace('"', r"\(dq")
    escaped = "".join(letter if letter.isascii() else rf"\[u{ord(letter):04X}]" for letter in escaped)
    return rf"\&{escaped}" if escaped.startswith((".", " ")) else escaped
