"""Lines that are folded on a terminal."""

from __future__ import annotations

import os
import pty

import pytest

from aver.cli.output.text import Output
from aver.render.masking import Masking


@pytest.mark.parametrize("used", [0, 12])
def test_a_secret_is_masked_before_its_line_is_folded(monkeypatch: pytest.MonkeyPatch, used: int) -> None:
    """A secret of several words never falls apart at the end of a line, where its parts would not be known."""
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.delenv("LINES", raising=False)
    secret = "correct horse battery staple"
    controller, terminal = pty.openpty()
    try:
        with os.fdopen(terminal, "wb", buffering=0) as file:
            output = Output(file, file, Masking([secret.encode()]))
            lines = output.folded(f"the job printed its password {secret} and then it ended with a failure", used)
            assert len(lines) > 1
            assert "***" in " ".join(lines)
            assert not set(secret.split()) & set(" ".join(lines).split())
            assert all(len(line) <= 40 - used for line in lines)
            output.say(f"the job printed its password {secret} and then it ended with a failure")
        shown = os.read(controller, 4096).decode()
        assert "***" in shown
        assert not any(word in shown for word in secret.split())
    finally:
        os.close(controller)
