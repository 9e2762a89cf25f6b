"""Options that several commands share."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from aver.errors import UsageError
from aver.model.states import State
from aver.model.units import DAY_S, parse_time

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Function = TypeVar("Function", bound=Callable[..., Any])

LISTED = 50  # how many rows a listing has without --all
MOST_LISTED = 1 << 40  # more than there can be, and a number that the store can take


def json_option(function: Function) -> Function:
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(function)


def csv_option(function: Function) -> Function:
    return click.option("--csv", "as_csv", is_flag=True, help="Print CSV; unknown values are empty.")(function)


def only_one(as_csv: bool, as_json: bool) -> None:
    if as_csv and as_json:
        raise UsageError("give --csv or --json, not both")


class EngineChoice(click.ParamType[str]):
    """The name of an engine: those that Aver ships, and those that the settings name."""

    name = "engine"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        from aver.config import engine_names  # settings are read only where the option is used or shown

        return f"[{'|'.join(engine_names())}]"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from aver.config import engine_names

        names = engine_names()
        if value not in names:
            self.fail(f"{value!r} is not one of {', '.join(map(repr, names))}.", param, ctx)
        return value


class AddressType(click.ParamType[str]):
    """The address of a job or run; a shell completes the newest numbers, and names after `RUN/`."""

    name = "address"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from aver.cli.completion import complete_address  # only a shell asks

        return complete_address(incomplete)


ADDRESS = AddressType()


def addresses(function: Function) -> Function:
    return click.argument("ids", metavar="ID...", nargs=-1, required=True, type=ADDRESS)(function)


def listing_options(function: Function) -> Function:
    limit = click.option(
        "-n",
        "--limit",
        "limit",
        type=click.IntRange(min=1),
        metavar="N",
        help=f"Show at most N rows (default: {LISTED}).",
    )
    every = click.option("--all", "-a", "show_all", is_flag=True, help="Show all rows.")
    return limit(every(function))


def row_limit(limit: int | None, show_all: bool) -> int | None:
    """How many rows to show; None is all."""
    return None if show_all else min(limit or LISTED, MOST_LISTED)


class StateType(click.ParamType[State]):
    """A state by its name, in any case."""

    name = "state"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> State:
        if isinstance(value, State):
            return value
        try:
            return State(str(value).upper().replace("-", "_"))
        except ValueError:
            known = ", ".join(state.value for state in State)
            raise UsageError(f"{value!r} is not a state; the states are {known}") from None

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem  # only a shell asks

        return [CompletionItem(state.value) for state in State if state.value.startswith(incomplete.upper())]


class StatesType(click.ParamType[frozenset[State]]):
    """States by their names, with commas between them."""

    name = "states"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> frozenset[State]:
        if isinstance(value, frozenset):
            return value
        one = StateType()
        return frozenset(one.convert(word, param, ctx) for word in str(value).split(",") if word)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return StateType().shell_complete(ctx, param, incomplete)


class SinceType(click.ParamType[float]):
    """A moment in the past: a duration before now, `today`, `yesterday`, a date or a time of today."""

    name = "since"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        from aver.spec.clock import parse_past  # few ask for it

        text, now = str(value).strip().lower(), time.time()
        try:
            if text == "yesterday":
                return parse_past("today", now) - DAY_S
            if text[:1].isdigit() and text[-1:] in "smhdw":
                return now - (parse_time(text) or 0)
            return parse_past(text, now)
        except ValueError:
            raise UsageError(f"{value!r} is not a time: give 2h, 3d, today, yesterday, 2030-01-20 or 16:00") from None


def no_limit_is_no_amount(text: str) -> int:
    """0, if that is what the text says; raise ValueError for UNLIMITED, of which nothing is more or longer."""
    if any(letter.isdigit() for letter in text):
        return 0
    raise ValueError(f"{text!r} is not a limit: give an amount, or leave the option out")


class DurationType(click.ParamType[float]):
    """A duration as people write it; a bare number is minutes, as everywhere."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            return float(parse_time(str(value)) or no_limit_is_no_amount(str(value)))
        except ValueError as error:
            raise UsageError(str(error)) from None
