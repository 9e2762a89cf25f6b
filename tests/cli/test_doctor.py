"""`aver doctor`."""

from __future__ import annotations

from drawn_terminal import Terminal
from product import Product


def test_doctor_fits_into_the_terminal(aver: Product) -> None:
    """A long fact goes on below itself, and a pipe gets it whole."""
    terminal = Terminal(aver, ["doctor"], 80, 60, NO_COLOR="1")
    text = terminal.read_until(None).replace("\r", "")
    assert terminal.close() == 0
    lines = text.splitlines()
    assert any(line.startswith("ok      witness ") for line in lines)
    assert [line for line in lines if len(line) > 80 and " " in line[23:].strip()] == []
