"""`aver connect` without a host that answers; tests/slurm has the rest."""

from __future__ import annotations

import pytest
from product import Product


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ((), 2, "aver: no host given: use  aver connect me@login , or set slurm.host in the settings\n"),
        (("-oProxyCommand=true",), 2, "aver: no such option"),
        (("--", "-oProxyCommand=true"), 2, "aver: '-oProxyCommand=true' is not the name of a host"),
        (("a b",), 2, "aver: 'a b' is not the name of a host, such as me@login\n"),
        (("--close", "me@127.0.0.1"), 69, "aver: ssh ended with exit status 255\n"),
    ],
)
def test_what_is_no_host_is_never_given_to_ssh(aver: Product, words: tuple[str, ...], status: int, said: str) -> None:
    """One line that says what to type; a connection that is not open can't be closed."""
    answer = aver("connect", *words)
    assert answer.status == status
    assert answer.out == ""
    assert said in answer.err
