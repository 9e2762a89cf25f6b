"""The pages name every command and every option, and the exit statuses are those of the code."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import click
import pytest

from aver.cli.catalog import SYNONYMS
from aver.cli.group import MODULES
from aver.judge.run import exit_status_of
from aver.model.states import SETTLED

REFERENCE = Path(__file__).parents[2] / "docs" / "en" / "reference"


def section(name: str) -> str:
    text = (REFERENCE / "commands.md").read_text()
    found = re.search(rf"^## aver {name}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"docs/en/reference/commands.md has no section for {name}"
    return found[1]


def plain(text: str) -> str:
    """Words alone: without links and marks of the page, wherever lines are broken."""
    return " ".join(re.sub(r" \(\[[^)]*\)\)|`", "", text).split())


@pytest.mark.parametrize("name", MODULES)
def test_the_page_has_every_option_and_an_example(name: str) -> None:
    """The page has the first line of the command's help, each option with its help, and an example."""
    command = importlib.import_module(MODULES[name]).command
    page = section(name)
    assert plain(command.help.splitlines()[0]) in plain(page)
    for param in command.params:
        if isinstance(param, click.Option):
            row = [line for line in page.splitlines() if re.match(rf"\| .*{max(param.opts, key=len)}\b.* \|", line)]
            assert plain(param.help or "") in plain(" ".join(row)), param.opts
    assert f"\naver {name}" in page or f"$(aver {name}" in page


def test_the_page_of_exit_statuses_says_what_the_code_does() -> None:
    """Each settled state stands in the row of its exit status."""
    rows = dict(re.findall(r"^\| (\d+) \| (.*) \|$", (REFERENCE / "exit-statuses.md").read_text(), re.MULTILINE))
    for state in SETTLED:
        assert state.value in rows[str(exit_status_of(state))], state


def test_the_page_has_the_words_of_other_tools() -> None:
    """Each synonym stands beside the command that it runs."""
    rows = re.findall(r"^\| (`[^|]*`) \| `([^|]*)` \|$", (REFERENCE / "commands.md").read_text(), re.MULTILINE)
    found = {word: tuple(runs.split()) for words, runs in rows for word in re.findall(r"`([^`]+)`", words)}
    assert {word: found.get(word) for word in SYNONYMS} == SYNONYMS
