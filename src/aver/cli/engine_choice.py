"""The name of an engine as an option: those that Aver ships, and those that the settings name."""

from __future__ import annotations

import click

from aver.config import engine_names


class EngineChoice(click.ParamType[str]):
    """Reads the settings only where the option is used or shown."""

    name = "engine"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return f"[{'|'.join(engine_names())}]"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        names = engine_names()
        if value not in names:
            self.fail(f"{value!r} is not one of {', '.join(map(repr, names))}.", param, ctx)
        return value
