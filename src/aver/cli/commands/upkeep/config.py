"""`aver config`: every setting with its value and default, and how one is changed."""

from __future__ import annotations

from pathlib import Path

import click

from aver.cli.options import json_option
from aver.cli.output.documents import SettingFacts, SettingList
from aver.cli.output.views import answer
from aver.cli.session import Session
from aver.client.settings import SETTINGS, find_setting, set_value, value_text
from aver.config import config_path, load_config, read_table
from aver.errors import UsageError

VERBS = ("set", "unset")


@click.command("config")
@click.argument("words", metavar="[KEY | set KEY VALUE | unset KEY]", nargs=-1)
@json_option
def command(words: tuple[str, ...], as_json: bool) -> None:
    """Show every setting with its value, its default and where it is set, or change one.

    Settings are in $AVER_CONFIG, or in aver/config.toml below $XDG_CONFIG_HOME (~/.config). With KEY: its value alone.
    The coordinator reads them when it starts.

    \b
    Examples:
      aver config
      aver config --json
      aver config kill_wait
      aver config set kill_wait 60s
      aver config set slurm.folder /shared/me/aver
      aver config unset kill_wait
    """
    session = Session()
    path = config_path()
    match words:
        case ():
            answer(session.output, _facts(path), as_json)
            if not as_json:
                session.output.note(f"the settings file is {path}" + ("" if path.exists() else ", which is not there"))
        case _ if as_json:
            raise UsageError("config: --json is for all settings:  aver config --json")
        case (str(key),) if key not in VERBS:
            setting = find_setting(key)
            value = value_text(setting, read_table(path))
            session.output.line(value or setting.default or "-")
        case ("set", str(key), str(text)):
            set_value(path, key, text)
            _note_change(session, f"{key} is now {text}")
        case ("unset", str(key)):
            set_value(path, key, None)
            _note_change(session, f"{key} has its default again, {find_setting(key).default or 'none'}")
        case _:
            raise UsageError("config: write it as  aver config,  aver config set KEY VALUE  or  aver config unset KEY")


def _facts(path: Path) -> SettingList:
    load_config()  # what is wrong in the file is said first
    table = read_table(path)
    found = []
    for setting in SETTINGS:
        value = value_text(setting, table)
        default = setting.default or None
        found.append(SettingFacts(setting.key, value or default, default, value is not None, setting.meaning))
    return SettingList(str(path), tuple(found))


def _note_change(session: Session, change: str) -> None:
    running = "; the running coordinator keeps its settings until `aver stop`" if session.home.has_coordinator() else ""
    session.output.note(f"{change}{running}")
