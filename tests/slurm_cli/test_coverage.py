"""The page of what is served, the commands' own tables, and the lists of Slurm's man pages say the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from recordings import FOLDER
from slurm_commands import Slurm

from aver.client.slurm_bin import COMMANDS
from aver.model.slurm_names import NEWEST, RELEASES
from aver.slurm_cli.coverage import Command, commands, renew
from aver.spec.getopt import FLAG

PAGE = Path(__file__).parents[2] / "docs" / "en" / "reference" / "slurm-commands.md"
BY_NAME = {command.name: command for command in commands()}


def man_options() -> dict[str, list[tuple[str, str]]]:
    """Of each command: names with their letters, as its man page of 22.05.8 lists them."""
    found = {}
    for line in (FOLDER / "man-options.txt").read_text().splitlines():
        if not line.startswith("#"):
            name, _, rest = line.partition(": ")
            found[name] = [(word.partition(":")[0], word.partition(":")[2]) for word in rest.split()]
    return found


def test_the_page_has_the_tables_of_the_code() -> None:
    """`python -m aver.slurm_cli.coverage docs/en/reference/slurm-commands.md` changes nothing."""
    text = PAGE.read_text()
    assert renew(text) == text


def test_every_command_has_its_lists() -> None:
    """Each that is installed, and no other."""
    assert set(BY_NAME) == set(COMMANDS)


@pytest.mark.parametrize("name", sorted(man_options()))
def test_every_option_of_the_man_page_is_known(name: str) -> None:
    """None of them is "unrecognized": it is served, has no meaning here, or is refused in its own line."""
    table = BY_NAME[name].options
    assert [option for option, _ in man_options()[name] if option not in table.names] == []
    assert [letter for _, letter in man_options()[name] if letter and letter not in table.letters] == []


@pytest.mark.parametrize("command", commands(), ids=lambda command: command.name)
def test_lists_name_options_that_there_are(command: Command) -> None:
    """What is called without meaning, or not supported, is in the command's table, and in one list only."""
    assert set(command.without_meaning) <= set(command.options.takes)
    assert set(command.not_served) <= set(command.options.takes)
    assert not set(command.without_meaning) & set(command.not_served)


@pytest.mark.parametrize(
    ("name", "option"), [(command.name, option) for command in commands() for option in command.not_served]
)
def test_what_is_not_served_says_so(slurm: Slurm, name: str, option: str) -> None:
    """One line that names it, exit 1, nothing on stdout, and no job."""
    words = [f"--{option}" if BY_NAME[name].options.takes[option] == FLAG else f"--{option}=x"]
    if name in ("srun", "salloc"):
        words.append("true")
    said = slurm(name, *words, *(["--wrap", "true"] if name == "sbatch" else []))
    assert (said.status, said.out) == (1, "")
    assert "is not supported" in said.err
    assert len(said.err.splitlines()) == 1
    assert slurm("squeue", "-h").out == ""


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"seff"}))
def test_every_command_has_a_version_a_help_and_getopts_words(slurm: Slurm, name: str) -> None:
    """`--version` and `-V` alike; an unknown option ends as Slurm's command does."""
    assert slurm(name, "--version").out == slurm(name, "-V").out == f"slurm {RELEASES[NEWEST]}\n"
    assert slurm(name, "--help").status == 0
    assert slurm(name, "--usage").status == 0 or name in ("scontrol",)
    said = slurm(name, "--no-such-option")
    assert said.status == BY_NAME[name].status
    assert said.err.startswith(f"{name}: unrecognized option '--no-such-option'\n")


@pytest.mark.parametrize("verb", ["reconfigure", "wait_job", "shutdown", "setdebug", "create", "cancel"])
def test_verbs_that_are_not_served_say_so(slurm: Slurm, verb: str) -> None:
    """One line, exit 1."""
    said = slurm("scontrol", verb, "1")
    assert said.status == 1
    assert said.err.startswith(f"scontrol: error: {verb} is not supported")
