"""`aver config`: every setting with its value and default, and how one is changed."""

from __future__ import annotations

import click

from aver.cli.output.table import Table, show_table
from aver.cli.session import Session
from aver.client.settings import SETTINGS, find_setting, set_value, value_text
from aver.config import config_path, load_config, read_table
from aver.errors import UsageError

VERBS = ("set", "unset")
HEADS = ("KEY", "VALUE", "DEFAULT", "SET IN", "MEANING")


@click.command("config")
@click.argument("words", metavar="[KEY | set KEY VALUE | unset KEY]", nargs=-1)
def command(words: tuple[str, ...]) -> None:
    """Show every setting with its value, its default and where it is set, or change one.

    Settings are in $AVER_CONFIG, or in aver/config.toml below $XDG_CONFIG_HOME (~/.config). With KEY: its value alone.
    The coordinator reads them when it starts.

    \b
    Examples:
      aver config
      aver config kill_wait
      aver config set kill_wait 60s
      aver config set slurm.folder /shared/me/aver
      aver config unset kill_wait
    """
    session = Session()
    path = config_path()
    match words:
        case ():
            _show(session)
        case (str(key),) if key not in VERBS:
            setting = find_setting(key)
            value = value_text(setting, read_table(path))
            session.output.line(value or setting.default or "-")
        case ("set", str(key), str(text)):
            set_value(path, key, text)
            _note_restart(session)
        case ("unset", str(key)):
            set_value(path, key, None)
            _note_restart(session)
        case _:
            raise UsageError("config: write it as  aver config,  aver config set KEY VALUE  or  aver config unset KEY")


def _show(session: Session) -> None:
    load_config()  # what is wrong in the file is said first
    path = config_path()
    table = read_table(path)
    rows = []
    for setting in SETTINGS:
        value = value_text(setting, table)
        place = "-" if value is None else path.name
        rows.append((setting.key, value or setting.default or "-", setting.default or "-", place, setting.meaning))
    show_table(session.output, Table(HEADS, tuple(rows), wide=4))
    session.output.note(f"the settings file is {path}" + ("" if path.exists() else ", which is not there"))


def _note_restart(session: Session) -> None:
    if session.home.has_coordinator():
        session.output.note("a coordinator runs with the settings as they were: `aver stop`; the next one has these")
