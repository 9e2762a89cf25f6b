"""`notify:` of a flow, and `[notify]` and `[retention]` of the settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from aver.config import Retention, load_config
from aver.errors import UsageError
from aver.model.job import NotifyOn, NotifyRule
from aver.spec.flow.file import parse_flow
from aver.spec.mistakes import SpecError

JOBS = "jobs: {a: {run: 'true'}}\n"


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("notify: {run: tell}", (NotifyRule(NotifyOn.SETTLED, ("/bin/sh", "-c", "tell")),)),
        (
            "notify: {on: [failed, settled], run: [tell, me], timeout: 5s, attempts: 2}",
            (
                NotifyRule(NotifyOn.FAILED, ("tell", "me"), 5.0, 2),
                NotifyRule(NotifyOn.SETTLED, ("tell", "me"), 5.0, 2),
            ),
        ),
        (
            "notify: [{on: every, run: a}, {on: failed, run: b}]",
            (
                NotifyRule(NotifyOn.EVERY, ("/bin/sh", "-c", "a")),
                NotifyRule(NotifyOn.FAILED, ("/bin/sh", "-c", "b")),
            ),
        ),
    ],
)
def test_a_flow_says_whom_to_tell(text: str, rules: tuple[NotifyRule, ...]) -> None:
    """One map, several occasions, or a list."""
    assert parse_flow(f"{text}\n{JOBS}", "f.yaml", now=0.0).notify == rules


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("notify: tell", "'tell' is not a receiver"),
        ("notify: {on: failed}", "needs one of run, desktop, mail, slack, webhook"),
        ("notify: {on: fail, run: x}", "did you mean"),
        ("notify: {run: x, wen: failed}", 'unknown key "wen"'),
        ("notify: {run: ''}", "is empty"),
        ("notify: {run: x, attempts: 0}", "the least is 1"),
        ("notify: {run: x, timeout: 5}", "has no unit"),
    ],
)
def test_mistakes_have_their_place(text: str, said: str) -> None:
    """Each is one line with the file, the line and what is wrong."""
    with pytest.raises(SpecError) as caught:
        parse_flow(f"{text}\n{JOBS}", "f.yaml", now=0.0)
    assert str(caught.value).startswith("f.yaml:1:")
    assert said in str(caught.value)


def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (tmp_path / "config.toml").write_text(text)
    monkeypatch.setenv("AVER_CONFIG", str(tmp_path / "config.toml"))


def test_settings_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several tables; sizes and times as everywhere."""
    settings(
        tmp_path,
        monkeypatch,
        '[[notify]]\non = "failed"\nrun = ["tell", "me"]\n[[notify]]\non = ["every"]\nrun = "x"\ntimeout = "5s"\n'
        '[retention]\nolder_than = "30d"\nkeep_last = 10\nmax_size = "5G"\n',
    )
    config = load_config()
    assert config.notify == (
        NotifyRule(NotifyOn.FAILED, ("tell", "me")),
        NotifyRule(NotifyOn.EVERY, ("/bin/sh", "-c", "x"), 5.0),
    )
    assert config.retention == Retention(30 * 86400.0, 10, 5 << 30)


@pytest.mark.parametrize(
    "text",
    [
        "notify = 3",
        "[notify]\non = 'failed'",
        "[notify]\nrun = ''",
        "[notify]\nrun = []",
        "[notify]\nrun = 'x'\non = 'never'",
        "[notify]\nrun = 'x'\nmore = 1",
        "[notify]\nrun = 'x'\nattempts = 0",
        "retention = 3",
        "[retention]",
        "[retention]\nkeep_last = 0",
        "[retention]\nmax_size = 'x'",
        "[retention]\nolder_than = -1",
        "[retention]\nold = 1",
    ],
)
def test_wrong_settings_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Each names the file."""
    settings(tmp_path, monkeypatch, text)
    with pytest.raises(UsageError) as caught:
        load_config()
    assert str(caught.value).startswith(str(tmp_path / "config.toml"))
    assert "\n" not in str(caught.value)
