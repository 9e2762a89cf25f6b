"""Commands that pages name inside sentences and tables, which no test executes, have names and options that exist."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import click
import pytest

from aver.cli.catalog import SYNONYMS
from aver.cli.group import MODULES

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "en").rglob("*.md"))]
FENCED = re.compile(r"^ *(`{3,}).*?^ *\1", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"(`+)(aver [a-z].*?)\1", re.DOTALL)
OPTION = re.compile(r"(?<![\w=-])(--[a-z][a-z-]*|-[a-zA-Z])(?![\w-])")


def named(text: str) -> list[str]:
    """The commands inside sentences and tables, each on one line and without what stands after ` -- `."""
    found = [" ".join(match[2].split()) for match in INLINE.finditer(FENCED.sub("", text))]
    return [one.split(" -- ")[0] for one in found]


def problem(typed: str) -> str:
    """What is wrong with the words, or nothing. Quoted text is the command of a job."""
    words = re.sub(r"'[^']*'|\"[^\"]*\"", "TEXT", typed).split()[1:]
    name, *options = SYNONYMS.get(words[0], (words[0],))
    if name not in MODULES:
        return f"{typed}: there is no such command"
    command = importlib.import_module(MODULES[name]).command
    rest = [*options, *words[1:]]
    if isinstance(command, click.Group) and rest and rest[0] in command.commands:
        command = command.commands[rest.pop(0)]
    known = {opt for param in command.params for opt in (*param.opts, *param.secondary_opts)} | {"--help", "-h"}
    if command.context_settings.get("ignore_unknown_options"):  # it hands them on; its help names them
        known |= set(OPTION.findall(command.help or ""))
    unknown = [word for word in OPTION.findall(" ".join(rest)) if word not in known]
    return f"{typed}: {name} has no {', '.join(unknown)}" if unknown else ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_inside_sentences_exist(page: Path) -> None:
    """A reader who types them is not told that there is no such command or option."""
    assert [wrong for typed in named(page.read_text()) if (wrong := problem(typed))] == []


def test_a_wrong_command_is_found() -> None:
    """A name, an option and a letter that do not exist; a job's own options do not count."""
    assert problem("aver wy 7") == "aver wy 7: there is no such command"
    assert problem("aver jobs --fail -f") == "aver jobs --fail -f: jobs has no --fail"
    assert problem("aver jobs -Z") == "aver jobs -Z: jobs has no -Z"
    assert problem("aver map './fit --fast {}' a.csv") == ""
    assert named("`aver run --mem 2G -- ls --all`, ``aver why 7``\n```\naver x --y\n```\n") == [
        "aver run --mem 2G",
        "aver why 7",
    ]
