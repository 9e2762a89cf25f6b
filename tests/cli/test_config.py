"""`aver config`: every setting, where it is set, and how one is changed."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from product import Product
from stored_past import Aver

from aver.client.settings import SETTINGS, Kind, Setting
from aver.config import Config, check_table
from aver.engines.slurm.track.evidence import Settle
from aver.errors import UsageError

PAGE = Path(__file__).parents[2] / "docs" / "en" / "reference" / "settings.md"
KEYS = [setting.key for setting in SETTINGS]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A settings file that is not there yet."""
    monkeypatch.setenv("AVER_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("AVER_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "aver" / "config.toml"


def of_file(table: dict[str, object]) -> Config:
    return check_table(Path("settings"), table)


def known_in(table: dict[str, object]) -> set[str]:
    """The keys that the reader of settings names when one is wrong."""
    with pytest.raises(UsageError) as refused:
        of_file(table)
    return set(str(refused.value).partition("known are ")[2].split(", "))


@pytest.mark.parametrize("section", ["", "slurm", "settle", "retention"])
def test_the_list_has_every_key_that_the_file_may_have(section: str) -> None:
    """And no other."""
    listed = {key.rpartition(".")[2] for key in KEYS if key.rpartition(".")[0] == section}
    sections = {key.partition(".")[0] for key in KEYS if "." in key}
    if not section:
        assert known_in({"bogus": 1}) == listed | sections
    else:
        assert known_in({section: {"bogus": 1}}) == listed


@pytest.mark.parametrize("setting", [one for one in SETTINGS if one.default], ids=lambda one: one.key)
def test_the_default_is_what_holds_without_the_key(setting: Setting) -> None:
    """Setting a key to its default changes nothing."""
    section, _, name = setting.key.rpartition(".")
    value: object = int(setting.default) if setting.kind is Kind.NUMBER else setting.default
    value = {"true": True, "false": False}.get(setting.default, value)
    if section == "settle" and name != "fallback":
        found = of_file({"settle": {name: value}})
        assert Settle(**dict(found.slurm.settle)) == Settle()  # type: ignore[arg-type]
    elif section == "retention":
        bound = {"older_than": "1d"}
        assert of_file({"retention": {**bound, name: value}}) == of_file({"retention": bound})
    else:
        assert of_file({section: {name: value}} if section else {name: value}) == Config()


def test_the_page_lists_every_setting() -> None:
    """With its default and its meaning."""
    rows = re.findall(r"^\| `([a-z_.]+)` \| (.*?) \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    assert rows == [(one.key, f"`{one.default}`" if one.default else "", one.meaning) for one in SETTINGS]


def test_all_settings_are_shown_with_where_they_are_set(call: Aver, file: Path) -> None:
    """A default is not set anywhere."""
    file.parent.mkdir()
    file.write_text('kill_wait = 45\n[slurm]\npoll = "3s"\n')
    answer = call("config")
    rows = {line.split()[0]: line.split()[1:4] for line in answer.out.splitlines()[1:]}
    assert sorted(rows) == sorted(KEYS)
    assert rows["kill_wait"] == ["45s", "30s", "config.toml"]
    assert rows["slurm.poll"] == ["3s", "1s", "config.toml"]
    assert rows["idle_exit"] == ["10s", "10s", "-"]
    assert str(file) in answer.err


def test_addresses_of_receivers_are_not_shown(call: Aver, file: Path) -> None:
    """They may be secret."""
    file.parent.mkdir()
    file.write_text('[[notify]]\nrun = "curl https://hooks.example.org/T0KEN"\n')
    assert "T0KEN" not in call("config").out + call("config", "notify").out


def test_a_setting_is_set_changed_and_removed(call: Aver, file: Path) -> None:
    """The rest of the file stays as it is, comments too."""
    for words in (("kill_wait", "1m"), ("slurm.poll", "2s"), ("cpus", "3"), ("kill_wait", "90s")):
        assert call("config", "set", *words).status == 0
    text = file.read_text()
    assert text == 'kill_wait = "90s"\ncpus = 3\n\n[slurm]\npoll = "2s"\n'
    file.write_text(f"# mine\n{text}# last\n")
    assert call("config", "set", "slurm.ssh", "ssh -4").status == 0
    assert call("config", "unset", "cpus").status == 0
    assert call("config", "cpus").out == "-\n"
    assert call("config", "slurm.ssh").out == "ssh -4\n"
    assert file.read_text() == '# mine\nkill_wait = "90s"\n\n[slurm]\npoll = "2s"\n# last\nssh = "ssh -4"\n'


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("set", "kill_wait", "30"), "'30' is not a time with its unit"),
        (("set", "cpus", "many"), "'many' is not a whole number"),
        (("set", "cpus", "0"), "not a whole number of at least 1"),
        (("set", "engine", "cloud"), "'cloud' is none of local, slurm"),
        (("set", "notify", "me"), "notify is a table"),
        (("set", "kil_wait", "3s"), "no setting 'kil_wait'"),
        (("set", "kill_wait"), "aver config set KEY VALUE"),
    ],
)
def test_a_wrong_value_is_refused_and_nothing_is_written(
    call: Aver, file: Path, words: tuple[str, ...], said: str
) -> None:
    """With one sentence."""
    answer = call("config", *words)
    assert (answer.status, said in answer.err, file.exists()) == (2, True, False)


def test_a_line_that_cant_be_changed_alone_is_left(call: Aver, file: Path) -> None:
    """A value over several lines, or a table in one line."""
    file.parent.mkdir()
    for text, key in (('secret = [\n  "A",\n]\n', "secret"), ('slurm = {poll = "2s"}\n', "slurm.poll")):
        file.write_text(text)
        answer = call("config", "set", key, "B" if key == "secret" else "5s")
        assert (answer.status, "edit the file" in answer.err, file.read_text()) == (2, True, text)


def test_a_job_that_runs_has_the_variables_of_the_page(aver: Product) -> None:
    """All that are Aver's or Slurm's are listed."""
    out = aver("run", "--", "env", env={"BASH_ENV": ""}).out
    names = {line.partition("=")[0] for line in out.splitlines()}
    text = (PAGE.parent / "job-environment.md").read_text()
    assert {"AVER_KEY", "AVER_ATTEMPT", "PYTHONUNBUFFERED"} <= names
    for name in names.difference(os.environ):
        assert f"`{name}`" in text or not name.startswith(("AVER_", "SLURM", "BASH_ENV"))
