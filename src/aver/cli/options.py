"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from aver.errors import UsageError
from aver.model.states import State
from aver.model.units import parse_time

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


def addresses(function: Function) -> Function:
    return click.argument("ids", metavar="ID...", nargs=-1, required=True)(function)


def listing_options(function: Function) -> Function:
    limit = click.option(
        "-n", "limit", type=click.IntRange(min=1), metavar="N", help=f"Show at most N rows (default: {LISTED})."
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


def no_limit_is_no_amount(text: str) -> int:
    """0, if that is what the text says; raise ValueError for UNLIMITED, of which nothing is more or longer."""
    if any(letter.isdigit() for letter in text):
        return 0
    raise ValueError(f"{text!r} is no bound: give an amount, or leave the option out")


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
