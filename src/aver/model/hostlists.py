"""Lists of host names in Slurm's short form, `n[1-3,07-09],a`, and back."""

from __future__ import annotations

MOST_HOSTS = 65536
_DIGITS = "0123456789"


def expand(text: str) -> list[str]:
    """The names; raise ValueError for what is not a list, or names too many."""
    found: list[str] = []
    for part in _split(text):
        found += _expand_one(part)
        if len(found) > MOST_HOSTS:
            raise ValueError(text)
    return found


def compress(hosts: list[str]) -> str:
    """The short form, with the names in the order given."""
    parts: list[str] = []
    at = 0
    while at < len(hosts):
        prefix, _ = _parted(hosts[at])
        numbers: list[str] = []
        while at < len(hosts) and _parted(hosts[at])[0] == prefix and (not numbers or _parted(hosts[at])[1]):
            number = _parted(hosts[at])[1]
            at += 1
            numbers.append(number)
            if not number:
                break
        ranges = _ranges(numbers)
        parts.append(prefix + (ranges if len(numbers) == 1 else f"[{ranges}]"))
    return ",".join(parts)


def ordered(hosts: list[str]) -> list[str]:
    """Each once, by name and then by number."""
    return sorted(set(hosts), key=lambda host: (_parted(host)[0], int(_parted(host)[1] or 0), len(host)))


def _split(text: str) -> list[str]:
    """At the commas and spaces outside of brackets."""
    parts, depth, word = [], 0, ""
    for letter in text:
        depth += {"[": 1, "]": -1}.get(letter, 0)
        if depth not in (0, 1):
            raise ValueError(text)
        if letter in ", \n\t" and not depth:
            parts.append(word)
            word = ""
        else:
            word += letter
    if depth:
        raise ValueError(text)
    return [part for part in [*parts, word] if part]


def _expand_one(part: str) -> list[str]:
    """Slurm's order: the last bracket changes with each name, then the others from the left."""
    names = [""]
    while "[" in part:
        before, _, rest = part.partition("[")
        inside, _, part = rest.partition("]")
        numbers = _numbers(inside)
        if len(names) * len(numbers) > MOST_HOSTS:
            raise ValueError(inside)
        if "[" in part:
            names = [f"{name}{before}{number}" for number in numbers for name in names]
        else:
            names = [f"{name}{before}{number}" for name in names for number in numbers]
    return [name + part for name in names]


def _numbers(text: str) -> list[str]:
    """What stands in brackets: `1-3,07`."""
    found: list[str] = []
    for piece in text.split(","):
        first, dash, last = piece.partition("-")
        last = last if dash else first
        if not (_is_number(first) and _is_number(last)) or int(last) < int(first):
            raise ValueError(text)
        if int(last) - int(first) >= MOST_HOSTS:
            raise ValueError(text)
        found += [str(number).rjust(len(first), "0") for number in range(int(first), int(last) + 1)]
    return found


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18


def _parted(host: str) -> tuple[str, str]:
    """The name without the number at its end, and the number."""
    prefix = host.rstrip(_DIGITS)
    number = host[len(prefix) :]
    if len(number) > 18:
        return host[:-18], host[-18:]
    return prefix, number


def _ranges(numbers: list[str]) -> str:
    parts: list[str] = []
    at = 0
    while at < len(numbers):
        end = at
        while end + 1 < len(numbers) and _follows(numbers[end], numbers[end + 1]):
            end += 1
        parts.append(numbers[at] if end == at else f"{numbers[at]}-{numbers[end]}")
        at = end + 1
    return ",".join(parts)


def _follows(one: str, two: str) -> bool:
    """Whether a range can go on: the next number, written as wide, or wider as it grew."""
    if int(two) != int(one) + 1:
        return False
    return len(one) == len(two) or not (one.startswith("0") or two.startswith("0"))
