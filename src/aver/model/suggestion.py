"""Names in messages: in quotes, and the nearest one that is known."""

from __future__ import annotations

from collections.abc import Collection


def shown(text: str) -> str:
    """The text in quotes, cut so that a message stays readable."""
    return f'"{text}"' if len(text) <= 60 else f'"{text[:57]}..."'


def did_you_mean(word: str, known: Collection[str]) -> str:
    """A hint that names the nearest known word, or an empty one."""
    import difflib  # few words are misspelled

    if len(word) > 255:
        return ""
    if len(known) > 2000:  # difflib compares with each: look only at those that begin alike
        known = [name for name in known if name[:1] == word[:1] and abs(len(name) - len(word)) <= 2][:2000]
    nearest = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    if not nearest:
        lower = {name.lower(): name for name in known}
        nearest = [lower[match] for match in difflib.get_close_matches(word.lower(), lower, n=1, cutoff=0.6)]
    return f'did you mean "{nearest[0]}"?' if nearest else ""
