"""All messages of the command line are in one file, to be read by a fresh eye."""

from __future__ import annotations

from message_list import LIST, messages


def test_the_list_has_every_message() -> None:
    """A message that is new or changed is read in the list before anybody else reads it."""
    assert LIST.read_text() == messages(), (
        "read the changes: python tests/cli/message_list.py; git diff tests/cli/messages.txt"
    )


def test_the_list_is_whole() -> None:
    """Helps, errors and notes are found, also where a value is filled in."""
    text = messages()
    for wanted in (
        "Time limit: 10 (minutes), 90s, 2h, 1-12:00:00.",
        "give --follow or --json, not both",
        "nothing to run: give a flow or a batch script, or a command after --",
        "no job or run …; `aver jobs` lists them",
        "Vouch for a job whose end nobody saw.",
    ):
        assert wanted in text
