"""Which names the user's settings mark as secret, without the cost of reading settings that mark none."""

from __future__ import annotations

import os

from aver.fast_start import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def secret_names() -> tuple[str, ...]:
    """The settings' `secret`; UsageError if settings that have the word can't be read."""
    try:
        with open(_path(), "rb") as file:
            if b"secret" not in file.read():
                return ()
    except FileNotFoundError:
        return ()
    except OSError:
        pass  # it is said below
    from aver.config import load_config

    return load_config().secrets


def _path() -> str:
    """As `aver.config` finds it."""
    named = os.environ.get("AVER_CONFIG")
    if named:
        return named
    base = os.environ.get("XDG_CONFIG_HOME")
    folder = base if base and os.path.isabs(base) else os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(folder, "aver", "config.toml")


def names_only(text: str) -> str:
    """The text of --export without its values: `ALL,TOKEN=***`."""
    parts = [part.partition("=") for part in text.split(",")]
    return ",".join(f"{name}=***" if equals else name for name, equals, _ in parts)


def shown_words(given: Sequence[tuple[str, str | None]]) -> list[str]:
    """Options as words, without the values of --export."""
    return [
        f"--{name}" if text is None else f"--{name}={names_only(text) if name == 'export' else text}"
        for name, text in given
    ]
